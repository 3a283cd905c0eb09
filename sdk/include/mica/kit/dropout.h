// native_dropout in one kernel: the draw, the mask and the elements that stay.
//
// The words are bernoulli_'s, so that a seed gives the mask that the operator's decomposition gives; that is
// what runs for memory with gaps or in another order, and outside training.
#pragma once

#include <utility>

#include <mica/kit/normalization.h>
#include <mica/kit/random.h>

namespace mica {
namespace kit {
namespace random {

inline void NativeDropout(const MicaCall* call, MicaTensor* input, double p, MicaOptInt train,
                          MicaValue* results) {
  const TensorRef x(input);
  const Device& device = DeviceOf(call);
  const int64_t count = x.numel();
  const bool trains = !train.has || train.value != 0;
  if (!trains || !(p >= 0 && p < 1) || count == 0 || !x.contiguous()) throw plugin::NotImplemented();
  FloatsOnly(input);
  CheckDtype(device, x.dtype());
  const int32_t lane = LaneDtype(x.dtype());
  const bool small = count < (int64_t{1} << 31);
  Key key("dropout");
  const int64_t items = (count + 3) / 4;
  const Counters counters(call, nullptr, items);
  key.Add(x.dtype()).Add(small).Add(counters.recorded != nullptr);
  const Kernel& kernel = FindKernel(device, key, "dropout", call->name, [&] {
    const std::string suffix = Suffix(x.dtype());
    return LanesText(device, {lane, 1}, small) + Define("ELEMENT", "E_" + suffix) +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, 1)") +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, 1)") + counters.Text() + kDropoutText;
  });
  plugin::OwnedTensor out = normalization::Like(call, input);
  plugin::OwnedTensor mask = plugin::OwnedTensor::Empty(x.sizes(), x.ndim(), MICA_BOOL, PlaceOf(call));
  Launch launch(call, kernel);
  launch.Pointer(x.data<void>()).Pointer(out.get()->dl.data).Pointer(mask.get()->dl.data);
  launch.Value(ThresholdOf(1 - p));
  SetLane(launch, lane, 1 / (1 - p));
  launch.Value(counters.seed).Value(counters.first).Index(count, small);
  counters.Place(launch);
  launch.Run(items, device.is_wide ? 256 : 64);
  normalization::Give(&results[0], std::move(out));
  normalization::Give(&results[1], std::move(mask));
}

inline void RegisterDropout(plugin::Registrar& registrar) {
  registrar.Kernel<&NativeDropout>("native_dropout");
}

}  // namespace random
}  // namespace kit
}  // namespace mica
