// Parallel loops of the CPU plugin on gomp's pool, the one oneDNN uses too.
#ifndef MICA_PLUGINS_CPU_ENGINE_THREADS_H_
#define MICA_PLUGINS_CPU_ENGINE_THREADS_H_

#include <atomic>
#include <cstdint>

#include <mica/abi.h>

namespace mica::cpu {

// Threads a call may use: call->num_threads, but one inside another parallel
// region and one in the child of a fork (gomp's pool does not survive it).
int32_t ThreadsOf(const MicaCall* call);

// Calls body(context, begin, end) over [0, n) in at most `threads` pieces, each
// of at least `grain` elements and beginning at a multiple of `align`. The body
// must not throw.
void ParallelFor(int64_t n, int64_t grain, int64_t align, int32_t threads,
                 void (*body)(void* context, int64_t begin, int64_t end), void* context);

template <class Body>
void ParallelFor(int64_t n, int64_t grain, int64_t align, int32_t threads, Body body) {
  ParallelFor(
      n, grain, align, threads,
      [](void* context, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(begin, end); }, &body);
}

// Whether Ctrl-C was pressed, asked of the host by the thread that made the call,
// the first of a team; others hear "no". What a call has begun is then left undone,
// and it ends with ThrowInterrupted().
bool Interrupted();
[[noreturn]] void ThrowInterrupted();

// What the workers of a call share whose pieces take long: each asks now and then whether to
// leave the rest undone, and after them the call throws.
class StopSign {
 public:
  bool Ask() {
    if (Interrupted()) raised_.store(true, std::memory_order_relaxed);
    return raised_.load(std::memory_order_relaxed);
  }
  void ThrowIfRaised() const {
    if (raised_.load(std::memory_order_relaxed)) ThrowInterrupted();
  }

 private:
  std::atomic<bool> raised_{false};
};

// While it lives, what this thread's loops ask is `sign`, NULL: nothing. ParallelSteps has one.
class Watched {
 public:
  explicit Watched(StopSign* sign);
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  StopSign* outer_;  // of the call that a signal's handler interrupts
};

// Asks this thread's sign: whether a body of ParallelSteps is to leave the rest undone.
bool StopAsked();

// Asks once in so many elements, for loops over more of them than a Ctrl-C can wait for.
class Patience {
 public:
  explicit Patience(int64_t elements) : elements_(elements) {}
  // Whether to leave the rest undone after `n` more elements.
  bool Ends(int64_t n) {
    done_ += n;
    if (done_ < elements_) return false;
    done_ = 0;
    return StopAsked();
  }

 private:
  const int64_t elements_;
  int64_t done_ = 0;
};

// ParallelFor for a body that may be called several times within a piece, each time with
// some milliseconds of work if an element takes no longer. Between the calls, and where the
// body itself asks (StopAsked), the host is asked for a Ctrl-C; after one the rest is left
// undone and an Error of code MICA_ERROR_INTERRUPTED is thrown.
void ParallelSteps(int64_t n, int64_t grain, int64_t align, int32_t threads,
                   void (*body)(void* context, int64_t begin, int64_t end), void* context);

template <class Body>
void ParallelSteps(int64_t n, int64_t grain, int64_t align, int32_t threads, Body body) {
  ParallelSteps(
      n, grain, align, threads,
      [](void* context, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(begin, end); }, &body);
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_THREADS_H_
