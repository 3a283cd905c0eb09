// Order as unsigned integers: KeyOf maps elements to keys that compare as the elements
// do in torch's order, ascending numbers with -0 equal to 0, and NaN as the largest.
#ifndef MICA_PLUGINS_CPU_SORTING_KEYS_H_
#define MICA_PLUGINS_CPU_SORTING_KEYS_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include <mica/plugin.h>

namespace mica::cpu {

// The elements of a dtype as bits of type Bits.
template <class B, bool kFloating, bool kSigned, uint64_t kInfinity = 0>
struct Ordered {
  using Bits = B;
  static Bits KeyOf(Bits bits) {
    constexpr auto kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
    if constexpr (kFloating) {
      const auto magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
      if (magnitude > static_cast<Bits>(kInfinity)) return std::numeric_limits<Bits>::max();  // NaN
      if (magnitude == 0) return kSign;
      return static_cast<Bits>(bits & kSign ? ~bits : bits | kSign);
    } else {
      return kSigned ? static_cast<Bits>(bits ^ kSign) : bits;
    }
  }
};

// Bools: any byte but 0 is true.
struct OrderedTruth {
  using Bits = uint8_t;
  static Bits KeyOf(Bits bits) { return bits != 0; }
};

// Calls f(Ordered<...>{}); throws NotImplemented for what has no order or is rare.
template <class F>
void VisitOrdered(int32_t dtype, F f) {
  switch (dtype) {
    case MICA_BOOL:
      return f(OrderedTruth{});
    case MICA_U8:
      return f(Ordered<uint8_t, false, false>{});
    case MICA_I8:
      return f(Ordered<uint8_t, false, true>{});
    case MICA_I16:
      return f(Ordered<uint16_t, false, true>{});
    case MICA_I32:
      return f(Ordered<uint32_t, false, true>{});
    case MICA_I64:
      return f(Ordered<uint64_t, false, true>{});
    case MICA_F16:
      return f(Ordered<uint16_t, true, true, 0x7c00>{});
    case MICA_BF16:
      return f(Ordered<uint16_t, true, true, 0x7f80>{});
    case MICA_F32:
      return f(Ordered<uint32_t, true, true, 0x7f800000>{});
    case MICA_F64:
      return f(Ordered<uint64_t, true, true, 0x7ff0000000000000>{});
    default:
      throw plugin::NotImplemented();
  }
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_SORTING_KEYS_H_
