// What a recorded call computes: the operator in the parent frame, or its shapes alone.
#include <string>
#include <vector>

#include "keys/trace/trace.h"

namespace mica::trace {
namespace {

constexpr MicaDevice kMeta = {1, 0};

bool IsCpu(MicaDevice d) { return d.backend == 0; }
bool IsSame(MicaDevice a, MicaDevice b) { return a.backend == b.backend && a.index == b.index; }

// Where a fake result shows itself: where the call says, where its tensors are (numbers on
// the CPU follow the others), or on the default device.
MicaDevice PlaceOf(const layer::Call& call, bool& replace) {
  Tensor first;
  const MicaValue* said = nullptr;
  call.ForEachTensor([&](MicaTensor* t, int64_t) {
    if (!first.defined() || (first.ndim() == 0 && IsCpu(first.device()))) first = Tensor::Borrow(t);
  });
  for (int64_t i = 0; i < call.size(); ++i)
    if (call[i].tag == MICA_VALUE_DEVICE) said = &call[i];
  replace = said || !first.defined();
  if (said) return said->u.device;
  return first.defined() ? first.device() : layer::Table()->default_device();
}

void Show(const MicaValue& result, const MicaFrame& frame, MicaDevice device) {
  const auto one = [&](MicaTensor* raw) {
    const Tensor t = Tensor::Borrow(raw);
    if (layer::OwnOf(t, frame) && !IsSame(t.device(), device))
      layer::Check(layer::Table()->show_device(raw, device));
  };
  if (result.tag == MICA_VALUE_TENSOR) one(result.u.tensor);
  if (result.tag != MICA_VALUE_TENSORS) return;
  for (int64_t i = 0; i < result.u.tensors.size; ++i) one(result.u.tensors.data[i]);
}

}  // namespace

Tensor OnMeta(const Tensor& t) {
  return layer::Taken(layer::Table()->tensor_empty_strided(
      {t.sizes().data(), t.ndim()}, {t.strides().data(), t.ndim()}, static_cast<int32_t>(t.dtype()), kMeta));
}

void Compute(layer::Call& call, const Tape& tape) {
  if (!tape.fake) return call.InParent();
  const MicaOperatorInfo& info = call.info();
  const MicaFrame frame = layer::CurrentFrame();
  bool replace = false;
  const MicaDevice place = PlaceOf(call, replace);
  std::vector<MicaValue> on_meta(call.args(), call.args() + call.size());
  for (int32_t i = 0; replace && i < info.num_args; ++i) {
    if (info.args[i].tag != MICA_VALUE_DEVICE) continue;
    on_meta[static_cast<size_t>(i)].tag = MICA_VALUE_DEVICE;
    on_meta[static_cast<size_t>(i)].u.device = kMeta;
  }
  try {
    call.InParent(on_meta.data());
  } catch (const plugin::Error& e) {
    if (e.code != MICA_ERROR_NOT_IMPLEMENTED) throw;
    formula::Throw(MICA_ERROR_NOT_IMPLEMENTED, "Operator ", info.name,
                   " cannot be traced with fake tensors: its result depends on values, or it has no shape "
                   "function (",
                   e.what(), "). Trace it with tracing_mode=\"real\", or choose a form of fixed shape.");
  }
  for (int64_t i = 0; i < call.num_results() && info.form == MICA_FORM_FUNCTIONAL; ++i)
    Show(call.results()[i], frame, place);
}

// What the operator says of tensors without values is what it says of all: else it read them.
void ComputeNumber(layer::Call& call) {
  try {
    const layer::LeaveFrame left;
    const layer::ReplacedArguments shapes(call.args(), call.size(),
                                          [](const Tensor& t) { return OnMeta(t); });
    call.Again(shapes.data(), call.results());
  } catch (const plugin::Error&) {
    formula::Throw(
        MICA_ERROR_RUNTIME, "Operator ", call.info().name,
        " makes a Python number or truth value of the values of a tensor, or an object, inside of a trace, "
        "and the graph would keep the value of this one run. Compute it with tensors (mica.where instead of "
        "`if`), or outside of the traced function.");
  }
}

}  // namespace mica::trace
