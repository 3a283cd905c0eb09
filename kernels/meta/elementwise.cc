// Meta functions of the pointwise operators that need a check of their own.
#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {

void pow_Tensor_Scalar(MetaResult& result, const Tensor& self, const Scalar& exponent) {
  const DType dtype = ResultType().Add(self).Add(exponent).dtype();
  MICA_CHECK(!(IsInteger(dtype) && exponent.is_int() && exponent.ToInt() < 0),
             "Integers to negative integer powers are not allowed. The exponent is (", exponent.ToString(),
             "); convert `self` to a float first.");
  AddLike(result, self, dtype);
  ComputeIn(result, dtype);
}

// The result is contiguous, as torch's sum of gamma functions is.
void mvlgamma(MetaResult& result, const Tensor& self, int64_t) {
  const DType dtype = IsFloating(self.dtype()) || IsComplex(self.dtype()) ? self.dtype() : DefaultDType();
  AddOutput(result, self.sizes(), dtype, self.device());
  ComputeIn(result, dtype);
}

// square is pow(self, 2): bool becomes int64.
void square(MetaResult& result, const Tensor& self) {
  const DType dtype = self.dtype() == DType::kBool ? DType::kI64 : self.dtype();
  AddLike(result, self, dtype);
  ComputeIn(result, dtype);
}

namespace {
void CheckValue(const Tensor& self, const Tensor& value) {
  MICA_CHECK(value.ndim() == 0,
             "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.ndim(),
             " dimension(s).");
  MICA_CHECK(!IsComplex(value.dtype()) || IsComplex(self.dtype()), "value cannot be converted to type ",
             Name(self.dtype()), " without overflow: dtype (", Name(value.dtype()),
             ") of `value` does not fit dtype (", Name(self.dtype()), ") of `self`.");
}
// The result is contiguous, as in torch.
void Masked(MetaResult& result, const Tensor& self, const Tensor& mask) {
  MICA_CHECK(mask.dtype() == DType::kBool,
             "masked_fill_ only supports boolean masks, but got mask with dtype ", Name(mask.dtype()), ".");
  CheckSameDevice(self, mask, "self", "mask");
  AddOutput(result, BroadcastShapes(self.sizes(), mask.sizes(), "self", "mask"), self.dtype(), self.device());
  ComputeIn(result, self.dtype());
}
}  // namespace

void masked_fill_Tensor(MetaResult& result, const Tensor& self, const Tensor& mask, const Tensor& value) {
  CheckValue(self, value);
  Masked(result, self, mask);
}
void masked_fill_Scalar(MetaResult& result, const Tensor& self, const Tensor& mask, const Scalar& value) {
  CheckInRange(value, self.dtype(), "value");
  Masked(result, self, mask);
}

void hardtanh(MetaResult& result, const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  CheckInRange(min_val, self.dtype(), "min_val");
  CheckInRange(max_val, self.dtype(), "max_val");
  MICA_CHECK(
      Kind(self.dtype()) != DTypeKind::kUnsigned || (min_val.ToDouble() >= 0 && max_val.ToDouble() >= 0),
      "A limit (", min_val.ToString(), " or ", max_val.ToString(), ") is negative, and the dtype (",
      Name(self.dtype()), ") of `self` is unsigned; expected limits from 0 on.");
  AddLike(result, self);
  ComputeIn(result, self.dtype());
}

void fill_Tensor(MetaResult& result, const Tensor& self, const Tensor& value) {
  CheckValue(self, value);
  AddLike(result, self);
  ComputeIn(result, self.dtype());
}

}  // namespace mica::meta
