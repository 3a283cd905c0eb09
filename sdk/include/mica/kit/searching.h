// searchsorted: a binary search for each value; see kernels/search.cl.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {
namespace searching {

using plugin::TensorRef;

// A tensor's elements one behind the other: its own memory, or a copy.
class Dense {
 public:
  Dense(const MicaCall* call, const MicaTensor* tensor, bool filled) : call_(call), tensor_(tensor) {
    const TensorRef t(tensor);
    data_ = t.data<void>();
    if (t.contiguous()) return;
    room_ = std::make_unique<Workspace>(call, t.numel() * t.itemsize());
    data_ = room_->data();
    if (filled) pointwise::CopyToDense(call, data_, t.dtype(), tensor);
  }
  void* data() const { return data_; }
  // Into the tensor what was written to data().
  void Deliver() const {
    if (room_) pointwise::CopyFromDense(call_, tensor_, data_);
  }

 private:
  const MicaCall* call_;
  const MicaTensor* tensor_;
  std::unique_ptr<Workspace> room_;
  void* data_;
};

inline void SearchSorted(const MicaCall* call, MicaTensor* sorted_sequence, MicaTensor* self, int32_t,
                         int32_t right, MicaStr side, MicaTensor* sorter, MicaTensor* out) {
  const TensorRef lines(sorted_sequence), values(self), to(out);
  const Device& device = DeviceOf(call);
  const int32_t dtype = lines.dtype();
  CheckDtype(device, dtype);
  if (values.dtype() != dtype || lines.ndim() == 0 || (to.dtype() != MICA_I64 && to.dtype() != MICA_I32) ||
      (sorter && DtypeOf(sorter) != MICA_I64))
    throw plugin::NotImplemented();
  const int64_t count = values.numel();
  if (count == 0) return;
  const bool is_right = right != 0 || (side.size == 5 && std::string(side.data, 5) == "right");
  Key key("search");
  key.Add(dtype).Add(is_right).Add(to.dtype());
  const Kernel& kernel = FindKernel(device, key, "search", call->name, [&] {
    const std::string suffix = Suffix(dtype);
    return LanesText(device, {LaneDtype(dtype), 1}, false) + Define("E", "E_" + suffix) +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, 1)") + (is_right ? Define("RIGHT", "1") : "") +
           Define("OUT", to.dtype() == MICA_I32 ? "int" : "long") + kSearchText;
  });
  const Dense from(call, sorted_sequence, true), wanted(call, self, true), found(call, out, false);
  std::optional<Dense> order;
  std::optional<Raise> raise;
  if (sorter) {
    order.emplace(call, sorter, true);
    raise.emplace(call, LateError{MICA_ERROR_INDEX, "An index of `sorter` is out of bounds.", ""});
  }
  {
    const auto number = [](int64_t n) { return static_cast<uint64_t>(n); };
    Launch launch(call, kernel);
    launch.Pointer(from.data()).Pointer(wanted.data()).Pointer(order ? order->data() : nullptr);
    launch.Pointer(found.data()).Value(number(lines.size(-1)));
    launch.Value(number(lines.ndim() == 1 ? count : values.size(-1))).Value(number(count));
    launch.Pointer(raise ? raise->word() : nullptr).Run(count, 64);
  }
  found.Deliver();
  if (raise) raise->Check();
}

inline void RegisterSearching(plugin::Registrar& registrar) {
  registrar.Kernel<&SearchSorted>("searchsorted.Tensor_out");
}

}  // namespace searching
}  // namespace kit
}  // namespace mica
