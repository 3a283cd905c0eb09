// The loop over planes that all pooling kernels have.
#ifndef MICA_PLUGINS_CPU_POOLING_EACH_PLANE_H_
#define MICA_PLUGINS_CPU_POOLING_EACH_PLANE_H_

#include <atomic>
#include <new>

#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/pooling/planes.h"

namespace mica::cpu {

// Calls f(plane, scratch of `read` bytes, scratch of `written` bytes) for each plane.
template <class F>
void EachPlane(int64_t count, int64_t grain, int64_t read, int64_t written, int32_t threads, F f) {
  std::atomic<bool> no_memory{false};
  ParallelSteps(count, grain, 1, threads, [&](int64_t begin, int64_t end) {
    char* scratch = read + written > 0 ? Scratch(read + written) : nullptr;
    if (read + written > 0 && scratch == nullptr) {
      no_memory = true;
      return;
    }
    for (int64_t p = begin; p < end; ++p) f(p, scratch, scratch == nullptr ? nullptr : scratch + read);
  });
  if (no_memory) throw std::bad_alloc();
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_EACH_PLANE_H_
