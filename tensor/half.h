// The four narrow floating types as storage: Half, BFloat16, Float8E4M3FN and
// Float8E5M2.
//
// A value is bits; arithmetic is done in float, through the conversions here.
// From float they round to nearest, ties to even, as torch 2.13 does: an
// overflow gives infinity where the type has one (Half, BFloat16, Float8E5M2)
// and saturates to 448 in Float8E4M3FN, which has none (infinity too). NaN stays
// NaN; denormals are exact.
// Kernels for long arrays use vector conversions instead of these.
#pragma once

#include <bit>
#include <cstdint>

namespace mica {

namespace internal {

// IEEE-like narrow float -> float. `kExponent` and `kMantissa` are bit counts.
template <int kExponent, int kMantissa, bool kHasInfinity>
constexpr float WidenFloat(uint32_t bits) {
  constexpr uint32_t kMaxExponent = (1u << kExponent) - 1;
  constexpr uint32_t kMantissaMask = (1u << kMantissa) - 1;
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  const uint32_t sign = (bits >> (kExponent + kMantissa)) << 31;
  const uint32_t exponent = (bits >> kMantissa) & kMaxExponent;
  const uint32_t mantissa = bits & kMantissaMask;
  if (kHasInfinity ? exponent == kMaxExponent : (exponent == kMaxExponent && mantissa == kMantissaMask)) {
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << (23 - kMantissa)));
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 127 - kBias) << 23) | (mantissa << (23 - kMantissa)));
  }
  // A denormal is mantissa * 2^(1 - bias - mantissa bits), exact in float.
  const float unit = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - kBias - kMantissa) << 23);
  const float magnitude = static_cast<float>(mantissa) * unit;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// float -> IEEE-like narrow float, to nearest even. `overflow` is what a too
// large magnitude becomes and `nan` what NaN becomes (without sign).
template <int kExponent, int kMantissa>
constexpr uint32_t NarrowFloat(float value, uint32_t largest, uint32_t overflow, uint32_t nan) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr int kShift = 23 - kMantissa;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 31) << (kExponent + kMantissa);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | nan;
  if (magnitude == 0x7f800000u) return sign | overflow;
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;
  uint32_t result = 0;
  if (exponent >= 1) {
    const uint32_t rounded = magnitude + ((1u << (kShift - 1)) - 1) + ((magnitude >> kShift) & 1);
    result = (rounded >> kShift) - (static_cast<uint32_t>(127 - kBias) << kMantissa);
  } else {
    const int shift = kShift + 1 - exponent;  // at least kShift + 1
    if (shift > 24) return sign;              // below half of the least denormal
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t half = 1u << (shift - 1);
    result = (mantissa + (half - 1) + ((mantissa >> shift) & 1)) >> shift;
  }
  return sign | (result > largest ? overflow : result);
}

// What differs between the four: the width, and both conversions.
struct HalfFormat {
  using Bits = uint16_t;
  static constexpr float Widen(Bits b) { return WidenFloat<5, 10, true>(b); }
  static constexpr uint32_t Narrow(float v) { return NarrowFloat<5, 10>(v, 0x7bff, 0x7c00, 0x7e00); }
};
struct BFloat16Format {
  using Bits = uint16_t;
  static constexpr float Widen(Bits b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }
  static constexpr uint32_t Narrow(float v) {
    if (v != v) return 0x7fc0;
    const uint32_t b = std::bit_cast<uint32_t>(v);
    return (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  }
};
struct Float8E4M3FNFormat {
  using Bits = uint8_t;
  static constexpr float Widen(Bits b) { return WidenFloat<4, 3, false>(b); }
  static constexpr uint32_t Narrow(float v) { return NarrowFloat<4, 3>(v, 0x7e, 0x7e, 0x7f); }
};
struct Float8E5M2Format {
  using Bits = uint8_t;
  static constexpr float Widen(Bits b) { return WidenFloat<5, 2, true>(b); }
  static constexpr uint32_t Narrow(float v) { return NarrowFloat<5, 2>(v, 0x7b, 0x7c, 0x7f); }
};

template <typename Format>
struct NarrowValue {
  typename Format::Bits bits = 0;
  constexpr NarrowValue() = default;
  constexpr NarrowValue(float value) : bits(static_cast<typename Format::Bits>(Format::Narrow(value))) {}
  static constexpr NarrowValue FromBits(typename Format::Bits b) {
    NarrowValue v;
    v.bits = b;
    return v;
  }
  constexpr operator float() const { return Format::Widen(bits); }
};

}  // namespace internal

// IEEE 754 binary16.
using Half = internal::NarrowValue<internal::HalfFormat>;
// The upper half of a float. NaN becomes 0x7fc0, without its sign, as in torch.
using BFloat16 = internal::NarrowValue<internal::BFloat16Format>;
// OCP FP8 with 4 exponent bits: no infinity, largest 448, one NaN per sign.
using Float8E4M3FN = internal::NarrowValue<internal::Float8E4M3FNFormat>;
// OCP FP8 with 5 exponent bits: the upper byte of a Half.
using Float8E5M2 = internal::NarrowValue<internal::Float8E5M2Format>;

}  // namespace mica
