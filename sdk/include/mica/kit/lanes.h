// The lanes of a kernel: the types in which it computes, and numbers as bytes of them.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include <mica/kit/driver.h>
#include <mica/kit/source.h>
#include <mica/kit/texts.h>

namespace mica {
namespace kit {

// "f32", the ending of E_, LOAD_ and STORE_ in lanes.cl; throws NotImplemented for a dtype
// that kernel texts do not hold.
inline const char* Suffix(int32_t dtype) {
  static constexpr const char* kSuffixes[] = {"b8",  "u8",  "i8",  "u16",  "i16", "u32", "i32",
                                              "u64", "i64", "f16", "bf16", "f32", "f64"};
  if (dtype < 0 || dtype > MICA_F64) throw plugin::NotImplemented();
  return kSuffixes[dtype];
}

// The dtype of lanes for a compute dtype: half types compute in float.
inline int32_t LaneDtype(int32_t compute_dtype) {
  Suffix(compute_dtype);
  return compute_dtype == MICA_F16 || compute_dtype == MICA_BF16 ? MICA_F32 : compute_dtype;
}

inline int BytesOf(int32_t dtype) {
  static constexpr int kBytes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  Suffix(dtype);
  return kBytes[dtype];
}

// Complex numbers are lanes of pointwise programs alone: what asks Suffix and LaneDtype declines them.
inline bool IsComplex(int32_t dtype) { return dtype == MICA_C64 || dtype == MICA_C128; }
inline const char* PointwiseSuffix(int32_t dtype) {
  return dtype == MICA_C64 ? "c64" : dtype == MICA_C128 ? "c128" : Suffix(dtype);
}
inline int32_t PointwiseLane(int32_t compute_dtype) {
  return IsComplex(compute_dtype) ? compute_dtype : LaneDtype(compute_dtype);
}

// Refuses a dtype that the device cannot hold, and what no kernel text computes.
inline void CheckDtype(const Device& device, int32_t dtype) {
  Suffix(dtype);
  if (dtype == MICA_F64 && !device.has_f64) throw plugin::NotImplemented();
}
inline void CheckPointwiseDtype(const Device& device, int32_t dtype) {
  CheckDtype(device, dtype == MICA_C64 ? MICA_F32 : dtype == MICA_C128 ? MICA_F64 : dtype);
}

// How lanes are typed in a kernel.
struct Lanes {
  int32_t dtype;  // of arithmetic: an integer dtype, bool, f32, f64, or, one number wide, a complex one
  int width = 1;
};

// An argument of a program as the bytes of one lane.
struct LaneBytes {
  char bytes[16];
  size_t size;
};

namespace lanes {

struct LaneType {
  const char* name;
  const char* mask;  // what a comparison of vectors gives: the signed integer of the same size
  const char* least;
  const char* greatest;
};
inline constexpr LaneType kLaneTypes[] = {
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
    {"VECTOR_OF(float, 2)", "int", nullptr, nullptr},
    {"VECTOR_OF(double, 2)", "int", nullptr, nullptr},
};

template <typename T>
inline LaneBytes Bytes(T value) {
  LaneBytes out{{}, sizeof(T)};
  std::memcpy(out.bytes, &value, sizeof(T));
  return out;
}

template <typename T>
inline LaneBytes Convert(bool is_integer, int64_t i, double f) {
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

inline LaneBytes ComplexBytes(const MicaValue& value, int32_t dtype) {
  double parts[2] = {0, 0};
  if (value.tag == MICA_VALUE_FLOAT)
    parts[0] = value.u.f;
  else if (value.tag != MICA_VALUE_SCALAR)
    parts[0] = static_cast<double>(value.u.i);
  else if (value.u.scalar.tag == MICA_SCALAR_COMPLEX)
    parts[0] = value.u.scalar.u.c[0], parts[1] = value.u.scalar.u.c[1];
  else
    parts[0] = value.u.scalar.tag == MICA_SCALAR_FLOAT ? value.u.scalar.u.f
                                                       : static_cast<double>(value.u.scalar.u.i);
  LaneBytes out{{}, dtype == MICA_C64 ? 2 * sizeof(float) : sizeof(parts)};
  const float narrow[2] = {static_cast<float>(parts[0]), static_cast<float>(parts[1])};
  std::memcpy(out.bytes, dtype == MICA_C64 ? static_cast<const void*>(narrow) : parts, out.size);
  return out;
}

}  // namespace lanes

// The #defines that lanes.cl needs, and lanes.cl.
inline std::string LanesText(const Device& device, const Lanes& chosen, bool small_index) {
  const lanes::LaneType& type = lanes::kLaneTypes[chosen.dtype];
  std::string text = Define("LANE", type.name) + Define("MASK", type.mask) +
                     Define("W", std::to_string(chosen.width)) +
                     Define("INDEX", small_index ? "uint" : "ulong");
  const bool is_float = chosen.dtype == MICA_F32 || chosen.dtype == MICA_F64;
  if (IsComplex(chosen.dtype))
    return text + (device.has_f64 ? Define("HAS_F64", "1") : "") +
           Define("PART", chosen.dtype == MICA_C64 ? "float" : "double") + kLanesText + kComplexText;
  text += Define(is_float ? "LANE_FLOAT" : chosen.dtype == MICA_BOOL ? "LANE_BOOL" : "LANE_INT", "1");
  if (device.has_f64) text += Define("HAS_F64", "1");
  if (chosen.dtype == MICA_F64) text += Define("LANE_DOUBLE", "1");
  if (!is_float) {
    text += Define("LEAST", type.least) + Define("GREATEST", type.greatest) +
            Define("LANE_BITS", std::string("(8 * (LANE)sizeof(LANE))"));
  }
  text += kLanesText;
  text += is_float ? kFloatText : kIntegerText;
  return text;
}

// What stands behind LanesText where lanes of the dtype, of 4 or 8 bytes, combine in memory.
inline std::string AtomicsText(int32_t lane_dtype) {
  const bool wide = BytesOf(lane_dtype) == 8;
  return Define("WORD", wide ? "ulong" : "uint") + (wide ? Define("WORD_64", "1") : "") + kAtomicsText;
}

// Integers that do not fit raise.
inline LaneBytes NumberOf(const MicaValue& value, int32_t lane_dtype) {
  bool is_integer = true;
  int64_t i = 0;
  double f = 0;
  if (IsComplex(lane_dtype)) return lanes::ComplexBytes(value, lane_dtype);
  if (value.tag == MICA_VALUE_FLOAT) {
    is_integer = false;
    f = value.u.f;
  } else if (value.tag == MICA_VALUE_SCALAR && value.u.scalar.tag == MICA_SCALAR_FLOAT) {
    is_integer = false;
    f = value.u.scalar.u.f;
  } else if (value.tag == MICA_VALUE_SCALAR) {
    if (value.u.scalar.tag == MICA_SCALAR_COMPLEX) throw plugin::NotImplemented();
    i = value.u.scalar.u.i;
  } else {
    i = value.u.i;
  }
  switch (lane_dtype) {
    case MICA_BOOL:
      return lanes::Bytes(static_cast<uint8_t>(is_integer ? i != 0 : f != 0));
    case MICA_U8:
      return lanes::Convert<uint8_t>(is_integer, i, f);
    case MICA_I8:
      return lanes::Convert<int8_t>(is_integer, i, f);
    case MICA_U16:
      return lanes::Convert<uint16_t>(is_integer, i, f);
    case MICA_I16:
      return lanes::Convert<int16_t>(is_integer, i, f);
    case MICA_U32:
      return lanes::Convert<uint32_t>(is_integer, i, f);
    case MICA_I32:
      return lanes::Convert<int32_t>(is_integer, i, f);
    case MICA_U64:
      return lanes::Convert<uint64_t>(is_integer, i, f);
    case MICA_I64:
      return lanes::Convert<int64_t>(is_integer, i, f);
    case MICA_F32:
      return lanes::Convert<float>(is_integer, i, f);
    default:
      return lanes::Convert<double>(is_integer, i, f);
  }
}

// Whether any section divides integers, which may raise.
inline bool MayRaise(const MicaProgram& program, int32_t lane_dtype) {
  if (lane_dtype >= MICA_F16) return false;
  for (const MicaCode* code :
       {&program.main, &program.init, &program.combine, &program.finish, &program.map}) {
    for (int64_t i = 0; i < code->size; ++i) {
      const int opcode = code->data[i].opcode;
      if (opcode == MICA_OP_FLOOR_DIV || opcode == MICA_OP_TRUNC_DIV || opcode == MICA_OP_REMAINDER ||
          opcode == MICA_OP_FMOD)
        return true;
    }
  }
  return false;
}
inline LateError ZeroDivision() { return {MICA_ERROR_RUNTIME, "ZeroDivisionError", ""}; }

}  // namespace kit
}  // namespace mica
