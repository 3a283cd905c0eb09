// The gradient of max_pool2d_with_indices on dense planes; windows themselves are a class.
#pragma once

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace pooling {

using plugin::TensorRef;

// As in pooling.cl.
struct Pool {
  int32_t height, width, rows, columns;
  int32_t window[2], stride[2], padding[2], dilation[2];
};

inline int32_t At(const MicaIntSpan& span, int d, int64_t otherwise) {
  return static_cast<int32_t>(span.size == 0 ? otherwise : span.data[span.size == 1 ? 0 : d]);
}

inline Pool MakePool(const TensorRef& in, const TensorRef& out, const MicaIntSpan& window,
                     const MicaIntSpan& stride, const MicaIntSpan& padding, const MicaIntSpan& dilation) {
  Pool p = {};
  p.height = static_cast<int32_t>(in.size(-2));
  p.width = static_cast<int32_t>(in.size(-1));
  p.rows = static_cast<int32_t>(out.size(-2));
  p.columns = static_cast<int32_t>(out.size(-1));
  for (int d = 0; d < 2; ++d) {
    p.window[d] = At(window, d, 1);
    p.stride[d] = At(stride, d, p.window[d]);
    p.padding[d] = At(padding, d, 0);
    p.dilation[d] = At(dilation, d, 1);
  }
  return p;
}

inline const Kernel& FindPool(const MicaCall* call, int32_t dtype, const char* entry) {
  const Device& device = DeviceOf(call);
  CheckDtype(device, dtype);
  Key key("pooling");
  key.Add(dtype);
  return FindKernel(device, key, entry, call->name, [&] {
    const std::string suffix = Suffix(dtype);
    return LanesText(device, {LaneDtype(dtype), 1}, true) + Define("E", "E_" + suffix) +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, 1)") +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, 1)") + kPoolingText;
  });
}

// Others run on the CPU: planes in another order than memory are rare here.
inline void NeedDense(const TensorRef& t) {
  if (!t.contiguous()) throw plugin::NotImplemented();
}

inline void MaxPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaIntSpan window,
                            MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t,
                            MicaTensor* indices, MicaTensor* grad_input) {
  const TensorRef grad(grad_output), where(indices), out(grad_input);
  for (const TensorRef& t : {grad, where, out}) NeedDense(t);
  if (grad.dtype() < MICA_F16) throw plugin::NotImplemented();
  const Kernel& kernel = FindPool(call, grad.dtype(), "max_pool_backward");
  Launch launch(call, kernel);
  launch.Pointer(grad.data<void>()).Pointer(where.data<void>()).Pointer(out.data<void>());
  launch.Value(MakePool(out, grad, window, stride, padding, dilation));
  launch.Value<uint64_t>(static_cast<uint64_t>(out.numel())).Run(out.numel(), 64);
}

inline void RegisterPooling(plugin::Registrar& registrar) {
  registrar.Kernel<&MaxPoolBackward>("max_pool2d_with_indices_backward.grad_input");
}

}  // namespace pooling
}  // namespace kit
}  // namespace mica
