// Loops over dense rows; see row_folds.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/reduce/row_folds.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <array>
#include <type_traits>

#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/reduce/row_folds-inl.h"
#include "plugins/cpu/reduce/row_folds.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// ---- floats

struct ZeroForNan {
  template <class V>
  HWY_INLINE V operator()(V x) const {
    return hn::IfThenElseZero(hn::Eq(x, x), x);
  }
  template <class T>
  HWY_INLINE double Scalar(T x) const {
    return x == x ? static_cast<double>(x) : 0;
  }
};

// Where the square of a difference is beyond the lanes' largest number.
template <class S>
double WideSquares(const S* x, int64_t n, double mean) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double apart = static_cast<double>(Memory<S>::Get(x[i])) - mean;
    sum += apart * apart;
  }
  return sum;
}

template <class S, RowKind kKind>
HWY_INLINE double FoldOne(const S* x, int64_t n, double correction, double* mean) {
  if constexpr (kKind == RowKind::kSum) return Sum<S>(x, n);
  if constexpr (kKind == RowKind::kNanSum) return SumBy(x, n, ZeroForNan());
  if constexpr (kKind == RowKind::kProduct) return Product<S>(x, n);
  if constexpr (kKind == RowKind::kMax) return Extreme<S, true>(x, n);
  if constexpr (kKind == RowKind::kMin) return Extreme<S, false>(x, n);
  if constexpr (kKind == RowKind::kNorm) return std::sqrt(Squares<S>(x, n, 0));
  if constexpr (kKind == RowKind::kLogSumExp) return LogSumExp<S>(x, n);
  const double count = static_cast<double>(n);
  *mean = Sum<S>(x, n) / count;
  if constexpr (kKind == RowKind::kMean) return *mean;
  double squares = Squares<S>(x, n, *mean);
  if (!std::isfinite(squares)) squares = WideSquares(x, n, *mean);
  const double variance = squares / std::max(0.0, count - correction);
  return kKind == RowKind::kStd ? std::sqrt(variance) : variance;
}

template <class S, RowKind kKind>
void FoldFloats(const DenseRows& r, void* out, void* means) {
  using T = LaneOf<S>;
  double mean = 0;
  for (int64_t i = 0; i < r.rows; ++i) {
    const S* x = reinterpret_cast<const S*>(r.data + i * r.distance);
    static_cast<T*>(out)[i] = static_cast<T>(FoldOne<S, kKind>(x, r.n, r.correction, &mean));
    if constexpr (kKind == RowKind::kVarMean) static_cast<T*>(means)[i] = static_cast<T>(mean);
  }
}

// ---- complex numbers, re and im in turn

template <class T>
HWY_INLINE void SumPairs(const T* x, int64_t n, double* total) {
  const Tag<T> d;
  total[0] = total[1] = 0;
  InLongPieces(2 * n, [&](int64_t begin, int64_t end) HWY_ATTR {
    SumStretches(
        x + begin, end - begin, Same(),
        [&](auto v) HWY_ATTR {
          HWY_ALIGN T parts[HWY_MAX_BYTES / sizeof(T)];
          hn::Store(v, d, parts);
          for (size_t k = 0; k < hn::Lanes(d); ++k) total[k % 2] += static_cast<double>(parts[k]);
        },
        [&](int64_t i) HWY_ATTR { total[i % 2] += static_cast<double>(x[begin + i]); });
  });
}

template <class T>
struct Complex {
  T re, im;
  HWY_INLINE void Times(const Complex& b) { *this = {re * b.re - im * b.im, re * b.im + im * b.re}; }
};

// Vectors of real and of imaginary parts.
template <class T>
struct Planes {
  hn::Vec<Tag<T>> re, im;
  HWY_INLINE void Times(const Planes& b) {
    *this = {hn::Sub(hn::Mul(re, b.re), hn::Mul(im, b.im)), hn::Add(hn::Mul(re, b.im), hn::Mul(im, b.re))};
  }
  HWY_INLINE void Times(const Complex<T>* x) {
    Planes b;
    hn::LoadInterleaved2(Tag<T>(), &x->re, b.re, b.im);
    Times(b);
  }
};

// Vectors side by side: each waits for its own last multiplication alone.
template <class T>
HWY_INLINE Complex<T> MultiplyPairs(const Complex<T>* x, int64_t n) {
  const Tag<T> d;
  constexpr int64_t kParts = 4;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Planes<T> one = {hn::Set(d, 1), hn::Zero(d)};
  Planes<T> parts[kParts] = {one, one, one, one};
  int64_t i = 0;
  const bool whole = InLongPieces(n, [&](int64_t, int64_t end) HWY_ATTR {
    for (; i + kParts * lanes <= end; i += kParts * lanes)
      for (int64_t k = 0; k < kParts; ++k) parts[k].Times(x + i + k * lanes);
  });
  if (!whole) return {};
  for (int64_t k = 1; k < kParts; ++k) parts[0].Times(parts[k]);
  HWY_ALIGN T re[HWY_MAX_BYTES / sizeof(T)], im[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(parts[0].re, d, re);
  hn::Store(parts[0].im, d, im);
  Complex<T> product = {re[0], im[0]};
  for (int64_t k = 1; k < lanes; ++k) product.Times({re[k], im[k]});
  for (; i < n; ++i) product.Times(x[i]);
  return product;
}

template <class T, RowKind kKind>
void FoldComplex(const DenseRows& r, void* out, void*) {
  for (int64_t i = 0; i < r.rows; ++i) {
    const char* x = r.data + i * r.distance;
    Complex<T>& o = static_cast<Complex<T>*>(out)[i];
    if constexpr (kKind == RowKind::kProduct) {
      o = MultiplyPairs(reinterpret_cast<const Complex<T>*>(x), r.n);
    } else {
      const double divisor = kKind == RowKind::kMean ? static_cast<double>(r.n) : 1;
      double total[2];
      SumPairs(reinterpret_cast<const T*>(x), r.n, total);
      o = {static_cast<T>(total[0] / divisor), static_cast<T>(total[1] / divisor)};
    }
  }
}

// ---- bool and the integers

// A bool in memory, where any byte but 0 is true.
struct Truth {
  uint8_t byte;
};
template <class S>
HWY_INLINE S NumberOf(S x) {
  return x;
}
HWY_INLINE uint8_t NumberOf(Truth x) { return x.byte != 0; }

// Small ones add up in 32 bits first, of which a vector has twice as many.
template <class S>
HWY_INLINE uint64_t SumInts(const S* x, int64_t n) {
  using Narrow = std::conditional_t<std::is_signed_v<S>, int32_t, uint32_t>;
  using Part = std::conditional_t<sizeof(S) <= 2, Narrow, uint64_t>;
  constexpr int64_t kStretch = 16384;
  uint64_t total = 0;
  InLongPieces(n, [&](int64_t from, int64_t to) HWY_ATTR {
    for (int64_t begin = from; begin < to; begin += kStretch) {
      const int64_t end = std::min(to, begin + kStretch);
      Part part = 0;
      for (int64_t i = begin; i < end; ++i) part += static_cast<Part>(NumberOf(x[i]));
      total += static_cast<uint64_t>(part);
    }
  });
  return total;
}

template <class S, bool kMax>
HWY_INLINE S ExtremeInt(const S* x, int64_t n) {
  const hn::ScalableTag<S> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto better = [](auto a, auto b) HWY_ATTR { return kMax ? hn::Max(a, b) : hn::Min(a, b); };
  S best = x[0];
  int64_t i = 0;
  if (n >= 4 * lanes) {
    hn::Vec<decltype(d)> v[4];
    for (int64_t k = 0; k < 4; ++k) v[k] = hn::LoadU(d, x + k * lanes);
    i = 4 * lanes;
    const bool whole = InLongPieces(n, [&](int64_t, int64_t end) HWY_ATTR {
      for (; i + 4 * lanes <= end; i += 4 * lanes)
        for (int64_t k = 0; k < 4; ++k) v[k] = better(v[k], hn::LoadU(d, x + i + k * lanes));
    });
    if (!whole) return best;
    HWY_ALIGN S parts[HWY_MAX_BYTES / sizeof(S)];
    hn::Store(better(better(v[0], v[1]), better(v[2], v[3])), d, parts);
    for (int64_t k = 0; k < lanes; ++k) best = (kMax ? parts[k] > best : parts[k] < best) ? parts[k] : best;
  }
  for (; i < n; ++i) best = (kMax ? x[i] > best : x[i] < best) ? x[i] : best;
  return best;
}

template <class S, RowKind kKind>
void FoldInts(const DenseRows& r, void* out, void*) {
  for (int64_t i = 0; i < r.rows; ++i) {
    const S* x = reinterpret_cast<const S*>(r.data + i * r.distance);
    if constexpr (kKind == RowKind::kSum) {
      static_cast<uint64_t*>(out)[i] = SumInts(x, r.n);
    } else if constexpr (kKind == RowKind::kProduct) {
      uint64_t product = 1;
      InLongPieces(r.n, [&](int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t k = begin; k < end; ++k) product *= static_cast<uint64_t>(NumberOf(x[k]));
      });
      static_cast<uint64_t*>(out)[i] = product;
    } else if constexpr (std::is_same_v<S, Truth>) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(x);
      static_cast<uint8_t*>(out)[i] = ExtremeInt<uint8_t, kKind == RowKind::kMax>(bytes, r.n) != 0;
    } else {
      static_cast<S*>(out)[i] = ExtremeInt<S, kKind == RowKind::kMax>(x, r.n);
    }
  }
}

// ---- by dtype and kind

using Table = std::array<RowFold, kNumRowKinds>;

template <class S>
constexpr Table FloatTable() {
  return {FoldFloats<S, RowKind::kSum>,  FoldFloats<S, RowKind::kNanSum>,    FoldFloats<S, RowKind::kProduct>,
          FoldFloats<S, RowKind::kMean>, FoldFloats<S, RowKind::kMax>,       FoldFloats<S, RowKind::kMin>,
          FoldFloats<S, RowKind::kNorm>, FoldFloats<S, RowKind::kLogSumExp>, FoldFloats<S, RowKind::kVar>,
          FoldFloats<S, RowKind::kStd>,  FoldFloats<S, RowKind::kVarMean>};
}

template <class T>
constexpr Table ComplexTable() {
  return {FoldComplex<T, RowKind::kSum>, nullptr, FoldComplex<T, RowKind::kProduct>,
          FoldComplex<T, RowKind::kMean>};
}

// No number is NaN.
template <class S>
constexpr Table IntTable() {
  return {FoldInts<S, RowKind::kSum>, FoldInts<S, RowKind::kSum>, FoldInts<S, RowKind::kProduct>, nullptr,
          FoldInts<S, RowKind::kMax>, FoldInts<S, RowKind::kMin>};
}

const Table* FindRowFolds(int32_t dtype) {
  static constexpr Table kInts[] = {IntTable<Truth>(),    IntTable<uint8_t>(),  IntTable<int8_t>(),
                                    IntTable<uint16_t>(), IntTable<int16_t>(),  IntTable<uint32_t>(),
                                    IntTable<int32_t>(),  IntTable<uint64_t>(), IntTable<int64_t>()};
  static constexpr Table kFloats[] = {FloatTable<Half>(), FloatTable<Brain>(), FloatTable<float>(),
                                      FloatTable<double>()};
  static constexpr Table kComplex[] = {ComplexTable<float>(), ComplexTable<double>()};
  if (dtype <= MICA_I64) return &kInts[dtype - MICA_BOOL];
  if (dtype <= MICA_F64) return &kFloats[dtype - MICA_F16];
  return dtype <= MICA_C128 ? &kComplex[dtype - MICA_C64] : nullptr;
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FindRowFolds);

int32_t FoldLane(int32_t dtype, RowKind kind) {
  const bool adds = kind == RowKind::kSum || kind == RowKind::kNanSum || kind == RowKind::kProduct;
  return adds && (dtype == MICA_BOOL || IsInteger(dtype)) ? static_cast<int32_t>(MICA_I64) : LaneOf(dtype);
}

RowFold RowFoldOf(int32_t dtype, RowKind kind) {
  const auto* table = HWY_DYNAMIC_DISPATCH(FindRowFolds)(dtype);
  return table == nullptr ? nullptr : (*table)[static_cast<size_t>(kind)];
}
}  // namespace mica::cpu
#endif
