// The scan class: steps along the scanned dimension, many rows side by side as
// lanes; after each step `finish` writes the outputs there.
#include <atomic>
#include <new>

#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/reduce/fold.h"
#include "plugins/cpu/reduce/loops.h"
#include "plugins/cpu/reduce/reduction.h"

namespace mica::cpu {
namespace {

constexpr int8_t kIdentity[kMaxInputs] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

void RunProgram(const ReduceCall& call) {
  const MicaProgram& program = *call.call->program;
  const StagePlans stage(call, program);
  const Plan* finish_plan = SectionPlan(call, program, program.finish);
  Space space;
  MakeSpace(call, true, true, &space);
  if (space.outer.numel == 0 || space.inner.numel == 0) return;
  std::atomic<int> flags{0};
  std::atomic<bool> no_memory{false};
  const int64_t grain = std::max<int64_t>(16, 32768 / space.inner.numel);
  ParallelSteps(space.outer.numel, grain, 16, ThreadsOf(call.call), [&](int64_t begin, int64_t end) {
    char* memory = Scratch(stage.Memory() + Runner::MemoryOf(*finish_plan) + 4096);
    if (memory == nullptr) {
      no_memory = true;
      return;
    }
    Arena arena(memory);
    Fold fold(stage, call, kIdentity, space.inner.numel, &arena);
    Runner finish;
    finish.Bind(finish_plan, program, call, kIdentity, space.inner.numel, &arena);
    int raised = 0;
    int64_t shifts[kMaxOperands];
    Patience patience(kProgramPatience);
    for (int64_t position = begin; position < end;) {
      const int64_t n = space.outer.PieceLength(position, end, fold.block());
      fold.Reset(n);
      for (int64_t r = 0; r < space.inner.numel; ++r) {
        for (int k = 0; k < space.inner.num_operands; ++k) shifts[k] = space.inner.Offset(k, r);
        raised |= fold.Step(space, shifts, position, n, r);
        for (int s = 0; s < fold.num_own(); ++s) finish.ReadState(s, fold.state(s));
        finish.Target(space.outer, shifts, space.num_inputs, position, n);
        raised |= finish.Run(n);
        finish.Deliver(space.outer, shifts, space.num_inputs, position, n);
        if (patience.Ends(n)) return;
      }
      position += n;
    }
    flags |= raised;
  });
  if (no_memory) throw std::bad_alloc();
  if (const int raised = flags) ThrowFlags(raised);
}

}  // namespace

void RunScan(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
             int64_t num_outputs) {
  const ReduceCall scan = MakeReduceCall(call, args, outputs, num_outputs);
  if (RunScanLoop(scan)) return;
  const MicaCall wide = InDouble(*call, {"cumsum", "cumprod", "linear_scan", "logcumsumexp"});
  RunProgram(MakeReduceCall(&wide, args, outputs, num_outputs));
}

}  // namespace mica::cpu
