// OpenMP behind threads.h.
#include "mica/plugins/cpu/engine/threads.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>

namespace mica::cpu {
namespace {

// Set in a child process: gomp's workers stayed in the parent.
bool forked = false;

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { forked = true; });

}  // namespace

int32_t ThreadsOf(const MicaCall* call) {
  if (call->num_threads <= 1 || forked || omp_in_parallel()) return 1;
  return call->num_threads;
}

void ParallelFor(int64_t n, int64_t grain, int64_t align, int32_t threads,
                 void (*body)(void* context, int64_t begin, int64_t end), void* context) {
  const int64_t pieces = std::min<int64_t>(threads, n / std::max<int64_t>(grain, 1));
  if (pieces <= 1) {
    if (n > 0) body(context, 0, n);
    return;
  }
  const int64_t share = ((n + pieces - 1) / pieces + align - 1) / align * align;
#pragma omp parallel for num_threads(static_cast <int>(pieces)) schedule(static, 1)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t begin = piece * share;
    if (begin < n) body(context, begin, std::min(n, begin + share));
  }
}

}  // namespace mica::cpu
