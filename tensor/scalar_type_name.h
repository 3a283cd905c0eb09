// The names that error messages have for dtypes in PyTorch's world: Float, Long, ComplexFloat.
//
// Programs and libraries match errors by them ("result type Float can't be cast to ..."), so the sentences
// that such programs look for carry this name beside the dtype's own (dtype.h's Name, which all else uses).
#pragma once

#include "tensor/dtype.h"

namespace mica {

constexpr const char* ScalarTypeName(DType d) {
  switch (d) {
    case DType::kBool:
      return "Bool";
    case DType::kU8:
      return "Byte";
    case DType::kI8:
      return "Char";
    case DType::kU16:
      return "UInt16";
    case DType::kI16:
      return "Short";
    case DType::kU32:
      return "UInt32";
    case DType::kI32:
      return "Int";
    case DType::kU64:
      return "UInt64";
    case DType::kI64:
      return "Long";
    case DType::kF16:
      return "Half";
    case DType::kBF16:
      return "BFloat16";
    case DType::kF32:
      return "Float";
    case DType::kF64:
      return "Double";
    case DType::kC64:
      return "ComplexFloat";
    case DType::kC128:
      return "ComplexDouble";
    case DType::kF8E4M3FN:
      return "Float8_e4m3fn";
    case DType::kF8E5M2:
      return "Float8_e5m2";
  }
  return "Undefined";
}

}  // namespace mica
