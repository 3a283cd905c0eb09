// Thread-local scratch memory; see scratch.h.
#include "plugins/cpu/engine/scratch.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace mica::cpu {
namespace {

// Plain and initial-exec, so that reading them costs one instruction; the
// object that frees the memory stands apart and is touched on growth alone.
#define MICA_FAST_TLS thread_local __attribute__((tls_model("initial-exec")))
MICA_FAST_TLS char* data = nullptr;
MICA_FAST_TLS int64_t size = 0;

struct Cleaner {
  bool armed = false;
  ~Cleaner() {
    std::free(data);
    data = nullptr;
    size = 0;
  }
};
thread_local Cleaner cleaner;

char* Grow(int64_t bytes) {
  cleaner.armed = true;
  std::free(data);
  const int64_t rounded = (bytes + 4095) / 4096 * 4096;
  data = static_cast<char*>(std::aligned_alloc(4096, static_cast<size_t>(rounded)));
  size = data == nullptr ? 0 : rounded;
  return data;
}

// The byte of MICA_POISON_MEMORY, with which tests fill all memory, or -1.
int PoisonByte() {
  static const int byte = [] {
    const char* text = std::getenv("MICA_POISON_MEMORY");
    return text == nullptr || *text == '\0' ? -1 : std::atoi(text) & 255;
  }();
  return byte;
}

// Without memory for the request, or poisoned: then `size` stays 0, and every request comes here.
char* TakeSlow(int64_t bytes) {
  const int byte = PoisonByte();
  if (byte < 0) return Grow(bytes);
  if (Grow(bytes) != nullptr) std::memset(data, byte, static_cast<size_t>(size));
  size = 0;
  return data;
}

}  // namespace

char* Scratch(int64_t bytes) { return __builtin_expect(bytes <= size, 1) ? data : TakeSlow(bytes); }

ScratchAside::ScratchAside() : data_(std::exchange(data, nullptr)), size_(std::exchange(size, 0)) {}
ScratchAside::~ScratchAside() {
  std::free(data);
  data = data_;
  size = size_;
}

}  // namespace mica::cpu
