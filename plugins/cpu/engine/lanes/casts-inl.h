// The half and float8 conversions, for one lane, by their bits. casts.cc and
// memory-inl.h do whole vectors by the same rules, float16 by F16C where the target
// has it.
#if defined(MICA_CPU_CASTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_CASTS_INL_H_
#undef MICA_CPU_CASTS_INL_H_
#else
#define MICA_CPU_CASTS_INL_H_
#endif

#include <bit>

#include "plugins/cpu/engine/lanes/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// Distinct types for two- and one-byte storage formats.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
struct F8E4 {
  uint8_t bits;
};
struct F8E5 {
  uint8_t bits;
};
struct Bool {
  uint8_t bits;
};

// A binary16 value; denormals by scaling, which is exact.
HWY_INLINE float ToFloat(Half h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(h.bits & 0x7fff) << 13;
  const bool special = magnitude >= (0x1fu << 23);
  const bool normal = magnitude >= (1u << 23);
  const float scaled = std::bit_cast<float>(magnitude + (112u << 23));
  const float denormal = std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23);
  const uint32_t value =
      special ? magnitude + (224u << 23) : std::bit_cast<uint32_t>(normal ? scaled : denormal);
  return std::bit_cast<float>(value | sign);
}
HWY_INLINE Half ToHalf(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t rounded = (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
  // Adding 0.5 puts the denormal's last bit at the float's last bit.
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - (126u << 23);
  uint32_t half = magnitude < (113u << 23) ? denormal : rounded;
  half = magnitude >= 0x477ff000 ? 0x7c00 : half;
  half = magnitude > 0x7f800000 ? 0x7e00 : half;
  return {static_cast<uint16_t>(half | sign)};
}
HWY_INLINE float ToFloat(Brain b) { return std::bit_cast<float>(static_cast<uint32_t>(b.bits) << 16); }
HWY_INLINE Brain ToBrain(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>(f != f ? 0x7fc0 | (bits >> 31 << 15) : rounded)};
}
// E5M2 is the upper byte of a binary16.
HWY_INLINE float ToFloat(F8E5 v) { return ToFloat(Half{static_cast<uint16_t>(v.bits << 8)}); }
HWY_INLINE F8E5 ToF8E5(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 24) & 0x80;
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t rounded = (magnitude + 0xfffff + ((magnitude >> 21) & 1) - (112u << 23)) >> 21;
  // 128 puts E5M2's last denormal bit, 2^-16, at the last bit of the float.
  const uint32_t denormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 128.0f) - (134u << 23);
  uint32_t value = magnitude < (113u << 23) ? denormal : rounded;
  value = value > 0x7c ? 0x7c : value;
  value = magnitude >= 0x47700000 ? 0x7c : value;
  value = magnitude > 0x7f800000 ? 0x7f : value;
  return {static_cast<uint8_t>(value | sign)};
}
// E4M3FN has no infinity: what rounds above 448 is NaN.
HWY_INLINE float ToFloat(F8E4 v) {
  const uint32_t sign = static_cast<uint32_t>(v.bits & 0x80) << 24;
  const uint32_t magnitude = v.bits & 0x7f;
  const float normal = std::bit_cast<float>((magnitude << 20) + (120u << 23));
  const float denormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0.001953125f;
  const uint32_t value =
      magnitude == 0x7f ? 0x7fc00000 : std::bit_cast<uint32_t>(magnitude < 8 ? denormal : normal);
  return std::bit_cast<float>(value | sign);
}
HWY_INLINE F8E4 ToF8E4(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 24) & 0x80;
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t rounded = (magnitude + 0x7ffff + ((magnitude >> 20) & 1) - (120u << 23)) >> 20;
  // 16384 puts E4M3's last denormal bit, 2^-9, at the last bit of the float.
  const uint32_t denormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 16384.0f) - (141u << 23);
  uint32_t value = magnitude < (121u << 23) ? denormal : rounded;
  value = magnitude >= 0x43f00000 ? 0x7f : value;
  return {static_cast<uint8_t>(value | sign)};
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
