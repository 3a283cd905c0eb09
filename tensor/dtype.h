// The dtypes, their sizes, kinds, names and C++ types.
//
// One list, MICA_FORALL_DTYPES, drives every table. The numbers are those of
// abi.h and frozen.
//
// Programs and libraries match errors by the names that PyTorch has for dtypes in its own ("result type
// Float can't be cast to ..."), so the sentences that such programs look for carry ScalarTypeName beside
// Name, which all else uses. PyTorch's schemas print a dtype as the number of its own enumeration.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>

#include <mica/abi.h>
#include "tensor/half.h"

namespace mica {

// X(C++ type, enumerator, name, torch's name in messages, torch's number, DLPack code, bits, kind)
#define MICA_FORALL_DTYPES(X)                                                                \
  X(bool, kBool, "bool", "Bool", 11, 6, 8, kBoolean)                                         \
  X(uint8_t, kU8, "uint8", "Byte", 0, 1, 8, kUnsigned)                                       \
  X(int8_t, kI8, "int8", "Char", 1, 0, 8, kSigned)                                           \
  X(uint16_t, kU16, "uint16", "UInt16", 27, 1, 16, kUnsigned)                                \
  X(int16_t, kI16, "int16", "Short", 2, 0, 16, kSigned)                                      \
  X(uint32_t, kU32, "uint32", "UInt32", 28, 1, 32, kUnsigned)                                \
  X(int32_t, kI32, "int32", "Int", 3, 0, 32, kSigned)                                        \
  X(uint64_t, kU64, "uint64", "UInt64", 29, 1, 64, kUnsigned)                                \
  X(int64_t, kI64, "int64", "Long", 4, 0, 64, kSigned)                                       \
  X(::mica::Half, kF16, "float16", "Half", 5, 2, 16, kFloating)                              \
  X(::mica::BFloat16, kBF16, "bfloat16", "BFloat16", 15, 4, 16, kFloating)                   \
  X(float, kF32, "float32", "Float", 6, 2, 32, kFloating)                                    \
  X(double, kF64, "float64", "Double", 7, 2, 64, kFloating)                                  \
  X(std::complex<float>, kC64, "complex64", "ComplexFloat", 9, 5, 64, kComplex)              \
  X(std::complex<double>, kC128, "complex128", "ComplexDouble", 10, 5, 128, kComplex)        \
  X(::mica::Float8E4M3FN, kF8E4M3FN, "float8_e4m3fn", "Float8_e4m3fn", 24, 10, 8, kFloating) \
  X(::mica::Float8E5M2, kF8E5M2, "float8_e5m2", "Float8_e5m2", 23, 12, 8, kFloating)

enum class DType : int8_t {
#define X(type, name, ...) name,
  MICA_FORALL_DTYPES(X)
#undef X
};
#define X(...) +1
inline constexpr int kDTypeCount = MICA_FORALL_DTYPES(X);
#undef X
static_assert(kDTypeCount == MICA_DTYPE_COUNT);

enum class DTypeKind : uint8_t { kBoolean, kUnsigned, kSigned, kFloating, kComplex };

namespace internal {
struct DTypeInfo {
  const char* name;
  const char* torch_name;
  int torch_number;
  MicaDLDataType dl;
  uint8_t size;
  DTypeKind kind;
};
inline constexpr DTypeInfo kDTypeInfo[kDTypeCount] = {
#define X(type, name, text, torch_name, torch_number, code, bits, kind) \
  {text, torch_name, torch_number, {code, bits, 1}, bits / 8, DTypeKind::kind},
    MICA_FORALL_DTYPES(X)
#undef X
};
}  // namespace internal

constexpr int64_t ItemSize(DType d) { return internal::kDTypeInfo[static_cast<int>(d)].size; }
constexpr DTypeKind Kind(DType d) { return internal::kDTypeInfo[static_cast<int>(d)].kind; }
constexpr const char* Name(DType d) { return internal::kDTypeInfo[static_cast<int>(d)].name; }
constexpr const char* ScalarTypeName(DType d) { return internal::kDTypeInfo[static_cast<int>(d)].torch_name; }
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
std::optional<DType> DTypeFromTorchNumber(int64_t number);

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
