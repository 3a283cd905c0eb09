// The arithmetic of the float lanes on one element: functors for the loop templates.
//
// Meaning: min and max propagate NaN, fmin and fmax ignore it; sign of NaN is 0
// and round goes half to even, both as torch has them; no operation is fused, so
// that a value does not depend on where in a block it stands.
#if defined(MICA_CPU_FLOAT_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_FLOAT_OPS_INL_H_
#undef MICA_CPU_FLOAT_OPS_INL_H_
#else
#define MICA_CPU_FLOAT_OPS_INL_H_
#endif

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

#define MICA_FLOAT_OP1(name, expression) \
  struct name {                          \
    template <class T>                   \
    static HWY_INLINE auto Do(T a) {     \
      return expression;                 \
    }                                    \
  };
#define MICA_FLOAT_OP2(name, expression) \
  struct name {                          \
    template <class T>                   \
    static HWY_INLINE T Do(T a, T b) {   \
      return expression;                 \
    }                                    \
  };

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

HWY_INLINE float Floor(float x) { return __builtin_floorf(x); }
HWY_INLINE double Floor(double x) { return __builtin_floor(x); }
HWY_INLINE float Ceil(float x) { return __builtin_ceilf(x); }
HWY_INLINE double Ceil(double x) { return __builtin_ceil(x); }
HWY_INLINE float Trunc(float x) { return __builtin_truncf(x); }
HWY_INLINE double Trunc(double x) { return __builtin_trunc(x); }
HWY_INLINE float Round(float x) { return __builtin_rintf(x); }
HWY_INLINE double Round(double x) { return __builtin_rint(x); }
HWY_INLINE float Abs(float x) { return __builtin_fabsf(x); }
HWY_INLINE double Abs(double x) { return __builtin_fabs(x); }
HWY_INLINE float Sqrt(float x) { return __builtin_sqrtf(x); }
HWY_INLINE double Sqrt(double x) { return __builtin_sqrt(x); }
HWY_INLINE float CopySign(float x, float y) { return __builtin_copysignf(x, y); }
HWY_INLINE double CopySign(double x, double y) { return __builtin_copysign(x, y); }
HWY_INLINE float Fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
HWY_INLINE double Fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

MICA_FLOAT_OP2(FloatAdd, a + b)
MICA_FLOAT_OP2(FloatSub, a - b)
MICA_FLOAT_OP2(FloatMul, a* b)
MICA_FLOAT_OP2(FloatDiv, a / b)
MICA_FLOAT_OP2(FloatTruncDiv, Trunc(a / b))
// Not "at least" is below, or NaN: two comparisons, and one where b is a constant.
MICA_FLOAT_OP2(FloatMin, b != b ? b : (!(a >= b) ? a : b))
MICA_FLOAT_OP2(FloatMax, b != b ? b : (!(a <= b) ? a : b))
MICA_FLOAT_OP2(FloatFmin, b != b ? a : (a != a ? b : (a < b ? a : b)))
MICA_FLOAT_OP2(FloatFmax, b != b ? a : (a != a ? b : (a > b ? a : b)))
MICA_FLOAT_OP2(FloatCopySign, CopySign(a, b))
MICA_FLOAT_OP1(FloatNeg, -a)
MICA_FLOAT_OP1(FloatAbs, Abs(a))
MICA_FLOAT_OP1(FloatSign, a > 0 ? T{1} : (a < 0 ? T{-1} : T{0}))
MICA_FLOAT_OP1(FloatSquare, a* a)
MICA_FLOAT_OP1(FloatReciprocal, T{1} / a)
MICA_FLOAT_OP1(FloatFloor, Floor(a))
MICA_FLOAT_OP1(FloatCeil, Ceil(a))
MICA_FLOAT_OP1(FloatTrunc, Trunc(a))
MICA_FLOAT_OP1(FloatRound, Round(a))
MICA_FLOAT_OP1(FloatSqrt, Sqrt(a))
MICA_FLOAT_OP1(FloatRsqrt, T{1} / Sqrt(a))
MICA_FLOAT_OP1(FloatIsNan, a != a)
MICA_FLOAT_OP1(FloatIsInf, Abs(a) == kInfinity<T>)
MICA_FLOAT_OP1(FloatIsFinite, Abs(a) < kInfinity<T>)
MICA_FLOAT_OP1(FloatSignBit, std::bit_cast<Bits<T>>(a) < 0)
MICA_FLOAT_OP1(FloatZero, a != a ? T{0} : T{0})
MICA_FLOAT_OP1(FloatAngle, a < 0 ? static_cast<T>(3.14159265358979323846) : (a != a ? a : T{0}))
#undef MICA_FLOAT_OP1
#undef MICA_FLOAT_OP2

struct FloatMulAdd {
  template <class T>
  static HWY_INLINE T Do(T a, T b, T c) {
    return a + b * c;
  }
};
struct FloatFma {
  template <class T>
  static HWY_INLINE T Do(T a, T b, T c) {
    return Fma(a, b, c);
  }
};

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
