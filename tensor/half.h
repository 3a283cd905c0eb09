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

}  // namespace internal

// IEEE 754 binary16.
struct Half {
  uint16_t bits = 0;
  constexpr Half() = default;
  constexpr Half(float value) : bits(Narrow(value)) {}
  static constexpr Half FromBits(uint16_t b) {
    Half h;
    h.bits = b;
    return h;
  }
  constexpr operator float() const { return internal::WidenFloat<5, 10, true>(bits); }

 private:
  static constexpr uint16_t Narrow(float value) {
    return static_cast<uint16_t>(internal::NarrowFloat<5, 10>(value, 0x7bff, 0x7c00, 0x7e00));
  }
};

// The upper half of a float. NaN becomes 0x7fc0, without its sign, as in torch.
struct BFloat16 {
  uint16_t bits = 0;
  constexpr BFloat16() = default;
  constexpr BFloat16(float value) : bits(Narrow(value)) {}
  static constexpr BFloat16 FromBits(uint16_t b) {
    BFloat16 h;
    h.bits = b;
    return h;
  }
  constexpr operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

 private:
  static constexpr uint16_t Narrow(float value) {
    if (value != value) return 0x7fc0;
    const uint32_t b = std::bit_cast<uint32_t>(value);
    return static_cast<uint16_t>((b + 0x7fff + ((b >> 16) & 1)) >> 16);
  }
};

// OCP FP8 with 4 exponent bits: no infinity, largest 448, one NaN per sign.
struct Float8E4M3FN {
  uint8_t bits = 0;
  constexpr Float8E4M3FN() = default;
  constexpr Float8E4M3FN(float value) : bits(Narrow(value)) {}
  static constexpr Float8E4M3FN FromBits(uint8_t b) {
    Float8E4M3FN h;
    h.bits = b;
    return h;
  }
  constexpr operator float() const { return internal::WidenFloat<4, 3, false>(bits); }

 private:
  static constexpr uint8_t Narrow(float value) {
    return static_cast<uint8_t>(internal::NarrowFloat<4, 3>(value, 0x7e, 0x7e, 0x7f));
  }
};

// OCP FP8 with 5 exponent bits: the upper byte of a Half.
struct Float8E5M2 {
  uint8_t bits = 0;
  constexpr Float8E5M2() = default;
  constexpr Float8E5M2(float value) : bits(Narrow(value)) {}
  static constexpr Float8E5M2 FromBits(uint8_t b) {
    Float8E5M2 h;
    h.bits = b;
    return h;
  }
  constexpr operator float() const { return internal::WidenFloat<5, 2, true>(bits); }

 private:
  static constexpr uint8_t Narrow(float value) {
    return static_cast<uint8_t>(internal::NarrowFloat<5, 2>(value, 0x7b, 0x7c, 0x7f));
  }
};

}  // namespace mica
