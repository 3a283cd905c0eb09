// The element types that scatters combine, and how: half types in float32, rounded after each step, integers
// as they wrap, truth values as the integers 0 and 1.
#ifndef MICA_PLUGINS_CPU_INDEXING_ADDING_H_
#define MICA_PLUGINS_CPU_INDEXING_ADDING_H_

#include <complex>
#include <cstdint>
#include <type_traits>

#include <mica/half.h>
#include <mica/plugin.h>

namespace mica::cpu {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, plugin::HalfBits> || std::is_same_v<T, plugin::BrainBits>;
template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// A truth value in memory: any byte but 0 is true.
struct TruthByte {
  uint8_t byte;
};

// What an element is computed in: float for half types, unsigned integers for integers (of 32 bits or more:
// products of narrower ones would be of int).
template <class T>
auto ToLane(T x) {
  if constexpr (kIsHalf<T>)
    return x.get();
  else if constexpr (std::is_same_v<T, TruthByte>)
    return static_cast<uint32_t>(x.byte != 0);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>>(x);
  else
    return x;
}
template <class T>
using LaneOfElement = decltype(ToLane(T{}));
template <class T>
T FromLane(LaneOfElement<T> x) {
  if constexpr (kIsHalf<T>)
    return T::Of(x);
  else if constexpr (std::is_same_v<T, TruthByte>)
    return {static_cast<uint8_t>(x != 0)};
  else
    return static_cast<T>(x);
}

template <class T>
T Plus(T a, T b) {
  return FromLane<T>(ToLane(a) + ToLane(b));
}

// Calls f(T{}) for the dtypes that are added up element by element; float8 is not among them.
template <class F>
void VisitAdded(int32_t dtype, F f) {
  switch (dtype) {
    case MICA_BOOL:
      return f(TruthByte{});
    case MICA_U8:
      return f(uint8_t{});
    case MICA_I8:
      return f(int8_t{});
    case MICA_I16:
      return f(int16_t{});
    case MICA_I32:
      return f(int32_t{});
    case MICA_I64:
      return f(int64_t{});
    case MICA_F16:
      return f(plugin::HalfBits{});
    case MICA_BF16:
      return f(plugin::BrainBits{});
    case MICA_F32:
      return f(float{});
    case MICA_F64:
      return f(double{});
    case MICA_C64:
      return f(std::complex<float>{});
    case MICA_C128:
      return f(std::complex<double>{});
    default:
      throw plugin::NotImplemented();
  }
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_INDEXING_ADDING_H_
