// One rank's end of a group over Gloo: its connections, and the threads that run what was started.
//
// Gloo's functions wait until a collective has ended, so that a thread of the group runs the collectives, one
// after another. Messages (send, recv) are posted by the caller and have a thread each while they last: their
// order among ranks is free, and one that waits must not hold up another.
//
// After the first failure Gloo has closed the connections, so everything that follows fails with its error.
#ifndef MICA_PLUGINS_GLOO_GROUP_H_
#define MICA_PLUGINS_GLOO_GROUP_H_

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gloo/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <mica/collectives.h>

namespace mica::gloo_engine {

// What a rank started. All but `call` and the splits is read and written under the group's lock.
struct Work {
  MicaCollective call{};
  std::vector<int64_t> input_splits, output_splits;
  int64_t number = 0;  // of the collective in the group
  void* held = nullptr;
  void (*done)(void*) = nullptr;
  std::unique_ptr<::gloo::transport::UnboundBuffer> message;  // of SEND and RECV
  bool finished = false;
  int64_t code = 0;  // of the error; 0: none
  std::string error;
};

// A context whose connections come from addresses that the caller brought.
class Context : public ::gloo::Context {
 public:
  Context(int32_t rank, int32_t size, std::chrono::milliseconds timeout);
  // For each other rank, in their order, what it must know to reach this one.
  std::string Address() const;
  void Connect(const std::vector<std::string>& addresses);
  // Ends what still waits in it, here and on the other ranks, by a wait that runs out of time: Gloo then
  // closes all connections, and has no other call that does.
  void Abort();
};

// Runs a collective to its end; throws what Gloo throws.
void RunCollective(const std::shared_ptr<Context>& context, const Work& work);
// The same number on ranks that call the same, and most likely no other: what differs never meets.
uint32_t TagOf(const Work& work, int32_t size);

// One more value in a hash.
inline uint64_t Mixed(uint64_t hash, int64_t value) {
  hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

// "all_reduce number (3)"
std::string NameOf(const Work& work);

class Group {
 public:
  Group(std::string name, int32_t rank, int32_t size, std::chrono::nanoseconds timeout);
  ~Group();

  const std::string& address() const { return address_; }
  int32_t size() const { return size_; }
  // Whether this is another process than that of the group's threads.
  bool forked() const { return process_ != getpid(); }
  void Connect(const std::vector<std::string>& addresses);
  void Start(const std::shared_ptr<Work>& work);
  bool Wait(const Work& work, std::chrono::nanoseconds most);
  void Close();

 private:
  struct Message {
    std::shared_ptr<Work> work;
    std::thread thread;
    bool ended = false;
  };

  void RunCollectives();
  void Post(const std::shared_ptr<Work>& work);
  // `refused` is why it could not be posted; empty: it was.
  void AwaitMessage(Message* message, const std::string& refused);
  void JoinEnded();
  // Runs it and ends the work with what it throws.
  template <class F>
  void Finish(Work* work, F run);
  std::string Explain(const Work& work, double seconds, const std::string& reason) const;

  const std::string name_;
  const int32_t rank_, size_;
  const pid_t process_ = getpid();
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<Context> context_;
  std::string address_;

  std::mutex mutex_;
  std::condition_variable arrived_;  // a collective, for the runner
  std::condition_variable ended_;    // something, for those that wait
  std::deque<std::shared_ptr<Work>> waiting_;
  std::list<Message> messages_;
  int64_t next_ = 0;    // number of the next collective
  bool runs_ = false;   // a collective
  std::string broken_;  // why nothing more can run; empty: it can
  bool connected_ = false, closing_ = false;
  std::thread runner_;
};

}  // namespace mica::gloo_engine

#endif  // MICA_PLUGINS_GLOO_GROUP_H_
