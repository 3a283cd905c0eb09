#include "dispatcher/plugins/host.h"

#include <sched.h>
#include <algorithm>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <mica/memory.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/calls/boxed_results.h"
#include "dispatcher/calls/kernel_call.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/devices/graphs.h"
#include "dispatcher/devices/opaque.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/layers/layers_extension.h"
#include "dispatcher/plugins/settings.h"
#include "dispatcher/plugins/status.h"
#include "dispatcher/registration/earlier_schema.h"
#include "dispatcher/registration/extensions.h"
#include "dispatcher/registration/vendor_operators.h"
#include "schema/object.h"
#include "tensor/allocator.h"
#include "tensor/generator.h"
#include "tensor/shape.h"

namespace mica {
namespace {

std::atomic<void (*)(std::string_view)> g_warn{nullptr};
std::atomic<bool (*)()> g_interrupt{nullptr};
std::atomic<void* (*)()> g_release{nullptr};
std::atomic<void (*)(void*)> g_take{nullptr};
struct HeldWarnings {
  bool hold = false;
  std::vector<std::string> messages;
};
thread_local HeldWarnings t_held;

MicaStatus StatusCreate(int64_t code, MicaStr message, const char* file, int64_t line) {
  return MakeStatus(static_cast<ErrorKind>(code), TextOf(message), file, static_cast<int>(line));
}
void TensorRetain(MicaTensor* t) {
  if (t) static_cast<TensorImpl*>(t)->Retain();
}
void TensorRelease(MicaTensor* t) {
  if (t) static_cast<TensorImpl*>(t)->Release();
}

// What a plugin must hand to a function of the table.
template <typename T>
T* Handed(T* pointer, const char* function, const char* argument) {
  MICA_CHECK_VALUE(pointer, "A plugin calls `", function, "` of the host and gives NULL as `", argument,
                   "`.");
  return pointer;
}
IntSpan Handed(MicaIntSpan span, const char* function, const char* argument) {
  MICA_CHECK_VALUE(span.size >= 0, "A plugin calls `", function, "` of the host and gives ", span.size,
                   " as the number of `", argument, "`.");
  if (span.size > 0) Handed(span.data, function, argument);
  return {span.data, span.size};
}
Device HandedDevice(MicaDevice device, const char* function) {
  MICA_CHECK_VALUE(device.backend >= 0 && device.backend < BackendNameCount() && device.index >= 0,
                   "A plugin calls `", function, "` of the host for a device (", device.backend, ", ",
                   device.index, "): there are ", BackendNameCount(), " backends, numbered from 0.");
  return Device::FromAbi(device);
}
int64_t HandedCount(int64_t count, const char* function) {
  MICA_CHECK_VALUE(count >= 0, "A plugin calls `", function, "` of the host for ", count, " numbers.");
  return count;
}

template <typename F>
MicaTensorResult TensorResult(F&& f) {
  MicaTensorResult r{nullptr, nullptr};
  r.status = CatchAll([&] { r.value = f().release(); });
  return r;
}
DType CheckedDType(int32_t dtype) {
  MICA_CHECK_VALUE(dtype >= 0 && dtype < kDTypeCount, "The dtype (", dtype,
                   ") given by a plugin is not one of the ", kDTypeCount, " dtypes.");
  return static_cast<DType>(dtype);
}
MicaTensorResult TensorEmpty(MicaIntSpan sizes, int32_t dtype, MicaDevice device, int32_t format) {
  return TensorResult([&] {
    return EmptyTensor(Handed(sizes, "tensor_empty", "sizes"), CheckedDType(dtype),
                       HandedDevice(device, "tensor_empty"), static_cast<MemoryFormat>(format));
  });
}
MicaTensorResult TensorAsStrided(MicaTensor* self, MicaIntSpan sizes, MicaIntSpan strides,
                                 int64_t byte_offset) {
  return TensorResult([&] {
    Handed(self, "tensor_as_strided", "self");
    return MakeView(Tensor::Ref(self), Handed(sizes, "tensor_as_strided", "sizes"),
                    Handed(strides, "tensor_as_strided", "strides"), byte_offset);
  });
}
MicaTensorResult TensorFromMemory(void* data, MicaIntSpan sizes, MicaIntSpan strides, int32_t dtype,
                                  MicaDevice device, void (*deleter)(void*), void* context) {
  return TensorResult([&] {
    const DType d = CheckedDType(dtype);
    const IntSpan shape = Handed(sizes, "tensor_from_memory", "sizes");
    const Dims given = strides.size < 0 ? ContiguousStrides(shape)
                                        : ToDims(Handed(strides, "tensor_from_memory", "strides"));
    const Device place = HandedDevice(device, "tensor_from_memory");
    int64_t last = CheckedNumel(shape) == 0 ? -1 : 0;
    for (int64_t i = 0; i < shape.size() && last >= 0; ++i)
      last += (shape[i] - 1) * given[static_cast<size_t>(i)];
    Storage s = Storage::FromMemory(data, (last + 1) * ItemSize(d), place, deleter, context);
    return Tensor::Steal(TensorImpl::Make(std::move(s), 0, shape, given, d));
  });
}
MicaStatus TensorResize(MicaTensor* self, MicaIntSpan sizes) {
  return CatchAll([&] {
    Handed(self, "tensor_resize", "self");
    const IntSpan shape = Handed(sizes, "tensor_resize", "sizes");
    ResizeTensor(Tensor::Ref(self), shape, ContiguousStrides(shape), false);
  });
}
void TensorListFree(MicaTensor* const* list) { FreeTensorList(list); }
MicaTensorResult TensorOpaque(MicaIntSpan sizes, int32_t dtype, MicaDevice device, MicaObject* payload) {
  return TensorResult([&] {
    return MakeOpaque(Handed(sizes, "tensor_opaque", "sizes"), CheckedDType(dtype), Device::FromAbi(device),
                      payload);
  });
}
MicaStatus TensorPayload(MicaTensor* t, const MicaObjectType* type, MicaObject** out) {
  return CatchAll([&] {
    Handed(t, "tensor_payload", "t");
    *Handed(out, "tensor_payload", "out") = PayloadOf(Tensor::Ref(t), type);
  });
}

MicaTensor** TensorListCreate(int64_t size) {
  try {
    return NewTensorList(size);
  } catch (...) {
    return nullptr;
  }
}
MicaStatus Allocate(MicaDevice device, int64_t size, uint64_t stream, void** out) {
  return CatchAll([&] {
    Handed(out, "allocate", "out");
    *out = AllocatorFor(HandedDevice(device, "allocate")).AllocateUnsized(size, stream);
  });
}
void Free(MicaDevice device, void* data) { AllocatorFor(Device::FromAbi(device)).FreeUnsized(data); }
MicaStatus RecordStream(MicaTensor* t, uint64_t stream) {
  return CatchAll([&] {
    Handed(t, "record_stream", "t");
    mica::RecordStream(Tensor::Ref(t), stream);
  });
}
MicaStatus HostCurrentStream(MicaDevice device, uint64_t* out) {
  return CatchAll([&] {
    Handed(out, "current_stream", "out");
    *out = CurrentStream(HandedDevice(device, "current_stream"));
  });
}
MicaStatus HostExchangeStream(MicaDevice device, uint64_t stream, uint64_t* previous) {
  return CatchAll([&] {
    Handed(previous, "exchange_stream", "previous");
    *previous = ExchangeStream(HandedDevice(device, "exchange_stream"), stream);
  });
}

void ParallelFor(int64_t begin, int64_t end, int64_t grain, void (*body)(void*, int64_t, int64_t),
                 void* context) {
  if (const HostParallelFor f = GetParallelFor())
    f(begin, end, grain, body, context);
  else if (begin < end)
    body(context, begin, end);
}
int32_t HostNumThreads() { return NumThreads(); }

Generator& GeneratorOrDefault(MicaGenerator* g, MicaDevice device) {
  return g ? *Generator::FromAbi(g) : DefaultGenerator(Device::FromAbi(device));
}
// Numbers that the host makes, or whose place it knows, would be the same at each replay.
void RefuseRecorded(Device device, const char* function) {
  MICA_CHECK_IMPLEMENTED(
      !RecordingOn(device), "The plugin of the device (", device.ToString(), ") draws random numbers with `",
      function,
      "` of the host, which cannot be recorded into a graph; its kernels must take them with "
      "`random_words`. Draw them before the recording.");
}
PhiloxGenerator& PhiloxOf(Generator& generator) {
  auto* philox = dynamic_cast<PhiloxGenerator*>(&generator);
  MICA_CHECK_TYPE(philox, "The generator (", generator.algorithm(), " on ", generator.device().ToString(),
                  ") is no philox4x32-10, so that no part of its stream can be set aside; take its words "
                  "with random_u32.");
  return *philox;
}
// Fills `out` by `fill`, a member function of Generator, for the function of this name.
template <typename T>
MicaStatus RandomBits(const char* function, void (Generator::*fill)(T*, int64_t), MicaGenerator* g,
                      MicaDevice device, T* out, int64_t count) {
  return CatchAll([&] {
    RefuseRecorded(HandedDevice(device, function), function);
    if (HandedCount(count, function) > 0) Handed(out, function, "out");
    Generator& generator = GeneratorOrDefault(g, device);
    std::lock_guard lock(generator.mutex());
    (generator.*fill)(out, count);
  });
}
MicaStatus RandomU32(MicaGenerator* g, MicaDevice device, uint32_t* out, int64_t count) {
  return RandomBits("random_u32", &Generator::Fill32, g, device, out, count);
}
MicaStatus RandomU64(MicaGenerator* g, MicaDevice device, uint64_t* out, int64_t count) {
  return RandomBits("random_u64", &Generator::Fill64, g, device, out, count);
}
MicaStatus RandomPhilox(MicaGenerator* g, MicaDevice device, int64_t count, uint64_t* seed,
                        uint64_t* offset) {
  return CatchAll([&] {
    RefuseRecorded(HandedDevice(device, "random_philox"), "random_philox");
    HandedCount(count, "random_philox");
    Handed(seed, "random_philox", "seed");
    Handed(offset, "random_philox", "offset");
    PhiloxGenerator& philox = PhiloxOf(GeneratorOrDefault(g, device));
    std::lock_guard lock(philox.mutex());
    std::tie(*seed, *offset) = philox.SetAside(count);
  });
}
MicaStatus RandomWords(MicaGenerator* g, MicaDevice device, int64_t count, MicaRandomWords* out) {
  return CatchAll([&] {
    const Device place = HandedDevice(device, "random_words");
    HandedCount(count, "random_words");
    Handed(out, "random_words", "out");
    PhiloxGenerator& philox = PhiloxOf(GeneratorOrDefault(g, device));
    out->recorded = nullptr;
    if (RecordedWork* recording = RecordingOn(place)) {
      RecordedWords& words = recording->WordsOf(philox);
      out->seed = 0;
      out->offset = static_cast<uint64_t>(words.count);
      out->recorded = static_cast<const uint64_t*>(words.place.data());
      words.count += count;
      words.most = std::max(words.most, words.count);
      return;
    }
    std::lock_guard lock(philox.mutex());
    std::tie(out->seed, out->offset) = philox.SetAside(count);
  });
}
void ObjectRelease(MicaObject* object) {
  if (!ReleaseObject(object))
    HostWarn(absl::StrCat("An object of the type (", std::string(TypeNameOf(object)),
                          ") is released that has no reference left: somebody released one that was not "
                          "theirs. Nothing is done."));
}
MicaStatus OpFind(MicaStr name, void** handle) {
  return CatchAll([&] {
    if (name.size != 0) Handed(name.data, "op_find", "name");
    *Handed(handle, "op_find", "handle") = &GetOperator(TextOf(name));
  });
}
// By an earlier schema of the operator, which had fewer arguments; or by no schema that it had.
__attribute__((noinline)) void CallByEarlier(const Operator& op, const MicaValue* args, int64_t n,
                                             MicaValue* results, int64_t num_results) {
  const EarlierSchema* const earlier = EarlierCall(op, n);
  if (!earlier) RefuseBoxedCall(op, n, num_results);
  const absl::InlinedVector<MicaValue, 8> filled = Filled(*earlier, args);
  const auto all = static_cast<int64_t>(filled.size());
  CheckBoxedCall(op, all, num_results);
  op.CallBoxed(filled.data(), all, results);
}
// Out of the way of calls: arguments and results may be NULL where there are none.
__attribute__((noinline)) void CheckHanded(void* handle, const MicaValue* args, int64_t n, MicaValue* results,
                                           int64_t num_results) {
  Handed(handle, "op_call_boxed", "handle");
  if (n > 0) Handed(args, "op_call_boxed", "args");
  if (num_results > 0) Handed(results, "op_call_boxed", "results");
}
MicaStatus OpCallBoxed(void* handle, const MicaValue* args, int64_t n, MicaValue* results,
                       int64_t num_results) {
  return CatchAll([&] {
    if (__builtin_expect(!handle || !args || !results, 0)) CheckHanded(handle, args, n, results, num_results);
    const auto& op = *static_cast<const Operator*>(handle);
    if (__builtin_expect(n != op.spec().num_args, 0)) return CallByEarlier(op, args, n, results, num_results);
    CheckBoxedCall(op, n, num_results);
    op.CallBoxed(args, n, results);
  });
}
int32_t HostInterrupted() { return Interrupted() ? 1 : 0; }
void Warn(MicaStr message) { HostWarn(TextOf(message)); }
int32_t HostBackendIndex(MicaStr name) { return BackendIndex(TextOf(name)); }
MicaStr HostBackendName(int32_t index) {
  if (index < 0 || index >= BackendNameCount()) return {"", 0};
  const std::string& name = BackendName(index);
  return {name.data(), static_cast<int64_t>(name.size())};
}

MicaStatus EmptyCache(MicaDevice device) {
  return CatchAll([&] { AllocatorFor(Device::FromAbi(device)).EmptyCache(); });
}
MicaStatus KeepWhole(MicaStr backend) {
  return CatchAll([&] { KeepBlocksWhole(RegisterBackendName(TextOf(backend))); });
}
const MicaMemory* MemoryExtension() {
  static constexpr MicaMemory table = {{sizeof(MicaMemory), 1, 1}, &EmptyCache, &KeepWhole};
  return &table;
}

// The host's extensions, and those that plugins offer each other, by name.
const void* FindExtension(MicaStr name, uint32_t minimum_minor) {
  // T2 is locked to one version: the minor is compared for equality.
  if (TextOf(name) == MICA_LAYERS_EXTENSION)
    return minimum_minor == MICA_LAYERS_MINOR ? LayersExtension() : nullptr;
  if (TextOf(name) == MICA_OPERATORS_EXTENSION)
    return minimum_minor <= MICA_OPERATORS_MINOR ? OperatorsExtension() : nullptr;
  if (TextOf(name) == MICA_SETTINGS_EXTENSION) return minimum_minor <= 1 ? SettingsExtension() : nullptr;
  if (TextOf(name) == MICA_MEMORY_EXTENSION) return minimum_minor <= 1 ? MemoryExtension() : nullptr;
  if (TextOf(name) == "mica.set_parallel_for") return reinterpret_cast<const void*>(&SetParallelFor);
  const void* found = nullptr;
  const MicaStatus failed = CatchAll([&] { found = PublicExtension(TextOf(name), minimum_minor); });
  DropStatus(failed);
  return found;
}

}  // namespace

std::mutex& RegistrationMutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}

namespace {

template <typename F>
MicaStatus WithScope(void* context, F&& f) {
  return CatchAll([&] {
    Scope& scope = *static_cast<Scope*>(context);
    const std::lock_guard lock(RegistrationMutex());
    MICA_CHECK(scope.open(), "Plugin (", scope.name(),
               ") registers after its init has returned; a registrar is valid during init only.");
    const absl::Status s = f(scope);
    MICA_CHECK(s.ok(), std::string(s.message()));
  });
}
// A string or record that the plugin must give.
template <typename T>
const T* Given(const T* pointer, const char* what) {
  MICA_CHECK(pointer, "A plugin registers ", what, " and gives NULL.");
  return pointer;
}
MicaStatus RegisterDevice(void* context, const char* name, const MicaDeviceTable* table) {
  return WithScope(context, [&](Scope& s) { return s.AddDevice(name, table); });
}
MicaStatus RegisterKernel(void* context, const MicaKernelRecord* r) {
  return WithScope(context, [&](Scope& s) { return s.AddLeaf(*Given(r, "a kernel record")); });
}
MicaStatus RegisterClass(void* context, const MicaClassRecord* r) {
  return WithScope(context, [&](Scope& s) { return s.AddClass(*Given(r, "a class record")); });
}
MicaStatus RegisterExtension(void* context, const char* name, const MicaTable* table) {
  return WithScope(context, [&](Scope& s) {
    return s.AddExtension(Given(name, "an extension's name"), Given(table, "an extension's table"));
  });
}
MicaStatus DefineOperator(void* context, const char* text) {
  return WithScope(context, [&](Scope& s) { return s.Define(Given(text, "a schema"), {}); });
}

}  // namespace

const MicaHost* HostTable() {
  static const MicaHost table = {sizeof(MicaHost),
                                 MICA_ABI_MAJOR,
                                 MICA_ABI_MINOR,
                                 "0.1.0",
                                 &StatusCreate,
                                 &TensorRetain,
                                 &TensorRelease,
                                 &TensorEmpty,
                                 &TensorAsStrided,
                                 &TensorFromMemory,
                                 &TensorResize,
                                 &TensorListCreate,
                                 &Allocate,
                                 &Free,
                                 &RecordStream,
                                 &HostCurrentStream,
                                 &HostExchangeStream,
                                 &ParallelFor,
                                 &HostNumThreads,
                                 &RandomU32,
                                 &RandomU64,
                                 &RandomPhilox,
                                 &OpFind,
                                 &OpCallBoxed,
                                 &HostInterrupted,
                                 &Warn,
                                 &HostBackendIndex,
                                 &HostBackendName,
                                 &FindExtension,
                                 &RandomWords,
                                 &RetainObject,
                                 &ObjectRelease,
                                 &TensorListFree,
                                 &TensorOpaque,
                                 &TensorPayload};
  return &table;
}

MicaRegistrar MakeRegistrar(Scope* scope) {
  return {sizeof(MicaRegistrar), MICA_ABI_MAJOR,  MICA_ABI_MINOR,    scope, &RegisterDevice, &RegisterKernel,
          &RegisterClass,        &DefineOperator, &RegisterExtension};
}

void SetWarningHandler(void (*handler)(std::string_view)) { g_warn.store(handler); }
void HostWarn(std::string_view message) {
  if (t_held.hold)
    t_held.messages.emplace_back(message);
  else if (auto* handler = g_warn.load())
    handler(message);
  else
    std::fprintf(stderr, "mica: warning: %.*s\n", static_cast<int>(message.size()), message.data());
}
void HoldWarnings(bool hold) {
  t_held.hold = hold;
  if (hold) return;
  for (const std::string& message : std::exchange(t_held.messages, {})) HostWarn(message);
}

void SetInterpreterLock(InterpreterLock lock) {
  g_take.store(lock.take);
  g_release.store(lock.release);
}
InterpreterRelease::InterpreterRelease() {
  auto* release = g_release.load();
  held_ = release ? release() : nullptr;
}
InterpreterRelease::~InterpreterRelease() {
  if (held_) g_take.load()(held_);
}

void SetInterruptCheck(bool (*check)()) { g_interrupt.store(check); }
bool Interrupted() {
  auto* check = g_interrupt.load(std::memory_order_relaxed);
  return check && check();
}
void CheckInterrupted() { MICA_CHECK_KIND(kInterrupted, !Interrupted(), "The call was interrupted."); }
void CheckInterrupted(std::unique_lock<std::mutex>& held) {
  held.unlock();
  CheckInterrupted();
  held.lock();
}

int DefaultNumThreads() {
  int n = 0;
  if (const char* text = std::getenv("OMP_NUM_THREADS"); text && absl::SimpleAtoi(text, &n) && n > 0)
    return n;
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace mica
