// Composites that ask the core for memory: what other factories are made of. In torch's
// deterministic mode they fill it (kernels/uninitialized.h).
#include <atomic>
#include <limits>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/write_log.h"
#include "dispatcher/frames/frames.h"
#include "kernels/uninitialized.h"
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/fill.h"
#include "tensor/promote.h"
#include "tensor/shape.h"

namespace mica {
namespace {
std::atomic<bool> g_fill_uninitialized{false};
}  // namespace

void SetFillUninitialized(bool fill) { g_fill_uninitialized.store(fill, std::memory_order_relaxed); }

namespace composite {
namespace {

// NaN, the largest integer or True.
Scalar Filling(DType dtype) {
  if (dtype == DType::kBool) return Scalar(true);
  if (!IsInteger(dtype)) return Scalar(std::numeric_limits<double>::quiet_NaN());
  if (Kind(dtype) == DTypeKind::kUnsigned) return Scalar(int64_t{-1});  // wraps
  return Scalar(std::numeric_limits<int64_t>::max() >> (64 - 8 * ItemSize(dtype)));
}

// Fills the storage from byte `from` on, if that is asked for; no layer sees it.
void FillFrom(const Tensor& t, int64_t from) {
  if (__builtin_expect(!g_fill_uninitialized.load(std::memory_order_relaxed), 1) || t.device().is_meta())
    return;
  const int64_t item = t.itemsize(), first = (from + item - 1) / item;
  const int64_t count = t.impl()->storage->nbytes() / item - first;
  if (count <= 0) return;
  const ExcludeGuard guard(keys::kAboveBackends);
  ops::fill_(MakeViewAs(t, {count}, {1}, first * item, t.dtype(), true), Filling(t.dtype()));
}

// What is made in inference mode says so; what is made in frames is theirs.
Tensor Marked(Tensor t) {
  FillFrom(t, 0);
  if (__builtin_expect(CurrentThread().inference_mode, 0)) t.impl()->set_flag(tensor_flags::kInference, true);
  return frames::Adopt(std::move(t));
}
Device Place(std::optional<Device> device) { return device.value_or(CurrentThread().default_device); }

}  // namespace

Tensor empty(IntSpan size, std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
             std::optional<bool>, std::optional<MemoryFormat> memory_format) {
  MICA_CHECK(memory_format.value_or(MemoryFormat::kContiguous) != MemoryFormat::kPreserve,
             "Memory format (preserve_format) has nothing to preserve here; expected contiguous_format, "
             "channels_last or channels_last_3d.");
  return Marked(EmptyTensor(size, dtype.value_or(DefaultDType()), Place(device),
                            memory_format.value_or(MemoryFormat::kContiguous)));
}
Tensor empty_strided(IntSpan size, IntSpan stride, std::optional<DType> dtype, std::optional<Layout>,
                     std::optional<Device> device, std::optional<bool>) {
  MICA_CHECK(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
             ") must match dimensionality of strides (", stride.size(),
             "): there is a mismatch in length of strides and shape.");
  return Marked(EmptyStrided(size, stride, dtype.value_or(DefaultDType()), Place(device)));
}

Tensor empty_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout>,
                  std::optional<Device> device, std::optional<bool>,
                  std::optional<MemoryFormat> memory_format) {
  const DType type = dtype.value_or(self.dtype());
  const Device place = device.value_or(self.device());
  const MemoryFormat wanted = memory_format.value_or(MemoryFormat::kPreserve);
  if (wanted != MemoryFormat::kPreserve) return Marked(EmptyTensor(self.sizes(), type, place, wanted));
  if (self.is_contiguous()) return Marked(EmptyTensor(self.sizes(), type, place));
  const Layouted in{self.sizes(), self.strides()};
  return Marked(
      EmptyStrided(self.sizes(), ElementwiseStrides(self.sizes(), Span<Layouted>(&in, 1)), type, place));
}

void resize_(const Tensor& self, IntSpan size, std::optional<MemoryFormat> memory_format) {
  if (self.sizes() == size && !memory_format) return;
  const int64_t before = self.impl()->storage->nbytes();
  ResizeTensor(self, size, StridesIn(memory_format.value_or(MemoryFormat::kContiguous), size));
  FillFrom(self, before);
  if (!self.is_inference()) self.impl()->storage->BumpVersion();
}

void _become_view_(const Tensor& self, const Tensor& view, std::string_view name) {
  TensorImpl* impl = self.impl();
  MICA_CHECK(impl->storage == view.impl()->storage && self.dtype() == view.dtype(), "The tensor that ",
             std::string(name), " writes and its new view do not share memory.");
  MICA_CHECK(!self.is_inference() || CurrentThread().inference_mode,
             "Inplace update to inference tensor outside InferenceMode is not allowed: the tensor that ",
             std::string(name),
             " writes was made in inference mode, and inference mode is over; clone it first.");
  AnnounceWrite(self);
  impl->PointWhere(*view.impl());
  impl->SetSizesStrides(view.sizes(), view.strides());
  impl->storage->BumpVersion();
  LogWrite(self, "an in-place view (t_, squeeze_, as_strided_ or the like)");
}

}  // namespace composite
}  // namespace mica
