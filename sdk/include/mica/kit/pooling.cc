// The gradient of max_pool2d_with_indices on dense planes; windows themselves are a class.
#include "kernels.h"

namespace opencl_device {
namespace {

using mica::plugin::TensorRef;

// As in pooling.cl.
struct Pool {
  cl_int height, width, rows, columns;
  cl_int window[2], stride[2], padding[2], dilation[2];
};

cl_int At(const MicaIntSpan& span, int d, int64_t otherwise) {
  return static_cast<cl_int>(span.size == 0 ? otherwise : span.data[span.size == 1 ? 0 : d]);
}

Pool MakePool(const TensorRef& in, const TensorRef& out, const MicaIntSpan& window, const MicaIntSpan& stride,
              const MicaIntSpan& padding, const MicaIntSpan& dilation) {
  Pool p = {};
  p.height = static_cast<cl_int>(in.size(-2));
  p.width = static_cast<cl_int>(in.size(-1));
  p.rows = static_cast<cl_int>(out.size(-2));
  p.columns = static_cast<cl_int>(out.size(-1));
  for (int d = 0; d < 2; ++d) {
    p.window[d] = At(window, d, 1);
    p.stride[d] = At(stride, d, p.window[d]);
    p.padding[d] = At(padding, d, 0);
    p.dilation[d] = At(dilation, d, 1);
  }
  return p;
}

Kernel& FindPool(const MicaCall* call, int32_t dtype, const char* entry) {
  Device& device = DeviceOf(call);
  CheckDtype(device, dtype);
  Key key("pooling");
  key.Add(dtype);
  return FindKernel(device, key, entry, call->name, [&] {
    const std::string suffix = Suffix(dtype);
    return LanesText(device, {LaneDtype(dtype), 1}, true) + Define("E", "E_" + suffix) +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, 1)") +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, 1)") + std::string(EmbeddedSource("pooling.cl"));
  });
}

// Others run on the CPU: planes in another order than memory are rare here.
void NeedDense(const TensorRef& t) {
  if (!t.contiguous()) throw mica::plugin::NotImplemented();
}

void MaxPoolBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor*, MicaIntSpan window,
                     MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t,
                     MicaTensor* indices, MicaTensor* grad_input) {
  const TensorRef grad(grad_output), where(indices), out(grad_input);
  for (const TensorRef& t : {grad, where, out}) NeedDense(t);
  if (grad.dtype() < MICA_F16) throw mica::plugin::NotImplemented();
  Kernel& kernel = FindPool(call, grad.dtype(), "max_pool_backward");
  Launch launch(call, kernel);
  launch.Pointer(grad.data<void>()).Pointer(where.data<void>()).Pointer(out.data<void>());
  launch.Value(MakePool(out, grad, window, stride, padding, dilation));
  launch.Value<cl_ulong>(static_cast<uint64_t>(out.numel())).Run(out.numel(), 64);
}

}  // namespace

void RegisterPooling(mica::plugin::Registrar& registrar) {
  registrar.Kernel<&MaxPoolBackward>("max_pool2d_with_indices_backward.grad_input");
}

}  // namespace opencl_device
