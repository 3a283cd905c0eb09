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

// All of a small dense tensor: no space to make.
void FoldWhole(const ReduceCall& call, RowFold fold, int32_t lane, const DenseRows& row) {
  char results[2][16];
  fold(row, results[0], results[1]);
  for (int64_t i = 0; i < call.num_outputs; ++i) {
    const int32_t dtype = DtypeOf(call.outputs[i]);
    if (dtype == lane)
      std::memcpy(call.outputs[i]->dl.data, results[i], static_cast<size_t>(DtypeSize(lane)));
    else
      DirectCast(lane, dtype)(call.outputs[i]->dl.data, results[i], nullptr, nullptr, 1);
  }
}

// Rows that lie together.
bool RunDenseRows(const ReduceCall& call, RowKind kind) {
  const MicaTensor* self = call.inputs[0];
  const int32_t dtype = DtypeOf(self), lane = FoldLane(dtype, kind);
  const RowFold fold = RowFoldOf(dtype, kind);
  bool fits = fold != nullptr && LaneOf(call.call->compute_dtype) == lane;
  for (int64_t i = 0; i < call.num_outputs; ++i) fits &= LaneOf(DtypeOf(call.outputs[i])) == lane;
  if (!fits) return false;
  double correction = 0;
  if (call.call->program->num_scalars > 0 && kind >= RowKind::kVar)
    correction = NumberOf(call.args[call.call->program->scalar_args[0]]).re;
  int64_t outputs = 1, numel = 1;
  for (int d = 0; d < call.outputs[0]->dl.ndim; ++d) outputs *= call.outputs[0]->dl.shape[d];
  for (int d = 0; d < self->dl.ndim; ++d) numel *= self->dl.shape[d];
  const int32_t threads = ThreadsOf(call.call);
  if (outputs == 1 && (self->flags & MICA_TENSOR_CONTIGUOUS) != 0 && numel > 0 &&
      numel < (threads == 1 ? kQuickRow : 2 * kGrain)) {
    FoldWhole(call, fold, lane, {static_cast<const char*>(self->dl.data), 0, 1, numel, correction});
    return true;
  }
  Space space;
  MakeSpace(call, false, false, &space);
  const Iteration& outer = space.outer;
  if (outer.numel == 0) return true;
  if (space.inner.ndim != 1 || !space.inner.operands[0].flat || space.inner.numel < kShortRow) return false;
  // Few long rows are cut among threads by the program engine.
  if (outer.numel < threads && numel >= 2 * kGrain) return false;
  const int64_t n = space.inner.numel;
  const int last = outer.ndim - 1;
  const Operand& in = outer.operands[0];
  ParallelSteps(outer.numel, std::max<int64_t>(1, kGrain / n), 1, threads, [&](int64_t begin, int64_t end) {
    Lanes results, means;
    for (int64_t o = begin; o < end;) {
      const int64_t rows = std::min({kRows, end - o, outer.sizes[last] - o % outer.sizes[last]});
      fold({in.data + outer.Offset(0, o), in.strides[last], rows, n, correction}, results.bytes, means.bytes);
      WriteLanes(call, space, 0, lane, o, rows, results.bytes);
      if (call.num_outputs > 1) WriteLanes(call, space, 1, lane, o, rows, means.bytes);
      o += rows;
    }
  });
  return true;
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
  for (const auto& [name, kind] : kKinds) {
    if (hint != name) continue;
    return RunDenseRows(call, kind) || RunColumnLoop(call, kind);
  }
  return false;
}

bool RunRowLoop(const ReduceCall& call) { return RunDenseMaps(call, call.call->program->hint); }

}  // namespace mica::cpu
