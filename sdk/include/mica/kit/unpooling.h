// The gradients of average pooling, and col2im: each place of an image gathers from the windows that hold it,
// so that no two work-items add to the same one (unpooling.cl).
#pragma once

#include <string>
#include <vector>

#include <mica/kit/planes.h>

namespace mica {
namespace kit {
namespace unpooling {

using planes::PlaneMap;
using plugin::TensorRef;

// The windows of a dimension.
struct Windows {
  int64_t in, out;  // places of the image, and windows
  int64_t size = 0, stride = 0, padding = 0, dilation = 1;
  int64_t step, tap_step = 0;  // of the data from window to window, and from place to place of one
};

// Of dimension d; one number is for all.
inline int64_t At(const MicaIntSpan& list, int d, int64_t otherwise) {
  return list.size == 0 ? otherwise : list.data[list.size == 1 ? 0 : d];
}

// Queues the map, whose `defines` name it in unpooling.cl; `key` does so in few bytes.
inline void Run(PlaneMap map, const std::vector<Windows>& windows, Key key, const std::string& defines,
                int64_t divisor, const void* indices = nullptr) {
  if (!map.IsSmall()) throw plugin::NotImplemented();  // coordinates are int there
  map.Run(
      key, "in", true, nullptr,
      [&] { return defines + Define("DIVISOR", std::to_string(divisor) + "L") + kUnpoolingText; },
      [&](Launch& launch) {
        for (const Windows& w : windows) {
          for (const int64_t n : {w.in, w.out, w.size, w.stride, w.padding, w.dilation})
            launch.Value(static_cast<int32_t>(n));
          launch.Index(w.step, true).Index(w.tap_step, true);
        }
        if (indices) launch.Pointer(indices);
      });
}

inline PlaneMap GradientMap(const MicaCall* call, const MicaTensor* grad_output, const MicaTensor* grad_input,
                            int spatial, int most_neighbours = 8) {
  const TensorRef grad(grad_output);
  if (grad.dtype() < MICA_F16) throw plugin::NotImplemented();
  return PlaneMap(call, grad_output, grad_input, grad.dtype(), spatial, grad.sizes() + grad.ndim() - spatial,
                  most_neighbours);
}

// The element that was the largest of a window gets its gradient; indices count in an image's flattened
// plane.
template <int kSpatial>
void MaxPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaIntSpan kernel_size,
                     MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t,
                     MicaTensor* indices, MicaTensor* grad_input) {
  const TensorRef grad(grad_output), out(grad_input);
  if (out.numel() == 0) return;
  const PlaneMap map = GradientMap(call, grad_output, grad_input, kSpatial, 1);
  const Dense chosen(call, indices, map.OrderOf(indices));
  chosen.Read();
  std::vector<Windows> windows;
  std::string place = "k0";
  for (int d = 0; d < kSpatial; ++d) {
    Windows w{out.size(d - kSpatial), grad.size(d - kSpatial)};
    w.size = At(kernel_size, d, 1);
    w.stride = At(stride, d, w.size);
    w.padding = At(padding, d, 0);
    w.dilation = At(dilation, d, 1);
    w.step = map.steps[d];
    windows.push_back(w);
    const std::string n = std::to_string(d);
    if (d > 0) place = "(" + place + " * in" + n + " + k" + n + ")";
  }
  Run(map, windows, Key("maxima"), Define("COLUMNS", "1") + Define("MAXIMA", "1") + Define("PLACE", place), 1,
      chosen.data());
}

template <int kSpatial>
void AvgPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaIntSpan kernel_size,
                     MicaIntSpan stride, MicaIntSpan padding, int32_t, int32_t count_include_pad,
                     MicaOptInt divisor_override, MicaTensor* grad_input) {
  const TensorRef grad(grad_output), out(grad_input);
  if (out.numel() == 0) return;
  const PlaneMap map = GradientMap(call, grad_output, grad_input, kSpatial);
  std::vector<Windows> windows;
  for (int d = 0; d < kSpatial; ++d) {
    Windows w{out.size(d - kSpatial), grad.size(d - kSpatial)};
    w.size = At(kernel_size, d, 1);
    w.stride = At(stride, d, w.size);
    w.padding = At(padding, d, 0);
    w.step = map.steps[d];
    windows.push_back(w);
  }
  const bool padded = count_include_pad != 0;
  Key key("average");
  key.Add(padded).Add(divisor_override.has).Add(divisor_override.has ? divisor_override.value : 0);
  Run(map, windows, key,
      (padded ? Define("PADDED", "1") : "") + (divisor_override.has ? Define("OVERRIDDEN", "1") : ""),
      divisor_override.has ? divisor_override.value : 1);
}

template <int kSpatial>
void AdaptiveAvgPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*,
                             MicaTensor* grad_input) {
  const TensorRef grad(grad_output), out(grad_input);
  if (out.numel() == 0) return;
  const PlaneMap map = GradientMap(call, grad_output, grad_input, kSpatial);
  std::vector<Windows> windows;
  for (int d = 0; d < kSpatial; ++d) {
    Windows w{out.size(d - kSpatial), grad.size(d - kSpatial)};
    w.step = map.steps[d];
    windows.push_back(w);
  }
  Run(map, windows, Key("adaptive average"), Define("ADAPTIVE", "1"), 1);
}

// `self` is (.., channels * places of a window, windows).
inline void Col2im(const MicaCall* call, MicaTensor* self, MicaIntSpan, MicaIntSpan kernel_size,
                   MicaIntSpan dilation, MicaIntSpan padding, MicaIntSpan stride, MicaTensor* out) {
  const TensorRef columns(self), image(out);
  if (columns.dtype() == MICA_BOOL) throw plugin::NotImplemented();
  if (image.numel() == 0) return;
  PlaneMap map(call, self, out, columns.dtype(), 2, nullptr);
  std::vector<Windows> windows(2);
  int64_t step = 1;
  for (int d = 2; d-- > 0;) {
    Windows& w = windows[static_cast<size_t>(d)];
    w.in = image.size(d - 2);
    w.size = At(kernel_size, d, 1);
    w.stride = At(stride, d, 1);
    w.padding = At(padding, d, 0);
    w.dilation = At(dilation, d, 1);
    w.out = (w.in + 2 * w.padding - w.dilation * (w.size - 1) - 1) / w.stride + 1;
    w.step = step;
    step *= w.out;
  }
  windows[1].tap_step = step;
  windows[0].tap_step = step * windows[1].size;
  map.data_plane = step * windows[0].size * windows[1].size;
  Run(map, windows, Key("columns"), Define("COLUMNS", "1"), 1);
}

inline void RegisterUnpooling(plugin::Registrar& registrar) {
  registrar.Kernel<&MaxPoolBackward<2>>("max_pool2d_with_indices_backward.grad_input");
  registrar.Kernel<&MaxPoolBackward<3>>("max_pool3d_with_indices_backward.grad_input");
  registrar.Kernel<&AvgPoolBackward<2>>("avg_pool2d_backward.grad_input");
  registrar.Kernel<&AvgPoolBackward<3>>("avg_pool3d_backward.grad_input");
  registrar.Kernel<&AdaptiveAvgPoolBackward<2>>("_adaptive_avg_pool2d_backward.out");
  registrar.Kernel<&AdaptiveAvgPoolBackward<3>>("_adaptive_avg_pool3d_backward.out");
  registrar.Kernel<&Col2im>("col2im.out");
}

}  // namespace unpooling
}  // namespace kit
}  // namespace mica
