// The C++17 side of the plugin ABI: header-only sugar over <mica/abi.h>.
//
// Use it to write a backend in ordinary C++: MICA_PLUGIN states the manifest and
// makes the two entry symbols and the ELF note; Registrar registers C++ functions
// whose thunks (made at compile time) catch every exception; TensorRef reads a
// tensor's face. Do not use it to reach into Mica: everything a plugin may do
// stands in MicaHost. Cost: a thunk adds a try block and no instructions to the
// path without errors.
//
// Not for several translation units to define MICA_PLUGIN: exactly one does.
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <mica/abi.h>
#include <mica/program.h>
#include <mica/settings.h>
#include <mica/signature.h>

namespace mica {
namespace plugin {

// The host table, set by MICA_PLUGIN's init before anything else runs.
inline const MicaHost*& Host() {
  static const MicaHost* host = nullptr;
  return host;
}

// An error with a code of abi.h; a kernel throws it, its thunk turns it into a
// status. One that came from the host goes back as the status that it was, so that
// nothing of it is lost on its way through a plugin.
class Error : public std::runtime_error {
 public:
  Error(int64_t code, const std::string& message, const char* file = "", int64_t line = 0)
      : std::runtime_error(message), code(code), file(file ? file : ""), line(line) {}
  // Takes the status of a host's function, which is no bare code.
  explicit Error(MicaStatus status)
      : Error(status->code, std::string(status->message, static_cast<size_t>(status->message_length)),
              status->file, status->line) {
    status_ = std::make_shared<Status>(status);
  }
  // The host's status, borrowed; NULL where there is none.
  MicaStatus status() const { return status_ ? status_->status : nullptr; }
  // The same, to give away, once.
  MicaStatus TakeStatus() const { return status_ ? std::exchange(status_->status, nullptr) : nullptr; }
  int64_t code;
  std::string file;  // its own: a status takes its text along when it is destroyed
  int64_t line;

 private:
  struct Status {
    explicit Status(MicaStatus s) : status(s) {}
    Status(const Status&) = delete;
    Status& operator=(const Status&) = delete;
    ~Status() {
      if (status) status->destroy(status);
    }
    MicaStatus status;
  };
  std::shared_ptr<Status> status_;  // exceptions are copied
};

// Thrown by a kernel that does not support the call: its thunk answers NOT_IMPLEMENTED
// bare, and the host asks the next kernel (a portable one).
struct NotImplemented {};

inline MicaStr Str(const char* s) { return MicaStr{s, static_cast<int64_t>(std::strlen(s))}; }
inline MicaStr Str(const std::string& s) { return MicaStr{s.data(), static_cast<int64_t>(s.size())}; }
inline MicaStatus BareStatus(int64_t code) {
  return reinterpret_cast<MicaStatus>(static_cast<uintptr_t>(code));
}

inline MicaStatus MakeStatus(int64_t code, const std::string& message, const char* file, int64_t line) {
  const MicaHost* host = Host();
  return host && host->status_create ? host->status_create(code, Str(message), file, line) : BareStatus(code);
}

#define MICA_PLUGIN_THROW(code, message) throw ::mica::plugin::Error(code, message, __FILE__, __LINE__)
#define MICA_PLUGIN_CHECK(condition, code, message)                            \
  do {                                                                         \
    if (__builtin_expect(!(condition), 0)) MICA_PLUGIN_THROW(code, (message)); \
  } while (0)

inline MicaStatus StatusOfCurrentException() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    if (MicaStatus status = e.TakeStatus()) return status;
    return MakeStatus(e.code, e.what(), e.file.c_str(), e.line);
  } catch (const NotImplemented&) {
    return BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
  } catch (const std::bad_alloc&) {
    return BareStatus(MICA_ERROR_OUT_OF_MEMORY);
  } catch (const std::exception& e) {
    return MakeStatus(MICA_ERROR_RUNTIME, e.what(), "", 0);
  } catch (...) {
    return MakeStatus(MICA_ERROR_INTERNAL, "The plugin threw an object that is no std::exception.", "", 0);
  }
}

// Runs f and returns the status of what it threw; a status passed on by throwing
// is not needed: use Check.
template <typename F>
MicaStatus CatchAll(F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return StatusOfCurrentException();
  }
}

// Throws the error that a status of the host stands for.
inline void Check(MicaStatus status) {
  if (__builtin_expect(status == nullptr, 1)) return;
  const auto bare = reinterpret_cast<uintptr_t>(status);
  if (bare < 4096) throw Error(static_cast<int64_t>(bare), "The host returned an error without a message.");
  throw Error(status);
}

// Reads a tensor's face. Borrowed: valid for the call.
class TensorRef {
 public:
  TensorRef(const MicaTensor* t) : t_(t) {}
  const MicaTensor* get() const { return t_; }
  bool defined() const { return t_ != nullptr; }
  int32_t dtype() const { return static_cast<int32_t>((t_->flags >> MICA_TENSOR_DTYPE_SHIFT) & 0xff); }
  int32_t backend() const { return static_cast<int32_t>((t_->flags >> MICA_TENSOR_BACKEND_SHIFT) & 0xff); }
  int32_t ndim() const { return t_->dl.ndim; }
  int64_t size(int d) const { return t_->dl.shape[d < 0 ? d + t_->dl.ndim : d]; }
  int64_t stride(int d) const { return t_->dl.strides[d < 0 ? d + t_->dl.ndim : d]; }
  const int64_t* sizes() const { return t_->dl.shape; }
  const int64_t* strides() const { return t_->dl.strides; }
  int64_t itemsize() const { return t_->dl.dtype.bits / 8; }
  bool contiguous() const { return (t_->flags & MICA_TENSOR_CONTIGUOUS) != 0; }
  bool channels_last() const { return (t_->flags & MICA_TENSOR_CHANNELS_LAST) != 0; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < t_->dl.ndim; ++i) n *= t_->dl.shape[i];
    return n;
  }
  template <typename T>
  T* data() const {
    return static_cast<T*>(t_->dl.data);
  }

 private:
  const MicaTensor* t_;
};

// A reference that this code owns.
class OwnedTensor {
 public:
  OwnedTensor() = default;
  explicit OwnedTensor(MicaTensor* owned) : t_(owned) {}
  OwnedTensor(OwnedTensor&& o) noexcept : t_(o.t_) { o.t_ = nullptr; }
  OwnedTensor& operator=(OwnedTensor&& o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~OwnedTensor() {
    if (t_) Host()->tensor_release(t_);
  }
  MicaTensor* get() const { return t_; }
  MicaTensor* release() {
    MicaTensor* t = t_;
    t_ = nullptr;
    return t;
  }
  static OwnedTensor Empty(const int64_t* sizes, int64_t ndim, int32_t dtype, MicaDevice device,
                           int32_t format = MICA_CONTIGUOUS) {
    MicaTensorResult r = Host()->tensor_empty(MicaIntSpan{sizes, ndim}, dtype, device, format);
    Check(r.status);
    return OwnedTensor(r.value);
  }

 private:
  MicaTensor* t_ = nullptr;
};

// Thunk<&f>::Call is the C function of an out-form kernel
// `void f(const MicaCall*, abi arguments...)`, with every exception caught.
template <auto kFunction>
struct Thunk;
template <typename... A, void (*kFunction)(const MicaCall*, A...)>
struct Thunk<kFunction> {
  static MicaStatus Call(const MicaCall* call, A... a) noexcept {
    return CatchAll([&] { kFunction(call, a...); });
  }
};
// `MicaTensor* f(const MicaCall*, ...)` returns an owned tensor.
template <typename... A, MicaTensor* (*kFunction)(const MicaCall*, A...)>
struct Thunk<kFunction> {
  static MicaTensorResult Call(const MicaCall* call, A... a) noexcept {
    MicaTensorResult r{nullptr, nullptr};
    r.status = CatchAll([&] { r.value = kFunction(call, a...); });
    return r;
  }
};
// The other single results.
template <typename... A, int64_t (*kFunction)(const MicaCall*, A...)>
struct Thunk<kFunction> {
  static MicaIntResult Call(const MicaCall* call, A... a) noexcept {
    MicaIntResult r{0, nullptr};
    r.status = CatchAll([&] { r.value = kFunction(call, a...); });
    return r;
  }
};
template <typename... A, double (*kFunction)(const MicaCall*, A...)>
struct Thunk<kFunction> {
  static MicaFloatResult Call(const MicaCall* call, A... a) noexcept {
    MicaFloatResult r{0, nullptr};
    r.status = CatchAll([&] { r.value = kFunction(call, a...); });
    return r;
  }
};
// A class kernel.
template <void (*kFunction)(const MicaCall*, const MicaValue*, int64_t, MicaTensor* const*, int64_t)>
struct ClassThunk {
  static MicaStatus Call(const MicaCall* call, const MicaValue* args, int64_t num_args,
                         MicaTensor* const* outputs, int64_t num_outputs) noexcept {
    return CatchAll([&] { kFunction(call, args, num_args, outputs, num_outputs); });
  }
};

// The same over a list of calls.
template <void (*kFunction)(const MicaCall*, const MicaValue*, int64_t, MicaTensor* const*, int64_t, int64_t)>
struct ClassListThunk {
  static MicaStatus Call(const MicaCall* call, const MicaValue* args, int64_t num_args,
                         MicaTensor* const* outputs, int64_t num_outputs, int64_t num_rows) noexcept {
    return CatchAll([&] { kFunction(call, args, num_args, outputs, num_outputs, num_rows); });
  }
};

// A boxed kernel; results are written to `results`, tensors owned by the caller.
template <void (*kFunction)(const MicaCall*, const MicaValue*, int64_t, MicaValue*, int64_t)>
struct BoxedThunk {
  static MicaStatus Call(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaValue* results,
                         int64_t num_results) noexcept {
    return CatchAll([&] { kFunction(call, args, num_args, results, num_results); });
  }
};

// The table that another plugin offers under a name; `Table` begins with a MicaTable. Throws if nobody does,
// or in another major version or an older minor one.
template <class Table>
const Table* Extension(const char* name, uint32_t major, uint32_t minimum_minor) {
  const void* found = Host()->extension(Str(name), minimum_minor);
  const auto* head = static_cast<const MicaTable*>(found);
  if (!head || head->major != major)
    throw Error(MICA_ERROR_RUNTIME,
                std::string("The extension (") + name + ") of version (" + std::to_string(major) + "." +
                    std::to_string(minimum_minor) +
                    ") or later is not there: no enabled plugin offers it, or the one that does is starting "
                    "itself and waits for this call.");
  return static_cast<const Table*>(found);
}

// What a program has set, by a name of <mica/settings.h>. Make one once, when the host is there, as a static
// variable of the function that reads it: a read is a load. `otherwise` is its number under a host that does
// not know the name, or has no settings.
class Setting {
 public:
  Setting(const char* name, int64_t otherwise) : otherwise_(otherwise) {
    if (!Host()) return;
    const void* table = Host()->extension(Str(MICA_SETTINGS_EXTENSION), 0);
    if (table) place_ = static_cast<const MicaSettings*>(table)->find(Str(name));
  }
  int64_t value() const { return place_ ? mica_setting_read(place_) : otherwise_; }

 protected:
  const int64_t* place_ = nullptr;
  int64_t otherwise_;
};

// A setting of the plugin's own, which its users may set: mica.set_plugin_option("acme.npu.fast_math", 1).
// Made in init, so that it is known as soon as the plugin is. `first` is its number where nobody set it.
class Option : public Setting {
 public:
  Option(const char* name, int64_t first) : Setting(name, first) {
    if (!Host() || place_) return;
    const auto* table = static_cast<const MicaSettings*>(Host()->extension(Str(MICA_SETTINGS_EXTENSION), 1));
    if (table) place_ = table->option(Str(name), first);
  }
};

class Registrar {
 public:
  Registrar(const MicaRegistrar* r, const char* backend) : r_(r), backend_(backend) {}
  void Device(const MicaDeviceTable& table) { Check(r_->register_device(r_->context, backend_, &table)); }
  // `name` is the operator's, of the out form ("add.out"); namespace mica if none is given.
  // The kernel is left out, and said, where the operator's schema asks for another function. With a schema's
  // hash, also where the operator has another schema; MICA_KERNEL (signature.h) gives it, and has the
  // compiler check the function.
  template <auto kFunction>
  void Kernel(const char* name, const char* file = __builtin_FILE(), int line = __builtin_LINE(),
              uint64_t schema_hash = 0) {
    MicaKernelRecord k{};
    k.schema_hash = schema_hash;
    k.struct_size = sizeof(k);
    k.name = name;
    k.backend = backend_;
    k.function = reinterpret_cast<MicaFunction>(&Thunk<kFunction>::Call);
    k.file = file;
    k.line = line;
    k.signature = SignatureOf(kFunction);
    Check(r_->register_kernel(r_->context, &k));
  }
  // A kernel for a class; `kListFunction`, if it is given, is one for many calls at once
  // (MicaClassListFunction).
  template <auto kFunction, auto kListFunction = nullptr>
  void Class(const char* class_name, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    MicaClassRecord k{};
    k.struct_size = sizeof(k);
    k.class_name = class_name;
    k.backend = backend_;
    k.function = &ClassThunk<kFunction>::Call;
    if constexpr (!std::is_null_pointer_v<decltype(kListFunction)>)
      k.list_function = &ClassListThunk<kListFunction>::Call;
    k.file = file;
    k.line = line;
    Check(r_->register_class(r_->context, &k));
  }
  // A new operator, "acme::scale(Tensor self, float factor) -> Tensor".
  void Define(const char* schema) { Check(r_->define_operator(r_->context, schema)); }
  // A kernel with boxed arguments, for operators that were defined at run time.
  template <auto kFunction>
  void Boxed(const char* name, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    MicaKernelRecord k{};
    k.struct_size = sizeof(k);
    k.name = name;
    k.backend = backend_;
    k.boxed = &BoxedThunk<kFunction>::Call;
    k.file = file;
    k.line = line;
    Check(r_->register_kernel(r_->context, &k));
  }
  // A table for other plugins: a struct whose first member is a MicaTable, with a name of the plugin's own.
  void Extension(const char* name, const MicaTable* table) {
    if (!MICA_HAS(r_, register_extension)) Check(BareStatus(MICA_ERROR_NOT_IMPLEMENTED));
    Check(r_->register_extension(r_->context, name, table));
  }
  const MicaRegistrar* get() const { return r_; }

 private:
  const MicaRegistrar* r_;
  const char* backend_;
};

}  // namespace plugin
}  // namespace mica

// The manifest as JSON in an ELF note, so that it is read without opening.
#define MICA_PLUGIN_NOTE_(json)                                                             \
  namespace {                                                                               \
  struct MicaNote_ {                                                                        \
    uint32_t name_size, desc_size, type;                                                    \
    char name[8];                                                                           \
    char desc[(sizeof(json) + 3) / 4 * 4];                                                  \
  };                                                                                        \
  __attribute__((section(".note.mica"), aligned(4), used))                                  \
  const MicaNote_ mica_note_ = {5, sizeof(json) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, json}; \
  }
#define MICA_STRING_2_(x) #x
#define MICA_STRING_(x) MICA_STRING_2_(x)

// MICA_PLUGIN("acme.npu", "Acme", "1.0", "avx2,fma", "driver 12", "backend:acme.npu", Init)
// with `void Init(const MicaHost*, const MicaRegistrar*)`, which may throw. All
// strings are literals without quotes or backslashes.
#define MICA_PLUGIN(name_, vendor_, version_, cpu_features_, runtime_, provides_, init_)                    \
  MICA_PLUGIN_NOTE_("{\"name\":\"" name_ "\",\"vendor\":\"" vendor_ "\",\"version\":\"" version_            \
                    "\",\"abi_major\":" MICA_STRING_(MICA_ABI_MAJOR) ",\"abi_minor\":" MICA_STRING_(        \
                        MICA_ABI_MINOR) ",\"cpu_features\":\"" cpu_features_                                \
                                        "\",\"runtime_version\":\"" runtime_ "\",\"provides\":\"" provides_ \
                                        "\"}")                                                              \
  extern "C" MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t) {                               \
    static const MicaManifest manifest = {                                                                  \
        sizeof(MicaManifest), MICA_ABI_MAJOR, MICA_ABI_MINOR, name_, vendor_, version_,                     \
        cpu_features_,        runtime_,       provides_};                                                   \
    return &manifest;                                                                                       \
  }                                                                                                         \
  extern "C" MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* host, const MicaRegistrar* r) {     \
    if (!MICA_IS_1_0(host, r)) return ::mica::plugin::BareStatus(MICA_ERROR_NOT_IMPLEMENTED);               \
    ::mica::plugin::Host() = host;                                                                          \
    return ::mica::plugin::CatchAll([&] { init_(host, r); });                                               \
  }
