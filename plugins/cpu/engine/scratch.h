// This thread's scratch memory: where block programs keep their slots.
// Grows, is reused by every call, and is freed when the thread ends. Not for
// memory that must survive the call or reach another thread.
#ifndef MICA_PLUGINS_CPU_ENGINE_SCRATCH_H_
#define MICA_PLUGINS_CPU_ENGINE_SCRATCH_H_

#include <cstdint>

namespace mica::cpu {

// At least `bytes` bytes, 64-byte aligned, uninitialized; NULL when there is no
// memory. The next call on this thread invalidates it.
char* Scratch(int64_t bytes);

// Keeps this thread's scratch memory as it is while other calls run on the thread: those of a
// signal's handler, in the middle of a kernel.
class ScratchAside {
 public:
  ScratchAside();
  ~ScratchAside();
  ScratchAside(const ScratchAside&) = delete;
  ScratchAside& operator=(const ScratchAside&) = delete;

 private:
  char* data_;
  int64_t size_;
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_SCRATCH_H_
