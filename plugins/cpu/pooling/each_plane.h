// The loop over planes that all pooling kernels have.
#ifndef MICA_PLUGINS_CPU_POOLING_EACH_PLANE_H_
#define MICA_PLUGINS_CPU_POOLING_EACH_PLANE_H_

#include <algorithm>
#include <atomic>
#include <new>

#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/pooling/planes.h"
#include "plugins/cpu/pooling/window_loops.h"

namespace mica::cpu {

// Elements of windows between two questions for a Ctrl-C: a few milliseconds one by one.
inline constexpr int64_t kWindowPatience = int64_t{1} << 20;

// Calls f(first, count) for parts of the windows that are lanes of the taps; false once the call is to end.
template <class F>
bool InParts(int64_t lanes, const Taps& taps, Patience& patience, F f) {
  const int64_t each = std::max<int64_t>(1, taps.all());
  if (lanes * each <= kWindowPatience) {
    f(0, lanes);
    return !patience.Ends(lanes * each);
  }
  const int64_t part = std::max<int64_t>(256, kWindowPatience / each / 256 * 256);
  for (int64_t first = 0; first < lanes; first += part) {
    const int64_t n = std::min(part, lanes - first);
    f(first, n);
    if (patience.Ends(n * each)) return false;
  }
  return true;
}

// Calls f(plane, scratch of `read` bytes, scratch of `written` bytes, patience) for each plane; f ends
// early when its patience does.
template <class F>
void EachPlane(int64_t count, int64_t grain, int64_t read, int64_t written, int32_t threads, F f) {
  std::atomic<bool> no_memory{false};
  ParallelSteps(count, grain, 1, threads, [&](int64_t begin, int64_t end) {
    char* scratch = read + written > 0 ? Scratch(read + written) : nullptr;
    if (read + written > 0 && scratch == nullptr) {
      no_memory = true;
      return;
    }
    Patience patience(kWindowPatience);
    for (int64_t p = begin; p < end; ++p)
      f(p, scratch, scratch == nullptr ? nullptr : scratch + read, patience);
  });
  if (no_memory) throw std::bad_alloc();
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_EACH_PLANE_H_
