// The place where the ranks of one group meet: a slot for each collective, which runs on the thread of the
// rank that comes last, over the memory of all.
#ifndef MICA_PLUGINS_THREADS_HUB_H_
#define MICA_PLUGINS_THREADS_HUB_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <mica/collectives.h>

namespace mica::threads {

// What one rank brings to a collective.
struct Part {
  bool arrived = false;
  MicaCollective call{};
  std::vector<int64_t> input_splits, output_splits;
  void* held = nullptr;
  void (*done)(void*) = nullptr;
};

// One collective, or one message from a rank to another. All but `parts` of a full slot is read and
// written under the hub's lock.
struct Slot {
  int64_t number = 0;
  std::vector<int32_t> ranks;  // whose parts stand in `parts`, in this order
  std::vector<Part> parts;
  bool finished = false;
  int64_t code = 0;  // of the error; 0: none
  std::string error;

  bool full() const;
};

// Moves and reduces the memory of a full slot. Throws where the ranks disagree.
void RunSlot(const Slot& slot);

// "all_reduce number (3)"
std::string NameOf(const MicaCollective& call, int64_t number);

class Hub {
 public:
  explicit Hub(int32_t size) : next_(size, 0), here_(size, 0), gone_(size, false) {}

  // The hub of that name, made by whoever asks first.
  // A rank that has left it begins a new one.
  static std::shared_ptr<Hub> Named(const std::string& name, int32_t rank, int32_t size);

  void Enter(int32_t rank);
  std::shared_ptr<Slot> Start(int32_t rank, Part part);
  // Whether the slot has ended until then. At the deadline it ends with an error for all of its ranks.
  bool Wait(Slot* slot, int32_t rank, std::chrono::nanoseconds most,
            std::chrono::steady_clock::time_point deadline);
  void Leave(int32_t rank);

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Line = std::tuple<int32_t, int32_t, int64_t>;  // sender, receiver, tag

  std::shared_ptr<Slot> SlotOf(int32_t rank, const MicaCollective& call, size_t* place);
  void Fail(Slot* slot, int64_t code, std::string error, std::vector<Part>* ended);
  std::string Missing(const Slot& slot) const;
  bool HasLeft(int32_t rank);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> next_;  // number of each rank's next collective
  std::vector<char> here_;
  std::vector<bool> gone_;
  std::map<int64_t, std::shared_ptr<Slot>> open_;
  std::map<Line, std::deque<std::shared_ptr<Slot>>> messages_;  // that wait for their other side
};

}  // namespace mica::threads

#endif  // MICA_PLUGINS_THREADS_HUB_H_
