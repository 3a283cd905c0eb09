// The half types as they stand in memory, for kernels that compute one element at a time, in C++17: each is
// read as float32, and rounded to nearest, ties to even, when it is made of one.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace mica {
namespace plugin {

// float16
struct HalfBits {
  uint16_t bits;
  float get() const {
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31, mantissa = bits & 0x3ffu;
    if (exponent == 0) return (sign ? -0x1p-24f : 0x1p-24f) * static_cast<float>(mantissa);
    const uint32_t wide = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | mantissa << 13;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  static HalfBits Of(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const uint32_t sign = (wide >> 16) & 0x8000u, size = wide & 0x7fffffffu;
    if (size > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
    if (size >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
    if (size < 0x38800000u)
      return {static_cast<uint16_t>(sign | static_cast<uint32_t>(std::lrint(std::fabs(value) * 0x1p24f)))};
    return {static_cast<uint16_t>(sign | ((size + 0xfffu + ((size >> 13) & 1u) - 0x38000000u) >> 13))};
  }
};

// bfloat16
struct BrainBits {
  uint16_t bits;
  float get() const {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  static BrainBits Of(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    if ((wide & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((wide >> 16) | 0x40u)};
    return {static_cast<uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16)};
  }
};

}  // namespace plugin
}  // namespace mica
