// The gradient of a write through a view.
#include "keys/autograd/copy_slices.h"

#include "keys/autograd/engine_ops.h"
#include "keys/autograd/validate.h"

namespace mica::autograd {

CopySlices::CopySlices(const Tensor& base, ViewGeometry view, NodeRef fn, int written)
    : base_strides_(ToDims(base.strides())), view_(std::move(view)), fn_(std::move(fn)), written_(written) {
  set_releases_at_end();
  fn_->set_releases_at_end();
  AddOutput(base);
  SetNumNext(std::max(1, fn_->num_next()));
  for (int i = 0; i < fn_->num_next(); ++i) next(i) = fn_->next(i);
  next(written_) = GradientEdge(base);
}

void CopySlices::ReleaseSaved() {
  if (fn_) fn_->ReleaseSaved();
}

void CopySlices::Apply(const Tensor* grads, Tensor* out) {
  if (!grads[0].defined()) return;
  // A fresh tensor laid out as the base, whose slice can be cut and replaced.
  const Tensor result = ops::EmptyStrided(output(0).sizes(), base_strides_, grads[0]);
  ops::CopyInto(result, grads[0]);
  const Tensor slice = ReplayView(result, view_);
  const Tensor slice_grad = ops::Clone(slice);
  absl::InlinedVector<Tensor, 4> parts(static_cast<size_t>(std::max(1, fn_->num_next())));
  fn_->Apply(&slice_grad, parts.data());
  for (int i = 0; i < num_next(); ++i) {
    Tensor& part = parts[static_cast<size_t>(i)];
    if (i != written_) {
      out[i] = std::move(part);
    } else if (Wants(i)) {
      if (part.defined()) {
        ops::CopyInto(slice, part);
      } else {
        ops::Zero(slice);
      }
      out[i] = result;
    }
  }
}

}  // namespace mica::autograd
