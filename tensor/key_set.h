// A key set: one bit for each backend (0-23) and each layer (24-63).
//
// The names behind the bits are given out at run time by the dispatcher
// (dispatcher/tables/keys.h); this file holds only the set and the well-known places.
#pragma once

#include <cstdint>

namespace mica {

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr explicit KeySet(uint64_t bits) : bits_(bits) {}
  static constexpr KeySet Of(int bit) { return KeySet(uint64_t{1} << bit); }
  constexpr uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(int bit) const { return (bits_ >> bit) & 1; }
  // The highest bit; undefined when empty.
  constexpr int highest() const { return 63 - __builtin_clzll(bits_); }
  // All keys strictly below `bit`.
  static constexpr KeySet Below(int bit) { return KeySet((uint64_t{1} << bit) - 1); }
  constexpr KeySet operator|(KeySet o) const { return KeySet(bits_ | o.bits_); }
  constexpr KeySet operator&(KeySet o) const { return KeySet(bits_ & o.bits_); }
  constexpr KeySet operator-(KeySet o) const { return KeySet(bits_ & ~o.bits_); }
  constexpr bool operator==(const KeySet&) const = default;

 private:
  uint64_t bits_ = 0;
};

namespace keys {
inline constexpr int kCpu = 0;
inline constexpr int kMeta = 1;
inline constexpr int kBackendCount = 24;
inline constexpr KeySet kBackends = KeySet((uint64_t{1} << kBackendCount) - 1);
inline constexpr KeySet kLayers = KeySet(~kBackends.bits());
// Well-known layers, highest first, with gaps for third parties.
inline constexpr int kFunctionMode = 62;
inline constexpr int kAutocast = 58;
inline constexpr int kFrame = 54;
inline constexpr int kFrameEscape = 53;
inline constexpr int kAutograd = 48;
inline constexpr int kDispatchMode = 42;
inline constexpr int kPythonSubclass = 40;
}  // namespace keys

}  // namespace mica
