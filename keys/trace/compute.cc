// What a recorded call computes: the operator in the parent frame, or its shapes alone.
#include "absl/container/inlined_vector.h"
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/calls/thread_state.h"
#include "keys/trace/trace.h"

namespace mica::trace {
namespace {

using frames::ForEachTensor;
using frames::Frame;

// Where a fake result shows itself: where the call says, where its tensors are (numbers on
// the CPU follow the others), or on the default device.
Device PlaceOf(const MicaValue* args, int64_t n, bool& replace) {
  const Tensor* first = nullptr;
  const MicaValue* said = nullptr;
  ForEachTensor(args, n, [&](const Tensor& t, int64_t) {
    if (!first || (first->ndim() == 0 && first->device().is_cpu())) first = &t;
  });
  for (int64_t i = 0; i < n; ++i)
    if (args[i].tag == MICA_VALUE_DEVICE) said = &args[i];
  replace = said || !first;
  if (said) return Device::FromAbi(said->u.device);
  return first ? first->device() : CurrentThread().default_device;
}

void Show(const MicaValue& result, const Frame& frame, Device device) {
  const auto one = [&](const Tensor& t) {
    if (t.defined() && frames::Own(t, frame) && t.device() != device) frames::ShowDevice(t, device);
  };
  if (result.tag == MICA_VALUE_TENSOR) one(Tensor::Ref(result.u.tensor));
  if (result.tag != MICA_VALUE_TENSORS) return;
  for (int64_t i = 0; i < result.u.tensors.size; ++i) one(Tensor::Ref(result.u.tensors.data[i]));
}

}  // namespace

Tensor OnMeta(const Tensor& t) {
  Device meta;
  meta.backend = 1;
  return EmptyStrided(t.sizes(), t.strides(), t.dtype(), meta);
}

void Compute(const Operator& op, const Tape& tape, const MicaValue* args, int64_t n, MicaValue* results) {
  if (!tape.fake) return frames::CallInParent(op, args, n, results);
  const Frame& frame = *frames::Current();
  bool replace = false;
  const Device place = PlaceOf(args, n, replace);
  absl::InlinedVector<MicaValue, 12> on_meta(args, args + n);
  Device meta;
  meta.backend = 1;
  const schema::FunctionSchema& schema = op.schema();
  for (size_t i = 0; replace && i < schema.arguments.size(); ++i) {
    if (!schema.arguments[i].type.unwrapped().is(schema::TypeKind::kDevice)) continue;
    on_meta[i].tag = MICA_VALUE_DEVICE;
    on_meta[i].u.device = meta.ToAbi();
  }
  try {
    frames::CallInParent(op, on_meta.data(), n, results);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kNotImplemented) throw;
    MICA_THROW(kNotImplemented, "Operator ", op.spec().name,
               " cannot be traced with fake tensors: its result depends on values, or it has no shape "
               "function (",
               e.message(), "). Trace it with tracing_mode=\"real\", or choose a form of fixed shape.");
  }
  for (size_t i = 0; i < schema.returns.size() && op.spec().form == OpForm::kFunctional; ++i)
    Show(results[i], frame, place);
}

// What the operator says of tensors without values is what it says of all: else it read them.
void ComputeNumber(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results) {
  try {
    const frames::LeaveFrame left;
    const frames::ReplacedArguments shapes(args, n, [](const Tensor& t) { return OnMeta(t); });
    op.CallBoxed(shapes.data(), n, results);
  } catch (const Error&) {
    MICA_THROW(kRuntime, "Operator ", op.spec().name,
               " makes a Python number or truth value of the values of a tensor inside of a trace, and the "
               "graph would keep the value of this one run. Compute it with tensors (mica.where instead of "
               "`if`), or outside of the traced function.");
  }
}

}  // namespace mica::trace
