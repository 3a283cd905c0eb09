// The seventeen dtypes, their sizes, kinds, names and C++ types.
//
// One list, MICA_FORALL_DTYPES, drives every table. The numbers are those of
// abi.h and frozen.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>

#include <mica/abi.h>
#include "tensor/half.h"

namespace mica {

// X(C++ type, enumerator, name, DLPack code, bits, kind)
#define MICA_FORALL_DTYPES(X)                                           \
  X(bool, kBool, "bool", 6, 8, kBoolean)                                \
  X(uint8_t, kU8, "uint8", 1, 8, kUnsigned)                             \
  X(int8_t, kI8, "int8", 0, 8, kSigned)                                 \
  X(uint16_t, kU16, "uint16", 1, 16, kUnsigned)                         \
  X(int16_t, kI16, "int16", 0, 16, kSigned)                             \
  X(uint32_t, kU32, "uint32", 1, 32, kUnsigned)                         \
  X(int32_t, kI32, "int32", 0, 32, kSigned)                             \
  X(uint64_t, kU64, "uint64", 1, 64, kUnsigned)                         \
  X(int64_t, kI64, "int64", 0, 64, kSigned)                             \
  X(::mica::Half, kF16, "float16", 2, 16, kFloating)                    \
  X(::mica::BFloat16, kBF16, "bfloat16", 4, 16, kFloating)              \
  X(float, kF32, "float32", 2, 32, kFloating)                           \
  X(double, kF64, "float64", 2, 64, kFloating)                          \
  X(std::complex<float>, kC64, "complex64", 5, 64, kComplex)            \
  X(std::complex<double>, kC128, "complex128", 5, 128, kComplex)        \
  X(::mica::Float8E4M3FN, kF8E4M3FN, "float8_e4m3fn", 10, 8, kFloating) \
  X(::mica::Float8E5M2, kF8E5M2, "float8_e5m2", 12, 8, kFloating)

enum class DType : int8_t {
#define X(type, name, ...) name,
  MICA_FORALL_DTYPES(X)
#undef X
};
inline constexpr int kDTypeCount = 17;

enum class DTypeKind : uint8_t { kBoolean, kUnsigned, kSigned, kFloating, kComplex };

namespace internal {
struct DTypeInfo {
  const char* name;
  MicaDLDataType dl;
  uint8_t size;
  DTypeKind kind;
};
inline constexpr DTypeInfo kDTypeInfo[kDTypeCount] = {
#define X(type, name, text, code, bits, kind) {text, {code, bits, 1}, bits / 8, DTypeKind::kind},
    MICA_FORALL_DTYPES(X)
#undef X
};
}  // namespace internal

constexpr int64_t ItemSize(DType d) { return internal::kDTypeInfo[static_cast<int>(d)].size; }
constexpr DTypeKind Kind(DType d) { return internal::kDTypeInfo[static_cast<int>(d)].kind; }
constexpr const char* Name(DType d) { return internal::kDTypeInfo[static_cast<int>(d)].name; }
constexpr MicaDLDataType ToDL(DType d) { return internal::kDTypeInfo[static_cast<int>(d)].dl; }
constexpr bool IsFloating(DType d) { return Kind(d) == DTypeKind::kFloating; }
constexpr bool IsComplex(DType d) { return Kind(d) == DTypeKind::kComplex; }
// Signed, unsigned, and not bool.
constexpr bool IsInteger(DType d) { return Kind(d) == DTypeKind::kSigned || Kind(d) == DTypeKind::kUnsigned; }
constexpr bool IsDifferentiable(DType d) { return IsFloating(d) || IsComplex(d); }
// The float dtype of a complex dtype's parts; others map to themselves.
constexpr DType RealOf(DType d) {
  return d == DType::kC64 ? DType::kF32 : d == DType::kC128 ? DType::kF64 : d;
}
std::optional<DType> DTypeFromName(std::string_view name);  // "float32", and aliases "float", "long", ...
std::optional<DType> DTypeFromDL(MicaDLDataType dl);

template <typename T>
struct DTypeOf;
#define X(type, name, ...)                      \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
MICA_FORALL_DTYPES(X)
#undef X

// Calls `f.template operator()<T>()` with the C++ type of `d`.
template <typename F>
decltype(auto) VisitDType(DType d, F&& f) {
  switch (d) {
#define X(type, name, ...) \
  case DType::name:        \
    return f.template operator()<type>();
    MICA_FORALL_DTYPES(X)
#undef X
  }
  __builtin_unreachable();
}

}  // namespace mica
