// One stage of a reduction program on one thread: init, step, combine.
//
// States are blocks of lanes. Along the reduced dimension (`Row`) each lane takes
// every W-th element and the lanes are folded into one by `combine` at the end;
// across it (`Lanes`) each lane is one output. Sums cascade: after 32 steps the
// lanes are added to a second level and start anew, and so on up, so that a float32
// sum of 2^24 elements keeps six digits and more.
#ifndef MICA_PLUGINS_CPU_REDUCE_FOLD_H_
#define MICA_PLUGINS_CPU_REDUCE_FOLD_H_

#include <cstdint>

#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/reduce/runner.h"

namespace mica::cpu {

// Elements between two questions for a Ctrl-C: a few milliseconds of a long program.
inline constexpr int64_t kProgramPatience = 32768;

// The plans of a stage, found once a call.
struct StagePlans {
  StagePlans(const ReduceCall& call, const MicaProgram& program);
  const MicaProgram* program;
  const Plan* init;
  const Plan* main;
  const Plan* combine;
  int first_state, num_own;
  int64_t state_bytes;
  bool cascades;
  int64_t Memory() const;
};

class Fold {
 public:
  static constexpr int kMaxOwn = 8;
  static constexpr int kLevels = 3;

  Fold(const StagePlans& plans, const ReduceCall& call, const int8_t* operands, int64_t count, Arena* arena);
  Fold(const Fold&) = delete;
  Fold& operator=(const Fold&) = delete;

  // A state of an earlier stage, as lanes.
  void Given(int state, char* lanes) { main_.ReadState(state, lanes); }

  // Folds positions [begin, end) of the row whose operands are shifted by
  // `shifts`; leaves one lane in each state. Returns the primitives' flags. Long ones ask
  // whether to stop (threads.h), and what they leave is then of no use.
  int Row(const Iteration& inner, const int64_t* shifts, int64_t begin, int64_t end);
  // Folds all positions of the inner space for `n` lanes from outer `position`.
  int Lanes(const Space& space, int64_t position, int64_t n);

  // For scans: start anew with n lanes; take one step.
  void Reset(int64_t n);
  int Step(const Space& space, const int64_t* shifts, int64_t position, int64_t n, int64_t index);

  // Folds n lanes of the states into the first.
  int FoldLanes(int64_t n);

  char* state(int own) const { return current_[own]; }
  int num_own() const { return plans_.num_own; }
  int64_t block() const { return main_.plan().block; }

 private:
  int RunMain(int64_t n);
  // Sums of one state: start anew; count a step and carry what is full; add the levels to the state.
  void Start(int64_t lanes);
  int Ascend(int64_t lanes);
  int Settle(int64_t lanes);
  int Carry(int level, char* from, int64_t lanes);
  void CopyLanes(char* dst, const char* src, int64_t n) const;

  const StagePlans& plans_;
  Runner main_, combine_;
  int64_t lane_bytes_;  // of one plane
  bool complex_;
  bool in_place_;        // combine may write over its left operand
  int64_t touched_ = 0;  // lanes that hold more than the initial state
  int64_t steps_ = 0;
  Patience patience_{kProgramPatience};
  bool level_used_[kLevels] = {};
  char* initial_[kMaxOwn];
  char* current_[kMaxOwn];
  char* next_[kMaxOwn];
  char* levels_[kLevels];  // of the only state of a plan that cascades
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_FOLD_H_
