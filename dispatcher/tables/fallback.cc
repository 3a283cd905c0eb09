#include "dispatcher/tables/fallback.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/placement.h"
#include "dispatcher/calls/structured.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/devices/device_copy.h"
#include "dispatcher/devices/graphs.h"
#include "dispatcher/plugins/host.h"
#include "dispatcher/tables/keys.h"
#include "tensor/generator.h"
#include "tensor/shape.h"

namespace mica {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, int64_t> calls;  // by backend and operator
};
Counts& GetCounts() {
  static Counts* counts = new Counts();
  return *counts;
}

std::atomic<int> g_policy{-1};
std::atomic<bool> g_said{false};

void Note(const Operator& op, const MicaValue* args, int64_t n, Device place) {
  const int backend = place.backend;
  int64_t calls;
  {
    Counts& counts = GetCounts();
    std::lock_guard lock(counts.mutex);
    calls = ++counts.calls[{backend, op.spec().name}];
  }
  const FallbackPolicy policy = GetFallbackPolicy();
  if (policy == FallbackPolicy::kAllow) return;
  if (policy != FallbackPolicy::kError && g_said.exchange(true) && policy == FallbackPolicy::kOnce) return;
  const std::string objection = Objection(op.spec(), args, n, place);
  const std::string what = absl::StrCat(
      "Operator ", op.spec().name, " has no kernel for this call on the backend (", KeyName(backend), ")",
      objection.empty() ? "" : absl::StrCat(", which says (", objection, ")"));
  MICA_CHECK_IMPLEMENTED(policy != FallbackPolicy::kError, what,
                         ", and MICA_FALLBACK=error forbids to run it on the CPU; register a kernel with the "
                         "plugin, move the tensors to the CPU, or set mica.set_fallback(\"allow\").");
  const std::string runs = absl::StrCat(what, " and runs on the CPU, with copies there and back.");
  if (policy == FallbackPolicy::kOnce)
    HostWarn(absl::StrCat(runs,
                          " This is said of the first such operator alone: mica.fallback_counts() counts "
                          "all, MICA_FALLBACK=warn names each, =allow none, and =error refuses."));
  else if (calls == 1)
    HostWarn(runs);
}

// The arguments of one call, brought to the CPU, and what must go back.
class HostArguments {
 public:
  HostArguments(const Operator& op, const MicaValue* args, int64_t n, Device place)
      : op_(op), place_(place), values_(args, args + n) {
    const OperatorSpec& spec = op.spec();
    const int64_t first_out = spec.form == OpForm::kOut ? n - spec.num_outputs : n;
    for (int64_t i = 0; i < n; ++i) {
      MicaValue& v = values_[static_cast<size_t>(i)];
      const bool written = (spec.written_args >> i) & 1;
      if (v.tag == MICA_VALUE_TENSOR)
        v.u.tensor = Host(v.u.tensor, written, i >= first_out);
      else if (v.tag == MICA_VALUE_TENSORS)
        v.u.tensors = HostList(v.u.tensors, written);
      else if (v.tag == MICA_VALUE_DEVICE && v.u.device.backend == place.backend)
        v.u.device = Device{}.ToAbi();
      else if (v.tag == MICA_VALUE_NONE && IsGenerator(i))
        v = AbiType<Generator*>::Box(AbiType<Generator*>::To(&DefaultGenerator(place)));
    }
  }

  const MicaValue* data() const { return values_.data(); }

  // Written arguments go back, resized where the operator resized them.
  void WriteBack() {
    for (const Pair& p : pairs_) {
      if (!p.written) continue;
      if (p.host.sizes() != p.device.sizes())
        ResizeTensor(p.device, p.host.sizes(), ContiguousStrides(p.host.sizes()), false);
      CopyValues(p.device, p.host);
      MarkWritten(p.device, op_.spec());
    }
  }

  // A result on the device: the argument that it is, or a copy.
  Tensor ToDevice(const Tensor& result) const {
    if (!result.defined() || !result.device().is_cpu()) return result;
    for (const Pair& p : pairs_)
      if (p.host.is_same(result)) return p.device;
    Tensor there = OnDevice(result, place_);
    if (CurrentThread().inference_mode) there.impl()->set_flag(tensor_flags::kInference, true);
    return there;
  }

 private:
  struct Pair {
    Tensor device, host;
    bool written;
  };

  bool IsGenerator(int64_t i) const {
    const auto& arguments = op_.schema().arguments;
    return static_cast<size_t>(i) < arguments.size() &&
           arguments[static_cast<size_t>(i)].type.unwrapped().is(schema::TypeKind::kGenerator);
  }

  MicaTensor* Host(MicaTensor* t, bool written, bool only_written) {
    const Tensor& device = Tensor::Ref(t);
    if (written) CheckWritable(device, op_.spec());
    if (!t || device.device().is_cpu()) return t;
    for (Pair& p : pairs_) {
      if (!p.device.is_same(device)) continue;
      p.written |= written;
      return p.host.impl();
    }
    Tensor host = only_written ? EmptyTensor(device.sizes(), device.dtype(), Device{}) : OnHost(device);
    pairs_.push_back({device, host, written});
    return host.impl();
  }

  MicaTensorSpan HostList(MicaTensorSpan list, bool written) {
    std::vector<MicaTensor*>& copy = lists_.emplace_back();
    for (int64_t i = 0; i < list.size; ++i)
      copy.push_back(list.data[i] ? Host(list.data[i], written, false) : nullptr);
    return {copy.data(), list.size};
  }

  const Operator& op_;
  const Device place_;
  std::vector<MicaValue> values_;
  std::vector<Pair> pairs_;
  std::deque<std::vector<MicaTensor*>> lists_;  // keeps addresses
};

// Factories without a device argument make their tensors on the CPU meanwhile.
class OnCpuGuard {
 public:
  OnCpuGuard() : saved_(CurrentThread().default_device) { CurrentThread().default_device = Device{}; }
  ~OnCpuGuard() { CurrentThread().default_device = saved_; }
  OnCpuGuard(const OnCpuGuard&) = delete;
  OnCpuGuard& operator=(const OnCpuGuard&) = delete;

 private:
  const Device saved_;
};

}  // namespace

void RunOnCpu(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
              MicaValue* results) {
  const Device place = PlaceOfCall(keys, args, n);
  CheckOnePlace(op, args, n, place);
  if (Recording())
    RefuseWhileRecording(place,
                         absl::StrCat("The operator (", op.spec().name,
                                      "), which has no kernel for this call there and runs on the CPU,")
                             .c_str());
  Note(op, args, n, place);
  HostArguments host(op, args, n, place);
  const size_t num_results = op.schema().returns.size();
  std::vector<MicaValue> raw(num_results + 1);
  {
    const ExcludeGuard layers(keys::kAboveBackends);
    const OnCpuGuard on_cpu;
    op.RedispatchBoxed(KeySet::Of(keys::kCpu), host.data(), n, raw.data());
  }
  host.WriteBack();
  if (op.spec().written_args && op.spec().form != OpForm::kFunctional) return;
  for (size_t i = 0; i < num_results; ++i) {
    results[i] = raw[i];
    if (raw[i].tag == MICA_VALUE_TENSOR) {
      results[i] = OwnedTensorValue(host.ToDevice(TakeTensor(raw[i])));
    } else if (raw[i].tag == MICA_VALUE_TENSORS) {
      std::vector<Tensor> list = TakeTensorList(raw[i].u.tensors);
      for (Tensor& t : list) t = host.ToDevice(t);
      results[i].u.tensors = GiveTensorList(std::move(list));
    }
  }
}

FallbackPolicy ParseFallbackPolicy(std::string_view text) {
  for (const FallbackPolicy p :
       {FallbackPolicy::kOnce, FallbackPolicy::kAllow, FallbackPolicy::kWarn, FallbackPolicy::kError})
    if (text == Name(p)) return p;
  MICA_THROW(kValue, "The fallback policy (", std::string(text),
             ") is unknown; expected once, allow, warn or error.");
}

const char* Name(FallbackPolicy policy) {
  switch (policy) {
    case FallbackPolicy::kOnce:
      return "once";
    case FallbackPolicy::kAllow:
      return "allow";
    case FallbackPolicy::kWarn:
      return "warn";
    case FallbackPolicy::kError:
      return "error";
  }
  return "";
}

FallbackPolicy GetFallbackPolicy() {
  int policy = g_policy.load(std::memory_order_relaxed);
  if (policy < 0) {
    const char* text = std::getenv("MICA_FALLBACK");
    policy = static_cast<int>(text && *text ? ParseFallbackPolicy(text) : FallbackPolicy::kOnce);
    g_policy.store(policy, std::memory_order_relaxed);
  }
  return static_cast<FallbackPolicy>(policy);
}

void SetFallbackPolicy(FallbackPolicy policy) {
  g_policy.store(static_cast<int>(policy), std::memory_order_relaxed);
}

std::vector<FallbackCount> FallbackCounts() {
  Counts& counts = GetCounts();
  std::lock_guard lock(counts.mutex);
  std::vector<FallbackCount> out;
  for (const auto& [key, calls] : counts.calls) out.push_back({BackendName(key.first), key.second, calls});
  return out;
}

bool WasFallbackSaid() { return g_said; }

void ResetFallbackCounts() {
  Counts& counts = GetCounts();
  std::lock_guard lock(counts.mutex);
  counts.calls.clear();
}

}  // namespace mica
