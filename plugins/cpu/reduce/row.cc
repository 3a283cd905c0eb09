// The row class: stages of reduction over each row, then a map over its
// elements. A row that lies together is folded and mapped while it is in cache;
// rows across memory are taken many at a time, one a lane.
#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <vector>

#include <mica/plugin.h>
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/reduce/fold.h"
#include "plugins/cpu/reduce/loops.h"
#include "plugins/cpu/reduce/reduction.h"

namespace mica::cpu {
namespace {

struct Stage {
  StagePlans plans;
  const Plan* finish;  // NULL: the states are the results
  int8_t operands[kMaxInputs];
};

struct RowCall {
  ReduceCall call;
  std::vector<Stage> stages;
  const MicaProgram* last;
  const Plan* map;
  int8_t map_operands[kMaxInputs];
  int num_states;
  Space space;
  std::atomic<int> flags{0};
  std::atomic<bool> no_memory{false};

  int64_t StateBytes() const { return kBlock * map->lane_size + 64; }
  int64_t Memory() const {
    int64_t bytes = Runner::MemoryOf(*map) + 4096 + num_states * (StateBytes() + 64);
    for (const Stage& stage : stages) {
      bytes += stage.plans.Memory() + (stage.finish == nullptr ? 0 : Runner::MemoryOf(*stage.finish));
    }
    return bytes;
  }
};

// Gives each input of a stage its operand in the one space of the call.
void MapInputs(const MicaProgram& program, ReduceCall* call, int8_t* operands) {
  for (int i = 0; i < program.num_inputs; ++i) {
    const MicaValue& value = call->args[program.input_args[i]];
    MICA_PLUGIN_CHECK(value.tag == MICA_VALUE_TENSOR && value.u.tensor != nullptr, MICA_ERROR_NOT_IMPLEMENTED,
                      "A program of the CPU engine has an optional input that is absent.");
    int k = 0;
    while (k < call->num_inputs && call->inputs[k] != value.u.tensor) ++k;
    if (k == call->num_inputs) {
      MICA_PLUGIN_CHECK(k < kMaxInputs, MICA_ERROR_NOT_IMPLEMENTED, "A row program has too many inputs.");
      call->inputs[call->num_inputs++] = value.u.tensor;
    }
    operands[i] = static_cast<int8_t>(k);
  }
}

// One worker: the folds of all stages, their finishes, the map, and the results
// of stages as lanes.
struct Worker {
  Worker(const RowCall& row, char* memory) : arena(memory) {
    const int64_t count = row.space.inner.numel;
    for (int s = 0; s < row.num_states; ++s) results.push_back(arena.Take(row.StateBytes()));
    for (const Stage& stage : row.stages) {
      folds.push_back(std::make_unique<Fold>(stage.plans, row.call, stage.operands, count, &arena));
      finishes.push_back(std::make_unique<Runner>());
      for (int s = 0; s < stage.plans.first_state; ++s)
        folds.back()->Given(s, results[static_cast<size_t>(s)]);
      if (stage.finish == nullptr) continue;
      finishes.back()->Bind(stage.finish, *stage.plans.program, row.call, stage.operands, count, &arena);
      for (int s = 0; s < stage.plans.first_state; ++s)
        finishes.back()->ReadState(s, results[static_cast<size_t>(s)]);
      for (int s = 0; s < row.num_states; ++s)
        finishes.back()->WriteState(s, results[static_cast<size_t>(s)]);
    }
    map.Bind(row.map, *row.last, row.call, row.map_operands, count, &arena);
    for (int s = 0; s < row.num_states; ++s) map.ReadState(s, results[static_cast<size_t>(s)]);
    lane_bytes = IsComplex(row.map->lane) ? row.map->lane_size / 2 : row.map->lane_size;
  }

  // Turns n lanes of stage i's states into its results.
  int FinishStage(const RowCall& row, size_t i, int64_t n) {
    const Stage& stage = row.stages[i];
    const Fold& fold = *folds[i];
    if (stage.finish != nullptr) {
      for (int s = 0; s < fold.num_own(); ++s)
        finishes[i]->ReadState(stage.plans.first_state + s, fold.state(s));
      return finishes[i]->Run(n);
    }
    for (int s = 0; s < fold.num_own(); ++s) {
      char* result = results[static_cast<size_t>(stage.plans.first_state + s)];
      std::copy_n(fold.state(s), n * lane_bytes, result);
      if (IsComplex(row.map->lane)) {
        std::copy_n(fold.state(s) + kBlock * lane_bytes, n * lane_bytes, result + kBlock * lane_bytes);
      }
    }
    return kFlagNone;
  }

  Arena arena;
  std::vector<char*> results;
  std::vector<std::unique_ptr<Fold>> folds;
  std::vector<std::unique_ptr<Runner>> finishes;
  Runner map;
  int64_t lane_bytes = 0;
  Patience patience{kProgramPatience};
};

int OneRow(const RowCall& row, Worker& worker, int64_t position) {
  const Space& space = row.space;
  int64_t shifts[kMaxOperands];
  for (int k = 0; k < space.outer.num_operands; ++k) shifts[k] = space.outer.Offset(k, position);
  const int64_t count = space.inner.numel;
  const int64_t block = row.map->block;
  int flags = 0;
  for (size_t i = 0; i < row.stages.size(); ++i) {
    flags |= worker.folds[i]->Row(space.inner, shifts, 0, count);
    flags |= worker.FinishStage(row, i, 1);
    const StagePlans& plans = row.stages[i].plans;
    for (int s = plans.first_state; s < plans.program->num_states; ++s) {
      char* lanes = worker.results[static_cast<size_t>(s)];
      row.map->splat(lanes, lanes, nullptr, nullptr, std::min(block, count));
    }
  }
  for (int64_t p = 0; p < count;) {
    const int64_t n = space.inner.PieceLength(p, count, block);
    worker.map.Load(space.inner, shifts, p, n);
    worker.map.SetIndex(p, 1);
    worker.map.Target(space.inner, shifts, space.num_inputs, p, n);
    flags |= worker.map.Run(n);
    worker.map.Deliver(space.inner, shifts, space.num_inputs, p, n);
    p += n;
    if (worker.patience.Ends(n)) break;
  }
  return flags;
}

// Each stage reads the elements again: short rows that lie together are to stay in L1.
int64_t RowsAtOnce(const Space& space) {
  const Operand& first = space.inner.operands[0];
  if (!first.flat) return kBlock;
  return std::max<int64_t>(64, 12288 / (space.inner.numel * first.size) / 64 * 64);
}

int ManyRows(const RowCall& row, Worker& worker, int64_t position, int64_t n) {
  const Space& space = row.space;
  int flags = 0;
  for (size_t i = 0; i < row.stages.size(); ++i) {
    flags |= worker.folds[i]->Lanes(space, position, n);
    flags |= worker.FinishStage(row, i, n);
  }
  int64_t shifts[kMaxOperands];
  for (int64_t r = 0; r < space.inner.numel; ++r) {
    for (int k = 0; k < space.inner.num_operands; ++k) shifts[k] = space.inner.Offset(k, r);
    worker.map.Load(space.outer, shifts, position, n);
    worker.map.SetIndex(r, 0);
    worker.map.Target(space.outer, shifts, space.num_inputs, position, n);
    flags |= worker.map.Run(n);
    worker.map.Deliver(space.outer, shifts, space.num_inputs, position, n);
    if (worker.patience.Ends(n)) break;
  }
  return flags;
}

// Elements of a row that has room in a thread's scratch memory.
constexpr int64_t kMostBrought = 1 << 20;
constexpr int64_t kMostArgs = 16;

// The one input that lies otherwise than the only result: along rows where the result lies across them, or
// not together where the result's rows do; or -1. A gradient of a transposed result is one.
int LiesOtherwise(const ReduceCall& call) {
  if (call.num_outputs != 1) return -1;
  bool alike = (call.outputs[0]->flags & MICA_TENSOR_CONTIGUOUS) != 0;
  for (int k = 0; k < call.num_inputs; ++k) alike &= (call.inputs[k]->flags & MICA_TENSOR_CONTIGUOUS) != 0;
  if (alike) return -1;
  Space space;
  MakeSpace(call, false, true, &space);
  if (space.inner.ndim != 1 || space.outer.numel <= 1 || space.inner.numel <= 1 ||
      space.inner.numel > kMostBrought)
    return -1;
  const auto& rows = space.inner.operands;
  int found = -1;
  for (int k = 0; k < call.num_inputs; ++k) {
    if (rows[k].flat == rows[call.num_inputs].flat || (rows[k].invariant && !rows[k].flat)) continue;
    if (found >= 0) return -1;
    found = k;
  }
  return found;
}

// The arguments, with such an input brought to the result's place, where each element is read before it is
// written.
const MicaValue* Brought(const ReduceCall& call, int64_t num_args, MicaValue* room) {
  const int k = num_args <= kMostArgs ? LiesOtherwise(call) : -1;
  if (k < 0) return call.args;
  const MicaTensor *from = call.inputs[k], *to = call.outputs[0];
  const int32_t ndim = from->dl.ndim, dtype = DtypeOf(to);
  if (DtypeOf(from) != dtype || to->dl.ndim != ndim ||
      !std::equal(to->dl.shape, to->dl.shape + ndim, from->dl.shape))
    return call.args;
  CopyStrided(DtypeSize(dtype), ndim, to->dl.shape, from->dl.data, from->dl.strides, to->dl.data,
              to->dl.strides, ThreadsOf(call.call));
  for (int64_t i = 0; i < num_args; ++i) {
    room[i] = call.args[i];
    if (room[i].tag == MICA_VALUE_TENSOR && room[i].u.tensor == from) room[i].u.tensor = call.outputs[0];
  }
  return room;
}

}  // namespace

void RunRow(const MicaCall* call, const MicaValue* given, int64_t num_args, MicaTensor* const* outputs,
            int64_t num_outputs) {
  RowCall row;
  row.call = MakeReduceCall(call, given, outputs, num_outputs);
  MicaValue brought[kMostArgs];
  const MicaValue* const args = Brought(row.call, num_args, brought);
  if (args != given) row.call = MakeReduceCall(call, args, outputs, num_outputs);
  if (RunRowLoop(row.call)) return;
  bool uses_index = false;
  for (const MicaProgram* program = call->program; program != nullptr; program = program->next) {
    row.stages.push_back({StagePlans(row.call, *program), nullptr, {}});
    if (program->finish.size > 0) row.stages.back().finish = SectionPlan(row.call, *program, program->finish);
    MapInputs(*program, &row.call, row.stages.back().operands);
    uses_index |= (program->flags & MICA_PROGRAM_USES_INDEX) != 0;
    row.last = program;
  }
  row.num_states = row.last->num_states;
  row.map = SectionPlan(row.call, *row.last, row.last->map);
  MapInputs(*row.last, &row.call, row.map_operands);
  MakeSpace(row.call, uses_index, true, &row.space);
  if (row.space.outer.numel == 0 || row.space.inner.numel == 0) return;
  const bool along = uses_index || GoesAlong(row.space);
  const int64_t grain = std::max<int64_t>(along ? 1 : 64, 16384 / row.space.inner.numel);
  const int64_t most = std::min<int64_t>(row.map->block, RowsAtOnce(row.space));
  ParallelSteps(row.space.outer.numel, grain, along ? 1 : 64, ThreadsOf(call),
                [&](int64_t begin, int64_t end) {
                  char* memory = Scratch(row.Memory());
                  if (memory == nullptr) {
                    row.no_memory = true;
                    return;
                  }
                  Worker worker(row, memory);
                  int flags = 0;
                  for (int64_t position = begin; position < end;) {
                    const int64_t n = along ? 1 : row.space.outer.PieceLength(position, end, most);
                    flags |= along ? OneRow(row, worker, position) : ManyRows(row, worker, position, n);
                    position += n;
                  }
                  row.flags |= flags;
                });
  if (row.no_memory) throw std::bad_alloc();
  if (const int flags = row.flags) ThrowFlags(flags);
}

}  // namespace mica::cpu
