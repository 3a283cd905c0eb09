// Memory of a device that the host's allocator gives and keeps, for NVIDIA's libraries.
//
// The libraries allocate too, and find no memory where the host's allocator keeps idle blocks: what fails
// so is tried again when those are given back, and then left to Mica's own kernels.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include <mica/plugin.h>

namespace cuda {

// Memory of a stream for kernels that are queued while this object lives. Throws where there is none left.
class Scratch {
 public:
  Scratch(int device, size_t size, uint64_t stream);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  MicaDevice place_;
  void* data_ = nullptr;
};

// Gives the host's idle memory back to the device. Throws nothing.
void EmptyHostCache(int device);

// Warns once for each `warned`.
void WarnOnce(std::atomic<bool>& warned, const std::string& sentence);

// Why a library does not start: the first sentence that is set, which a warning tells. Asked at every call.
class StartFailure {
 public:
  void Set(const std::string& sentence);
  bool happened() const { return happened_.load(std::memory_order_relaxed); }
  std::string sentence();  // "" where it did not happen

 private:
  std::mutex mutex_;
  std::string sentence_;
  std::atomic<bool> happened_{false};
};

// What `f` returns, which says whether a library did the work; `f` queues nothing where it throws. One that
// finds no memory is tried again without the host's idle blocks. False, and a warning, where that fails too.
template <typename F>
bool TryTwice(int device, std::atomic<bool>& warned, F&& f) {
  for (int attempt = 0;; ++attempt) {
    try {
      return f();
    } catch (const mica::plugin::Error& error) {
      if (error.code != MICA_ERROR_OUT_OF_MEMORY) throw;
      if (attempt == 1) {
        WarnOnce(warned,
                 std::string(error.what()) + " Mica's own kernels, which are slower, compute this call.");
        return false;
      }
    }
    EmptyHostCache(device);
  }
}

}  // namespace cuda
