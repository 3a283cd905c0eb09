// Integer primitives, a template over the lane type; see loops-inl.h.
//
// Meaning: arithmetic wraps; division by zero raises the flag and INT_MIN // -1
// wraps; floor_div and remainder round towards minus infinity (the remainder has
// the divisor's sign), trunc_div and fmod towards zero; a shift by the width or
// more, or by a negative count, gives 0 (the sign when shifting right).
#if defined(MICA_CPU_LANES_INT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_LANES_INT_INL_H_
#undef MICA_CPU_LANES_INT_INL_H_
#else
#define MICA_CPU_LANES_INT_INL_H_
#endif

#include <limits>
#include <type_traits>

#include "plugins/cpu/engine/lanes/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// Unsigned and at least int wide, so that wrapping is defined.
template <class T>
using Wide = std::common_type_t<unsigned, std::make_unsigned_t<T>>;

#define MICA_INT_OP1(name, expression)    \
  struct name {                           \
    template <class T>                    \
    static HWY_INLINE T Do(T a) {         \
      using W [[maybe_unused]] = Wide<T>; \
      return static_cast<T>(expression);  \
    }                                     \
  };
#define MICA_INT_OP2(name, expression)    \
  struct name {                           \
    template <class T>                    \
    static HWY_INLINE T Do(T a, T b) {    \
      using W [[maybe_unused]] = Wide<T>; \
      return static_cast<T>(expression);  \
    }                                     \
  };

MICA_INT_OP2(IntAdd, static_cast<W>(a) + static_cast<W>(b))
MICA_INT_OP2(IntSub, static_cast<W>(a) - static_cast<W>(b))
MICA_INT_OP2(IntMul, static_cast<W>(a) * static_cast<W>(b))
MICA_INT_OP1(IntNeg, W{0} - static_cast<W>(a))
MICA_INT_OP1(IntAbs, a < 0 ? W{0} - static_cast<W>(a) : static_cast<W>(a))
MICA_INT_OP1(IntSign, (a > 0) - (a < 0))
MICA_INT_OP1(IntSquare, static_cast<W>(a) * static_cast<W>(a))
MICA_INT_OP2(IntMin, a < b ? a : b)
MICA_INT_OP2(IntMax, a > b ? a : b)
MICA_INT_OP2(IntAnd, a& b)
MICA_INT_OP2(IntOr, a | b)
MICA_INT_OP2(IntXor, a ^ b)
MICA_INT_OP1(IntNot, ~a)
#undef MICA_INT_OP1
#undef MICA_INT_OP2

template <class T>
inline constexpr int kBits = std::numeric_limits<std::make_unsigned_t<T>>::digits;

struct IntShl {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    const bool out = b < 0 || b >= static_cast<T>(kBits<T>);
    const T count = out ? T{0} : b;
    return out ? T{0} : static_cast<T>(static_cast<Wide<T>>(a) << count);
  }
};
struct IntShr {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    const bool out = b < 0 || b >= static_cast<T>(kBits<T>);
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> (out ? static_cast<T>(kBits<T> - 1) : b));
    } else {
      return out ? T{0} : static_cast<T>(a >> (out ? T{0} : b));
    }
  }
};

template <class T>
HWY_INLINE bool Overflows(T a, T b) {
  return std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min();
}
struct IntTruncDiv {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    return Overflows(a, b) ? a : static_cast<T>(a / b);
  }
};
struct IntFloorDiv {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    if (Overflows(a, b)) return a;
    const T quotient = static_cast<T>(a / b);
    const bool inexact = static_cast<T>(quotient * b) != a;
    return static_cast<T>(quotient - (inexact && ((a < 0) != (b < 0))));
  }
};
struct IntFmod {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    return Overflows(a, b) ? T{0} : static_cast<T>(a % b);
  }
};
struct IntRemainder {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    if (Overflows(a, b)) return T{0};
    const T rest = static_cast<T>(a % b);
    return static_cast<T>(rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest);
  }
};
// A negative exponent gives what 1 / a**-b truncates to: 0, or ±1 for a = ±1.
struct IntPow {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    if (b < 0) return a == 1 ? T{1} : a == static_cast<T>(-1) ? static_cast<T>(b % 2 ? -1 : 1) : T{0};
    Wide<T> result = 1;
    Wide<T> base = static_cast<Wide<T>>(a);
    for (std::make_unsigned_t<T> e = static_cast<std::make_unsigned_t<T>>(b); e != 0; e >>= 1) {
      if (e & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  }
};
struct IntGcd {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    T x = IntAbs::Do(a);
    T y = IntAbs::Do(b);
    while (y != 0) {
      const T rest = Overflows(x, y) ? T{0} : static_cast<T>(x % y);
      x = y;
      y = rest;
    }
    return IntAbs::Do(x);
  }
};
struct IntLcm {
  template <class T>
  static HWY_INLINE T Do(T a, T b) {
    const T g = IntGcd::Do(a, b);
    return g == 0 ? T{0} : IntAbs::Do(IntMul::Do(IntTruncDiv::Do(a, g), b));
  }
};
struct IntSignBit {
  template <class T>
  static HWY_INLINE bool Do(T a) {
    return a < 0;
  }
};
struct IntMulAdd {
  template <class T>
  static HWY_INLINE T Do(T a, T b, T c) {
    return IntAdd::Do(a, IntMul::Do(b, c));
  }
};
struct IntFma {
  template <class T>
  static HWY_INLINE T Do(T a, T b, T c) {
    return IntAdd::Do(IntMul::Do(a, b), c);
  }
};

template <class T>
PrimitiveTable MakeIntTable() {
  PrimitiveTable table{};
  FillCommon<T>(table);
  Primitive* at = table.at;
  at[MICA_OP_ADD] = Map2<T, T, IntAdd>;
  at[MICA_OP_SUB] = Map2<T, T, IntSub>;
  at[MICA_OP_MUL] = Map2<T, T, IntMul>;
  at[MICA_OP_DIV] = at[MICA_OP_TRUNC_DIV] = MapDivision<T, IntTruncDiv>;
  at[MICA_OP_FLOOR_DIV] = MapDivision<T, IntFloorDiv>;
  at[MICA_OP_REMAINDER] = MapDivision<T, IntRemainder>;
  at[MICA_OP_FMOD] = MapDivision<T, IntFmod>;
  at[MICA_OP_NEG] = Map1<T, T, IntNeg>;
  at[MICA_OP_ABS] = Map1<T, T, IntAbs>;
  at[MICA_OP_SIGN] = Map1<T, T, IntSign>;
  at[MICA_OP_SQUARE] = Map1<T, T, IntSquare>;
  at[MICA_OP_POW] = Map2<T, T, IntPow>;
  at[MICA_OP_MIN] = at[MICA_OP_FMIN] = Map2<T, T, IntMin>;
  at[MICA_OP_MAX] = at[MICA_OP_FMAX] = Map2<T, T, IntMax>;
  at[MICA_OP_AND] = Map2<T, T, IntAnd>;
  at[MICA_OP_OR] = Map2<T, T, IntOr>;
  at[MICA_OP_XOR] = Map2<T, T, IntXor>;
  at[MICA_OP_NOT] = Map1<T, T, IntNot>;
  at[MICA_OP_SHL] = Map2<T, T, IntShl>;
  at[MICA_OP_SHR] = Map2<T, T, IntShr>;
  at[MICA_OP_GCD] = Map2<T, T, IntGcd>;
  at[MICA_OP_LCM] = Map2<T, T, IntLcm>;
  at[MICA_OP_FMA] = Map3<T, IntFma>;
  at[kOpMulAdd] = Map3<T, IntMulAdd>;
  at[MICA_OP_FLOOR] = at[MICA_OP_CEIL] = at[MICA_OP_TRUNC] = at[MICA_OP_ROUND] = CopyLanes<T>;
  at[MICA_OP_IS_NAN] = at[MICA_OP_IS_INF] = Map1<uint8_t, T, OpFalse>;
  at[MICA_OP_IS_FINITE] = Map1<uint8_t, T, OpTrue>;
  at[MICA_OP_SIGNBIT] = Map1<uint8_t, T, IntSignBit>;
  return table;
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
