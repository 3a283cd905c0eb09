// Checks and small shape arithmetic of meta functions.
#include "kernels/meta/meta_helpers.h"

#include <algorithm>

#include "tensor/dtype.h"
#include "tensor/number_range.h"

namespace mica::meta {

OutputSpec& AddLike(MetaResult& result, const Tensor& like, DType dtype) {
  OutputSpec& out = AddOutput(result, like.sizes(), dtype, like.device());
  if (!like.is_contiguous()) {
    const Layouted in{like.sizes(), like.strides()};
    out.strides = ElementwiseStrides(like.sizes(), Span<Layouted>(&in, 1));
  }
  return out;
}

Dims StridesInFormatOf(const Tensor& like, IntSpan sizes) {
  const bool last = like.ndim() == sizes.size() && HasChannelsLastStrides(like.sizes(), like.strides());
  return last ? ChannelsLastStrides(sizes) : Dims();
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
  MICA_THROW(kRuntime, "Expected all tensors to be on the same device, but `", b_name, "` is on the device (",
             b.device().ToString(), ") and `", a_name, "` on (", a.device().ToString(),
             "): move one first, as in ", b_name, ".to('", a.device().ToString(), "').");
}

void CheckSameDType(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  MICA_CHECK(a.dtype() == b.dtype(), "Expected `", a_name, "` and `", b_name,
             "` to have the same dtype, but got: ", ScalarTypeName(a.dtype()),
             " != ", ScalarTypeName(b.dtype()), "; dtype (", Name(a.dtype()), ") of `", a_name,
             "` differs from dtype (", Name(b.dtype()), ") of `", b_name, "`; they should be the same.");
}

void CheckInRange(const Scalar& value, DType dtype, const char* name) {
  MICA_CHECK(HoldsNumber(dtype, value), "value cannot be converted to type ", Name(dtype),
             " without overflow: argument `", name, "` (", value.ToString(), ") is out of its range.");
}

void CheckDims(const Tensor& t, int64_t ndim, const char* name) {
  MICA_CHECK(t.ndim() == ndim, "Number of dimensions (", t.ndim(), ") of `", name, "` with shape ",
             ShapeText(t.sizes()), " is not (", ndim, ").");
}

void CheckIndexDType(const Tensor& index, const char* name) {
  MICA_CHECK(index.dtype() == DType::kI64 || index.dtype() == DType::kI32, "Expected tensor for argument '",
             name, "' to have one of the following scalar types: Long, Int",
             " (dtype int64 or int32 for index), and the dtype of `", name, "` is (", Name(index.dtype()),
             ").");
}

}  // namespace mica::meta
