// Loop templates of the lane files, compiled once per instruction set.
//
// Included inside Highway's foreach_target machinery. A functor's static
// `Do` is applied to every lane; the loops are plain so that the compiler
// vectorizes them for the target of the surrounding namespace. `MICA_IVDEP`
// says what lanes.h promises: dst equals an operand exactly or not at all.
#if defined(MICA_CPU_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_LOOPS_INL_H_
#undef MICA_CPU_LOOPS_INL_H_
#else
#define MICA_CPU_LOOPS_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "plugins/cpu/engine/lanes/lanes.h"

#ifndef MICA_IVDEP
#ifdef __clang__
#define MICA_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MICA_IVDEP _Pragma("GCC ivdep")
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

template <class R, class T, class F>
int Map1(void* dst, const void* a, const void*, const void*, int64_t n) {
  R* d = static_cast<R*>(dst);
  const T* x = static_cast<const T*>(a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = static_cast<R>(F::Do(x[i]));
  return kFlagNone;
}

template <class R, class T, class F>
int Map2(void* dst, const void* a, const void* b, const void*, int64_t n) {
  R* d = static_cast<R*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = static_cast<R>(F::Do(x[i], y[i]));
  return kFlagNone;
}

template <class T, class F>
int Map3(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const T* z = static_cast<const T*>(c);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = F::Do(x[i], y[i], z[i]);
  return kFlagNone;
}

// Integer division and its kin: a zero divisor gives 0 and raises the flag.
template <class T, class F>
int MapDivision(void* dst, const void* a, const void* b, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  int flags = kFlagNone;
  for (int64_t i = 0; i < n; ++i) {
    if (y[i] == 0) {
      flags = kFlagZeroDivision;
      d[i] = 0;
    } else {
      d[i] = F::Do(x[i], y[i]);
    }
  }
  return flags;
}

// dst = mask ? b : c. Both sides are read, so that the loop has no branch.
template <class T>
int Select(void* dst, const void* mask, const void* b, const void* c, int64_t n) {
  T* d = static_cast<T*>(dst);
  const uint8_t* m = static_cast<const uint8_t*>(mask);
  const T* x = static_cast<const T*>(b);
  const T* y = static_cast<const T*>(c);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    const T yes = x[i];
    const T no = y[i];
    d[i] = m[i] ? yes : no;
  }
  return kFlagNone;
}

template <class T>
int CopyLanes(void* dst, const void* a, const void*, const void*, int64_t n) {
  if (dst != a) __builtin_memcpy(dst, a, static_cast<size_t>(n) * sizeof(T));
  return kFlagNone;
}

template <class T>
int Iota(void* dst, const void* a, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const int64_t first = static_cast<const int64_t*>(a)[0];
  const int64_t step = static_cast<const int64_t*>(a)[1];
  if constexpr (std::is_floating_point_v<T>) {  // coordinates are exact in double, blocks short
    const double from = static_cast<double>(first), by = static_cast<double>(step);
    MICA_IVDEP
    for (int32_t i = 0; i < static_cast<int32_t>(n); ++i) d[i] = static_cast<T>(from + i * by);
    return kFlagNone;
  }
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = static_cast<T>(first + i * step);
  return kFlagNone;
}

template <class T>
int SplatLanes(void* dst, const void* a, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T value = *static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) d[i] = value;
  return kFlagNone;
}

struct OpEq {
  template <class T>
  static HWY_INLINE bool Do(T a, T b) {
    return a == b;
  }
};
struct OpNe {
  template <class T>
  static HWY_INLINE bool Do(T a, T b) {
    return a != b;
  }
};
struct OpLt {
  template <class T>
  static HWY_INLINE bool Do(T a, T b) {
    return a < b;
  }
};
struct OpLe {
  template <class T>
  static HWY_INLINE bool Do(T a, T b) {
    return a <= b;
  }
};
struct OpGt {
  template <class T>
  static HWY_INLINE bool Do(T a, T b) {
    return a > b;
  }
};
struct OpGe {
  template <class T>
  static HWY_INLINE bool Do(T a, T b) {
    return a >= b;
  }
};
struct OpToMask {
  template <class T>
  static HWY_INLINE bool Do(T a) {
    return a != 0;
  }
};
// Of a mask: it may be a bool input, where any byte but 0 is true.
struct OpToLane {
  static HWY_INLINE bool Do(uint8_t a) { return a != 0; }
};
struct OpFalse {
  template <class T>
  static HWY_INLINE bool Do(T) {
    return false;
  }
};
struct OpTrue {
  template <class T>
  static HWY_INLINE bool Do(T) {
    return true;
  }
};

// What every real lane shares: comparisons, selection, masks, copies.
template <class T>
void FillCommon(PrimitiveTable& table) {
  Primitive* at = table.at;
  at[MICA_OP_EQ] = Map2<uint8_t, T, OpEq>;
  at[MICA_OP_NE] = Map2<uint8_t, T, OpNe>;
  at[MICA_OP_LT] = Map2<uint8_t, T, OpLt>;
  at[MICA_OP_LE] = Map2<uint8_t, T, OpLe>;
  at[MICA_OP_GT] = Map2<uint8_t, T, OpGt>;
  at[MICA_OP_GE] = Map2<uint8_t, T, OpGe>;
  at[MICA_OP_TO_MASK] = Map1<uint8_t, T, OpToMask>;
  at[MICA_OP_TO_LANE] = Map1<T, uint8_t, OpToLane>;
  at[MICA_OP_SELECT] = Select<T>;
  at[kOpCopy] = CopyLanes<T>;
  at[kOpIota] = Iota<T>;
  at[kOpSplat] = SplatLanes<T>;
  at[MICA_OP_REAL] = CopyLanes<T>;
  at[MICA_OP_CONJ] = CopyLanes<T>;
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
