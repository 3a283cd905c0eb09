// Composites of factories: memory from the device's allocator, then a fill.
#include "mica/dispatcher/thread_state.h"
#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_linspace.h"
#include "mica/ops/arange.h"
#include "mica/ops/contiguous.h"
#include "mica/ops/eye.h"
#include "mica/ops/fill.h"
#include "mica/ops/nonzero.h"
#include "mica/ops/ones.h"
#include "mica/ops/t.h"
#include "mica/ops/tril.h"
#include "mica/ops/triu.h"
#include "mica/ops/zero.h"

namespace mica::composite {
namespace {

// What is made in inference mode says so.
Tensor Marked(Tensor t) {
  if (__builtin_expect(CurrentThread().inference_mode, 0)) t.impl()->set_flag(tensor_flags::kInference, true);
  return t;
}
Device Place(std::optional<Device> device) { return device.value_or(CurrentThread().default_device); }

DType DTypeOfFill(const Scalar& value) { return value.DefaultDType(); }

Tensor EmptyLike(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
                 std::optional<MemoryFormat> format) {
  const DType type = dtype.value_or(self.dtype());
  const Device place = device.value_or(self.device());
  const MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  if (wanted != MemoryFormat::kPreserve) return Marked(EmptyTensor(self.sizes(), type, place, wanted));
  if (self.is_contiguous()) return Marked(EmptyTensor(self.sizes(), type, place));
  const Layouted in{self.sizes(), self.strides()};
  return Marked(
      EmptyStrided(self.sizes(), ElementwiseStrides(self.sizes(), Span<Layouted>(&in, 1)), type, place));
}
Tensor Zeroed(Tensor t) {
  ops::zero_(t);
  return t;
}
Tensor Filled(Tensor t, const Scalar& value) {
  ops::fill_(t, value);
  return t;
}

}  // namespace

Tensor empty(IntSpan size, std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
             std::optional<bool>, std::optional<MemoryFormat> memory_format) {
  MICA_CHECK(memory_format.value_or(MemoryFormat::kContiguous) != MemoryFormat::kPreserve,
             "Memory format (preserve_format) has nothing to preserve here; expected contiguous_format or "
             "channels_last.");
  return Marked(EmptyTensor(size, dtype.value_or(DefaultDType()), Place(device),
                            memory_format.value_or(MemoryFormat::kContiguous)));
}
Tensor empty_strided(IntSpan size, IntSpan stride, std::optional<DType> dtype, std::optional<Layout>,
                     std::optional<Device> device, std::optional<bool>) {
  MICA_CHECK(size.size() == stride.size(), "Number of sizes (", size.size(),
             ") differs from the number of strides (", stride.size(), ").");
  return Marked(EmptyStrided(size, stride, dtype.value_or(DefaultDType()), Place(device)));
}

Tensor zeros(IntSpan size, std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
             std::optional<bool>) {
  return Zeroed(Marked(EmptyTensor(size, dtype.value_or(DefaultDType()), Place(device))));
}
Tensor ones(IntSpan size, std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
            std::optional<bool>) {
  return Filled(Marked(EmptyTensor(size, dtype.value_or(DefaultDType()), Place(device))), Scalar(1));
}
Tensor full(IntSpan size, const Scalar& fill_value, std::optional<DType> dtype, std::optional<Layout>,
            std::optional<Device> device, std::optional<bool>) {
  return Filled(Marked(EmptyTensor(size, dtype.value_or(DTypeOfFill(fill_value)), Place(device))),
                fill_value);
}

#define MICA_LIKE(name, finish)                                                      \
  Tensor name(const Tensor& self, std::optional<DType> dtype, std::optional<Layout>, \
              std::optional<Device> device, std::optional<bool>,                     \
              std::optional<MemoryFormat> memory_format) {                           \
    return finish(EmptyLike(self, dtype, device, memory_format));                    \
  }
#define MICA_ONES(t) Filled(t, Scalar(1))
MICA_LIKE(empty_like, )
MICA_LIKE(zeros_like, Zeroed)
MICA_LIKE(ones_like, MICA_ONES)
#undef MICA_LIKE
#undef MICA_ONES
Tensor full_like(const Tensor& self, const Scalar& fill_value, std::optional<DType> dtype,
                 std::optional<Layout>, std::optional<Device> device, std::optional<bool>,
                 std::optional<MemoryFormat> memory_format) {
  return Filled(EmptyLike(self, dtype, device, memory_format), fill_value);
}

namespace {
Tensor NewEmpty(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<Device> device) {
  return Marked(EmptyTensor(size, dtype.value_or(self.dtype()), device.value_or(self.device())));
}
}  // namespace
Tensor new_empty(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<Layout>,
                 std::optional<Device> device, std::optional<bool>) {
  return NewEmpty(self, size, dtype, device);
}
Tensor new_zeros(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<Layout>,
                 std::optional<Device> device, std::optional<bool>) {
  return Zeroed(NewEmpty(self, size, dtype, device));
}
Tensor new_ones(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<Layout>,
                std::optional<Device> device, std::optional<bool>) {
  return Filled(NewEmpty(self, size, dtype, device), Scalar(1));
}
Tensor new_full(const Tensor& self, IntSpan size, const Scalar& fill_value, std::optional<DType> dtype,
                std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
  return Filled(NewEmpty(self, size, dtype, device), fill_value);
}
Tensor new_empty_strided(const Tensor& self, IntSpan size, IntSpan stride, std::optional<DType> dtype,
                         std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
  return Marked(EmptyStrided(size, stride, dtype.value_or(self.dtype()), device.value_or(self.device())));
}
Tensor scalar_tensor(const Scalar& s, std::optional<DType> dtype, std::optional<Layout>,
                     std::optional<Device> device, std::optional<bool>) {
  return Filled(Marked(EmptyTensor({}, dtype.value_or(DefaultDType()), Place(device))), s);
}

Tensor arange(const Scalar& end, std::optional<DType> dtype, std::optional<Layout> layout,
              std::optional<Device> device, std::optional<bool> pin_memory) {
  return ops::op::arange_start_step::call(Scalar(0), end, Scalar(1), dtype, layout, device, pin_memory);
}
Tensor arange_start(const Scalar& start, const Scalar& end, std::optional<DType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  return ops::op::arange_start_step::call(start, end, Scalar(1), dtype, layout, device, pin_memory);
}
Tensor eye(int64_t n, std::optional<DType> dtype, std::optional<Layout> layout, std::optional<Device> device,
           std::optional<bool> pin_memory) {
  return ops::op::eye_m::call(n, n, dtype, layout, device, pin_memory);
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, std::optional<DType> dtype,
                std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  if (!dtype || IsDifferentiable(*dtype))
    return ops::_linspace(start, end, steps, dtype, layout, device, pin_memory);
  return Cast(ops::_linspace(start, end, steps, DType::kF64, layout, device, pin_memory), *dtype);
}

namespace {
Tensor TriangleIndices(int64_t row, int64_t col, int64_t offset, bool lower, std::optional<DType> dtype,
                       std::optional<Device> device) {
  MICA_CHECK(row >= 0 && col >= 0, "Size (", row, ") or (", col, ") is negative; expected 0 or more.");
  const Tensor full = ops::ones({row, col}, DType::kBool, std::nullopt, device);
  const Tensor places = ops::nonzero(lower ? ops::tril(full, offset) : ops::triu(full, offset));
  return Cast(ops::contiguous(ops::t(places)), dtype.value_or(DType::kI64));
}
}  // namespace
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
  return TriangleIndices(row, col, offset, true, dtype, device);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Layout>, std::optional<Device> device, std::optional<bool>) {
  return TriangleIndices(row, col, offset, false, dtype, device);
}

}  // namespace mica::composite
