// Choice of a loop by the program's hint and the layout; see loops.h.
#include "mica/plugins/cpu/reduce/loops.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>
#include <string_view>

#include "mica/plugins/cpu/engine/numbers.h"
#include "mica/plugins/cpu/engine/pointwise.h"
#include "mica/plugins/cpu/engine/scratch.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/reduce/arg_loops.h"
#include "mica/plugins/cpu/reduce/column_loops.h"
#include "mica/plugins/cpu/reduce/row_loops.h"

namespace mica::cpu {
namespace {

constexpr int64_t kGrain = 32768;
// Rows under this take less time side by side, one a lane, than one after the other.
constexpr int64_t kShortRow = 16;

enum class Kind { kNone, kSum, kProduct, kMean, kMax, kMin, kNorm, kLogSumExp, kVar, kStd, kVarMean };

Kind KindOf(std::string_view hint) {
  if (hint == "sum") return Kind::kSum;
  if (hint == "prod") return Kind::kProduct;
  if (hint == "mean") return Kind::kMean;
  if (hint == "amax") return Kind::kMax;
  if (hint == "amin") return Kind::kMin;
  if (hint == "norm2") return Kind::kNorm;
  if (hint == "logsumexp") return Kind::kLogSumExp;
  if (hint == "var") return Kind::kVar;
  if (hint == "std") return Kind::kStd;
  if (hint == "var_mean") return Kind::kVarMean;
  return Kind::kNone;
}

// Results of one row of `n` elements.
void FinishRow(const RowLoops& loops, Kind kind, const char* x, int64_t n, double correction, double* out) {
  const double count = static_cast<double>(n);
  switch (kind) {
    case Kind::kSum:
      out[0] = loops.sum(x, n);
      return;
    case Kind::kProduct:
      out[0] = loops.product(x, n);
      return;
    case Kind::kMean:
      out[0] = loops.sum(x, n) / count;
      return;
    case Kind::kMax:
      out[0] = loops.largest(x, n);
      return;
    case Kind::kMin:
      out[0] = loops.smallest(x, n);
      return;
    case Kind::kNorm:
      out[0] = std::sqrt(loops.squares(x, n, 0));
      return;
    case Kind::kLogSumExp:
      out[0] = loops.log_sum_exp(x, n);
      return;
    default: {
      const double mean = loops.sum(x, n) / count;
      const double variance = loops.squares(x, n, mean) / std::max(0.0, count - correction);
      out[0] = kind == Kind::kStd ? std::sqrt(variance) : variance;
      out[1] = mean;
    }
  }
}

// Rounds to the dtype of a result; a half type by way of its lane.
void Store(int32_t dtype, char* to, double value) {
  if (dtype == MICA_F64) {
    std::memcpy(to, &value, sizeof(value));
    return;
  }
  const float narrow = static_cast<float>(value);
  if (dtype == MICA_F32) {
    std::memcpy(to, &narrow, sizeof(narrow));
  } else {
    DirectCast(MICA_F32, dtype)(to, &narrow, nullptr, nullptr, 1);
  }
}

// Whether a tensor of `dtype` and results like it compute in the lane of the loops.
bool InLane(const ReduceCall& call, int32_t dtype) {
  return HasRowLoops(dtype) && LaneOf(call.call->compute_dtype) == LaneOf(dtype);
}

// Rows of a floating dtype that lie together.
bool RunDenseRows(const ReduceCall& call, Kind kind) {
  const MicaTensor* self = call.inputs[0];
  const int32_t dtype = DtypeOf(self);
  if (!InLane(call, dtype)) return false;
  for (int64_t i = 0; i < call.num_outputs; ++i) {
    if (!InLane(call, DtypeOf(call.outputs[i]))) return false;
  }
  const RowLoops& loops = RowLoopsOf(dtype);
  double correction = 0;
  if (call.call->program->num_scalars > 0 && kind >= Kind::kVar) {
    correction = NumberOf(call.args[call.call->program->scalar_args[0]]).re;
  }
  double results[2] = {0, 0};
  // All of a dense tensor, small or on one thread: no space to make.
  int64_t outputs = 1, numel = 1;
  for (int d = 0; d < call.outputs[0]->dl.ndim; ++d) outputs *= call.outputs[0]->dl.shape[d];
  for (int d = 0; d < self->dl.ndim; ++d) numel *= self->dl.shape[d];
  const int32_t threads = ThreadsOf(call.call);
  if (outputs == 1 && (self->flags & MICA_TENSOR_CONTIGUOUS) != 0 && numel > 0 &&
      (threads == 1 || numel < 2 * kGrain)) {
    FinishRow(loops, kind, static_cast<const char*>(self->dl.data), numel, correction, results);
    for (int64_t i = 0; i < call.num_outputs; ++i)
      Store(DtypeOf(call.outputs[i]), static_cast<char*>(call.outputs[i]->dl.data), results[i]);
    return true;
  }
  Space space;
  MakeSpace(call, false, false, &space);
  const Operand& in = space.inner.operands[0];
  if (space.outer.numel == 0) return true;
  if (space.inner.ndim != 1 || !in.flat || space.inner.numel < kShortRow) return false;
  // Few long rows are cut among threads by the program engine.
  if (space.outer.numel < threads && numel >= 2 * kGrain) return false;
  const int64_t n = space.inner.numel;
  ParallelSteps(
      space.outer.numel, std::max<int64_t>(1, kGrain / n), 1, threads, [&](int64_t begin, int64_t end) {
        double out[2] = {0, 0};
        for (int64_t o = begin; o < end; ++o) {
          FinishRow(loops, kind, space.outer.operands[0].data + space.outer.Offset(0, o), n, correction, out);
          for (int64_t i = 0; i < call.num_outputs; ++i) {
            const int k = space.OutputOperand(static_cast<int>(i));
            Store(DtypeOf(call.outputs[i]), space.outer.operands[k].data + space.outer.Offset(k, o), out[i]);
          }
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
  const bool own_lanes = dtype == LaneOf(dtype);
  std::atomic<bool> no_memory{false};
  ParallelSteps(space.outer.numel, std::max<int64_t>(1, 8192 / n), 1, ThreadsOf(call.call),
                [&](int64_t begin, int64_t end) {
                  char* lanes = unary == nullptr || own_lanes ? nullptr : Scratch(n * DtypeSize(MICA_F32));
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
  const Kind kind = KindOf(hint);
  if (kind == Kind::kNone) return false;
  const bool sums = kind == Kind::kSum || kind == Kind::kMean;
  return RunDenseRows(call, kind) || (sums && RunColumnSums(call, kind == Kind::kMean));
}

bool RunRowLoop(const ReduceCall& call) { return RunDenseMaps(call, call.call->program->hint); }

}  // namespace mica::cpu
