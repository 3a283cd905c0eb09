// A rank's end of a group, and what it has started: the objects that the operators pass.
#ifndef MICA_PLUGINS_COLLECTIVES_GROUP_H_
#define MICA_PLUGINS_COLLECTIVES_GROUP_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <mica/collectives.h>
#include <mica/object.h>
#include <mica/plugin.h>

namespace mica::collectives {

using plugin::TensorRef;

// Closed by `collectives::close` or with the last reference.
class Connection {
 public:
  Connection(const std::string& engine, const std::string& name, int64_t rank, int64_t size, double timeout);
  ~Connection() { Close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Connect(const std::vector<std::string>& addresses);
  void Close();
  // Retains the tensors until the engine is done with their memory.
  MicaWork* Start(const MicaCollective& call, MicaTensor* input, MicaTensor* output);
  // As MicaCollectives::wait; at most so long, and short enough for a Ctrl-C.
  bool Wait(MicaWork* work, double seconds);
  void Release(MicaWork* work) { table_->release(work); }

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  const std::string& address() const { return address_; }

 private:
  MicaGroup* open() const;  // throws where it was closed

  const MicaCollectives* table_;
  std::string name_;
  int32_t rank_, size_;
  MicaGroup* group_ = nullptr;
  std::string address_;
  std::mutex mutex_;  // one start at a time
};

struct Group {
  static constexpr const char* kTypeName = "collectives.Group";
  std::shared_ptr<Connection> connection;
};

struct Work {
  static constexpr const char* kTypeName = "collectives.Work";
  Work(std::shared_ptr<Connection> c, MicaWork* w) : connection(std::move(c)), work(w) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() { connection->Release(work); }
  std::shared_ptr<Connection> connection;
  MicaWork* work;
};

// The call of a collective by its name and the reduction's, checked as far as this rank sees. Splits are of
// rows of the first dimension, which it turns into elements.
struct Call {
  Call(Connection& group, std::string_view kind, MicaTensor* input, MicaTensor* output);
  void Reduce(std::string_view reduction);
  void Peer(int64_t peer, const char* name);
  void Split(MicaIntSpan output_splits, MicaIntSpan input_splits);
  void CheckSizes() const;
  MicaWork* Start();
  void Run();

  Connection& group;
  MicaTensor *input, *output;
  MicaCollective collective{};
  std::vector<int64_t> of_input, of_output;
};

}  // namespace mica::collectives

#endif  // MICA_PLUGINS_COLLECTIVES_GROUP_H_
