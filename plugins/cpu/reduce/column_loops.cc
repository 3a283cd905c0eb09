// Sums down the columns of a dense matrix, up to kWidth columns at a time, row by row
// as memory has them.
//
// 32 rows are added in the dtype, four at a time, then 32 of those sums in double, and so on up:
// as exact as summation in pairs, of doubles too. The program engine, which does the same step by
// step, takes ten times as long where rows are short.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/reduce/column_loops.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/cpu/engine/lanes/float_maths-inl.h"
#include "plugins/cpu/engine/lanes/loops-inl.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/reduce/column_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

constexpr int64_t kWidth = 512;
constexpr int64_t kRows = 32;
// Elements between two questions for a Ctrl-C: a few milliseconds.
constexpr int64_t kPatience = 1 << 20;

// Rows of columns in memory, `stride` bytes apart.
struct Matrix {
  const char* data;
  int64_t stride, rows, columns;
  template <class T>
  HWY_INLINE const T* Row(int64_t r) const {
    return reinterpret_cast<const T*>(data + r * stride);
  }
  template <class T>
  Matrix Columns(int64_t begin, int64_t most) const {
    return {data + begin * static_cast<int64_t>(sizeof(T)), stride, rows, std::min(most, columns - begin)};
  }
};

template <bool kNan, class T>
HWY_INLINE T Counted(T x) {
  return kNan && x != x ? T{0} : x;
}

// Sums of n columns in levels: 32 addends of one are one of the next.
template <int64_t kColumns>
class Levels {
 public:
  explicit Levels(int64_t n) : n_(n) { std::fill_n(sums_[0], kColumns, 0.0); }

  template <class T>
  HWY_INLINE void Add(const T* sums) {
    double* first = sums_[0];
    MICA_IVDEP
    for (int64_t j = 0; j < n_; ++j) first[j] += static_cast<double>(sums[j]);
    int64_t full = ++addends_;
    for (int level = 0; level + 1 < kLevels && full % kRows == 0; ++level, full /= kRows)
      Carry(level, full == kRows);
  }
  // All levels' sums, in memory for kColumns of them.
  double* Total() {
    int64_t full = addends_ / kRows;
    for (int level = 1; level < kLevels && full > 0; ++level, full /= kRows)
      for (int64_t j = 0; j < n_; ++j) sums_[0][j] += sums_[level][j];
    return sums_[0];
  }

 private:
  static constexpr int kLevels = 3;

  void Carry(int level, bool is_first) {
    double *from = sums_[level], *to = sums_[level + 1];
    for (int64_t j = 0; j < n_; ++j) {
      to[j] = is_first ? from[j] : to[j] + from[j];
      from[j] = 0;
    }
  }

  const int64_t n_;
  int64_t addends_ = 0;
  double sums_[kLevels][kColumns];
};

// Adds the rows to the totals.
template <class T, bool kNan>
void AddRows(const Matrix& m, Levels<kWidth>* totals) {
  const int64_t n = m.columns;
  T sums[kWidth];
  Patience patience(kPatience);
  for (int64_t begin = 0; begin < m.rows && !patience.Ends(kRows * n); begin += kRows) {
    const int64_t end = std::min(m.rows, begin + kRows);
    int64_t r = begin;
    std::fill_n(sums, n, T{0});
    for (; r + 4 <= end; r += 4) {
      const T* a = m.Row<T>(r);
      const T* b = m.Row<T>(r + 1);
      const T* c = m.Row<T>(r + 2);
      const T* d = m.Row<T>(r + 3);
      MICA_IVDEP
      for (int64_t j = 0; j < n; ++j)
        sums[j] += (Counted<kNan>(a[j]) + Counted<kNan>(b[j])) + (Counted<kNan>(c[j]) + Counted<kNan>(d[j]));
    }
    for (; r < end; ++r) {
      const T* a = m.Row<T>(r);
      MICA_IVDEP
      for (int64_t j = 0; j < n; ++j) sums[j] += Counted<kNan>(a[j]);
    }
    totals->Add(sums);
  }
}

template <class T, bool kNan>
void SumColumns(const Matrix& m, double divisor, void* out) {
  T* o = static_cast<T*>(out);
  for (int64_t begin = 0; begin < m.columns; begin += kWidth) {
    const Matrix part = m.Columns<T>(begin, kWidth);
    Levels<kWidth> totals(part.columns);
    AddRows<T, kNan>(part, &totals);
    const double* total = totals.Total();
    MICA_IVDEP
    for (int64_t j = 0; j < part.columns; ++j) o[begin + j] = static_cast<T>(total[j] / divisor);
  }
}

// Columns whose rows stay in the cache while their maxima are found.
constexpr int64_t kNarrow = 128;

// sums[j] += exp(x[j] - shift[j]); what lies behind the last column of `sums` and `shift` is room.
template <class T>
void AddExps(const T* x, const T* shift, int64_t n, T* sums) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto add = [&](const T* from, int64_t j) HWY_ATTR {
    const auto e = Exp::Do(hn::Sub(hn::LoadU(d, from), hn::LoadU(d, shift + j)));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + j), e), d, sums + j);
  };
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) add(x + j, j);
  if (j == n) return;
  HWY_ALIGN T pad[HWY_MAX_BYTES / sizeof(T)] = {};
  std::copy(x + j, x + n, pad);
  add(pad, j);
}

// The largest of each column, or 0 where it is not finite, so that an infinity less itself is none.
template <class T>
void Shifts(const Matrix& m, T* shift) {
  std::fill_n(shift, m.columns, -std::numeric_limits<T>::infinity());
  Patience patience(kPatience);
  for (int64_t r = 0; r < m.rows && !patience.Ends(m.columns); ++r) {
    const T* x = m.Row<T>(r);
    MICA_IVDEP
    for (int64_t j = 0; j < m.columns; ++j) shift[j] = x[j] > shift[j] ? x[j] : shift[j];
  }
  MICA_IVDEP
  for (int64_t j = 0; j < m.columns; ++j)
    shift[j] = std::fabs(shift[j]) <= std::numeric_limits<T>::max() ? shift[j] : T{0};
}

template <class T>
void LogSumExpColumns(const Matrix& m, double, void* out) {
  const TagD d;
  constexpr int64_t kRoom = HWY_MAX_BYTES / sizeof(T);
  for (int64_t begin = 0; begin < m.columns; begin += kNarrow) {
    const Matrix part = m.Columns<T>(begin, kNarrow);
    T shift[kNarrow + kRoom] = {};
    Shifts<T>(part, shift);
    Levels<kNarrow> totals(part.columns);
    Patience patience(kPatience);
    for (int64_t r = 0; r < m.rows && !patience.Ends(kRows * part.columns);) {
      T sums[kNarrow + kRoom] = {};
      for (const int64_t end = std::min(m.rows, r + kRows); r < end; ++r)
        AddExps<T>(part.Row<T>(r), shift, part.columns, sums);
      totals.Add(sums);
    }
    double* total = totals.Total();
    for (int64_t j = 0; j < kNarrow; j += static_cast<int64_t>(hn::Lanes(d)))
      hn::StoreU(Log::Do(hn::LoadU(d, total + j)), d, total + j);
    T* o = static_cast<T*>(out) + begin;
    for (int64_t j = 0; j < part.columns; ++j)
      o[j] = static_cast<T>(static_cast<double>(shift[j]) + total[j]);
  }
}

template <void (*kLoop)(const Matrix&, double, void*)>
void Loop(const char* data, int64_t stride, int64_t rows, int64_t n, double divisor, void* out) {
  kLoop({data, stride, rows, n}, divisor, out);
}

template <class T>
ColumnLoop LoopOf(RowKind kind) {
  switch (kind) {
    case RowKind::kSum:
    case RowKind::kMean:
      return Loop<SumColumns<T, false>>;
    case RowKind::kNanSum:
      return Loop<SumColumns<T, true>>;
    case RowKind::kLogSumExp:
      return Loop<LogSumExpColumns<T>>;
    default:
      return nullptr;
  }
}

ColumnLoop FindLoop(bool wide, RowKind kind) { return wide ? LoopOf<double>(kind) : LoopOf<float>(kind); }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FindLoop);

ColumnLoop ColumnLoopOf(const ReduceCall& call, RowKind kind) {
  const int32_t dtype = DtypeOf(call.inputs[0]), real = RealOf(dtype);
  if ((real != MICA_F32 && real != MICA_F64) || call.call->compute_dtype != dtype || call.num_outputs != 1 ||
      DtypeOf(call.outputs[0]) != dtype ||
      (IsComplex(dtype) && kind != RowKind::kSum && kind != RowKind::kMean))
    return nullptr;
  return HWY_DYNAMIC_DISPATCH(FindLoop)(real == MICA_F64, kind);
}

bool RunColumnLoop(const ReduceCall& call, RowKind kind, ColumnLoop loop, const Space& space) {
  constexpr int64_t kFewest = 16;
  const Iteration& outer = space.outer;
  const Iteration& inner = space.inner;
  const int64_t rows = inner.numel;
  const int last = outer.ndim - 1, result = space.OutputOperand(0);
  if (inner.ndim != 1 || rows == 0 || outer.sizes[last] < kFewest) return false;
  const Operand& in = outer.operands[0];
  const Operand& out = outer.operands[result];
  if (in.strides[last] != in.size || out.strides[last] != out.size) return false;
  // Of a complex number two, which are columns apart.
  const int64_t parts = in.size / DtypeSize(RealOf(DtypeOf(call.inputs[0])));
  const int64_t grain = std::max<int64_t>(64, 32768 / rows);
  ParallelSteps(outer.numel, grain, 64, ThreadsOf(call.call), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end;) {
      const int64_t n = std::min(end - o, outer.sizes[last] - o % outer.sizes[last]);
      loop(in.data + outer.Offset(0, o), inner.operands[0].strides[0], rows, n * parts,
           kind == RowKind::kMean ? static_cast<double>(rows) : 1.0, out.data + outer.Offset(result, o));
      o += n;
    }
  });
  return true;
}

}  // namespace mica::cpu
#endif
