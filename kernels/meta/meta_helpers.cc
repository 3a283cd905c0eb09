// Checks and small shape arithmetic of meta functions.
#include "mica/kernels/meta/meta_helpers.h"

#include <algorithm>
#include <cmath>

namespace mica::meta {

OutputSpec& AddLike(MetaResult& result, const Tensor& like, DType dtype) {
  OutputSpec& out = AddOutput(result, like.sizes(), dtype, like.device());
  if (!like.is_contiguous()) {
    const Layouted in{like.sizes(), like.strides()};
    out.strides = ElementwiseStrides(like.sizes(), Span<Layouted>(&in, 1));
  }
  return out;
}

Dims ReducedSizes(IntSpan sizes, const Dims& dims, bool keepdim) {
  Dims out;
  for (int64_t d = 0; d < sizes.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end())
      out.push_back(sizes[d]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

void CheckSameDevice(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  if (a.device() == b.device()) return;
  if ((a.ndim() == 0 && a.device().is_cpu()) || (b.ndim() == 0 && b.device().is_cpu())) return;
  MICA_THROW(kRuntime, "`", b_name, "` is on the device (", b.device().ToString(), ") and `", a_name,
             "` on (", a.device().ToString(),
             "); an operator takes tensors of one device: move one first, as in ", b_name, ".to('",
             a.device().ToString(), "').");
}

void CheckSameDType(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  MICA_CHECK(a.dtype() == b.dtype(), "Dtype (", Name(a.dtype()), ") of `", a_name, "` differs from dtype (",
             Name(b.dtype()), ") of `", b_name, "`; expected one dtype.");
}

void CheckInRange(const Scalar& value, DType dtype, const char* name) {
  bool fits = true;
  if (IsInteger(dtype) && !value.is_complex()) {
    const bool is_signed = Kind(dtype) == DTypeKind::kSigned;
    const double limit = std::ldexp(1.0, static_cast<int>(ItemSize(dtype)) * 8 - (is_signed ? 1 : 0));
    const double number = std::trunc(value.ToDouble());
    const double least = is_signed ? -limit : value.is_float() ? 0 : 1 - limit;
    fits = number >= least && number < limit;  // not for NaN
  }
  MICA_CHECK(fits, "Argument `", name, "` (", value.ToString(), ") is out of the range of the dtype (",
             Name(dtype), ").");
}

void CheckDims(const Tensor& t, int64_t ndim, const char* name) {
  MICA_CHECK(t.ndim() == ndim, "Number of dimensions (", t.ndim(), ") of `", name, "` with shape ",
             ShapeText(t.sizes()), " is not (", ndim, ").");
}

void CheckIndexDType(const Tensor& index, const char* name) {
  MICA_CHECK(index.dtype() == DType::kI64 || index.dtype() == DType::kI32, "Dtype (", Name(index.dtype()),
             ") of `", name, "` is no index; expected int64 or int32.");
}

}  // namespace mica::meta
