// The machine's comparisons and what only real lanes have.
#include <cmath>
#include <complex>
#include <numeric>

#include <mica/maths/maths.h>
#include "kernels/portable/lane_arithmetic.h"
#include "kernels/portable/machine.h"
#include "kernels/portable/special.h"

namespace mica::portable {

template <typename T>
bool Machine<T>::RunMask(const MicaInstruction& in, int64_t n) {
  const T *a = lane(in.a), *b = lane(in.b);
  const uint8_t *ma = mask(in.a), *mb = mask(in.b), *mc = mask(in.c);
  uint8_t* d = mask(in.dst);
  const auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) d[i] = f(i);
    return true;
  };
  switch (in.opcode) {
    case MICA_OP_TO_MASK:
      return each([&](int64_t i) { return a[i] != T(0); });
    case MICA_OP_EQ:
      return each([&](int64_t i) { return a[i] == b[i]; });
    case MICA_OP_NE:
      return each([&](int64_t i) { return a[i] != b[i]; });
    case MICA_OP_MASK_AND:
      return each([&](int64_t i) { return ma[i] & mb[i]; });
    case MICA_OP_MASK_OR:
      return each([&](int64_t i) { return ma[i] | mb[i]; });
    case MICA_OP_MASK_XOR:
      return each([&](int64_t i) { return ma[i] ^ mb[i]; });
    case MICA_OP_MASK_NOT:
      return each([&](int64_t i) { return ma[i] ^ 1; });
    case MICA_OP_MASK_SELECT:
      return each([&](int64_t i) { return ma[i] ? mb[i] : mc[i]; });
    default:
      break;
  }
  const auto parts = [&](auto f, bool both) {
    return each([&](int64_t i) {
      if constexpr (kComplexLane<T>)
        return both ? f(a[i].real()) && f(a[i].imag()) : f(a[i].real()) || f(a[i].imag());
      else
        return f(static_cast<double>(a[i]));
    });
  };
  switch (in.opcode) {
    case MICA_OP_IS_NAN:
      return parts([](double v) { return std::isnan(v); }, false);
    case MICA_OP_IS_INF:
      return parts([](double v) { return std::isinf(v); }, false);
    case MICA_OP_IS_FINITE:
      return parts([](double v) { return std::isfinite(v); }, true);
    default:
      break;
  }
  if constexpr (!kComplexLane<T>) {
    switch (in.opcode) {
      case MICA_OP_LT:
        return each([&](int64_t i) { return a[i] < b[i]; });
      case MICA_OP_LE:
        return each([&](int64_t i) { return a[i] <= b[i]; });
      case MICA_OP_GT:
        return each([&](int64_t i) { return a[i] > b[i]; });
      case MICA_OP_GE:
        return each([&](int64_t i) { return a[i] >= b[i]; });
      case MICA_OP_SIGNBIT:
        return each([&](int64_t i) {
          if constexpr (kFloat<T>)
            return std::signbit(a[i]);
          else
            return a[i] < 0;
        });
      default:
        break;
    }
  }
  return false;
}

// Everything that complex numbers have no meaning for.
template <typename T>
bool Machine<T>::RunReal(const MicaInstruction& in, int64_t n) {
  if constexpr (kComplexLane<T>) {
    static_cast<void>(in);
    static_cast<void>(n);
    return false;
  } else {
    const T *a = lane(in.a), *b = lane(in.b);
    T* d = lane(in.dst);
    const auto each = [&](auto f) {
      for (int64_t i = 0; i < n; ++i) d[i] = static_cast<T>(f(a[i], b[i]));
      return true;
    };
    switch (in.opcode) {
      case MICA_OP_FLOOR_DIV:
        return each([](T x, T y) { return FloorDiv(x, y); });
      case MICA_OP_REMAINDER:
        return each([](T x, T y) { return Remainder(x, y); });
      case MICA_OP_SIGN:
        return each([](T x, T) { return (x > 0) - (x < 0); });
      case MICA_OP_MIN:
        return each([](T x, T y) { return x != x ? x : y != y ? y : y < x ? y : x; });
      case MICA_OP_MAX:
        return each([](T x, T y) { return x != x ? x : y != y ? y : x < y ? y : x; });
      case MICA_OP_FMIN:
        return each([](T x, T y) { return x != x ? y : y != y ? x : y < x ? y : x; });
      case MICA_OP_FMAX:
        return each([](T x, T y) { return x != x ? y : y != y ? x : x < y ? y : x; });
      default:
        break;
    }
    if constexpr (kInteger<T>) {
      switch (in.opcode) {
        case MICA_OP_TRUNC_DIV:
          return each([](T x, T y) { return TruncDivInteger(x, y); });
        case MICA_OP_FMOD:
          return each([](T x, T y) { return FmodInteger(x, y); });
        case MICA_OP_POW:
          return each([](T x, T y) { return PowInteger(x, y); });
        case MICA_OP_ABS:
          return each([](T x, T) { return x < 0 ? static_cast<T>(-static_cast<uint64_t>(x)) : x; });
        case MICA_OP_AND:
          return each([](T x, T y) { return x & y; });
        case MICA_OP_OR:
          return each([](T x, T y) { return x | y; });
        case MICA_OP_XOR:
          return each([](T x, T y) { return x ^ y; });
        case MICA_OP_NOT: {
          const bool logical = compute_ == DType::kBool;
          return each([logical](T x, T) { return logical ? static_cast<T>(x == 0) : static_cast<T>(~x); });
        }
        case MICA_OP_SHL: {
          const T bits = static_cast<T>(ItemSize(compute_) * 8);
          return each([bits](T x, T y) {
            return y < 0 || y >= bits ? 0 : static_cast<T>(static_cast<uint64_t>(x) << y);
          });
        }
        case MICA_OP_SHR: {
          const T bits = static_cast<T>(ItemSize(compute_) * 8);
          return each([bits](T x, T y) {
            return y < 0 || y >= bits ? static_cast<T>(x < 0 ? -1 : 0) : static_cast<T>(x >> y);
          });
        }
        case MICA_OP_GCD:
          return each([](T x, T y) { return std::gcd(x, y); });
        case MICA_OP_LCM:
          return each([](T x, T y) { return x == 0 || y == 0 ? T(0) : std::lcm(x, y); });
        case MICA_OP_FLOOR:
        case MICA_OP_CEIL:
        case MICA_OP_TRUNC:
        case MICA_OP_ROUND:
          return each([](T x, T) { return x; });
        default:
          return false;
      }
    } else {
      switch (in.opcode) {
        case MICA_OP_TRUNC_DIV:
          return each([](T x, T y) { return std::trunc(x / y); });
        case MICA_OP_FMOD:
          return each([](T x, T y) { return std::fmod(x, y); });
        case MICA_OP_FLOOR:
          return each([](T x, T) { return std::floor(x); });
        case MICA_OP_CEIL:
          return each([](T x, T) { return std::ceil(x); });
        case MICA_OP_TRUNC:
          return each([](T x, T) { return std::trunc(x); });
        case MICA_OP_ROUND:
          return each([](T x, T) { return std::nearbyint(x); });
        case MICA_OP_CBRT:
          return each([](T x, T) { return std::cbrt(x); });
        case MICA_OP_ATAN2:
          return each([](T x, T y) { return std::atan2(x, y); });
        case MICA_OP_HYPOT:
          // The same function as std::hypot, without its symbol of glibc 2.35: a wheel runs on 2.34.
          return each([](T x, T y) { return std::abs(std::complex<T>(x, y)); });
        case MICA_OP_ERF:
          return each([](T x, T) { return std::erf(x); });
        case MICA_OP_ERFC:
          return each([](T x, T) { return std::erfc(x); });
        case MICA_OP_ERFINV:
          return each([](T x, T) { return ErfInv(x); });
        case MICA_OP_LGAMMA:
          return each([](T x, T) { return std::lgamma(x); });
        case MICA_OP_DIGAMMA:
          return each([](T x, T) { return mica_digamma(x); });
        case MICA_OP_LOGADDEXP:
          return each([](T x, T y) { return LogAddExp(x, y); });
        case MICA_OP_COPYSIGN:
          return each([](T x, T y) { return std::copysign(x, y); });
        case MICA_OP_NEXTAFTER: {
          const bool narrow = compute_ == DType::kF32;
          return each([narrow](T x, T y) {
            return narrow ? std::nextafterf(static_cast<float>(x), static_cast<float>(y))
                          : std::nextafter(x, y);
          });
        }
#define ROW1(X, NAME, name) \
  case MICA_OP_##NAME:      \
    return each([](T x, T) { return mica_##name(x); });
          MICA_FORALL_MATHS1(ROW1, _)
#undef ROW1
#define ROW2(X, NAME, name) \
  case MICA_OP_##NAME:      \
    return each([](T x, T y) { return mica_##name(x, y); });
          MICA_FORALL_MATHS2(ROW2, _)
#undef ROW2
        default:
          return false;
      }
    }
  }
}

#define MICA_INSTANTIATE(T)                                           \
  template bool Machine<T>::RunMask(const MicaInstruction&, int64_t); \
  template bool Machine<T>::RunReal(const MicaInstruction&, int64_t);
MICA_INSTANTIATE(int64_t)
MICA_INSTANTIATE(uint64_t)
MICA_INSTANTIATE(double)
MICA_INSTANTIATE(Complex)
#undef MICA_INSTANTIATE

}  // namespace mica::portable
