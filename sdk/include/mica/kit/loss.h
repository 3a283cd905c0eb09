// nll_loss_forward and nll_loss_backward.
#pragma once

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace loss {

using plugin::TensorRef;

// [rows, classes] with strides; a vector is one row.
struct Rows {
  int64_t rows, classes, row_stride, class_stride;
  explicit Rows(const TensorRef& t)
      : rows(t.ndim() == 1 ? 1 : t.size(0)),
        classes(t.size(-1)),
        row_stride(t.ndim() == 1 ? 0 : t.stride(0)),
        class_stride(t.stride(-1)) {}
};

inline int64_t StrideOf(const TensorRef& t) { return t.ndim() == 0 ? 0 : t.stride(0); }

inline const Kernel& FindLoss(const MicaCall* call, int32_t dtype, const char* entry) {
  const Device& device = DeviceOf(call);
  CheckDtype(device, dtype);
  if (dtype < MICA_F16) throw plugin::NotImplemented();
  Key key("loss");
  key.Add(dtype);
  return FindKernel(device, key, entry, call->name, [&] {
    const std::string suffix = Suffix(dtype);
    return LanesText(device, {LaneDtype(dtype), 1}, true) + Define("E", "E_" + suffix) +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, 1)") +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, 1)") + kLossText;
  });
}

inline void CheckTypes(const TensorRef& self, const TensorRef& target, const MicaTensor* weight) {
  if (target.dtype() != MICA_I64 || (weight && DtypeOf(weight) != self.dtype()))
    throw plugin::NotImplemented();
}

// The error of kernels that write the element's number + 1.
inline LateError ClassOutOfBounds(int64_t classes) {
  return {MICA_ERROR_INDEX, "The class of element (",
          ") of `target` is out of bounds for the number of classes (" + std::to_string(classes) + ").", -1};
}

inline void Forward(const MicaCall* call, MicaTensor* self, MicaTensor* target, MicaTensor* weight,
                    int64_t reduction, int64_t ignore_index, MicaTensor* output, MicaTensor* total_weight) {
  const TensorRef in(self), classes(target), out(output);
  CheckTypes(in, classes, weight);
  const Rows rows(in);
  const Kernel& kernel = FindLoss(call, in.dtype(), "nll_forward");
  const Raise raise(call, ClassOutOfBounds(rows.classes));
  {
    Launch launch(call, kernel);
    launch.Pointer(in.data<void>()).Value<int64_t>(rows.row_stride).Value<int64_t>(rows.class_stride);
    launch.Pointer(classes.data<void>()).Value<int64_t>(StrideOf(classes));
    launch.Pointer(weight ? TensorRef(weight).data<void>() : nullptr);
    launch.Value<int64_t>(weight ? TensorRef(weight).stride(0) : 0);
    launch.Pointer(out.data<void>()).Value<int64_t>(StrideOf(out));
    launch.Pointer(TensorRef(total_weight).data<void>());
    launch.Value(static_cast<int32_t>(rows.rows)).Value(static_cast<int32_t>(rows.classes));
    launch.Value(static_cast<int32_t>(reduction)).Value<int64_t>(ignore_index).Pointer(raise.word());
    launch.Run(64, 64);
  }
  raise.Check();
}

inline void Backward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* self, MicaTensor* target,
                     MicaTensor* weight, int64_t reduction, int64_t ignore_index, MicaTensor* total_weight,
                     MicaTensor* grad_input) {
  const TensorRef grad(grad_output), classes(target), out(grad_input);
  CheckTypes(TensorRef(self), classes, weight);
  const Rows rows(out);
  const Kernel& kernel = FindLoss(call, out.dtype(), "nll_backward");
  Launch launch(call, kernel);
  launch.Pointer(grad.data<void>()).Value<int64_t>(StrideOf(grad));
  launch.Pointer(classes.data<void>()).Value<int64_t>(StrideOf(classes));
  launch.Pointer(weight ? TensorRef(weight).data<void>() : nullptr);
  launch.Value<int64_t>(weight ? TensorRef(weight).stride(0) : 0);
  launch.Pointer(TensorRef(total_weight).data<void>());
  launch.Pointer(out.data<void>()).Value<int64_t>(rows.row_stride).Value<int64_t>(rows.class_stride);
  launch.Value(static_cast<int32_t>(rows.rows)).Value(static_cast<int32_t>(rows.classes));
  launch.Value(static_cast<int32_t>(reduction)).Value<int64_t>(ignore_index);
  launch.Run(rows.rows * rows.classes, 64);
}

inline void RegisterLoss(plugin::Registrar& registrar) {
  registrar.Kernel<&Forward>("nll_loss_forward.output");
  registrar.Kernel<&Backward>("nll_loss_backward.grad_input");
}

}  // namespace loss
}  // namespace kit
}  // namespace mica
