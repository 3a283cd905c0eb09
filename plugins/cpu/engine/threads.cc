// OpenMP behind threads.h.
#include "plugins/cpu/engine/threads.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <mica/plugin.h>
#include "plugins/cpu/engine/scratch.h"

namespace mica::cpu {
namespace {

// Set in a child process: gomp's workers stayed in the parent.
bool forked = false;

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { forked = true; });

// The sign of the call whose work this thread does.
thread_local StopSign* t_sign = nullptr;

// Grains in a step: some milliseconds of work at most, where an element costs little. The first
// step is shorter, since nobody knows what an element costs.
constexpr int64_t kStepGrains = 64, kFirstGrains = 8;
// A step that takes longer makes the next ones shorter, down to one element.
constexpr std::chrono::milliseconds kLongStep{20};

}  // namespace

bool Interrupted() {
  if (omp_get_thread_num() != 0) return false;
  const MicaHost* host = plugin::Host();
  if (host == nullptr || host->interrupted == nullptr) return false;
  const ScratchAside aside;
  const Watched nothing(nullptr);  // in a handler's calls
  return host->interrupted() != 0;
}

Watched::Watched(StopSign* sign) : outer_(std::exchange(t_sign, sign)) {}
Watched::~Watched() { t_sign = outer_; }

bool StopAsked() { return t_sign != nullptr && t_sign->Ask(); }

void ThrowInterrupted() { MICA_PLUGIN_THROW(MICA_ERROR_INTERRUPTED, "The call was interrupted."); }

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

void ParallelSteps(int64_t n, int64_t grain, int64_t align, int32_t threads,
                   void (*body)(void* context, int64_t begin, int64_t end), void* context) {
  using Clock = std::chrono::steady_clock;
  int64_t first = 0;
  if (__builtin_mul_overflow(std::max<int64_t>(grain, 1), kFirstGrains, &first) || first > n) first = n;
  first = (first + align - 1) / align * align;
  const int64_t most = first * (kStepGrains / kFirstGrains);
  StopSign sign;
  ParallelFor(n, grain, align, threads, [&](int64_t begin, int64_t end) {
    const Watched watched(&sign);
    int64_t step = first;
    if (end - begin < first + align) return body(context, begin, end);
    Clock::time_point before = Clock::now();
    for (int64_t at = begin; at < end;) {
      const int64_t to = std::min(end, at + step);
      body(context, at, to);
      at = to;
      if (at == end || sign.Ask()) return;
      const Clock::time_point now = Clock::now();
      if (now - before > kLongStep)
        step = std::max(align, step / 2 / align * align);
      else if (now - before < kLongStep / 8)
        step = std::min(most, 2 * step);
      before = now;
    }
  });
  sign.ThrowIfRaised();
}

}  // namespace mica::cpu
