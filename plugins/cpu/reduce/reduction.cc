// The reduction class: folds (fold.h) over all outputs, then `finish`.
#include "plugins/cpu/reduce/reduction.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include <mica/plugin.h>
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/reduce/fold.h"
#include "plugins/cpu/reduce/loops.h"

namespace mica::cpu {
namespace {

constexpr int8_t kIdentity[kMaxInputs] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
// Elements that are worth waking a thread for.
constexpr int64_t kGrain = 32768;

// One call: everything the workers share.
struct Reduction {
  Reduction(const ReduceCall& c)
      : call(c),
        stage(c, *c.call->program),
        finish(SectionPlan(c, *c.call->program, c.call->program->finish)) {
    MakeSpace(c, (c.call->program->flags & MICA_PROGRAM_USES_INDEX) != 0, false, &space);
  }

  int64_t Memory() const {
    return stage.Memory() + Runner::MemoryOf(*finish) + Fold::kMaxOwn * (stage.state_bytes + 64) + 4096;
  }

  const ReduceCall& call;
  StagePlans stage;
  const Plan* finish;
  Space space;
  std::atomic<int> flags{0};
  std::atomic<bool> no_memory{false};
};

// One worker's binding of the plans.
struct Worker {
  Worker(const Reduction& reduction, char* memory)
      : arena(memory), fold(reduction.stage, reduction.call, kIdentity, reduction.space.inner.numel, &arena) {
    finish.Bind(reduction.finish, *reduction.stage.program, reduction.call, kIdentity,
                reduction.space.inner.numel, &arena);
    for (int s = 0; s < fold.num_own(); ++s) {
      folded[s] = arena.Take(reduction.stage.state_bytes);
      finish.ReadState(s, folded[s]);
    }
  }

  int Finish(const Reduction& reduction, int64_t position, int64_t n) {
    static constexpr int64_t kNoShift[kMaxOperands] = {};
    finish.Target(reduction.space.outer, kNoShift, reduction.space.num_inputs, position, n);
    const int flags = finish.Run(n);
    finish.Deliver(reduction.space.outer, kNoShift, reduction.space.num_inputs, position, n);
    return flags;
  }

  Arena arena;
  Fold fold;
  Runner finish;
  char* folded[Fold::kMaxOwn];
};

// Moves one lane of a state, both planes of a complex one.
void CopyLane(const Plan& plan, char* dst, int64_t to, const char* src, int64_t from) {
  const bool is_complex = IsComplex(plan.lane);
  const int64_t size = is_complex ? plan.lane_size / 2 : plan.lane_size;
  std::memcpy(dst + to * size, src + from * size, static_cast<size_t>(size));
  if (is_complex)
    std::memcpy(dst + (kBlock + to) * size, src + (kBlock + from) * size, static_cast<size_t>(size));
}

void AlongRows(Reduction& reduction, int64_t begin, int64_t end) {
  char* memory = Scratch(reduction.Memory());
  if (memory == nullptr) {
    reduction.no_memory = true;
    return;
  }
  Worker worker(reduction, memory);
  const Space& space = reduction.space;
  int flags = 0;
  int64_t shifts[kMaxOperands];
  for (int64_t position = begin; position < end;) {
    const int64_t n = space.outer.PieceLength(position, end, worker.fold.block());
    for (int64_t j = 0; j < n; ++j) {
      for (int k = 0; k < space.num_inputs; ++k) shifts[k] = space.outer.Offset(k, position + j);
      flags |= worker.fold.Row(space.inner, shifts, 0, space.inner.numel);
      for (int s = 0; s < worker.fold.num_own(); ++s) {
        CopyLane(*reduction.stage.main, worker.folded[s], j, worker.fold.state(s), 0);
      }
    }
    flags |= worker.Finish(reduction, position, n);
    position += n;
  }
  reduction.flags |= flags;
}

void AcrossRows(Reduction& reduction, int64_t begin, int64_t end) {
  char* memory = Scratch(reduction.Memory());
  if (memory == nullptr) {
    reduction.no_memory = true;
    return;
  }
  Worker worker(reduction, memory);
  int flags = 0;
  for (int64_t position = begin; position < end;) {
    const int64_t n = reduction.space.outer.PieceLength(position, end, worker.fold.block());
    flags |= worker.fold.Lanes(reduction.space, position, n);
    for (int s = 0; s < worker.fold.num_own(); ++s) worker.finish.ReadState(s, worker.fold.state(s));
    flags |= worker.Finish(reduction, position, n);
    position += n;
  }
  reduction.flags |= flags;
}

// One long row, cut among threads; the parts are folded in their order, so that
// the result does not depend on which thread was first.
void SplitRow(Reduction& reduction, int32_t threads, int64_t output) {
  struct Part {
    int64_t begin;
    char states[Fold::kMaxOwn][16];
  };
  std::vector<Part> parts;
  std::mutex mutex;
  const Space& space = reduction.space;
  int64_t shifts[kMaxOperands];
  for (int k = 0; k < space.num_inputs; ++k) shifts[k] = space.outer.Offset(k, output);
  const Plan& main = *reduction.stage.main;
  const int64_t plane = IsComplex(main.lane) ? main.lane_size / 2 : main.lane_size;
  StopSign sign;
  ParallelFor(space.inner.numel, kGrain, main.block, threads, [&](int64_t begin, int64_t end) {
    const Watched watched(&sign);
    char* memory = Scratch(reduction.Memory());
    if (memory == nullptr) {
      reduction.no_memory = true;
      return;
    }
    Worker worker(reduction, memory);
    reduction.flags |= worker.fold.Row(space.inner, shifts, begin, end);
    Part part;
    part.begin = begin;
    for (int s = 0; s < worker.fold.num_own(); ++s) {
      std::memcpy(part.states[s], worker.fold.state(s), static_cast<size_t>(plane));
      if (IsComplex(main.lane)) {
        std::memcpy(part.states[s] + plane, worker.fold.state(s) + kBlock * plane,
                    static_cast<size_t>(plane));
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    parts.push_back(part);
  });
  sign.ThrowIfRaised();
  if (reduction.no_memory) return;
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  Worker worker(reduction, Scratch(reduction.Memory()));
  const int64_t n = static_cast<int64_t>(parts.size());
  for (int s = 0; s < worker.fold.num_own(); ++s) {
    for (int64_t i = 0; i < n; ++i) {
      char* state = worker.fold.state(s);
      std::memcpy(state + i * plane, parts[static_cast<size_t>(i)].states[s], static_cast<size_t>(plane));
      if (IsComplex(main.lane)) {
        std::memcpy(state + (kBlock + i) * plane, parts[static_cast<size_t>(i)].states[s] + plane,
                    static_cast<size_t>(plane));
      }
    }
  }
  int flags = worker.fold.FoldLanes(n);
  for (int s = 0; s < worker.fold.num_own(); ++s) worker.finish.ReadState(s, worker.fold.state(s));
  flags |= worker.Finish(reduction, output, 1);
  reduction.flags |= flags;
}

void RunProgram(const ReduceCall& call) {
  Reduction reduction(call);
  const Space& space = reduction.space;
  const int64_t outputs = space.outer.numel;
  if (outputs == 0) return;
  const int32_t threads = ThreadsOf(call.call);
  const bool uses_index = (call.call->program->flags & MICA_PROGRAM_USES_INDEX) != 0;
  if (uses_index || GoesAlong(space)) {
    if (threads > 1 && outputs < threads && space.inner.numel >= 2 * kGrain) {
      for (int64_t output = 0; output < outputs; ++output) SplitRow(reduction, threads, output);
    } else {
      const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, space.inner.numel));
      ParallelSteps(outputs, grain, 1, threads,
                    [&](int64_t begin, int64_t end) { AlongRows(reduction, begin, end); });
    }
  } else {
    const int64_t grain = std::max<int64_t>(64, kGrain / std::max<int64_t>(1, space.inner.numel));
    ParallelSteps(outputs, grain, 64, threads,
                  [&](int64_t begin, int64_t end) { AcrossRows(reduction, begin, end); });
  }
  if (reduction.no_memory) throw std::bad_alloc();
  if (const int flags = reduction.flags) ThrowFlags(flags);
}

}  // namespace

MicaCall InDouble(const MicaCall& call, std::initializer_list<std::string_view> hints) {
  MicaCall wide = call;
  const bool named = std::find(hints.begin(), hints.end(), call.program->hint) != hints.end();
  const int32_t lane = LaneOf(call.compute_dtype);
  if (named && lane == MICA_F32) wide.compute_dtype = MICA_F64;
  if (named && lane == MICA_C64) wide.compute_dtype = MICA_C128;
  return wide;
}

bool GoesAlong(const Space& space) {
  const Operand& first = space.inner.operands[0];
  const int64_t run = space.inner.sizes[space.inner.ndim - 1];
  const bool dense = first.strides[space.inner.ndim - 1] == first.size && run >= kRowRun;
  return dense || space.outer.numel < 16;
}

void RunReduction(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                  int64_t num_outputs) {
  const ReduceCall reduce = MakeReduceCall(call, args, outputs, num_outputs);
  if (RunReductionLoop(reduce)) return;
  const MicaCall wide = InDouble(*call, {"var", "std", "var_mean", "logsumexp"});
  const ReduceCall program = MakeReduceCall(&wide, args, outputs, num_outputs);
  RunProgram(program);
}

}  // namespace mica::cpu
