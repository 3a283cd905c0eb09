#include "mica/plugins/cpu/pooling/pooling.h"

namespace mica::cpu {

void RegisterPooling(plugin::Registrar& r) {
  r.Kernel<&MaxPool2d>("max_pool2d_with_indices.out");
  r.Kernel<&MaxPool2dBackward>("max_pool2d_with_indices_backward.grad_input");
  r.Kernel<&AdaptiveMaxPool2d>("adaptive_max_pool2d.out");
  r.Kernel<&AvgPool2d>("avg_pool2d.out");
  r.Kernel<&AvgPool2dBackward>("avg_pool2d_backward.grad_input");
  r.Kernel<&AdaptiveAvgPool2d>("_adaptive_avg_pool2d.out");
  r.Kernel<&AdaptiveAvgPool2dBackward>("_adaptive_avg_pool2d_backward.out");
}

}  // namespace mica::cpu
