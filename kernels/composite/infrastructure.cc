// Composites of copies and conversions, and questions that a tensor's metadata
// answers.
#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_local_scalar_dense.h"
#include "mica/ops/_to_copy.h"
#include "mica/ops/all.h"
#include "mica/ops/clone.h"
#include "mica/ops/copy_.h"
#include "mica/ops/empty_like.h"
#include "mica/ops/eq.h"
#include "mica/ops/item.h"
#include "mica/ops/reshape.h"
#include "mica/ops/sum.h"

namespace mica::composite {

Tensor _to_copy(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                std::optional<MemoryFormat> memory_format) {
  const Tensor copy = ops::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  ops::copy_(copy, self, non_blocking);
  return copy;
}

namespace {
// self itself where it is what is asked for already.
Tensor To(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device, bool non_blocking,
          bool copy, std::optional<MemoryFormat> format) {
  const MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  const bool same = dtype.value_or(self.dtype()) == self.dtype() &&
                    device.value_or(self.device()) == self.device() &&
                    (wanted == MemoryFormat::kPreserve || self.is_contiguous(wanted));
  if (same && !copy) return self;
  return ops::_to_copy(self, dtype, std::nullopt, device, std::nullopt, non_blocking, format);
}
}  // namespace

Tensor to_dtype(const Tensor& self, DType dtype, bool non_blocking, bool copy,
                std::optional<MemoryFormat> memory_format) {
  return To(self, dtype, std::nullopt, non_blocking, copy, memory_format);
}
Tensor to_device(const Tensor& self, Device device, DType dtype, bool non_blocking, bool copy,
                 std::optional<MemoryFormat> memory_format) {
  return To(self, dtype, device, non_blocking, copy, memory_format);
}
Tensor to_other(const Tensor& self, const Tensor& other, bool non_blocking, bool copy,
                std::optional<MemoryFormat> memory_format) {
  return To(self, other.dtype(), other.device(), non_blocking, copy, memory_format);
}
Tensor to_dtype_layout(const Tensor& self, std::optional<DType> dtype, std::optional<Layout>,
                       std::optional<Device> device, std::optional<bool>, bool non_blocking, bool copy,
                       std::optional<MemoryFormat> memory_format) {
  return To(self, dtype, device, non_blocking, copy, memory_format);
}
Tensor type_as(const Tensor& self, const Tensor& other) {
  return To(self, other.dtype(), other.device(), false, false, std::nullopt);
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  const Tensor copy =
      ops::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, memory_format);
  ops::copy_(copy, self, false);
  return copy;
}
Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  MICA_CHECK(
      memory_format != MemoryFormat::kPreserve,
      "Memory format (preserve_format) says nothing here; expected contiguous_format or channels_last.");
  return self.is_contiguous(memory_format) ? self : ops::clone(self, memory_format);
}

Scalar item(const Tensor& self) {
  MICA_CHECK(self.numel() == 1, "Number of elements (", self.numel(), ") of a tensor with shape ",
             ShapeText(self.sizes()), " is not 1, so that it has no single value.");
  return ops::_local_scalar_dense(self);
}
bool is_nonzero(const Tensor& self) {
  MICA_CHECK(self.numel() > 0, "Truth value of a tensor without elements is ambiguous.");
  MICA_CHECK(self.numel() == 1, "Truth value of a tensor with (", self.numel(),
             ") elements is ambiguous; use any or all.");
  const Scalar value = ops::item(self);
  return value.is_complex() ? value.ToComplex() != 0.0
         : value.is_float() ? value.ToDouble() != 0.0
                            : value.ToBool();
}
bool equal(const Tensor& self, const Tensor& other) {
  MICA_CHECK(self.dtype() == other.dtype(), "Dtype (", Name(self.dtype()), ") of `self` differs from dtype (",
             Name(other.dtype()), ") of `other`.");
  return self.sizes() == other.sizes() && ops::item(ops::op::all::call(ops::eq(self, other))).ToBool();
}
bool is_same_size(const Tensor& self, const Tensor& other) { return self.sizes() == other.sizes(); }
bool is_complex(const Tensor& self) { return IsComplex(self.dtype()); }
bool is_floating_point(const Tensor& self) { return IsFloating(self.dtype()); }
int64_t numel(const Tensor& self) { return self.numel(); }
DType result_type(const Tensor& tensor, const Tensor& other) {
  return ResultType().Add(tensor).Add(other).dtype();
}
bool can_cast(DType from_, DType to) { return CanCast(from_, to); }
DType promote_types(DType type1, DType type2) { return PromoteTypes(type1, type2); }

void resize_(const Tensor& self, IntSpan size, std::optional<MemoryFormat> memory_format) {
  const bool channels_last = memory_format == MemoryFormat::kChannelsLast;
  if (self.sizes() == size && !memory_format) return;
  ResizeTensor(self, size, channels_last ? ChannelsLastStrides(size) : ContiguousStrides(size));
}
void resize_as_(const Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  resize_(self, the_template.sizes(), memory_format);
}

Tensor sum_to_size(const Tensor& self, IntSpan size) {
  if (self.sizes() == size) return self;
  MICA_CHECK(CanExpandTo(size, self.sizes()), "Shape ", ShapeText(size), " does not broadcast to shape ",
             ShapeText(self.sizes()), " of `self`.");
  const int64_t extra = self.ndim() - size.size();
  Dims dims;
  for (int64_t d = 0; d < self.ndim(); ++d)
    if (d < extra || (size[d - extra] == 1 && self.sizes()[d] != 1)) dims.push_back(d);
  const Tensor summed = dims.empty() ? self : ops::sum(self, dims, true);
  return extra > 0 ? ops::reshape(summed, size) : summed;
}

}  // namespace mica::composite
