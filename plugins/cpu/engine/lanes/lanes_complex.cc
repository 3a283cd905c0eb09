// The complex64 and complex128 lanes: two planes, kBlock lanes apart.
//
// Arithmetic runs over the planes, abs and angle by the real lane's functions of two
// numbers; the transcendental functions go lane by lane
// through the C library's complex functions (in double for complex64). Division
// scales by the larger part of the divisor, so that it neither overflows nor
// loses infinities. A real result (abs, angle, real, imag) has a zero imaginary
// plane. Single operations of arithmetic also run on numbers as memory has them.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/lanes/lanes_complex.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>
#include <limits>

#include "plugins/cpu/engine/lanes/complex_maths.h"
#include "plugins/cpu/engine/lanes/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

template <class T>
struct Z {
  T re, im;
};

template <class T, class F>
int ComplexMap1(void* dst, const void* a, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    const Z<T> r = F::Do(Z<T>{x[i], x[i + kBlock]});
    d[i] = r.re;
    d[i + kBlock] = r.im;
  }
  return kFlagNone;
}

template <class T, class F>
int ComplexMap2(void* dst, const void* a, const void* b, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    const Z<T> r = F::Do(Z<T>{x[i], x[i + kBlock]}, Z<T>{y[i], y[i + kBlock]});
    d[i] = r.re;
    d[i + kBlock] = r.im;
  }
  return kFlagNone;
}

template <class T, class F>
int InterleavedMap1(void* dst, const void* a, const void*, const void*, int64_t n) {
  Z<T>* d = static_cast<Z<T>*>(dst);
  const Z<T>* x = static_cast<const Z<T>*>(a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = F::Do(x[i]);
  return kFlagNone;
}

template <class T, class F>
int InterleavedMap2(void* dst, const void* a, const void* b, const void*, int64_t n) {
  Z<T>* d = static_cast<Z<T>*>(dst);
  const Z<T>* x = static_cast<const Z<T>*>(a);
  const Z<T>* y = static_cast<const Z<T>*>(b);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = F::Do(x[i], y[i]);
  return kFlagNone;
}

template <class T, class F>
int ComplexTest(void* dst, const void* a, const void* b, const void*, int64_t n) {
  uint8_t* d = static_cast<uint8_t*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(F::kBinary ? b : a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = F::Do(Z<T>{x[i], x[i + kBlock]}, Z<T>{y[i], y[i + kBlock]});
  return kFlagNone;
}

template <class T>
int ComplexSelect(void* dst, const void* mask, const void* b, const void* c, int64_t n) {
  Select<T>(dst, mask, b, c, n);
  return Select<T>(static_cast<T*>(dst) + kBlock, mask, static_cast<const T*>(b) + kBlock,
                   static_cast<const T*>(c) + kBlock, n);
}

template <class T>
int ComplexCopy(void* dst, const void* a, const void*, const void*, int64_t n) {
  CopyLanes<T>(dst, a, nullptr, nullptr, n);
  return CopyLanes<T>(static_cast<T*>(dst) + kBlock, static_cast<const T*>(a) + kBlock, nullptr, nullptr, n);
}

template <class T>
int ZeroImaginary(void* dst, const void*, const void*, const void*, int64_t n) {
  __builtin_memset(static_cast<T*>(dst) + kBlock, 0, static_cast<size_t>(n) * sizeof(T));
  return kFlagNone;
}

template <class T>
int ComplexFromMask(void* dst, const void* a, const void*, const void*, int64_t n) {
  Map1<T, uint8_t, OpToLane>(dst, a, nullptr, nullptr, n);
  return ZeroImaginary<T>(dst, nullptr, nullptr, nullptr, n);
}

template <class T>
int ComplexIota(void* dst, const void* a, const void*, const void*, int64_t n) {
  Iota<T>(dst, a, nullptr, nullptr, n);
  return ZeroImaginary<T>(dst, nullptr, nullptr, nullptr, n);
}

template <class T>
int ComplexSplat(void* dst, const void* a, const void*, const void*, int64_t n) {
  SplatLanes<T>(dst, a, nullptr, nullptr, n);
  return SplatLanes<T>(static_cast<T*>(dst) + kBlock, static_cast<const T*>(a) + kBlock, nullptr, nullptr, n);
}

// Lane by lane through a function of two complex doubles.
template <class T, ComplexFunction F, bool kBinary = false>
int ComplexScalar(void* dst, const void* a, const void* b, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  [[maybe_unused]] const T* y = static_cast<const T*>(b);
  for (int64_t i = 0; i < n; ++i) {
    double out[2];
    const double in[2] = {static_cast<double>(x[i]), static_cast<double>(x[i + kBlock])};
    double second[2] = {0, 0};
    if constexpr (kBinary) {
      second[0] = static_cast<double>(y[i]);
      second[1] = static_cast<double>(y[i + kBlock]);
    }
    F(out, in, second);
    d[i] = static_cast<T>(out[0]);
    d[i + kBlock] = static_cast<T>(out[1]);
  }
  return kFlagNone;
}

struct ComplexAdd {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a, Z<T> b) {
    return {a.re + b.re, a.im + b.im};
  }
};
struct ComplexSub {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a, Z<T> b) {
    return {a.re - b.re, a.im - b.im};
  }
};
struct ComplexMul {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a, Z<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
// One part of a divisor by the larger of the two. Of an infinite divisor the infinite parts are 1 and the
// others 0, so that what is finite over it is 0 (C99, annex G).
template <class T>
HWY_INLINE T Scaled(T part, T size, T scale) {
  const T infinity = std::numeric_limits<T>::infinity();
  const T one = part < 0 ? T{-1} : T{1};
  return scale != infinity ? part / scale : size == infinity ? one : part * T{0};
}
struct ComplexDiv {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a, Z<T> b) {
    const T re = b.re < 0 ? -b.re : b.re;
    const T im = b.im < 0 ? -b.im : b.im;
    const T larger = re < im ? im : re;
    const T scale = larger == 0 ? T{1} : larger;
    const Z<T> s = {Scaled(b.re, re, scale), Scaled(b.im, im, scale)};
    const T norm = s.re * s.re + s.im * s.im;
    return {(a.re * s.re + a.im * s.im) / norm / scale, (a.im * s.re - a.re * s.im) / norm / scale};
  }
};
struct ComplexReciprocal {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a) {
    return ComplexDiv::Do(Z<T>{1, 0}, a);
  }
};
struct ComplexNeg {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a) {
    return {-a.re, -a.im};
  }
};
struct ComplexConj {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a) {
    return {a.re, -a.im};
  }
};
struct ComplexReal {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a) {
    return {a.re, T{0}};
  }
};
struct ComplexImag {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a) {
    return {a.im, T{0}};
  }
};
struct ComplexSquare {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a) {
    return ComplexMul::Do(a, a);
  }
};
struct MakeComplex {
  template <class T>
  static HWY_INLINE Z<T> Do(Z<T> a, Z<T> b) {
    return {a.re, b.re};
  }
};
struct ComplexEq {
  static constexpr bool kBinary = true;
  template <class T>
  static HWY_INLINE bool Do(Z<T> a, Z<T> b) {
    return (a.re == b.re) & (a.im == b.im);
  }
};
struct ComplexNe {
  static constexpr bool kBinary = true;
  template <class T>
  static HWY_INLINE bool Do(Z<T> a, Z<T> b) {
    return (a.re != b.re) | (a.im != b.im);
  }
};
struct ComplexToMask {
  static constexpr bool kBinary = false;
  template <class T>
  static HWY_INLINE bool Do(Z<T> a, Z<T>) {
    return (a.re != 0) | (a.im != 0);
  }
};
struct ComplexIsNan {
  static constexpr bool kBinary = false;
  template <class T>
  static HWY_INLINE bool Do(Z<T> a, Z<T>) {
    return (a.re != a.re) | (a.im != a.im);
  }
};
struct ComplexIsInf {
  static constexpr bool kBinary = false;
  template <class T>
  static HWY_INLINE bool Do(Z<T> a, Z<T>) {
    return std::isinf(a.re) | std::isinf(a.im);
  }
};
struct ComplexIsFinite {
  static constexpr bool kBinary = false;
  template <class T>
  static HWY_INLINE bool Do(Z<T> a, Z<T>) {
    return std::isfinite(a.re) & std::isfinite(a.im);
  }
};

// The real lane's function of the imaginary and the real part.
template <class T, int kOpcode>
int OfParts(void* dst, const void* a, const void*, const void*, int64_t n) {
  static const Primitive function = LaneTable(sizeof(T) == 4 ? MICA_F32 : MICA_F64)->at[kOpcode];
  function(dst, static_cast<const T*>(a) + kBlock, a, nullptr, n);
  return ZeroImaginary<T>(dst, nullptr, nullptr, nullptr, n);
}

template <class T>
PrimitiveTable MakeComplexTable() {
  PrimitiveTable table{};
  Primitive* at = table.at;
  at[kOpCopy] = ComplexCopy<T>;
  at[kOpZeroImaginary] = ZeroImaginary<T>;
  at[kOpIota] = ComplexIota<T>;
  at[kOpSplat] = ComplexSplat<T>;
  at[MICA_OP_SELECT] = ComplexSelect<T>;
  at[MICA_OP_TO_LANE] = ComplexFromMask<T>;
  at[MICA_OP_TO_MASK] = ComplexTest<T, ComplexToMask>;
  at[MICA_OP_EQ] = ComplexTest<T, ComplexEq>;
  at[MICA_OP_NE] = ComplexTest<T, ComplexNe>;
  at[MICA_OP_IS_NAN] = ComplexTest<T, ComplexIsNan>;
  at[MICA_OP_IS_INF] = ComplexTest<T, ComplexIsInf>;
  at[MICA_OP_IS_FINITE] = ComplexTest<T, ComplexIsFinite>;
  at[MICA_OP_ADD] = ComplexMap2<T, ComplexAdd>;
  at[MICA_OP_SUB] = ComplexMap2<T, ComplexSub>;
  at[MICA_OP_MUL] = ComplexMap2<T, ComplexMul>;
  at[MICA_OP_DIV] = ComplexMap2<T, ComplexDiv>;
  at[MICA_OP_COMPLEX] = ComplexMap2<T, MakeComplex>;
  at[MICA_OP_NEG] = ComplexMap1<T, ComplexNeg>;
  at[MICA_OP_CONJ] = ComplexMap1<T, ComplexConj>;
  at[MICA_OP_REAL] = ComplexMap1<T, ComplexReal>;
  at[MICA_OP_IMAG] = ComplexMap1<T, ComplexImag>;
  at[MICA_OP_SQUARE] = ComplexMap1<T, ComplexSquare>;
  at[MICA_OP_RECIPROCAL] = ComplexMap1<T, ComplexReciprocal>;
#define MICA_COMPLEX(opcode, function) at[MICA_OP_##opcode] = ComplexScalar<T, function>;
  at[MICA_OP_ABS] = OfParts<T, MICA_OP_HYPOT>;
  at[MICA_OP_ANGLE] = OfParts<T, MICA_OP_ATAN2>;
  MICA_COMPLEX(SIGN, ComplexSign)
  at[MICA_OP_POW] = ComplexScalar<T, ComplexPow, true>;
  MICA_COMPLEX(SQRT, ComplexSqrt)
  MICA_COMPLEX(RSQRT, ComplexRsqrt)
  MICA_COMPLEX(EXP, ComplexExp)
  MICA_COMPLEX(EXP2, ComplexExp2)
  MICA_COMPLEX(EXPM1, ComplexExpm1)
  MICA_COMPLEX(LOG, ComplexLog)
  MICA_COMPLEX(LOG2, ComplexLog2)
  MICA_COMPLEX(LOG10, ComplexLog10)
  MICA_COMPLEX(LOG1P, ComplexLog1p)
  MICA_COMPLEX(SIN, ComplexSin)
  MICA_COMPLEX(COS, ComplexCos)
  MICA_COMPLEX(TAN, ComplexTan)
  MICA_COMPLEX(ASIN, ComplexAsin)
  MICA_COMPLEX(ACOS, ComplexAcos)
  MICA_COMPLEX(ATAN, ComplexAtan)
  MICA_COMPLEX(SINH, ComplexSinh)
  MICA_COMPLEX(COSH, ComplexCosh)
  MICA_COMPLEX(TANH, ComplexTanh)
  MICA_COMPLEX(ASINH, ComplexAsinh)
  MICA_COMPLEX(ACOSH, ComplexAcosh)
  MICA_COMPLEX(ATANH, ComplexAtanh)
  MICA_COMPLEX(SIGMOID, ComplexSigmoid)
#undef MICA_COMPLEX
  return table;
}

template <class T>
PrimitiveTable MakeInterleavedTable() {
  PrimitiveTable table{};
  Primitive* at = table.at;
  at[MICA_OP_ADD] = InterleavedMap2<T, ComplexAdd>;
  at[MICA_OP_SUB] = InterleavedMap2<T, ComplexSub>;
  at[MICA_OP_MUL] = InterleavedMap2<T, ComplexMul>;
  at[MICA_OP_DIV] = InterleavedMap2<T, ComplexDiv>;
  at[MICA_OP_NEG] = InterleavedMap1<T, ComplexNeg>;
  at[MICA_OP_CONJ] = InterleavedMap1<T, ComplexConj>;
  at[MICA_OP_SQUARE] = InterleavedMap1<T, ComplexSquare>;
  at[MICA_OP_RECIPROCAL] = InterleavedMap1<T, ComplexReciprocal>;
  return table;
}

const PrimitiveTable* InterleavedTables(int32_t dtype) {
  static const PrimitiveTable tables[] = {MakeInterleavedTable<float>(), MakeInterleavedTable<double>()};
  return &tables[dtype - MICA_C64];
}

const PrimitiveTable* ComplexTables(int32_t dtype) {
  static const PrimitiveTable tables[] = {MakeComplexTable<float>(), MakeComplexTable<double>()};
  return &tables[dtype - MICA_C64];
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(ComplexTables);
HWY_EXPORT(InterleavedTables);
const PrimitiveTable* ChooseComplexTable(int32_t dtype) { return HWY_DYNAMIC_DISPATCH(ComplexTables)(dtype); }
const PrimitiveTable* ChooseInterleavedTable(int32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(InterleavedTables)(dtype);
}
}  // namespace mica::cpu
#endif
