#include "plugins/cuda/host_memory.h"

#include <mica/memory.h>

namespace cuda {
namespace {

MicaDevice PlaceOf(int device) {
  static const int32_t backend = mica::plugin::Host()->backend_index(mica::plugin::Str("cuda"));
  return {backend, device};
}

}  // namespace

Scratch::Scratch(int device, size_t size, uint64_t stream) : place_(PlaceOf(device)) {
  mica::plugin::Check(mica::plugin::Host()->allocate(place_, static_cast<int64_t>(size), stream, &data_));
}

Scratch::~Scratch() { mica::plugin::Host()->free(place_, data_); }

void EmptyHostCache(int device) {
  const MicaHost* host = mica::plugin::Host();
  if (!host) return;
  const void* found = host->extension(mica::plugin::Str(MICA_MEMORY_EXTENSION), 0);
  if (!found) return;
  const MicaStatus status = static_cast<const MicaMemory*>(found)->empty_cache(PlaceOf(device));
  if (reinterpret_cast<uintptr_t>(status) >= 4096) status->destroy(status);
}

void WarnOnce(std::atomic<bool>& warned, const std::string& sentence) {
  const MicaHost* host = mica::plugin::Host();
  if (!warned.exchange(true) && host) host->warn(mica::plugin::Str(sentence));
}

void StartFailure::Set(const std::string& sentence) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (sentence_.empty()) sentence_ = sentence;
  }
  WarnOnce(happened_, sentence);
}

std::string StartFailure::sentence() {
  std::lock_guard<std::mutex> lock(mutex_);
  return sentence_;
}

}  // namespace cuda
