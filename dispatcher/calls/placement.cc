#include "dispatcher/calls/placement.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/devices/device_copy.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/plugins/status.h"
#include "tensor/error.h"

namespace mica {
namespace {

// f(tensor, argument number, number in its list or -1) for every tensor given, until
// it returns true.
template <typename F>
void ForEachTensor(const MicaValue* args, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) {
    if (args[i].tag == MICA_VALUE_TENSOR && args[i].u.tensor) {
      if (f(Tensor::Ref(args[i].u.tensor), i, -1)) return;
    } else if (args[i].tag == MICA_VALUE_TENSORS) {
      for (int64_t j = 0; j < args[i].u.tensors.size; ++j)
        if (args[i].u.tensors.data[j] && f(Tensor::Ref(args[i].u.tensors.data[j]), i, j)) return;
    }
  }
}

bool IsNumber(const Tensor& t) { return t.device().is_cpu() && t.ndim() == 0; }

Scalar Read(const Tensor& t) {
  static Operator& read = GetOperator("mica::_local_scalar_dense");
  const MicaValue arg = AbiType<const Tensor&>::Box(t.impl());
  MicaValue result;
  read.RedispatchBoxed(KeySet::Of(keys::kCpu), &arg, 1, &result);
  return AbiReturn<Scalar>::FromValues(&result);
}

}  // namespace

Device PlaceOfCall(KeySet keys, const MicaValue* args, int64_t n) {
  const int backend = (keys & keys::kBackends).highest();
  if (backend <= keys::kMeta) return {static_cast<int16_t>(backend), 0};
  Device place = CurrentThread().default_device;
  if (place.backend != backend) place = {static_cast<int16_t>(backend), 0};
  for (int64_t i = 0; i < n; ++i)
    if (args[i].tag == MICA_VALUE_DEVICE && args[i].u.device.backend == backend)
      place = Device::FromAbi(args[i].u.device);
  ForEachTensor(args, n, [&](const Tensor& t, int64_t, int64_t) {
    if (t.device().backend != backend) return false;
    place = t.device();
    return true;
  });
  return place;
}

void CheckOnePlace(const Operator& op, const MicaValue* args, int64_t n, Device place) {
  const bool takes_numbers = op.spec().op_class == OpClass::kPointwise;
  const auto name_of = [&](int64_t i, int64_t element) {
    const std::string& name = op.schema().arguments[static_cast<size_t>(i)].name;
    return element < 0 ? name : absl::StrCat(name, "[", element, "]");
  };
  ForEachTensor(args, n, [&](const Tensor& t, int64_t i, int64_t element) {
    if (t.device() == place || (takes_numbers && IsNumber(t))) return false;
    std::string there;
    ForEachTensor(args, n, [&](const Tensor& other, int64_t j, int64_t other_element) {
      if (other.device() != place) return false;
      there = name_of(j, other_element);
      return true;
    });
    const std::string here = name_of(i, element);
    MICA_THROW(kRuntime, "Expected all tensors to be on the same device, but `", here, "` is on the device (",
               t.device().ToString(), ") and `", there.empty() ? "the result" : there, "` on (",
               place.ToString(), "): move one first, as in ", here, ".to('", place.ToString(), "').");
  });
}

std::string Objection(const OperatorSpec& spec, const MicaValue* args, int64_t n, Device place) {
  const MicaDeviceTable* table = place.backend > keys::kMeta ? LiveDeviceTable(place.backend) : nullptr;
  if (!table || !table->supports) return "";
  const char* name = spec.functional_name ? spec.functional_name : spec.name;
  if (spec.form == OpForm::kOut) n -= spec.num_outputs;
  int32_t answer = 1;
  MicaStr why{"", 0};
  ThrowIfError(table->supports(table->context, {name, static_cast<int64_t>(std::strlen(name))}, args, n,
                               &answer, &why));
  if (answer != 0) return "";
  return why.size > 0 ? std::string(why.data, static_cast<size_t>(why.size)) : "it gives no reason";
}

void LocalArguments::Localize(int64_t n, Device place, int32_t dtype, bool as_numbers) {
  ForEachTensor(args_, n, [&](const Tensor& t, int64_t i, int64_t) {
    if (args_[i].tag != MICA_VALUE_TENSOR || !IsNumber(t)) return false;
    if (!changed_) changed_ = std::make_unique<Changed>(Changed{{args_, args_ + n}, {}, {}});
    MicaValue& local = changed_->args[static_cast<size_t>(i)];
    if (as_numbers) {
      const auto& number = changed_->numbers.emplace_back(std::make_unique<Scalar>(Read(t)));
      local = AbiType<const Scalar&>::Box(number->ToAbi());
      return false;
    }
    const DType wanted = dtype == MICA_DTYPE_NONE ? t.dtype() : static_cast<DType>(dtype);
    const Tensor& there = changed_->tensors.emplace_back(EmptyTensor({}, wanted, place));
    CopyValues(there, t);
    local = AbiType<const Tensor&>::Box(there.impl());
    return false;
  });
}

}  // namespace mica
