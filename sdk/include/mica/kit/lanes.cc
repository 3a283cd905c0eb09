// The types of lanes, and numbers as lanes; see source.h.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "programs.h"
#include "source.h"

namespace opencl_device {
namespace {

struct LaneType {
  const char* name;
  const char* mask;  // what a comparison of vectors gives: the signed integer of the same size
  const char* least;
  const char* greatest;
};
constexpr LaneType kLaneTypes[] = {
    {"uchar", "char", "0", "1"},
    {"uchar", "char", "0", "UCHAR_MAX"},
    {"char", "char", "CHAR_MIN", "CHAR_MAX"},
    {"ushort", "short", "0", "USHRT_MAX"},
    {"short", "short", "SHRT_MIN", "SHRT_MAX"},
    {"uint", "int", "0", "UINT_MAX"},
    {"int", "int", "INT_MIN", "INT_MAX"},
    {"ulong", "long", "0", "ULONG_MAX"},
    {"long", "long", "LONG_MIN", "LONG_MAX"},
    {nullptr, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr},
    {"float", "int", nullptr, nullptr},
    {"double", "long", nullptr, nullptr},
};

template <typename T>
LaneBytes Bytes(T value) {
  LaneBytes out{{}, sizeof(T)};
  std::memcpy(out.bytes, &value, sizeof(T));
  return out;
}

template <typename T>
LaneBytes Convert(bool is_integer, int64_t i, double f) {
  if constexpr (std::is_floating_point_v<T>) {
    return Bytes(is_integer ? static_cast<T>(i) : static_cast<T>(f));
  } else {
    if (!is_integer) {
      const bool fits = f >= -9223372036854775808.0 && f < 9223372036854775808.0;
      i = std::isnan(f) ? 0 : fits ? static_cast<int64_t>(f) : std::numeric_limits<int64_t>::min();
    }
    // An unsigned dtype takes its own values and, as C does, small negative ones.
    const bool held = static_cast<int64_t>(static_cast<T>(i)) == i ||
                      (std::is_unsigned_v<T> && i < 0 && static_cast<int64_t>(static_cast<T>(-i)) == -i);
    MICA_PLUGIN_CHECK(
        held, MICA_ERROR_RUNTIME,
        "The number (" + std::to_string(i) + ") does not fit the operator's dtype without overflow.");
    return Bytes(static_cast<T>(i));
  }
}

}  // namespace

std::string LanesText(const Device& device, const Lanes& lanes, bool small_index) {
  const LaneType& type = kLaneTypes[lanes.dtype];
  std::string text = Define("LANE", type.name) + Define("MASK", type.mask) +
                     Define("W", std::to_string(lanes.width)) +
                     Define("INDEX", small_index ? "uint" : "ulong");
  const bool is_float = lanes.dtype == MICA_F32 || lanes.dtype == MICA_F64;
  text += Define(is_float ? "LANE_FLOAT" : lanes.dtype == MICA_BOOL ? "LANE_BOOL" : "LANE_INT", "1");
  if (device.has_f64) text += Define("HAS_F64", "1");
  if (lanes.dtype == MICA_F64) text += Define("LANE_DOUBLE", "1");
  if (!is_float) {
    text += Define("LEAST", type.least) + Define("GREATEST", type.greatest) +
            Define("LANE_BITS", std::string("(8 * (LANE)sizeof(LANE))"));
  }
  text += EmbeddedSource("lanes.cl");
  text += EmbeddedSource(is_float ? "float.cl" : "integer.cl");
  return text;
}

LaneBytes NumberOf(const MicaValue& value, int32_t lane_dtype) {
  bool is_integer = true;
  int64_t i = 0;
  double f = 0;
  if (value.tag == MICA_VALUE_FLOAT) {
    is_integer = false;
    f = value.u.f;
  } else if (value.tag == MICA_VALUE_SCALAR && value.u.scalar.tag == MICA_SCALAR_FLOAT) {
    is_integer = false;
    f = value.u.scalar.u.f;
  } else if (value.tag == MICA_VALUE_SCALAR) {
    if (value.u.scalar.tag == MICA_SCALAR_COMPLEX) throw mica::plugin::NotImplemented();
    i = value.u.scalar.u.i;
  } else {
    i = value.u.i;
  }
  switch (lane_dtype) {
    case MICA_BOOL:
      return Bytes(static_cast<uint8_t>(is_integer ? i != 0 : f != 0));
    case MICA_U8:
      return Convert<uint8_t>(is_integer, i, f);
    case MICA_I8:
      return Convert<int8_t>(is_integer, i, f);
    case MICA_U16:
      return Convert<uint16_t>(is_integer, i, f);
    case MICA_I16:
      return Convert<int16_t>(is_integer, i, f);
    case MICA_U32:
      return Convert<uint32_t>(is_integer, i, f);
    case MICA_I32:
      return Convert<int32_t>(is_integer, i, f);
    case MICA_U64:
      return Convert<uint64_t>(is_integer, i, f);
    case MICA_I64:
      return Convert<int64_t>(is_integer, i, f);
    case MICA_F32:
      return Convert<float>(is_integer, i, f);
    default:
      return Convert<double>(is_integer, i, f);
  }
}

}  // namespace opencl_device
