// The float32 and float64 lanes without the maths library: arithmetic,
// comparison, rounding and classification. maths.cc adds the rest.
//
// Meaning: min and max propagate NaN, fmin and fmax ignore it; sign of NaN is 0
// and round goes half to even, both as torch has them; no operation is fused, so
// that a value does not depend on where in a block it stands.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mica/plugins/cpu/engine/lanes_float.cc"
#include "hwy/foreach_target.h"
//
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "mica/plugins/cpu/engine/loops-inl.h"

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
MICA_FLOAT_OP2(FloatMin, a != a ? a : (b != b ? b : (a < b ? a : b)))
MICA_FLOAT_OP2(FloatMax, a != a ? a : (b != b ? b : (a > b ? a : b)))
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

template <class T>
PrimitiveTable MakeFloatTable() {
  PrimitiveTable table{};
  FillCommon<T>(table);
  Primitive* at = table.at;
  at[MICA_OP_ADD] = Map2<T, T, FloatAdd>;
  at[MICA_OP_SUB] = Map2<T, T, FloatSub>;
  at[MICA_OP_MUL] = Map2<T, T, FloatMul>;
  at[MICA_OP_DIV] = Map2<T, T, FloatDiv>;
  at[MICA_OP_TRUNC_DIV] = Map2<T, T, FloatTruncDiv>;
  at[MICA_OP_MIN] = Map2<T, T, FloatMin>;
  at[MICA_OP_MAX] = Map2<T, T, FloatMax>;
  at[MICA_OP_FMIN] = Map2<T, T, FloatFmin>;
  at[MICA_OP_FMAX] = Map2<T, T, FloatFmax>;
  at[MICA_OP_COPYSIGN] = Map2<T, T, FloatCopySign>;
  at[MICA_OP_NEG] = Map1<T, T, FloatNeg>;
  at[MICA_OP_ABS] = Map1<T, T, FloatAbs>;
  at[MICA_OP_SIGN] = Map1<T, T, FloatSign>;
  at[MICA_OP_SQUARE] = Map1<T, T, FloatSquare>;
  at[MICA_OP_RECIPROCAL] = Map1<T, T, FloatReciprocal>;
  at[MICA_OP_FLOOR] = Map1<T, T, FloatFloor>;
  at[MICA_OP_CEIL] = Map1<T, T, FloatCeil>;
  at[MICA_OP_TRUNC] = Map1<T, T, FloatTrunc>;
  at[MICA_OP_ROUND] = Map1<T, T, FloatRound>;
  at[MICA_OP_SQRT] = Map1<T, T, FloatSqrt>;
  at[MICA_OP_RSQRT] = Map1<T, T, FloatRsqrt>;
  at[MICA_OP_IS_NAN] = Map1<uint8_t, T, FloatIsNan>;
  at[MICA_OP_IS_INF] = Map1<uint8_t, T, FloatIsInf>;
  at[MICA_OP_IS_FINITE] = Map1<uint8_t, T, FloatIsFinite>;
  at[MICA_OP_SIGNBIT] = Map1<uint8_t, T, FloatSignBit>;
  at[MICA_OP_IMAG] = Map1<T, T, FloatZero>;
  at[MICA_OP_ANGLE] = Map1<T, T, FloatAngle>;
  at[MICA_OP_FMA] = Map3<T, FloatFma>;
  at[kOpMulAdd] = Map3<T, FloatMulAdd>;
  return table;
}

const PrimitiveTable* FloatTables(int32_t dtype) {
  static const PrimitiveTable tables[] = {MakeFloatTable<float>(), MakeFloatTable<double>()};
  return &tables[dtype - MICA_F32];
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FloatTables);
const PrimitiveTable* ChooseFloatTable(int32_t dtype) { return HWY_DYNAMIC_DISPATCH(FloatTables)(dtype); }
}  // namespace mica::cpu
#endif
