// copy_, cat and stack: moving elements with any strides and dtypes.
#pragma once

#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {
namespace copies {

using plugin::TensorRef;

inline void Copy(const MicaCall* call, MicaTensor* self, MicaTensor* src, int32_t) {
  pointwise::CopyTensor(call, self, src);
}

// The part of `out` that begins at element `offset` and has the sizes and strides of
// `space`, takes `from`.
inline void CopyInto(const MicaCall* call, MicaTensor* out, int64_t offset, Space space,
                     const MicaTensor* from) {
  const TensorRef o(out);
  space.operands[0].data = static_cast<char*>(o.data<void>()) + offset * o.itemsize();
  space.Add(from);
  pointwise::CopyPart(call, std::move(space));
}

// The sizes of `from` with the strides of `out`.
inline Space PartOf(const MicaTensor* out, const TensorRef& from) {
  const TensorRef o(out);
  Space space;
  space.sizes.assign(from.sizes(), from.sizes() + from.ndim());
  space.operands.push_back({nullptr, o.dtype(), {}});
  return space;
}

inline void Cat(const MicaCall* call, MicaTensorSpan tensors, int64_t dim, MicaTensor* out) {
  const TensorRef o(out);
  const int d = static_cast<int>(dim < 0 ? dim + o.ndim() : dim);
  int64_t at = 0;
  for (int64_t i = 0; i < tensors.size; ++i) {
    const TensorRef part(tensors.data[i]);
    // An empty vector joins tensors of any shape.
    if (part.ndim() == 1 && part.numel() == 0) continue;
    Space space = PartOf(out, part);
    space.operands[0].strides.assign(o.strides(), o.strides() + o.ndim());
    CopyInto(call, out, at * o.stride(d), std::move(space), tensors.data[i]);
    at += part.size(d);
  }
}

inline void Stack(const MicaCall* call, MicaTensorSpan tensors, int64_t dim, MicaTensor* out) {
  const TensorRef o(out);
  const int d = static_cast<int>(dim < 0 ? dim + o.ndim() : dim);
  for (int64_t i = 0; i < tensors.size; ++i) {
    Space space = PartOf(out, TensorRef(tensors.data[i]));
    for (int k = 0; k < o.ndim(); ++k)
      if (k != d) space.operands[0].strides.push_back(o.stride(k));
    CopyInto(call, out, i * o.stride(d), std::move(space), tensors.data[i]);
  }
}

inline void RegisterCopies(plugin::Registrar& registrar) {
  registrar.Kernel<&Copy>("copy_");
  registrar.Kernel<&Cat>("cat.out");
  registrar.Kernel<&Stack>("stack.out");
}

}  // namespace copies
}  // namespace kit
}  // namespace mica
