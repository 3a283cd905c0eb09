// Conversion of numbers to lanes; see numbers.h.
#include "plugins/cpu/engine/plans/numbers.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include <mica/plugin.h>
#include "plugins/cpu/engine/lanes/lanes.h"

namespace mica::cpu {
namespace {

template <class T>
T Convert(const Number& number, int32_t dtype, bool wraps = false) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(number.re);
  } else {
    int64_t i = number.i;
    if (number.kind != Number::kInteger) {
      if (std::isnan(number.re)) return 0;
      const bool fits = number.re >= -9223372036854775808.0 && number.re < 9223372036854775808.0;
      i = fits ? static_cast<int64_t>(number.re) : std::numeric_limits<int64_t>::min();
    }
    const int64_t minus = static_cast<int64_t>(0 - static_cast<uint64_t>(i));
    // An unsigned dtype takes its own values and, as C does, small negative ones.
    const bool held =
        wraps || static_cast<int64_t>(static_cast<T>(i)) == i ||
        (std::is_unsigned_v<T> && i < 0 && static_cast<int64_t>(static_cast<T>(minus)) == minus);
    MICA_PLUGIN_CHECK(held, MICA_ERROR_RUNTIME,
                      "The number (" + std::to_string(i) + ") does not fit dtype (" + DtypeName(dtype) +
                          ") without overflow.");
    return static_cast<T>(i);
  }
}

template <class T>
void Fill(const Number& number, int32_t dtype, void* dst, int64_t n, bool wraps) {
  const T value = Convert<T>(number, dtype, wraps);
  T* d = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) d[i] = value;
}

template <class T>
void FillComplex(const Number& number, void* dst, int64_t n) {
  const T re = Convert<T>(number, MICA_F64);
  const T im = static_cast<T>(number.kind == Number::kComplex ? number.im : 0);
  T* d = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    d[i] = re;
    d[i + kBlock] = im;
  }
}

}  // namespace

Number NumberOf(const MicaValue& value) {
  switch (value.tag) {
    case MICA_VALUE_INT:
    case MICA_VALUE_BOOL:
    case MICA_VALUE_DTYPE:
      return NumberOf(value.u.i);
    case MICA_VALUE_FLOAT:
      return {Number::kReal, 0, value.u.f, 0};
    case MICA_VALUE_SCALAR:
      switch (value.u.scalar.tag) {
        case MICA_SCALAR_BOOL:
          return NumberOf(value.u.scalar.u.i);
        case MICA_SCALAR_INT: {
          Number number = NumberOf(value.u.scalar.u.i);
          if (value.u.scalar.reserved != 0) number.re = static_cast<double>(static_cast<uint64_t>(number.i));
          return number;
        }
        case MICA_SCALAR_FLOAT:
          return {Number::kReal, 0, value.u.scalar.u.f, 0};
        case MICA_SCALAR_COMPLEX:
          return {Number::kComplex, 0, value.u.scalar.u.c[0], value.u.scalar.u.c[1]};
        default:
          break;
      }
      break;
    default:
      break;
  }
  return {Number::kReal, 0, std::numeric_limits<double>::quiet_NaN(), 0};
}

void FillLanes(const Number& number, int32_t dtype, void* dst, int64_t n, bool wraps) {
  switch (dtype) {
    case MICA_BOOL: {
      const bool truth = number.kind == Number::kInteger ? number.i != 0 : number.re != 0 || number.im != 0;
      std::memset(dst, truth, static_cast<size_t>(n));
      return;
    }
    case MICA_U8:
      return Fill<uint8_t>(number, dtype, dst, n, wraps);
    case MICA_I8:
      return Fill<int8_t>(number, dtype, dst, n, wraps);
    case MICA_U16:
      return Fill<uint16_t>(number, dtype, dst, n, wraps);
    case MICA_I16:
      return Fill<int16_t>(number, dtype, dst, n, wraps);
    case MICA_U32:
      return Fill<uint32_t>(number, dtype, dst, n, wraps);
    case MICA_I32:
      return Fill<int32_t>(number, dtype, dst, n, wraps);
    case MICA_U64:
      return Fill<uint64_t>(number, dtype, dst, n, wraps);
    case MICA_I64:
      return Fill<int64_t>(number, dtype, dst, n, wraps);
    case MICA_F32:
      return Fill<float>(number, dtype, dst, n, wraps);
    case MICA_F64:
      return Fill<double>(number, dtype, dst, n, wraps);
    case MICA_C64:
      return FillComplex<float>(number, dst, n);
    default:
      return FillComplex<double>(number, dst, n);
  }
}

void FillConstant(const MicaConstant& constant, int32_t dtype, void* dst, int64_t n) {
  if (dtype == MICA_BOOL) {  // saturated like the integers: -inf is the least, false
    FillLanes(NumberOf(int64_t{constant.f > 0}), dtype, dst, n);
    return;
  }
  if (!IsInteger(dtype)) {
    FillLanes(constant.is_integer ? NumberOf(constant.i) : Number{Number::kReal, 0, constant.f, 0}, dtype,
              dst, n);
    return;
  }
  const int bits = static_cast<int>(DtypeSize(dtype)) * 8;
  const bool is_signed = dtype == MICA_I8 || dtype == MICA_I16 || dtype == MICA_I32 || dtype == MICA_I64;
  const int64_t highest =
      bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const int64_t lowest = is_signed ? -highest - 1 : 0;
  int64_t i = constant.i;
  if (std::isinf(constant.f)) i = constant.f > 0 ? highest : lowest;
  // uint64's largest value has no int64; its bits are those of -1.
  if (dtype == MICA_U64 && std::isinf(constant.f) && constant.f > 0) {
    std::memset(dst, 0xff, static_cast<size_t>(n) * 8);
    return;
  }
  FillLanes(NumberOf(i < lowest ? lowest : i > highest ? highest : i), dtype, dst, n);
}

}  // namespace mica::cpu
