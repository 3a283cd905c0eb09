// Tensors whose elements lie without gaps in an order that a kernel or a library asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {

// The strides of an image without gaps, whose last `spatial` dimensions are a plane's.
inline std::vector<int64_t> ImageStrides(const plugin::TensorRef& image, int spatial, bool channels_last) {
  const int leading = image.ndim() - spatial;
  std::vector<int64_t> strides(static_cast<size_t>(image.ndim()));
  int64_t step = channels_last ? image.size(leading - 1) : 1;
  for (int d = image.ndim(); d-- > 0;) {
    const bool is_channel = channels_last && d == leading - 1;
    strides[static_cast<size_t>(d)] = is_channel ? 1 : step;
    if (!is_channel) step *= image.size(d);
  }
  return strides;
}
inline bool HasStrides(const plugin::TensorRef& t, const std::vector<int64_t>& strides) {
  for (int d = 0; d < t.ndim(); ++d)
    if (t.size(d) != 1 && t.stride(d) != strides[static_cast<size_t>(d)]) return false;
  return true;
}

inline bool IsDenseImage(const plugin::TensorRef& t, int spatial, bool channels_last) {
  return HasStrides(t, ImageStrides(t, spatial, channels_last));
}

// The memory of a tensor in an order of its own, at a multiple of `alignment` bytes: the tensor's, or a
// workspace.
class Dense {
 public:
  Dense(const MicaCall* call, const MicaTensor* tensor, std::vector<int64_t> strides, uintptr_t alignment = 1)
      : call_(call), tensor_(tensor), strides_(std::move(strides)) {
    const plugin::TensorRef t(tensor);
    const bool is_aligned = reinterpret_cast<uintptr_t>(tensor->dl.data) % alignment == 0;
    if (!is_aligned || !HasStrides(t, strides_)) work_.emplace(call, t.numel() * BytesOf(t.dtype()));
  }
  void* data() const { return work_ ? work_->data() : tensor_->dl.data; }
  void Read() const { Copy(true); }
  void Write() const { Copy(false); }

 private:
  void Copy(bool to_work) const {
    if (!work_) return;
    const plugin::TensorRef t(tensor_);
    Space space;
    space.sizes.assign(t.sizes(), t.sizes() + t.ndim());
    space.Add(tensor_);
    space.operands.push_back({work_->data(), t.dtype(), strides_});
    if (to_work) std::swap(space.operands[0], space.operands[1]);
    pointwise::CopyPart(call_, std::move(space));
  }

  const MicaCall* call_;
  const MicaTensor* tensor_;
  std::vector<int64_t> strides_;
  std::optional<Workspace> work_;
};

}  // namespace kit
}  // namespace mica
