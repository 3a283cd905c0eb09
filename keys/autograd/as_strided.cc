// Scatter into a flat stand-in for the storage, then gather.
#include "keys/autograd/as_strided.h"

#include <algorithm>

#include "keys/autograd/engine_ops.h"

namespace mica::autograd {
namespace {

bool IsEmpty(const StridedPlace& p) { return std::find(p.sizes.begin(), p.sizes.end(), 0) != p.sizes.end(); }

Tensor At(const Tensor& flat, const StridedPlace& p) {
  return ops::AsStrided(flat, p.sizes, p.strides, p.offset);
}

}  // namespace

int64_t End(const StridedPlace& p) {
  int64_t last = p.offset;
  for (size_t i = 0; i < p.sizes.size(); ++i) last += (p.sizes[i] - 1) * p.strides[i];
  return last + 1;
}

bool MayOverlap(const StridedPlace& p) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t i = 0; i < p.sizes.size(); ++i)
    if (p.sizes[i] > 1) dims.emplace_back(p.strides[i], p.sizes[i]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += (size - 1) * stride;
  }
  return false;
}

Tensor AsStridedBackward(const Tensor& grad, StridedPlace input, StridedPlace result) {
  if (IsEmpty(input) || IsEmpty(result)) return ops::ZerosOf(input.sizes, grad.dtype(), grad.device());
  const int64_t begin = std::min(input.offset, result.offset);
  input.offset -= begin;
  result.offset -= begin;
  const int64_t size = std::max(End(input), End(result));
  Tensor flat = ops::ZerosOf({size}, grad.dtype(), grad.device());
  const bool repeats = MayOverlap(result);
  const bool shares = MayOverlap(input);
  const Tensor positions = repeats || shares ? ops::Arange(size, grad.device()) : Tensor();
  if (repeats) {
    flat = ops::IndexAdd(flat, ops::Flatten(At(positions, result)), ops::Flatten(grad));
  } else {
    ops::CopyInto(At(flat, result), grad);
  }
  if (shares) {
    const Tensor where = ops::Flatten(At(positions, input));
    const Tensor ones = ops::OnesLike(ops::ZerosOf({where.numel()}, grad.dtype(), grad.device()));
    flat = ops::Div(flat, ops::IndexAdd(ops::ZerosOf({size}, grad.dtype(), grad.device()), where, ones));
  }
  return At(flat, input);
}

}  // namespace mica::autograd
