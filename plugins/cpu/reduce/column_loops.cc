// Sums down the columns of a dense matrix, up to kWidth columns at a time, row by row
// as memory has them.
//
// 32 rows are added in the dtype, four at a time, and then to a double each column: as
// exact as summation in pairs. The program engine, which does the same step by step,
// takes ten times as long where rows are short.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mica/plugins/cpu/reduce/column_loops.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "mica/plugins/cpu/engine/loops-inl.h"
#include "mica/plugins/cpu/engine/pointwise.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/reduce/column_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

constexpr int64_t kWidth = 512;

// Adds `rows` rows of `n` columns, `stride` bytes apart, to the totals.
template <class T>
void AddRows(const char* data, int64_t stride, int64_t rows, int64_t n, double* total) {
  constexpr int64_t kRows = 32;
  T sums[kWidth];
  const auto row = [&](int64_t r) { return reinterpret_cast<const T*>(data + r * stride); };
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const int64_t end = std::min(rows, begin + kRows);
    int64_t r = begin;
    std::fill_n(sums, n, T{0});
    for (; r + 4 <= end; r += 4) {
      const T* a = row(r);
      const T* b = row(r + 1);
      const T* c = row(r + 2);
      const T* d = row(r + 3);
      MICA_IVDEP
      for (int64_t j = 0; j < n; ++j) sums[j] += (a[j] + b[j]) + (c[j] + d[j]);
    }
    for (; r < end; ++r) {
      const T* a = row(r);
      MICA_IVDEP
      for (int64_t j = 0; j < n; ++j) sums[j] += a[j];
    }
    MICA_IVDEP
    for (int64_t j = 0; j < n; ++j) total[j] += static_cast<double>(sums[j]);
  }
}

template <class T>
void SumColumns(const char* data, int64_t stride, int64_t rows, int64_t n, double divisor, void* out) {
  T* o = static_cast<T*>(out);
  for (int64_t begin = 0; begin < n; begin += kWidth) {
    const int64_t width = std::min(kWidth, n - begin);
    double total[kWidth] = {};
    AddRows<T>(data + begin * static_cast<int64_t>(sizeof(T)), stride, rows, width, total);
    MICA_IVDEP
    for (int64_t j = 0; j < width; ++j) o[begin + j] = static_cast<T>(total[j] / divisor);
  }
}

using Columns = void (*)(const char* data, int64_t stride, int64_t rows, int64_t n, double divisor,
                         void* out);

Columns FindColumns(bool wide) { return wide ? SumColumns<double> : SumColumns<float>; }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FindColumns);

bool RunColumnSums(const ReduceCall& call, bool mean) {
  constexpr int64_t kFewest = 16;
  const int32_t dtype = DtypeOf(call.inputs[0]);
  if ((dtype != MICA_F32 && dtype != MICA_F64) || call.call->compute_dtype != dtype ||
      call.num_outputs != 1 || DtypeOf(call.outputs[0]) != dtype)
    return false;
  Space space;
  MakeSpace(call, false, false, &space);
  const Iteration& outer = space.outer;
  const Iteration& inner = space.inner;
  const int64_t rows = inner.numel;
  if (inner.ndim != 1 || outer.ndim != 1 || rows == 0 || outer.numel < kFewest) return false;
  const Operand& in = outer.operands[0];
  const Operand& out = outer.operands[space.OutputOperand(0)];
  if (in.strides[0] != in.size || out.strides[0] != out.size) return false;
  const auto sum = HWY_DYNAMIC_DISPATCH(FindColumns)(dtype == MICA_F64);
  const int64_t grain = std::max<int64_t>(64, 32768 / rows);
  ParallelSteps(outer.numel, grain, 64, ThreadsOf(call.call), [&](int64_t begin, int64_t end) {
    sum(in.data + begin * in.size, inner.operands[0].strides[0], rows, end - begin,
        mean ? static_cast<double>(rows) : 1.0, out.data + begin * out.size);
  });
  return true;
}

}  // namespace mica::cpu
#endif
