// Conversions between the real dtypes, complex planes and memory.
//
// Meaning: float to int truncates; out of the range of int64 (int32 for the
// dtype int32) it gives the minimum, as x86 has it, and narrower integers keep
// its low bits; uint64 takes negative floats through int64. Anything but zero
// is true, a byte of bool memory too. Half and float8 types convert from and to float32 alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/lanes/casts.cc"
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
//
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "plugins/cpu/engine/lanes/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// Out-of-range values become the minimum, without undefined behaviour. Integers below 32 bits are the low
// bits of an int32, as PyTorch has them.
template <class I, class F>
HWY_INLINE I Truncate(F x) {
  constexpr F kLimit = static_cast<F>(std::numeric_limits<I>::max() / 2 + 1) * 2;
  return x >= -kLimit && x < kLimit ? static_cast<I>(x) : std::numeric_limits<I>::min();
}

template <class To, class From>
struct Convert {
  static HWY_INLINE To Do(From x) {
    if constexpr (std::is_same_v<To, Bool> && std::is_same_v<From, Bool>) {
      return {static_cast<uint8_t>(x.bits != 0)};
    } else if constexpr (std::is_same_v<To, From>) {
      return x;
    } else if constexpr (std::is_same_v<To, Bool>) {
      return {static_cast<uint8_t>(x != 0)};
    } else if constexpr (std::is_same_v<From, Bool>) {
      return static_cast<To>(x.bits != 0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      if constexpr (std::is_same_v<To, int32_t> || sizeof(To) < sizeof(int32_t)) {
        return static_cast<To>(Truncate<int32_t>(x));
      } else if constexpr (std::is_same_v<To, uint64_t>) {
        constexpr From kHigh = static_cast<From>(9223372036854775808.0);
        return x >= kHigh ? static_cast<To>(Truncate<int64_t>(x - kHigh)) ^ (To{1} << 63)
                          : static_cast<To>(Truncate<int64_t>(x));
      } else {
        return static_cast<To>(Truncate<int64_t>(x));
      }
    } else {
      return static_cast<To>(x);
    }
  }
};

// An integer between -2^51 and 2^51 as the low bits of a double of 2^52 and more: AVX2 has no conversion of
// 64-bit integers. One that stands outside sends its stretch to the scalar conversion.
template <class To>
void CastWideIntegers(To* d, const int64_t* x, int64_t n) {
  constexpr int64_t kStretch = 1024;
  constexpr double kShift = 6755399441055744.0;  // 2^52 + 2^51
  for (; n > 0; n -= kStretch, x += kStretch, d += kStretch) {
    const int64_t count = HWY_MIN(n, kStretch);
    uint64_t outside = 0;
    for (int64_t i = 0; i < count; ++i) outside |= (static_cast<uint64_t>(x[i]) + (uint64_t{1} << 51)) >> 52;
    if (outside != 0) {
      for (int64_t i = 0; i < count; ++i) d[i] = static_cast<To>(x[i]);
      continue;
    }
    MICA_IVDEP
    for (int64_t i = 0; i < count; ++i) {
      const int64_t bits = x[i] + std::bit_cast<int64_t>(kShift);
      d[i] = static_cast<To>(std::bit_cast<double>(bits) - kShift);
    }
  }
}

template <class To, class From>
int CastLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  To* d = static_cast<To*>(dst);
  const From* x = static_cast<const From*>(a);
  if constexpr (std::is_same_v<From, int64_t> && std::is_floating_point_v<To>) {
    CastWideIntegers(d, x, n);
    return kFlagNone;
  }
  // Numbers fit int32 almost always, for which the conversion is a vector's.
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) != sizeof(int32_t)) {
    constexpr int64_t kStretch = 1024;
    for (; n > 0; n -= kStretch, x += kStretch, d += kStretch) {
      const int64_t count = HWY_MIN(n, kStretch);
      int outside = 0;
      for (int64_t i = 0; i < count; ++i) outside |= !(x[i] > From{-2e9f} && x[i] < From{2e9f});
      if (outside != 0) {
        for (int64_t i = 0; i < count; ++i) d[i] = Convert<To, From>::Do(x[i]);
        continue;
      }
      MICA_IVDEP
      for (int64_t i = 0; i < count; ++i) d[i] = static_cast<To>(static_cast<int32_t>(x[i]));
    }
    return kFlagNone;
  }
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = Convert<To, From>::Do(x[i]);
  return kFlagNone;
}

// Half types by vectors, float8 by what the compiler makes of one element.
template <class From>
int ToFloatLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  float* d = static_cast<float*>(dst);
  const From* x = static_cast<const From*>(a);
  int64_t i = 0;
  if constexpr (sizeof(From) == 2) {
    const hn::ScalableTag<float> lanes;
    const int64_t step = static_cast<int64_t>(hn::Lanes(lanes));
    for (; i + step <= n; i += step) hn::StoreU(Memory<From>::Load(x + i), lanes, d + i);
  }
  MICA_IVDEP
  for (; i < n; ++i) d[i] = ToFloat(x[i]);
  return kFlagNone;
}

template <class To>
int FromFloatLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  To* d = static_cast<To*>(dst);
  const float* x = static_cast<const float*>(a);
  int64_t i = 0;
  if constexpr (sizeof(To) == 2) {
    const hn::ScalableTag<float> lanes;
    const int64_t step = static_cast<int64_t>(hn::Lanes(lanes));
    for (; i + 2 * step <= n; i += 2 * step)
      Memory<To>::StoreTwo(hn::LoadU(lanes, x + i), hn::LoadU(lanes, x + i + step), d + i);
    for (; i + step <= n; i += step) Memory<To>::Store(hn::LoadU(lanes, x + i), d + i);
  }
  MICA_IVDEP
  for (; i < n; ++i) {
    if constexpr (std::is_same_v<To, Half>) d[i] = ToHalf(x[i]);
    if constexpr (std::is_same_v<To, Brain>) d[i] = ToBrain(x[i]);
    if constexpr (std::is_same_v<To, F8E4>) d[i] = ToF8E4(x[i]);
    if constexpr (std::is_same_v<To, F8E5>) d[i] = ToF8E5(x[i]);
  }
  return kFlagNone;
}

// 0 or, in a half type, 1.
template <uint16_t kOne>
int TruthToHalf(void* dst, const void* a, const void*, const void*, int64_t n) {
  uint16_t* d = static_cast<uint16_t*>(dst);
  const uint8_t* x = static_cast<const uint8_t*>(a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = x[i] != 0 ? kOne : uint16_t{0};
  return kFlagNone;
}

template <class T>
int DeinterleaveLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    d[i] = x[2 * i];
    d[i + kBlock] = x[2 * i + 1];
  }
  return kFlagNone;
}

template <class T>
int InterleaveLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* x = static_cast<const T*>(a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    d[2 * i] = x[i];
    d[2 * i + 1] = x[i + kBlock];
  }
  return kFlagNone;
}

template <class To, class From>
int CastPlanesLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  CastLoop<To, From>(dst, a, nullptr, nullptr, n);
  return CastLoop<To, From>(static_cast<To*>(dst) + kBlock, static_cast<const From*>(a) + kBlock, nullptr,
                            nullptr, n);
}

using Row = Primitive[MICA_DTYPE_COUNT];

template <class From>
void FillRow(Row& row) {
  row[MICA_BOOL] = CastLoop<Bool, From>;
  row[MICA_U8] = CastLoop<uint8_t, From>;
  row[MICA_I8] = CastLoop<int8_t, From>;
  row[MICA_U16] = CastLoop<uint16_t, From>;
  row[MICA_I16] = CastLoop<int16_t, From>;
  row[MICA_U32] = CastLoop<uint32_t, From>;
  row[MICA_I32] = CastLoop<int32_t, From>;
  row[MICA_U64] = CastLoop<uint64_t, From>;
  row[MICA_I64] = CastLoop<int64_t, From>;
  row[MICA_F32] = CastLoop<float, From>;
  row[MICA_F64] = CastLoop<double, From>;
}

struct CastTable {
  Row rows[MICA_DTYPE_COUNT] = {};
  CastTable() {
    FillRow<Bool>(rows[MICA_BOOL]);
    FillRow<uint8_t>(rows[MICA_U8]);
    FillRow<int8_t>(rows[MICA_I8]);
    FillRow<uint16_t>(rows[MICA_U16]);
    FillRow<int16_t>(rows[MICA_I16]);
    FillRow<uint32_t>(rows[MICA_U32]);
    FillRow<int32_t>(rows[MICA_I32]);
    FillRow<uint64_t>(rows[MICA_U64]);
    FillRow<int64_t>(rows[MICA_I64]);
    FillRow<float>(rows[MICA_F32]);
    FillRow<double>(rows[MICA_F64]);
    rows[MICA_F16][MICA_F32] = ToFloatLoop<Half>;
    rows[MICA_BF16][MICA_F32] = ToFloatLoop<Brain>;
    rows[MICA_F8E4M3FN][MICA_F32] = ToFloatLoop<F8E4>;
    rows[MICA_F8E5M2][MICA_F32] = ToFloatLoop<F8E5>;
    rows[MICA_F32][MICA_F16] = FromFloatLoop<Half>;
    rows[MICA_F32][MICA_BF16] = FromFloatLoop<Brain>;
    rows[MICA_F32][MICA_F8E4M3FN] = FromFloatLoop<F8E4>;
    rows[MICA_F32][MICA_F8E5M2] = FromFloatLoop<F8E5>;
    rows[MICA_BOOL][MICA_F16] = TruthToHalf<0x3c00>;
    rows[MICA_BOOL][MICA_BF16] = TruthToHalf<0x3f80>;
    rows[MICA_F16][MICA_F16] = rows[MICA_BF16][MICA_BF16] = CopyLanes<uint16_t>;
    rows[MICA_F8E4M3FN][MICA_F8E4M3FN] = rows[MICA_F8E5M2][MICA_F8E5M2] = CopyLanes<uint8_t>;
  }
};

Primitive FindCast(int32_t from, int32_t to) {
  static const CastTable table;
  return table.rows[from][to];
}

Primitive FindPlanes(int32_t dtype, bool to_planes) {
  if (dtype == MICA_C64) return to_planes ? DeinterleaveLoop<float> : InterleaveLoop<float>;
  return to_planes ? DeinterleaveLoop<double> : InterleaveLoop<double>;
}

Primitive FindPlanesCast(bool widen) {
  return widen ? CastPlanesLoop<double, float> : CastPlanesLoop<float, double>;
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FindCast);
HWY_EXPORT(FindPlanes);
HWY_EXPORT(FindPlanesCast);
Primitive DirectCast(int32_t from, int32_t to) { return HWY_DYNAMIC_DISPATCH(FindCast)(from, to); }
Primitive Deinterleave(int32_t dtype) { return HWY_DYNAMIC_DISPATCH(FindPlanes)(dtype, true); }
Primitive Interleave(int32_t dtype) { return HWY_DYNAMIC_DISPATCH(FindPlanes)(dtype, false); }
Primitive CastPlanes(bool widen) { return HWY_DYNAMIC_DISPATCH(FindPlanesCast)(widen); }
}  // namespace mica::cpu
#endif
