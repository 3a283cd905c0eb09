// Promotion by rules; test/unit/tensor/promote_test.cc holds them to torch's
// table of all pairs. Where torch has no answer for uint16, uint32 and uint64, the
// Python array API standard's holds.
#include "tensor/promote.h"

#include <algorithm>
#include <atomic>

namespace mica {

namespace {

std::atomic<DType> g_default_dtype{DType::kF32};

bool IsFloat8(DType d) { return IsFloating(d) && ItemSize(d) == 1; }

// 0 bool, 1 integer, 2 floating, 3 complex.
int Level(DType d) {
  switch (Kind(d)) {
    case DTypeKind::kBoolean:
      return 0;
    case DTypeKind::kFloating:
      return 2;
    case DTypeKind::kComplex:
      return 3;
    default:
      return 1;
  }
}

DType PromoteFloating(DType a, DType b) {
  if (ItemSize(a) == ItemSize(b)) return DType::kF32;  // float16 with bfloat16
  return ItemSize(a) > ItemSize(b) ? a : b;
}

// Two of one sign: the wider. Else the signed one if it is wider, or the signed dtype
// that is wider than the unsigned one.
DType PromoteIntegers(DType a, DType b) {
  if (Kind(a) == Kind(b)) return ItemSize(a) > ItemSize(b) ? a : b;
  const DType signed_one = Kind(a) == DTypeKind::kSigned ? a : b;
  const DType unsigned_one = signed_one == a ? b : a;
  if (ItemSize(signed_one) > ItemSize(unsigned_one)) return signed_one;
  MICA_CHECK_TYPE(unsigned_one != DType::kU64, "The dtypes ", Name(a), " and ", Name(b),
                  " have no common dtype: no signed integer holds uint64; convert one of them first.");
  return unsigned_one == DType::kU8 ? DType::kI16 : unsigned_one == DType::kU16 ? DType::kI32 : DType::kI64;
}

}  // namespace

DType PromoteTypes(DType a, DType b) {
  if (a == b) return a;
  MICA_CHECK(
      !IsFloat8(a) && !IsFloat8(b), "The dtypes ", Name(a), " and ", Name(b),
      " have no common dtype: Promotion for Float8 Types is not supported; convert one of them first.");
  const int level_a = Level(a);
  const int level_b = Level(b);
  if (level_a == 3 || level_b == 3) {
    const bool wide = a == DType::kC128 || b == DType::kC128 || a == DType::kF64 || b == DType::kF64;
    return wide ? DType::kC128 : DType::kC64;
  }
  if (level_a != level_b) return level_a > level_b ? a : b;
  return level_a == 2 ? PromoteFloating(a, b) : PromoteIntegers(a, b);
}

bool CanCast(DType from, DType to) {
  if (IsComplex(from) && !IsComplex(to)) return false;
  if (IsFloating(from) && Level(to) < 2) return false;
  return from == DType::kBool || to != DType::kBool;
}

DType DefaultDType() { return g_default_dtype.load(std::memory_order_relaxed); }

DType DefaultComplexDType() { return DefaultDType() == DType::kF64 ? DType::kC128 : DType::kC64; }

void SetDefaultDType(DType dtype) {
  const bool ok =
      dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64;
  MICA_CHECK_TYPE(ok, "only floating-point types are supported as the default type; this dtype is (",
                  Name(dtype), "), not float16, bfloat16, float32 or float64.");
  g_default_dtype.store(dtype, std::memory_order_relaxed);
}

ResultType& ResultType::Into(int& slot, DType d) {
  slot = static_cast<int>(slot < 0 ? d : PromoteTypes(static_cast<DType>(slot), d));
  return *this;
}

ResultType& ResultType::Add(const Tensor& tensor) {
  const DType d = tensor.dtype();
  if (tensor.is_wrapped_number()) {
    return AddNumber(IsComplex(d) ? DefaultComplexDType() : IsFloating(d) ? DefaultDType() : d);
  }
  return tensor.ndim() > 0 ? AddDim(d) : AddZeroDim(d);
}

ResultType& ResultType::Add(const Scalar& number) { return AddNumber(number.DefaultDType()); }

DType ResultType::dtype() const {
  MICA_INTERNAL(!empty(), "the common dtype of no operands is asked for.");
  // The lower category counts only when its kind is higher; a floating dtype
  // keeps its width when it becomes complex.
  const auto combine = [](int higher, int lower) {
    if (higher < 0) return lower;
    if (lower < 0) return higher;
    const DType high = static_cast<DType>(higher);
    const DType low = static_cast<DType>(lower);
    if (Level(high) >= Level(low)) return higher;
    if (IsComplex(low) && IsInteger(high)) return lower;  // unsigned ones too
    if (IsFloating(high) && !IsFloat8(high))
      return static_cast<int>(high == DType::kF64 ? DType::kC128 : DType::kC64);
    return static_cast<int>(PromoteTypes(high, low));
  };
  return static_cast<DType>(combine(dim_, combine(zero_, number_)));
}

}  // namespace mica
