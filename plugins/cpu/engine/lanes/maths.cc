// The transcendental functions of the float32 and float64 lanes.
//
// Vectors come from SLEEF (sleef-inl.h), at most 1 ULP (erfc 1.5) within its
// range; where its range is narrower than the function's, the lanes outside are
// computed again by the C library (see `Patched`). In float32, exp, log, erf, tanh
// and sigmoid are our own (float_maths-inl.h), since programs call them most. The functions of mica/maths/
// whose text is valid for vectors run in double lanes, the others lane by lane (scalar_tables.cc).
// test/unit/cpu/maths_test.cc holds every one to 2 ULP over all exponents.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/lanes/maths.cc"
#include "hwy/foreach_target.h"
//
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "plugins/cpu/engine/lanes/erf-inl.h"
#include "plugins/cpu/engine/lanes/erfinv-inl.h"
#include "plugins/cpu/engine/lanes/float_maths-inl.h"
#include "plugins/cpu/engine/lanes/lgamma-inl.h"
#include "plugins/cpu/engine/lanes/loops-inl.h"
#include "plugins/cpu/engine/lanes/normal-inl.h"
#include "plugins/cpu/engine/lanes/scalar_maths.h"
#include "plugins/cpu/engine/lanes/sleef-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// Applies F to whole vectors; the last ones go through a padded buffer.
template <class T, class F>
int Vector1(void* dst, const void* a, const void*, const void*, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T* out = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(F::Do(hn::LoadU(d, x + i)), d, out + i);
  if (i < n) {
    HWY_ALIGN T pad[HWY_MAX_BYTES / sizeof(T)] = {};
    const size_t rest = static_cast<size_t>(n - i) * sizeof(T);
    __builtin_memcpy(pad, x + i, rest);
    hn::Store(F::Do(hn::Load(d, pad)), d, pad);
    __builtin_memcpy(out + i, pad, rest);
  }
  return kFlagNone;
}

template <class T, class F>
int Vector2(void* dst, const void* a, const void* b, const void*, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T* out = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(F::Do(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, out + i);
  }
  if (i < n) {
    HWY_ALIGN T pad_x[HWY_MAX_BYTES / sizeof(T)] = {};
    HWY_ALIGN T pad_y[HWY_MAX_BYTES / sizeof(T)] = {};
    const size_t rest = static_cast<size_t>(n - i) * sizeof(T);
    __builtin_memcpy(pad_x, x + i, rest);
    __builtin_memcpy(pad_y, y + i, rest);
    hn::Store(F::Do(hn::Load(d, pad_x), hn::Load(d, pad_y)), d, pad_x);
    __builtin_memcpy(out + i, pad_x, rest);
  }
  return kFlagNone;
}

// SLEEF's function where F::Inside says so, else the C library's.
template <class F>
struct Patched {
  template <class V>
  static HWY_INLINE V Do(V x) {
    const hn::DFromV<V> d;
    using T = hn::TFromD<decltype(d)>;
    const V result = F::Vector(x);
    const auto outside =
        hn::Gt(F::Magnitude(x), hn::Set(d, sizeof(T) == 4 ? T{F::kFloat} : static_cast<T>(F::kDouble)));
    if (HWY_LIKELY(hn::AllFalse(d, outside))) return result;
    HWY_ALIGN T in[HWY_MAX_BYTES / sizeof(T)];
    HWY_ALIGN T out[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(x, d, in);
    hn::Store(result, d, out);
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
      const T magnitude = F::kBothSigns ? std::fabs(in[i]) : in[i];
      if (magnitude > (sizeof(T) == 4 ? T{F::kFloat} : static_cast<T>(F::kDouble))) out[i] = F::Scalar(in[i]);
    }
    return hn::Load(d, out);
  }
};

// Where SLEEF overflows before the function does: above these magnitudes.
#define MICA_PATCHED(Name, name, float_limit, double_limit, both) \
  struct Name##Patch {                                            \
    static constexpr float kFloat = float_limit;                  \
    static constexpr double kDouble = double_limit;               \
    static constexpr bool kBothSigns = both;                      \
    template <class V>                                            \
    static HWY_INLINE V Vector(V x) {                             \
      return Sleef##Name::Do(x);                                  \
    }                                                             \
    template <class V>                                            \
    static HWY_INLINE V Magnitude(V x) {                          \
      return both ? hn::Abs(x) : x;                               \
    }                                                             \
    template <class T>                                            \
    static T Scalar(T x) {                                        \
      return std::name(x);                                        \
    }                                                             \
  };
MICA_PATCHED(Log1p, log1p, 1e30f, 1e300, false)
MICA_PATCHED(Sinh, sinh, 88.0f, 708.0, true)
MICA_PATCHED(Cosh, cosh, 88.0f, 708.0, true)
MICA_PATCHED(Asinh, asinh, 1e18f, 1e150, true)
MICA_PATCHED(Acosh, acosh, 1e18f, 1e150, false)
#undef MICA_PATCHED

// 1 / b to a few bits where that is cheap.
HWY_INLINE VecF RoughInverse(VecF b) { return hn::ApproximateReciprocal(b); }
HWY_INLINE VecD RoughInverse(VecD b) { return hn::Div(hn::Set(TagD(), 1.0), b); }

// The sum 1 + e is corrected by what its rounding lost.
struct Sigmoid {
  template <class V>
  static HWY_INLINE V Do(V x) {
    const hn::DFromV<V> d;
    const V one = hn::Set(d, 1);
    const V e = Exp::Do(hn::Neg(hn::Abs(x)));
    const V top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
    const V sum = hn::Add(one, e);
    const V lost = hn::Sub(e, hn::Sub(sum, one));
    const V result = hn::Div(top, sum);
    return hn::NegMulAdd(result, hn::Mul(lost, RoughInverse(sum)), result);
  }
};

// float32 tanh for targets with fused multiply-add, after N. Juffa: 1.5 ULP.
struct Tanh {
  static HWY_INLINE VecD Do(VecD x) { return SleefTanh::Do(x); }
#if HWY_TARGET == HWY_SSE4
  static HWY_INLINE VecF Do(VecF x) { return SleefTanh::Do(x); }
#else
  static HWY_INLINE VecF Do(VecF x) {
    const TagF d;
    const VecF t = hn::Min(hn::Abs(x), hn::Set(d, 10.0f));  // where the result is 1
    const VecF s = hn::Mul(x, x);
    const VecF one = hn::Set(d, 1.0f);
    const VecF e = ExpInRange::Do(hn::Add(t, t));
    const VecF far = hn::NegMulAdd(hn::Div(one, hn::Add(e, one)), hn::Set(d, 2.0f), one);
    VecF near = hn::Set(d, 1.57394409e-2f);
    near = hn::MulAdd(near, s, hn::Set(d, -5.23025580e-2f));
    near = hn::MulAdd(near, s, hn::Set(d, 1.33152470e-1f));
    near = hn::MulAdd(near, s, hn::Set(d, -3.33327681e-1f));
    near = hn::Mul(near, s);
    near = hn::MulAdd(near, x, x);
    return hn::CopySign(hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, 0.55f)), far, near), x);
  }
#endif
};

struct LogAddExp {
  template <class V>
  static HWY_INLINE V Do(V a, V b) {
    const V difference = hn::IfThenZeroElse(hn::Eq(a, b), hn::Neg(hn::Abs(hn::Sub(a, b))));
    const V larger = hn::IfThenElse(hn::Lt(a, b), b, a);
    return hn::Add(larger, SleefLog1p::Do(Exp::Do(difference)));
  }
};

// The rest of a / b with the sign of a, by one exact fused step where the
// quotient is small enough to be an exact integer; elsewhere by the C library.
template <class T>
HWY_INLINE T ScalarFmod(T a, T b) {
  return std::fmod(a, b);
}

struct FmodRest {
  static HWY_INLINE float Do(float a, float b) { return ScalarFmod(a, b); }
  static HWY_INLINE double Do(double a, double b) { return ScalarFmod(a, b); }
  template <class V, class D = hn::DFromV<V>>
  static HWY_INLINE V Do(V a, V b) {
    const D d;
    using T = hn::TFromD<D>;
#if HWY_TARGET != HWY_SSE4
    constexpr T kExact = sizeof(T) == 4 ? T{8388608} : T{4503599627370496};
    const V quotient = hn::Trunc(hn::Div(a, b));
    const V tiny = hn::Set(d, sizeof(T) == 4 ? static_cast<T>(1e-30) : static_cast<T>(1e-290));
    const auto exact = hn::And(hn::Lt(hn::Abs(quotient), hn::Set(d, kExact)),
                               hn::And(hn::Ge(hn::Abs(b), tiny),
                                       hn::Lt(hn::Abs(b), hn::Set(d, std::numeric_limits<T>::infinity()))));
    if (HWY_LIKELY(hn::AllTrue(d, exact))) {
      const V rest = hn::NegMulAdd(quotient, b, a);
      const V turned =
          hn::IfThenElse(hn::Lt(hn::Xor(rest, a), hn::Zero(d)), hn::Add(rest, hn::CopySign(b, a)), rest);
      const V fixed = hn::IfThenElse(hn::Eq(rest, hn::Zero(d)), rest, turned);
      return hn::CopySign(fixed, a);
    }
#endif
    HWY_ALIGN T x[HWY_MAX_BYTES / sizeof(T)];
    HWY_ALIGN T y[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(a, d, x);
    hn::Store(b, d, y);
    for (size_t i = 0; i < hn::Lanes(d); ++i) x[i] = ScalarFmod(x[i], y[i]);
    return hn::Load(d, x);
  }
};

// With the divisor's sign, a zero's too (the array API standard's rule).
struct Remainder {
  template <class V>
  static HWY_INLINE V Do(V a, V b) {
    const hn::DFromV<V> d;
    const V zero = hn::Zero(d);
    const V rest = FmodRest::Do(a, b);
    const auto turn = hn::And(hn::Ne(rest, zero), hn::Xor(hn::Lt(b, zero), hn::Lt(rest, zero)));
    const V result = hn::IfThenElse(turn, hn::Add(rest, b), rest);
    return hn::IfThenElse(hn::Eq(rest, zero), hn::CopySign(zero, b), result);
  }
};

// Python's floor division, in torch's steps.
struct FloorDiv {
  template <class V>
  static HWY_INLINE V Do(V a, V b) {
    const hn::DFromV<V> d;
    const V zero = hn::Zero(d);
    const V rest = FmodRest::Do(a, b);
    const auto turn = hn::And(hn::Ne(rest, zero), hn::Xor(hn::Lt(b, zero), hn::Lt(rest, zero)));
    V quotient = hn::Div(hn::Sub(a, rest), b);
    quotient = hn::IfThenElse(turn, hn::Sub(quotient, hn::Set(d, 1)), quotient);
    V floor = hn::Floor(quotient);
    const auto up = hn::Gt(hn::Sub(quotient, floor), hn::Set(d, 0.5f));
    floor = hn::IfThenElse(up, hn::Add(floor, hn::Set(d, 1)), floor);
    const V plain = hn::Div(a, b);
    floor = hn::IfThenElse(hn::Eq(quotient, zero), hn::CopySign(zero, plain), floor);
    return hn::IfThenElse(hn::Eq(b, zero), plain, floor);
  }
};

// Cubes and inverses, the exponents that programs use besides those that plan.cc knows,
// cost a hundredth.
struct Pow {
  template <class V>
  static HWY_INLINE V Do(V x, V y) {
    const hn::DFromV<V> d;
    if (hn::AllTrue(d, hn::Eq(y, hn::Set(d, 3)))) return hn::Mul(x, hn::Mul(x, x));
    if (hn::AllTrue(d, hn::Eq(y, hn::Set(d, -1)))) return hn::Div(hn::Set(d, 1), x);
    return SleefPow::Do(x, y);
  }
};

// By the bits, which count the floats from zero outwards.
struct LaneNextAfter {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    const I bits = std::bit_cast<I>(a), one = 1;
    const T smallest =
        std::bit_cast<T>(static_cast<I>((std::bit_cast<I>(b) & std::numeric_limits<I>::min()) | one));
    const T next = std::bit_cast<T>(static_cast<I>(bits + ((b > a) == (a > 0) ? one : -one)));
    const T moved = a == 0 ? smallest : next;
    return a == b ? b : a == a && b == b ? moved : a + b;
  }
};

// The functions of mica/maths/ by their own text.
template <class T, Real (*kFunction)(Real)>
int VectorsOfText(void* dst, const void* a, const void*, const void*, int64_t n) {
  MapReal([](Real x) HWY_ATTR { return kFunction(x); }, static_cast<T*>(dst), n, static_cast<const T*>(a));
  return kFlagNone;
}
template <class T, Real (*kFunction)(Real, Real)>
int VectorsOfText(void* dst, const void* a, const void* b, const void*, int64_t n) {
  MapReal([](Real x, Real y) HWY_ATTR { return kFunction(x, y); }, static_cast<T*>(dst), n,
          static_cast<const T*>(a), static_cast<const T*>(b));
  return kFlagNone;
}

// Own, the pairs of erf-inl.h, where they exist, else SLEEF's.
template <class T, class Own, class Sleef>
int ErrorFunction(void* dst, const void* a, const void* b, const void* c, int64_t n) {
#if HWY_TARGET != HWY_SSE4
  if constexpr (sizeof(T) == 4) {
    MapStretches<Own>(static_cast<const float*>(a), static_cast<float*>(dst), n);
    return kFlagNone;
  }
#endif
  return Vector1<T, Sleef>(dst, a, b, c, n);
}

// Functions with a shorter form for float32.
template <class T, Real (*kFunction)(Real, const T*)>
int VectorsOf(void* dst, const void* a, const void*, const void*, int64_t n) {
  MapReal([](Real x) HWY_ATTR { return kFunction(x, static_cast<const T*>(nullptr)); }, static_cast<T*>(dst),
          n, static_cast<const T*>(a));
  return kFlagNone;
}

// In which series of mica_igamma an element falls, more or less: a vector whose lanes fall in one computes no
// other.
template <class T>
int SeriesOf(T a, T x) {
  const T apart = std::fabs(x - a);
  if (a > 20 && apart < T(0.3) * a) return 0;
  if (x < a) return 1;
  return x > T(1.1) ? 2 : 3;
}

template <class T, Real (*kFunction)(Real, Real)>
int IncompleteGamma(void* dst, const void* a, const void* b, const void*, int64_t n) {
  constexpr int kSeries = 4;
  T given[2][kBlock], found[kBlock];
  uint8_t series[kBlock];
  int16_t places[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = HWY_MIN(kBlock, n - first);
    const T* as = static_cast<const T*>(a) + first;
    const T* xs = static_cast<const T*>(b) + first;
    int64_t begins[kSeries + 1] = {};
    for (int64_t i = 0; i < count; ++i) {
      series[i] = static_cast<uint8_t>(SeriesOf(as[i], xs[i]));
      ++begins[series[i] + 1];
    }
    for (int s = 1; s < kSeries; ++s) begins[s] += begins[s - 1];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = begins[series[i]]++;
      places[at] = static_cast<int16_t>(i);
      given[0][at] = as[i];
      given[1][at] = xs[i];
    }
    MapReal([](Real x, Real y) HWY_ATTR { return kFunction(x, y); }, found, count, given[0], given[1]);
    T* out = static_cast<T*>(dst) + first;
    for (int64_t i = 0; i < count; ++i) out[places[i]] = found[i];
  }
  return kFlagNone;
}

template <class T>
int InverseErrorFunction(void* dst, const void* a, const void*, const void*, int64_t n) {
  MapErfinv(static_cast<const T*>(a), static_cast<T*>(dst), n);
  return kFlagNone;
}

template <class T>
void FillMaths(PrimitiveTable* table) {
  Primitive* at = table->at;
  at[MICA_OP_EXP] = Vector1<T, Exp>;
  at[MICA_OP_EXP2] = Vector1<T, SleefExp2>;
  at[MICA_OP_EXPM1] = Vector1<T, SleefExpm1>;
  at[MICA_OP_LOG] = Vector1<T, Log>;
  at[MICA_OP_LOG2] = Vector1<T, SleefLog2>;
  at[MICA_OP_LOG10] = Vector1<T, SleefLog10>;
  at[MICA_OP_LOG1P] = Vector1<T, Patched<Log1pPatch>>;
  at[MICA_OP_SIN] = Vector1<T, SleefSin>;
  at[MICA_OP_COS] = Vector1<T, SleefCos>;
  at[MICA_OP_TAN] = Vector1<T, SleefTan>;
  at[MICA_OP_ASIN] = Vector1<T, SleefAsin>;
  at[MICA_OP_ACOS] = Vector1<T, SleefAcos>;
  at[MICA_OP_ATAN] = Vector1<T, SleefAtan>;
  at[MICA_OP_SINH] = Vector1<T, Patched<SinhPatch>>;
  at[MICA_OP_COSH] = Vector1<T, Patched<CoshPatch>>;
  at[MICA_OP_TANH] = Vector1<T, Tanh>;
  at[MICA_OP_ASINH] = Vector1<T, Patched<AsinhPatch>>;
  at[MICA_OP_ACOSH] = Vector1<T, Patched<AcoshPatch>>;
  at[MICA_OP_ATANH] = Vector1<T, SleefAtanh>;
  at[MICA_OP_ERF] = ErrorFunction<T, Erf, SleefErf>;
  at[MICA_OP_ERFC] = ErrorFunction<T, Erfc, SleefErfc>;
  at[MICA_OP_CBRT] = Vector1<T, SleefCbrt>;
  at[MICA_OP_ATAN2] = Vector2<T, SleefAtan2>;
  at[MICA_OP_HYPOT] = Vector2<T, SleefHypot>;
  at[MICA_OP_POW] = Vector2<T, Pow>;
  at[MICA_OP_SIGMOID] = Vector1<T, Sigmoid>;
  at[MICA_OP_LOGADDEXP] = Vector2<T, LogAddExp>;
  at[MICA_OP_FMOD] = Vector2<T, FmodRest>;
  at[MICA_OP_REMAINDER] = Vector2<T, Remainder>;
  at[MICA_OP_FLOOR_DIV] = Vector2<T, FloorDiv>;
  at[MICA_OP_NEXTAFTER] = Map2<T, T, LaneNextAfter>;
  at[MICA_OP_ERFINV] = InverseErrorFunction<T>;
  at[MICA_OP_LGAMMA] = VectorsOf<T, LgammaOf>;
  at[MICA_OP_DIGAMMA] = VectorsOfText<T, mica_digamma>;
  at[MICA_OP_ZETA] = VectorsOfText<T, mica_zeta>;
  at[MICA_OP_POLYGAMMA] = VectorsOfText<T, mica_polygamma>;
  at[MICA_OP_IGAMMA] = IncompleteGamma<T, mica_igamma>;
  at[MICA_OP_IGAMMAC] = IncompleteGamma<T, mica_igammac>;
  at[MICA_OP_I0] = VectorsOfText<T, mica_i0>;
  at[MICA_OP_I0E] = VectorsOfText<T, mica_i0e>;
  at[MICA_OP_I1] = VectorsOfText<T, mica_i1>;
  at[MICA_OP_I1E] = VectorsOfText<T, mica_i1e>;
  at[MICA_OP_K0] = VectorsOfText<T, mica_k0>;
  at[MICA_OP_K0E] = VectorsOfText<T, mica_k0e>;
  at[MICA_OP_K1] = VectorsOfText<T, mica_k1>;
  at[MICA_OP_K1E] = VectorsOfText<T, mica_k1e>;
  at[MICA_OP_ERFCX] = VectorsOf<T, ErfcxOf>;
  at[MICA_OP_NDTR] = VectorsOf<T, NdtrOf>;
  at[MICA_OP_LOG_NDTR] = VectorsOf<T, LogNdtrOf>;
}

void AddMaths(int32_t dtype, PrimitiveTable* table) {
  AddScalarMaths(dtype, table);
  dtype == MICA_F32 ? FillMaths<float>(table) : FillMaths<double>(table);
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(AddMaths);
void ChooseMaths(int32_t dtype, PrimitiveTable* table) { HWY_DYNAMIC_DISPATCH(AddMaths)(dtype, table); }
}  // namespace mica::cpu
#endif
