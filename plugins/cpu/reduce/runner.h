// A plan bound to memory: slots, constants and pieces of operands.
//
// The reduction, scan and row engines run several plans (init, step, combine,
// finish, map) over the same states; each is one Runner. Not shared between
// threads: every worker binds its own from its Arena.
#ifndef MICA_PLUGINS_CPU_REDUCE_RUNNER_H_
#define MICA_PLUGINS_CPU_REDUCE_RUNNER_H_

#include <cstdint>

#include "plugins/cpu/engine/plans/plan.h"
#include "plugins/cpu/reduce/space.h"

namespace mica::cpu {

// Slices of this thread's scratch memory.
class Arena {
 public:
  explicit Arena(char* base) : next_(base) {}
  char* Take(int64_t bytes) {
    char* slice = next_;
    next_ += (bytes + 63) / 64 * 64;
    return slice;
  }

 private:
  char* next_;
};

// The plan of one section of a program; throws what keeps it from running.
const Plan* SectionPlan(const ReduceCall& call, const MicaProgram& program, const MicaCode& code);

inline constexpr int kMaxStates = 32;

class Runner {
 public:
  static int64_t MemoryOf(const Plan& plan) {
    return static_cast<int64_t>(plan.num_slots) * plan.slot_bytes + 64;
  }

  // Constants are filled for all lanes of a block; `count` is what COUNT reads.
  // `operands[i]` is the space's operand of the program's input i.
  void Bind(const Plan* plan, const MicaProgram& program, const ReduceCall& call, const int8_t* operands,
            int64_t count, Arena* arena);

  const Plan& plan() const { return *plan_; }
  // The memory of a state that the plan reads, or writes; ignored if it does not.
  void ReadState(int state, char* data);
  void WriteState(int state, char* data);
  // Binds the inputs (outputs) to a piece of `space` at `position`, operand k
  // shifted by shifts[k] bytes; Deliver() writes outputs that are not dense.
  void Load(const Iteration& space, const int64_t* shifts, int64_t position, int64_t n);
  void Target(const Iteration& space, const int64_t* shifts, int num_inputs, int64_t position, int64_t n);
  void Deliver(const Iteration& space, const int64_t* shifts, int num_inputs, int64_t position, int64_t n);
  // What INDEX reads: `first`, and `step` more for each following lane.
  void SetIndex(int64_t first, int64_t step) {
    index_[0] = first;
    index_[1] = step;
  }
  // Returns the primitives' flags.
  int Run(int64_t n) {
    int flags = 0;
    for (int s = 0; s < plan_->num_steps; ++s) {
      const Step& step = plan_->steps[s];
      flags |= step.run(slots_[step.dst], slots_[step.a], slots_[step.b], slots_[step.c], n);
    }
    return flags;
  }

 private:
  char* Home(int slot) const { return memory_ + static_cast<int64_t>(slot) * plan_->slot_bytes; }

  const Plan* plan_ = nullptr;
  char* memory_ = nullptr;
  const int8_t* operands_ = nullptr;
  int64_t index_[2] = {0, 0};
  char* slots_[kMaxSlots];
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_RUNNER_H_
