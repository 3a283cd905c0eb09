// The gradient of a write through a view.
#include "mica/keys/autograd/copy_slices.h"

#include "mica/keys/autograd/engine_ops.h"
#include "mica/keys/autograd/validate.h"

namespace mica::autograd {

CopySlices::CopySlices(const Tensor& base, ViewGeometry view, NodeRef fn)
    : base_strides_(ToDims(base.strides())), view_(std::move(view)), fn_(std::move(fn)) {
  set_releases_at_end();
  fn_->set_releases_at_end();
  AddOutput(base);
  SetNumNext(std::max(1, fn_->num_next()));
  next(0) = GradientEdge(base);
  for (int i = 1; i < fn_->num_next(); ++i) next(i) = fn_->next(i);
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
  if (Wants(0)) {
    if (parts[0].defined()) {
      ops::CopyInto(slice, parts[0]);
    } else {
      ops::Zero(slice);
    }
    out[0] = result;
  }
  for (int i = 1; i < num_next(); ++i) out[i] = std::move(parts[static_cast<size_t>(i)]);
}

}  // namespace mica::autograd
