// A view that is its base's only holder becomes an ordinary tensor.
#include "dispatcher/calls/owned_results.h"

#include "dispatcher/frames/frames.h"
#include "dispatcher/layers/autograd_table.h"
#include "dispatcher/plugins/status.h"

namespace mica::internal {

void LeaveLoneBase(const Tensor& view) {
  TensorImpl& impl = *view.impl();
  TensorImpl& base = *impl.extra->view_base;
  const bool alone =
      impl.refs().load(std::memory_order_acquire) == 1 && base.refs().load(std::memory_order_acquire) == 1;
  // A frame's kinds keep their own account of what is a view of what.
  if (!alone || frames::IsWrapper(view)) return;
  impl.extra->view_creation = static_cast<uint8_t>(ViewCreation::kDefault);
  if (impl.extra->layer_state || base.has_flag(tensor_flags::kRequiresGrad)) {
    ThrowIfError(AutogradTable().leave_base(view.impl()));
    return;
  }
  impl.keys = impl.keys - KeySet::Of(keys::kAutograd);
  std::exchange(impl.extra->view_base, nullptr)->Release();
}

}  // namespace mica::internal
