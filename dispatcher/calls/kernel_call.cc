#include "dispatcher/calls/kernel_call.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/in_place.h"
#include "dispatcher/calls/placement.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/calls/write_check.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/late_errors.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/registration/earlier_schema.h"
#include "dispatcher/tables/fallback.h"

namespace mica {
namespace {

std::atomic<int> g_num_threads{0};

const MicaHost* const g_host = HostTable();

// One call: the arguments of the functional form, and the outputs that are ready.
struct Work {
  const StructuredContext& c;
  const MicaValue* args;
  int64_t n;
  TensorSpan outs;
  Device device;
  MicaCall call;

  MicaTensor* const* pointers() const { return reinterpret_cast<MicaTensor* const*>(outs.data()); }
};

bool AllEmpty(TensorSpan outs) {
  for (int64_t i = 0; i < outs.size(); ++i)
    if (outs[i].numel() != 0) return false;
  return !outs.empty();
}

// The boxed arguments of an out form: those of the functional form, then the outputs. For kernels that take
// them so, and those of an earlier schema.
class OutArguments {
 public:
  OutArguments(const MicaValue* args, int64_t n, TensorSpan outs) : size_(n + outs.size()) {
    if (size_ > kRoom) many_ = std::make_unique<MicaValue[]>(static_cast<size_t>(size_));
    data_ = many_ ? many_.get() : room_;
    MicaValue* end = std::copy_n(args, n, data_);
    for (const Tensor& out : outs) *end++ = AbiType<const Tensor&>::Box(out.impl());
  }
  const MicaValue* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  static constexpr int64_t kRoom = 16;
  int64_t size_;
  MicaValue* data_;
  std::unique_ptr<MicaValue[]> many_;
  MicaValue room_[kRoom];
};

// The backend's own kernel.
__attribute__((noinline)) MicaStatus CallOwn(Work& w) {
  const LocalArguments local(w.args, w.n, w.device, w.call.compute_dtype, false);
  MicaValue unused[4];
  const StructuredContext* next = &w.c;
  if (w.c.leaf && !w.c.earlier) {
    const MicaStatus status =
        w.c.out->adapters->call_leaf(w.c.leaf, &w.call, local.data(), w.n, w.pointers(), unused);
    next = w.c.replaced_leaf;
    if (!next || !Refused(status)) return status;
  }
  const OutArguments full(local.data(), w.n, w.outs);
  return CallLeaf(*next, *w.c.out, w.call, full.data(), full.size(), unused, 0);
}

// That of the class.
inline MicaStatus CallClass(Work& w, const MicaValue* args) {
  return CallClassKernels(w.c, w.call, args, w.n, w.pointers(), w.outs.size());
}
__attribute__((noinline)) MicaStatus CallClassOnDevice(Work& w) {
  const LocalArguments local(w.args, w.n, w.device, w.call.compute_dtype, true);
  return CallClass(w, local.data());
}

__attribute__((noinline)) MicaStatus CallPortable(const Work& w) {
  if (w.c.portable && w.c.out) {
    MicaValue unused[4];
    return w.c.out->adapters->call_leaf(w.c.portable, &w.call, w.args, w.n, w.pointers(), unused);
  }
  return w.c.portable_class ? w.c.portable_class(&w.call, w.args, w.n, w.pointers(), w.outs.size())
                            : BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
}

// The kernels of a call in turn, until one takes it: the backend's own, that of the
// class, and the portable ones.
__attribute__((always_inline)) inline MicaStatus CallKernels(Work& w) {
  const ExcludeGuard below_layers(keys::kAboveBackends);  // for operators that a kernel calls
  MicaStatus status = BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
  if (w.c.leaf || w.c.leaf_boxed) status = CallOwn(w);
  if (Refused(status) && w.c.class_fn)
    status = w.device.backend > keys::kMeta ? CallClassOnDevice(w) : CallClass(w, w.args);
  if (Refused(status)) status = CallPortable(w);
  return status;
}

// Of the arguments, those that are outputs too: kernels that are held to their schemas may write them alone.
uint64_t Written(const Work& w) {
  uint64_t written = 0;
  for (int64_t i = 0; i < w.n; ++i)
    for (const Tensor& out : w.outs)
      if (w.args[i].tag == MICA_VALUE_TENSOR && w.args[i].u.tensor &&
          Tensor::Ref(w.args[i].u.tensor).impl()->storage == out.impl()->storage)
        written |= uint64_t{1} << i;
  return written;
}

// On a device, and where kernels are held to their schemas.
__attribute__((noinline)) MicaStatus CallWatched(Work& w, const Operator& op) {
  if (w.device.backend > keys::kMeta) RaiseLate(w.device);  // first: of a lost device nothing is asked
  const DeviceGuard current(w.device);
  const WriteCheck check(w.args, w.n, ChecksWrites() ? Written(w) : 0);
  const bool refused =
      w.device.backend > keys::kMeta && !Objection(*w.c.functional, w.args, w.n, w.device).empty();
  const MicaStatus status = refused ? BareStatus(MICA_ERROR_NOT_IMPLEMENTED) : CallKernels(w);
  if (w.device.backend > keys::kMeta && !status) Launched(w.device, w.call.name, w.call.stream);
  check.Verify(op, nullptr, 0);
  return status;
}

[[noreturn]] void ThrowRefused(const Work& w) {
  const int32_t dtype = w.call.compute_dtype;
  MICA_THROW(kNotImplemented, "No kernel of ", w.c.functional->name, " supports this call on the device (",
             w.outs.empty() ? "" : w.device.ToString(), ") with the dtype (",
             dtype >= 0 ? Name(static_cast<DType>(dtype)) : "none",
             "); move the tensors to a device or dtype that has one.");
}

inline MicaCall CallOf(const StructuredContext& c, int32_t compute_dtype, Device device) {
  MicaCall call;
  call.struct_size = sizeof(MicaCall);
  call.host = g_host;
  call.context = c.kernel_context;
  call.compute_dtype = compute_dtype;
  call.num_threads = NumThreads();
  call.program = nullptr;
  call.name = c.functional->name;
  call.device_index = device.index;
  call.reserved = 0;
  call.stream = 0;
  if (device.backend > keys::kMeta) [[unlikely]]
    call.stream = CurrentStream(device);
  return call;
}

}  // namespace

void SetNumThreads(int n) { g_num_threads.store(n, std::memory_order_relaxed); }
int NumThreads() {
  const int n = g_num_threads.load(std::memory_order_relaxed);
  if (__builtin_expect(n != 0, 1)) return n;
  SetNumThreads(DefaultNumThreads());
  return g_num_threads.load(std::memory_order_relaxed);
}

MicaCall MakeCall(const StructuredContext& c, int32_t compute_dtype, Device device) {
  return CallOf(c, compute_dtype, device);
}

const MicaProgram* ProgramFor(const OperatorSpec& functional, int32_t compute_dtype) {
  if (compute_dtype < 0) return AnyProgram(functional);
  return functional.programs[static_cast<int>(Kind(static_cast<DType>(compute_dtype)))];
}

bool RunKernel(const StructuredContext& c, const Operator& op, int32_t compute_dtype, const MicaValue* args,
               TensorSpan outs) {
  if (AllEmpty(outs)) return true;
  const Device device = outs.empty() ? Device{} : outs[0].device();
  Work w{c, args, c.functional->num_functional_args, outs, device, CallOf(c, compute_dtype, device)};
  w.call.program = ProgramFor(*c.functional, compute_dtype);
  const bool watched = device.backend > keys::kMeta || ChecksWrites();
  const MicaStatus status = __builtin_expect(watched, 0) ? CallWatched(w, op) : CallKernels(w);
  if (__builtin_expect(status == nullptr, 1)) return true;
  if (device.backend > keys::kMeta) {
    if (!Refused(status)) RaiseOfKernel(device, status);
    return false;
  }
  if (!Refused(status)) ThrowStatus(status);
  ThrowRefused(w);
}

void RunWithoutKernel(const StructuredContext& c, const Operator& op, KeySet keys, const MicaValue* args,
                      int64_t n, MicaValue* results) {
  if (c.composite)
    op.spec().adapters->call_slot({c.composite, nullptr}, keys, args, results);
  else if (c.decomposition)
    c.decomposition->fn(*c.decomposition, op, keys, args, n, results);
  else
    RunOnCpu({}, op, keys, args, n, results);
}

}  // namespace mica
