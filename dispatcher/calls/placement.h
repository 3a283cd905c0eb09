// Where a call runs: one device for all its tensors, save 0-d CPU tensors beside
// tensors of a device in pointwise operators, which count as numbers.
//
// Used by the host's own kernels before a backend's kernel runs; calls on the CPU
// pay nothing for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dispatcher/tables/operator.h"
#include "tensor/scalar.h"
#include "tensor/tensor.h"

namespace mica {

inline bool OnPluginDevice(KeySet keys) { return (keys & keys::kBackends).highest() > keys::kMeta; }

// The device that a call with these keys runs on: of the first tensor of the
// backend, else of a device argument, else the thread's default or number 0.
Device PlaceOfCall(KeySet keys, const MicaValue* args, int64_t n);

// Throws a kRuntime Error that names both devices, both arguments and the fix when
// a tensor is elsewhere.
void CheckOnePlace(const Operator& op, const MicaValue* args, int64_t n, Device place);

// Why the device says that its kernels do not take this call (`supports` of its
// table), in its own words; "" where it says nothing against it. `args` are all of
// the call's.
std::string Objection(const OperatorSpec& spec, const MicaValue* args, int64_t n, Device place);

// The arguments as a device's kernel gets them: a 0-d CPU tensor becomes a number
// (for class kernels) or a 0-d tensor of the device in `dtype` (MICA_DTYPE_NONE:
// its own). Borrows `args`; copies only where there is such a tensor.
class LocalArguments {
 public:
  LocalArguments(const MicaValue* args, int64_t n, Device place, int32_t dtype, bool as_numbers)
      : args_(args) {
    if (place.backend > keys::kMeta) [[unlikely]]
      Localize(n, place, dtype, as_numbers);
  }
  const MicaValue* data() const { return changed_ ? changed_->args.data() : args_; }

 private:
  struct Changed {
    std::vector<MicaValue> args;
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<Scalar>> numbers;  // addresses stay: a complex number is borrowed
  };
  void Localize(int64_t n, Device place, int32_t dtype, bool as_numbers);

  const MicaValue* args_;
  std::unique_ptr<Changed> changed_;
};

}  // namespace mica
