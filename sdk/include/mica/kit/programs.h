// Kernels: built on first use, kept by key, and launched.
//
// A key says everything that a kernel's source depends on, in a few bytes, so that
// a call that was seen before makes no text. Programs are built once a device; what
// the OpenCL implementation compiles it keeps on disk itself (PoCL and the vendors'
// do). A cl_kernel holds its arguments, so a launch holds the kernel's lock from
// its first argument to the enqueue.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime.h"

namespace opencl_device {

struct Kernel {
  cl_kernel kernel = nullptr;
  std::mutex mutex;
  uint64_t sizes_seen = 0;  // bit n: was launched with 2^n work-items or so
};

// The bytes of a key, appended one number after another.
class Key {
 public:
  explicit Key(const char* family) : bytes_(family) {}
  template <typename T>
  Key& Add(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The kernel `entry` of the program that `key` stands for; `make_source()` gives
// its text when it is not built yet. `operator_name` is for the message when the
// compiler refuses it.
template <typename F>
Kernel& FindKernel(Device& device, const Key& key, const char* entry, const char* operator_name,
                   F&& make_source);

// A file of kernels/, embedded by CMake under its name ("lanes.cl").
std::string_view EmbeddedSource(std::string_view name);

// Sets a kernel's arguments in order and puts it into the call's stream.
class Launch {
 public:
  Launch(const MicaCall* call, Kernel& kernel)
      : queue_(DeviceOf(call).QueueOf(call->stream)),
        kernel_(kernel.kernel),
        owner_(kernel),
        lock_(kernel.mutex) {}
  Launch& Pointer(const void* pointer) {
    CheckCl(clSetKernelArgSVMPointer(kernel_, next_++, pointer), "clSetKernelArgSVMPointer");
    return *this;
  }
  template <typename T>
  Launch& Value(const T& value) {
    return Bytes(&value, sizeof(value));
  }
  Launch& Bytes(const void* bytes, size_t size) {
    CheckCl(clSetKernelArg(kernel_, next_++, size, bytes), "clSetKernelArg");
    return *this;
  }
  // `items` work-items in groups of `group`, rounded up to whole groups.
  void Run(int64_t items, int64_t group) { Run(items, 1, 1, group, 1); }
  void Run(int64_t x, int64_t y, int64_t z, int64_t group_x, int64_t group_y);

 private:
  cl_command_queue queue_;
  cl_kernel kernel_;
  Kernel& owner_;
  cl_uint next_ = 0;
  std::lock_guard<std::mutex> lock_;
};

// One int on the device that kernels set to 1 when an element raises.
class Flag {
 public:
  explicit Flag(const MicaCall* call);
  ~Flag();
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  const void* pointer() const { return data_; }
  // Waits for the stream and reads it.
  int Read() const;

 private:
  const MicaCall* call_;
  void* data_ = nullptr;
};

// Memory of the host's caching allocator for the time of a call's kernels.
class Workspace {
 public:
  Workspace(const MicaCall* call, int64_t size);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* data() const { return data_; }

 private:
  MicaDevice place_;
  void* data_ = nullptr;
};

MicaDevice PlaceOf(const MicaCall* call);

namespace internal {
Kernel* Lookup(Device& device, const std::string& key, const char* entry);
Kernel& Build(Device& device, const std::string& key, const char* entry, const char* operator_name,
              const std::string& source);
}  // namespace internal

template <typename F>
Kernel& FindKernel(Device& device, const Key& key, const char* entry, const char* operator_name,
                   F&& make_source) {
  if (Kernel* found = internal::Lookup(device, key.bytes(), entry)) return *found;
  return internal::Build(device, key.bytes(), entry, operator_name, make_source());
}

}  // namespace opencl_device
