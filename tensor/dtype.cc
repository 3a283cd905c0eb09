// Dtypes by name (Mica's and torch's aliases), by DLPack description and by torch's number.
#include "tensor/dtype.h"

namespace mica {

namespace {

struct Alias {
  std::string_view name;
  DType dtype;
};

constexpr Alias kAliases[] = {
    {"half", DType::kF16}, {"float", DType::kF32}, {"double", DType::kF64},        {"short", DType::kI16},
    {"int", DType::kI32},  {"long", DType::kI64},  {"cfloat", DType::kC64},        {"cdouble", DType::kC128},
    {"u8", DType::kU8},    {"i8", DType::kI8},     {"u16", DType::kU16},           {"i16", DType::kI16},
    {"u32", DType::kU32},  {"i32", DType::kI32},   {"u64", DType::kU64},           {"i64", DType::kI64},
    {"f16", DType::kF16},  {"bf16", DType::kBF16}, {"f32", DType::kF32},           {"f64", DType::kF64},
    {"c64", DType::kC64},  {"c128", DType::kC128}, {"f8e4m3fn", DType::kF8E4M3FN}, {"f8e5m2", DType::kF8E5M2},
};

}  // namespace

std::optional<DType> DTypeFromName(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == internal::kDTypeInfo[i].name) return static_cast<DType>(i);
  }
  for (const Alias& alias : kAliases) {
    if (name == alias.name) return alias.dtype;
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromDL(MicaDLDataType dl) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const MicaDLDataType& mine = internal::kDTypeInfo[i].dl;
    if (mine.code == dl.code && mine.bits == dl.bits && mine.lanes == dl.lanes) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromTorchNumber(int64_t number) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (internal::kDTypeInfo[i].torch_number == number) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace mica
