// Choice of a loop by the program's hint and the layout; see loops.h.
#include "plugins/cpu/reduce/loops.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/plans/numbers.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/reduce/arg_loops.h"
#include "plugins/cpu/reduce/column_loops.h"
#include "plugins/cpu/reduce/row_folds.h"
#include "plugins/cpu/reduce/row_loops.h"
#include "plugins/cpu/reduce/truth_rows.h"

namespace mica::cpu {
namespace {

constexpr int64_t kGrain = 32768;
// Rows under this take less time side by side, one a lane, than one after the other.
constexpr int64_t kShortRow = 8;

constexpr std::pair<std::string_view, RowKind> kKinds[] = {
    {"sum", RowKind::kSum},         {"nansum", RowKind::kNanSum},
    {"prod", RowKind::kProduct},    {"mean", RowKind::kMean},
    {"amax", RowKind::kMax},        {"amin", RowKind::kMin},
    {"norm2", RowKind::kNorm},      {"logsumexp", RowKind::kLogSumExp},
    {"var", RowKind::kVar},         {"std", RowKind::kStd},
    {"var_mean", RowKind::kVarMean}};

// Whether a tensor of `dtype` and results like it compute in the lane of the loops.
bool InLane(const ReduceCall& call, int32_t dtype) {
  return HasRowLoops(dtype) && LaneOf(call.call->compute_dtype) == LaneOf(dtype);
}

// Elements of one row that nobody waits for.
constexpr int64_t kQuickRow = 1 << 22;

// Rows that are folded in one call.
constexpr int64_t kRows = 256;

// Lanes of kRows results.
struct Lanes {
  alignas(64) char bytes[kRows * 16];
};

// Writes n lanes to output number `i` from outer `position` on.
void WriteLanes(const ReduceCall& call, const Space& space, int i, int32_t lane, int64_t position, int64_t n,
                const char* lanes) {
  const int k = space.OutputOperand(i);
  const int32_t dtype = DtypeOf(call.outputs[i]);
  Lanes buffer;
  char* target = space.outer.Locate(k, 0, position, n, buffer.bytes, false);
  if (dtype == lane)
    std::memcpy(target, lanes, static_cast<size_t>(n * space.outer.operands[k].size));
  else
    DirectCast(lane, dtype)(target, lanes, nullptr, nullptr, n);
  if (target == buffer.bytes) space.outer.Deliver(k, 0, position, n, target);
}

// What a call folds its rows with; `fold` is NULL where there is no loop for it.
struct Folding {
  RowFold fold = nullptr;
  int32_t lane = 0;
  double correction = 0;
};

Folding FoldingOf(const ReduceCall& call, RowKind kind) {
  const int32_t dtype = DtypeOf(call.inputs[0]);
  Folding f;
  f.lane = FoldLane(dtype, kind);
  bool fits = LaneOf(call.call->compute_dtype) == f.lane;
  for (int64_t i = 0; i < call.num_outputs; ++i) fits &= LaneOf(DtypeOf(call.outputs[i])) == f.lane;
  if (fits) f.fold = RowFoldOf(dtype, kind);
  if (call.call->program->num_scalars > 0 && kind >= RowKind::kVar)
    f.correction = NumberOf(call.args[call.call->program->scalar_args[0]]).re;
  return f;
}

// One result of elements that all lie together: no space to make.
bool FoldWhole(const ReduceCall& call, const Folding& f) {
  const MicaTensor* self = call.inputs[0];
  int64_t outputs = 1, numel = 1;
  for (int d = 0; d < call.outputs[0]->dl.ndim; ++d) outputs *= call.outputs[0]->dl.shape[d];
  for (int d = 0; d < self->dl.ndim; ++d) numel *= self->dl.shape[d];
  if (f.fold == nullptr || outputs != 1 || (self->flags & MICA_TENSOR_CONTIGUOUS) == 0 || numel == 0 ||
      numel >= (ThreadsOf(call.call) == 1 ? kQuickRow : 2 * kGrain))
    return false;
  char results[2][16];
  f.fold({static_cast<const char*>(self->dl.data), 0, 1, numel, f.correction}, results[0], results[1]);
  for (int64_t i = 0; i < call.num_outputs; ++i) {
    const int32_t dtype = DtypeOf(call.outputs[i]);
    if (dtype == f.lane)
      std::memcpy(call.outputs[i]->dl.data, results[i], static_cast<size_t>(DtypeSize(f.lane)));
    else
      DirectCast(f.lane, dtype)(call.outputs[i]->dl.data, results[i], nullptr, nullptr, 1);
  }
  return true;
}

// Folds the rows of outputs [begin, end). That of output o is at row(o); the next ones of its line follow,
// `distance` bytes apart.
template <class F>
void FoldRows(const ReduceCall& call, const Folding& f, const Space& space, int64_t begin, int64_t end,
              int64_t distance, F row) {
  const int64_t line = space.outer.sizes[space.outer.ndim - 1];
  Lanes results, means;
  for (int64_t o = begin; o < end;) {
    const int64_t rows = std::min({kRows, end - o, line - o % line});
    f.fold({row(o), distance, rows, space.inner.numel, f.correction}, results.bytes, means.bytes);
    WriteLanes(call, space, 0, f.lane, o, rows, results.bytes);
    if (call.num_outputs > 1) WriteLanes(call, space, 1, f.lane, o, rows, means.bytes);
    o += rows;
  }
}

// A few rows of few elements that lie apart: brought together, which takes less time than to plan a program.
bool FoldSmall(const ReduceCall& call, const Folding& f, const Space& space) {
  constexpr int64_t kElements = 1024, kFewRows = 32;
  const int64_t rows = space.outer.numel, n = space.inner.numel;
  if (n == 0 || rows > kFewRows || rows * n > kElements) return false;
  alignas(64) char together[kElements * 16];
  const int64_t distance = n * space.inner.operands[0].size;
  const auto row = [&](int64_t o) { return together + o * distance; };
  for (int64_t o = 0; o < rows; ++o) space.inner.Pack(0, space.outer.Offset(0, o), 0, n, row(o));
  FoldRows(call, f, space, 0, rows, distance, row);
  return true;
}

// Rows that lie together.
bool FoldDense(const ReduceCall& call, const Folding& f, const Space& space) {
  const Iteration& outer = space.outer;
  const int64_t n = space.inner.numel;
  if (space.inner.ndim != 1 || !space.inner.operands[0].flat || n < kShortRow) return false;
  const int32_t threads = ThreadsOf(call.call);
  // Few long rows are cut among threads by the program engine.
  if (outer.numel < threads && outer.numel * n >= 2 * kGrain) return false;
  const Operand& in = outer.operands[0];
  ParallelSteps(outer.numel, std::max<int64_t>(1, kGrain / n), 1, threads, [&](int64_t begin, int64_t end) {
    FoldRows(call, f, space, begin, end, in.strides[outer.ndim - 1],
             [&](int64_t o) { return in.data + outer.Offset(0, o); });
  });
  return true;
}

bool RunFold(const ReduceCall& call, RowKind kind) {
  const Folding f = FoldingOf(call, kind);
  if (FoldWhole(call, f)) return true;
  const ColumnLoop columns = ColumnLoopOf(call, kind);
  if (f.fold == nullptr && columns == nullptr) return false;
  Space space;
  MakeSpace(call, false, false, &space);
  if (space.outer.numel == 0) return true;
  if (f.fold != nullptr && (FoldDense(call, f, space) || FoldSmall(call, f, space))) return true;
  return columns != nullptr && RunColumnLoop(call, kind, columns, space);
}

// all and any; a whole tensor for several threads is the program engine's.
bool RunTruth(const ReduceCall& call, bool all) {
  Folding f;
  f.lane = MICA_BOOL;
  f.fold = TruthFoldOf(DtypeOf(call.inputs[0]), all);
  if (f.fold == nullptr || call.num_outputs != 1) return false;
  if (FoldWhole(call, f)) return true;
  Space space;
  MakeSpace(call, false, false, &space);
  return space.outer.numel == 0 || FoldDense(call, f, space) || FoldSmall(call, f, space);
}

// A row function over dense rows of inputs and output.
bool RunDenseMaps(const ReduceCall& call, std::string_view hint) {
  const int32_t dtype = DtypeOf(call.inputs[0]);
  if (!InLane(call, dtype) || call.num_outputs != 1 || DtypeOf(call.outputs[0]) != dtype) return false;
  const RowLoops& loops = RowLoopsOf(dtype);
  const auto unary = hint == "softmax" ? loops.softmax : hint == "log_softmax" ? loops.log_softmax : nullptr;
  const auto binary = hint == "softmax_backward"       ? loops.softmax_backward
                      : hint == "log_softmax_backward" ? loops.log_softmax_backward
                                                       : nullptr;
  if (unary == nullptr && binary == nullptr) return false;
  // The stages' programs may list the inputs in another order: arguments 0 and 1.
  ReduceCall rows = call;
  rows.num_inputs = unary != nullptr ? 1 : 2;
  for (int i = 0; i < rows.num_inputs; ++i) {
    if (call.args[i].tag != MICA_VALUE_TENSOR || DtypeOf(call.args[i].u.tensor) != dtype) return false;
    rows.inputs[i] = call.args[i].u.tensor;
  }
  Space space;
  MakeSpace(rows, false, true, &space);
  if (space.outer.numel == 0 || space.inner.numel == 0) return true;
  for (int k = 0; k < space.inner.num_operands; ++k) {
    if (space.inner.ndim != 1 || !space.inner.operands[k].flat) return false;
  }
  const int64_t n = space.inner.numel;
  if (n < kShortRow && space.outer.numel >= kBlock / 16) return false;
  const auto row = [&](int k, int64_t o) { return space.outer.operands[k].data + space.outer.Offset(k, o); };
  // A result's row has room for its lanes, unless the elements stand there.
  const bool own_lanes = dtype == LaneOf(dtype) && rows.inputs[0] != rows.outputs[0];
  std::atomic<bool> no_memory{false};
  ParallelSteps(space.outer.numel, std::max<int64_t>(1, 8192 / n), 1, ThreadsOf(call.call),
                [&](int64_t begin, int64_t end) {
                  char* lanes =
                      unary == nullptr || own_lanes ? nullptr : Scratch(n * DtypeSize(LaneOf(dtype)));
                  no_memory = no_memory || (unary != nullptr && !own_lanes && lanes == nullptr);
                  for (int64_t o = begin; o < end && !no_memory; ++o) {
                    unary != nullptr ? unary(row(1, o), row(0, o), n, own_lanes ? row(1, o) : lanes)
                                     : binary(row(2, o), row(0, o), row(1, o), n);
                  }
                });
  if (no_memory) throw std::bad_alloc();
  return true;
}

}  // namespace

bool RunReductionLoop(const ReduceCall& call) {
  const std::string_view hint = call.call->program->hint;
  if (hint.empty()) return false;
  if (hint == "argmax") return RunArgLoop(call, ArgKind::kIndex, true);
  if (hint == "argmin") return RunArgLoop(call, ArgKind::kIndex, false);
  if (hint == "max_dim") return RunArgLoop(call, ArgKind::kValueAndIndex, true);
  if (hint == "min_dim") return RunArgLoop(call, ArgKind::kValueAndIndex, false);
  if (hint == "count_nonzero") return RunArgLoop(call, ArgKind::kCount, true);
  if (hint == "all" || hint == "any") return RunTruth(call, hint == "all");
  for (const auto& [name, kind] : kKinds) {
    if (hint != name) continue;
    return RunFold(call, kind);
  }
  return false;
}

bool RunRowLoop(const ReduceCall& call) { return RunDenseMaps(call, call.call->program->hint); }

}  // namespace mica::cpu
