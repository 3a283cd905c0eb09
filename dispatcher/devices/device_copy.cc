#include "dispatcher/devices/device_copy.h"

#include <mutex>
#include <vector>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/kernel_call.h"
#include "dispatcher/devices/device_memory.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/graphs.h"
#include "dispatcher/devices/late_errors.h"
#include "dispatcher/devices/pinned_memory.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/registration/earlier_schema.h"
#include "dispatcher/tables/dispatcher.h"
#include "tensor/shape.h"

namespace mica {
namespace {

bool SameLayout(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}
bool Dense(const Tensor& t) { return IsNonOverlappingAndDense(t.sizes(), t.strides()); }
int64_t Bytes(const Tensor& t) { return t.numel() * t.itemsize(); }

// The elements from the first to the last that `t` reaches.
int64_t Span(const Tensor& t) {
  int64_t last = 0;
  for (int64_t i = 0; i < t.ndim(); ++i) last += (t.sizes()[i] - 1) * t.strides()[i];
  return last + 1;
}

// A CPU tensor over a copy of all memory between the first and the last element
// of `t`, with its strides.
Tensor HostImage(const Tensor& t) {
  const int64_t count = Span(t);
  Storage memory = Storage::Allocate(count * t.itemsize(), Device{});
  CopyBytes(memory->data(), Device{}, t.data(), t.device(), count * t.itemsize());
  return Tensor::Steal(TensorImpl::Make(std::move(memory), 0, t.sizes(), t.strides(), t.dtype()));
}

void FromHost(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (!Dense(to)) {
    const Tensor whole = EmptyTensor(to.sizes(), to.dtype(), to.device());
    FromHost(whole, from, false);
    return CopyValues(to, whole);
  }
  Tensor staged = from;
  const bool own = !SameLayout(to, from);
  if (own) {
    staged = EmptyStrided(to.sizes(), to.strides(), to.dtype(), Device{});
    CopyValues(staged, from);
  }
  if (!non_blocking) return CopyBytes(to.data(), to.device(), staged.data(), Device{}, Bytes(to));
  const bool pinned = IsPinned(staged);
  if (!pinned && RecordingOn(to.device()))
    RefuseWhileRecording(to.device(), "A copy from memory of the host that is not pinned");
  if (pinned && !own)
    CopyBytesLater(to, staged);
  else
    CopyBytesAside(to, staged, own);
}

void ToHost(const Tensor& to, const Tensor& from, bool non_blocking) {
  if (!Dense(from)) {
    // Gaps cross with the rest unless the device compacts a sparse view first.
    if (Span(from) <= 4 * from.numel()) return CopyValues(to, HostImage(from));
    const Tensor whole = EmptyTensor(from.sizes(), from.dtype(), from.device());
    CopyValues(whole, from);
    return ToHost(to, whole, false);
  }
  if (!SameLayout(to, from)) {
    const Tensor staged = EmptyStrided(from.sizes(), from.strides(), from.dtype(), Device{});
    CopyBytes(staged.data(), Device{}, from.data(), from.device(), Bytes(from));
    return CopyValues(to, staged);
  }
  // Memory that is not pinned may be written by the program before the copy comes.
  if (non_blocking && IsPinned(to))
    CopyBytesLater(to, from);
  else
    CopyBytes(to.data(), Device{}, from.data(), from.device(), Bytes(to));
}

// Whether a kernel of the device's own copied: its copy_, or its class kernel for
// pointwise operators on the program of `fill.Tensor`, which stores what it loads.
bool CopiedByKernel(const StructuredContext& own, const Tensor& to, const Tensor& from) {
  RaiseLate(to.device());
  const MicaValue args[3] = {AbiType<const Tensor&>::Box(to.impl()), AbiType<const Tensor&>::Box(from.impl()),
                             AbiType<bool>::Box(0)};
  MicaStatus status = BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
  const DeviceGuard current(to.device());
  if (own.leaf || own.leaf_boxed) {
    MicaCall call = MakeCall(own, MICA_DTYPE_NONE, to.device());
    MicaValue unused;
    status = CallLeaf(own, *own.functional, call, args, 3, &unused, 0);
  } else if (own.class_fn) {
    static const OperatorSpec& store = GetOperator("mica::fill.Tensor").spec();
    MicaCall call = MakeCall(own, static_cast<int32_t>(from.dtype()), to.device());
    call.name = store.name;
    call.program = store.programs[static_cast<int>(Kind(from.dtype()))];
    MicaTensor* const out = to.impl();
    if (call.program) status = CallClassKernels(own, call, args, 2, &out, 1);
  }
  if (Refused(status)) return false;
  RaiseOfKernel(to.device(), status);
  Launched(to.device(), "copy_", CurrentStream(to.device()));
  return true;
}

void Within(const StructuredContext& own, const Tensor& to, const Tensor& from) {
  const bool apart = GetOverlap(to, from) == Overlap::kNo;
  if (SameLayout(to, from) && Dense(to) && (apart || to.data() == from.data())) {
    if (apart) CopyBytes(to.data(), to.device(), from.data(), from.device(), Bytes(to));
    return;
  }
  if (apart && CopiedByKernel(own, to, from)) return;
  const Tensor values = Dense(from) ? OnHost(from) : HostImage(from);
  if (Dense(to)) return FromHost(to, values, false);
  const Tensor image = HostImage(to);
  CopyValues(image, values);
  CopyBytes(to.data(), to.device(), image.data(), Device{}, Span(to) * to.itemsize());
}

void Across(const Tensor& to, const Tensor& from) {
  if (Dense(to) && SameLayout(to, from) &&
      CopyBetweenPeers(to.data(), to.device(), from.data(), from.device(), Bytes(to)))
    return;
  FromHost(to, OnHost(from), false);
}

// copy_(self, src, non_blocking) where one of the two is on a device with a table.
void RunCopy(const BoxedKernel& k, const Operator& op, KeySet, const MicaValue* args, int64_t, MicaValue*) {
  const auto& own = *static_cast<const StructuredContext*>(k.context);
  const Tensor& to = Tensor::Ref(args[0].u.tensor);
  Tensor from = Tensor::Borrow(args[1].u.tensor);
  const bool non_blocking = args[2].u.i != 0;
  CheckWritable(to, op.spec());
  MICA_CHECK(CanExpandTo(from.sizes(), to.sizes()),
             "The expanded size of the tensor must match the existing size: the shape ",
             ShapeText(from.sizes()), " of `src` does not broadcast to the shape ", ShapeText(to.sizes()),
             " of `self`.");
  CheckNoInternalOverlap(to, "self");
  MICA_CHECK(!from.device().is_meta() || to.device().is_meta(), "A tensor on meta has no values, so that (",
             from.ToString(), ") cannot be copied into (", to.ToString(), ").");
  if (to.numel() != 0 && !to.device().is_meta()) {
    if (from.sizes() != to.sizes() && to.device() != from.device()) from = OnHost(from);
    if (from.device().is_cpu() && to.device().is_cpu())
      CopyValues(to, from);
    else if (from.device() == to.device())
      Within(own, to, from);
    else if (from.device().is_cpu())
      FromHost(to, from, non_blocking);
    else if (to.device().is_cpu())
      ToHost(to, from, non_blocking);
    else
      Across(to, from);
  }
  MarkWritten(to, op.spec());
}

// _local_scalar_dense(self) -> Scalar
void RunReadElement(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t,
                    MicaValue* results) {
  const Tensor host = OnHost(Tensor::Ref(args[0].u.tensor));
  const MicaValue arg = AbiType<const Tensor&>::Box(host.impl());
  op.RedispatchBoxed(KeySet::Of(keys::kCpu), &arg, 1, results);
}

}  // namespace

void CopyValues(const Tensor& destination, const Tensor& source, bool non_blocking) {
  static Operator& copy = GetOperator("mica::copy_");
  const MicaValue args[3] = {AbiType<const Tensor&>::Box(destination.impl()),
                             AbiType<const Tensor&>::Box(source.impl()), AbiType<bool>::Box(non_blocking)};
  MicaValue result;
  // The values move below every layer: the written tensor's history is the outer
  // call's concern.
  copy.RedispatchBoxed(copy.KeysOf(args, 3) & keys::kBackends, args, 3, &result);
}

Tensor OnHost(const Tensor& t) { return OnDevice(t, Device{}); }

Tensor OnDevice(const Tensor& t, Device device) {
  if (t.device() == device) return t;
  const Layouted layout{t.sizes(), t.strides()};
  const Tensor there = EmptyStrided(
      t.sizes(), ElementwiseStrides(t.sizes(), mica::Span<Layouted>(&layout, 1)), t.dtype(), device);
  CopyValues(there, t);
  return there;
}

BoxedFunction HostKernel(std::string_view op) {
  if (op == "mica::copy_") return &RunCopy;
  return op == "mica::_local_scalar_dense" ? &RunReadElement : nullptr;
}

}  // namespace mica
