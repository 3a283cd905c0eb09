#include "mica/dispatcher/given_output.h"

#include "mica/tensor/shape.h"

namespace mica {

void CheckResizable(const Tensor& out, IntSpan sizes) {
  if (!out.is_view() || out.numel() == 0) return;
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  MICA_CHECK(out.is_contiguous() && count <= out.numel(), "`out` with shape ", ShapeText(out.sizes()),
             " is a view of a larger tensor and the result has the shape ", ShapeText(sizes),
             "; resizing it would write elements outside of the view. Give a view of the right shape or an "
             "empty tensor.");
}

}  // namespace mica
