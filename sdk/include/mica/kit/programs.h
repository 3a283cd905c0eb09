// Kernels: compiled on first use, kept by key, and launched.
//
// A key says everything that a kernel's text depends on, in a few bytes, so that a call
// that was seen before makes no text. A text is compiled once a device and stays for the
// process's life; what is kept on disk is the driver's own matter.
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <mica/kit/driver.h>

namespace mica {
namespace kit {

// The driver of this plugin, set by Register (kit.h) before anything else runs.
inline Driver*& TheDriver() {
  static Driver* driver = nullptr;
  return driver;
}
inline const Device& DeviceOf(const MicaCall* call) { return TheDriver()->DeviceAt(call->device_index); }
inline MicaDevice PlaceOf(const MicaCall* call) {
  static const int32_t backend = plugin::Host()->backend_index(plugin::Str(TheDriver()->backend()));
  return {backend, call->device_index};
}

// The bytes of a key, appended one number after another.
class Key {
 public:
  explicit Key(const char* family) {
    bytes_.reserve(160);
    bytes_ += family;
  }
  template <typename T>
  Key& Add(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A kernel of a compiled text, as the driver knows it.
struct Kernel {
  void* entry = nullptr;
};

class KernelCache {
 public:
  static KernelCache& Get() {
    static KernelCache* cache = new KernelCache();  // never destroyed: threads may outlive statics
    return *cache;
  }
  // The kernel, or NULL when it is not compiled yet.
  Kernel* Find(const std::string& key, const char* entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto module = modules_.find(key);
    return module == modules_.end() ? nullptr : module->second.Find(entry);
  }
  // Compiles under the lock: two threads never compile one text twice.
  template <typename F>
  Kernel& Make(const Device& device, const std::string& key, const char* entry, const char* operator_name,
               F&& make_text) {
    std::lock_guard<std::mutex> lock(mutex_);
    Module& module = modules_[key];
    if (!module.handle) module.handle = TheDriver()->Compile(device, make_text(), operator_name);
    if (Kernel* found = module.Find(entry)) return *found;
    module.kernels.push_back(
        {entry, std::make_unique<Kernel>(Kernel{TheDriver()->Entry(device, module.handle, entry)})});
    return *module.kernels.back().second;
  }

 private:
  struct Module {
    void* handle = nullptr;
    std::vector<std::pair<std::string, std::unique_ptr<Kernel>>> kernels;  // a few
    Kernel* Find(const char* entry) {
      for (auto& [name, kernel] : kernels)
        if (name == entry) return kernel.get();
      return nullptr;
    }
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Module> modules_;
};

// The kernel `entry` of the text that `key` stands for; `make_text()` gives the text when it
// is not compiled yet. `operator_name` is for the sentence when the compiler refuses it.
template <typename F>
Kernel& FindKernel(const Device& device, Key key, const char* entry, const char* operator_name,
                   F&& make_text) {
  key.Add(device.index);
  KernelCache& cache = KernelCache::Get();
  if (Kernel* found = cache.Find(key.bytes(), entry)) return *found;
  return cache.Make(device, key.bytes(), entry, operator_name, make_text);
}

// Collects a kernel's arguments in order and puts it into the call's stream.
class Launch {
 public:
  Launch(const MicaCall* call, const Kernel& kernel) : call_(call), entry_(kernel.entry) {}
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  Launch& Pointer(const void* pointer) { return Append(&pointer, sizeof(pointer), true); }
  template <typename T>
  Launch& Value(const T& value) {
    return Append(&value, sizeof(value), false);
  }
  Launch& Bytes(const void* bytes, size_t size) { return Append(bytes, size, false); }
  // An INDEX of the text: of 32 bits where it was made `small`.
  Launch& Index(int64_t value, bool small) {
    return small ? Value(static_cast<uint32_t>(value)) : Value(static_cast<uint64_t>(value));
  }

  const Device& device() const { return DeviceOf(call_); }

  // `items` work-items in groups of `group`, rounded up to whole groups.
  void Run(int64_t items, int64_t group) { Run(items, 1, 1, group, 1); }
  void Run(int64_t x, int64_t y, int64_t z, int64_t group_x, int64_t group_y) {
    const Grid grid = {{(x + group_x - 1) / group_x, (y + group_y - 1) / group_y, z}, {group_x, group_y, 1}};
    TheDriver()->Launch(DeviceOf(call_), entry_, arguments_, count_, grid, call_->stream);
  }

 private:
  static constexpr size_t kMaxArguments = 256, kMaxBytes = 4096;

  Launch& Append(const void* bytes, size_t size, bool is_pointer) {
    const size_t at = (used_ + 15) / 16 * 16;
    if (count_ == kMaxArguments || at + size > kMaxBytes) throw plugin::NotImplemented();
    std::memcpy(bytes_ + at, bytes, size);
    arguments_[count_++] = {bytes_ + at, size, is_pointer};
    used_ = at + size;
    return *this;
  }

  const MicaCall* call_;
  void* entry_;
  size_t count_ = 0, used_ = 0;
  Argument arguments_[kMaxArguments];
  alignas(16) char bytes_[kMaxBytes];
};

// Memory of the host's caching allocator for the time of a call's kernels.
class Workspace {
 public:
  Workspace(const MicaCall* call, int64_t size) : place_(PlaceOf(call)) {
    plugin::Check(plugin::Host()->allocate(place_, size, call->stream, &data_));
  }
  ~Workspace() { plugin::Host()->free(place_, data_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* data() const { return data_; }

 private:
  MicaDevice place_;
  void* data_ = nullptr;
};

// The word that the kernels of a call set when they find an error in their data. The driver
// raises it when the device is next waited for, or Check waits and raises it at once.
class Raise {
 public:
  Raise(const MicaCall* call, LateError error) : call_(call), error_(std::move(error)) {
    word_ = TheDriver()->LateWord(DeviceOf(call), call, error_);
    if (word_) return;
    own_ = std::make_unique<Workspace>(call, static_cast<int64_t>(sizeof(int32_t)));
    word_ = own_->data();
    TheDriver()->Zero(DeviceOf(call), word_, sizeof(int32_t), call->stream);
  }
  const void* word() const { return word_; }
  void Check() const {
    if (!own_) return;
    int32_t number = 0;
    TheDriver()->Read(DeviceOf(call_), &number, word_, sizeof(number), call_->stream);
    if (number != 0) MICA_PLUGIN_THROW(error_.code, error_.Sentence(number));
  }

 private:
  const MicaCall* call_;
  LateError error_;
  std::unique_ptr<Workspace> own_;
  void* word_ = nullptr;
};

}  // namespace kit
}  // namespace mica
