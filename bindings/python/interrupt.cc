// See interrupt.h.
#include "mica/bindings/python/interrupt.h"

#include <atomic>
#include <chrono>

#include "mica/bindings/python/errors.h"
#include "mica/dispatcher/host.h"

namespace mica::python {
namespace {

unsigned long g_main_thread = 0;
std::atomic<bool> g_interrupted{false};
std::atomic<int64_t> g_next_look{0};  // in nanoseconds of the steady clock

bool OnMainThread() { return PyThread_get_thread_ident() == g_main_thread; }

// Signals are the main thread's: a call of another one goes on.
bool Look() {
  if (!OnMainThread() || !Py_IsInitialized()) return false;
  if (g_interrupted.load(std::memory_order_relaxed)) return true;
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  if (now < g_next_look.load(std::memory_order_relaxed)) return false;
  g_next_look.store(now + 50'000'000, std::memory_order_relaxed);
  GilAcquire gil;
  if (PyErr_CheckSignals() == 0) return false;
  PyErr_Clear();
  g_interrupted.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace

void InitInterrupt() {
  g_main_thread = PyThread_get_thread_ident();
  SetInterruptCheck(Look);
}

void ThrowIfInterrupted() {
  MICA_CHECK_KIND(kInterrupted, !g_interrupted.load(std::memory_order_relaxed) || !OnMainThread(),
                  "The call was interrupted.");
}
void ForgetInterrupt() { g_interrupted.store(false, std::memory_order_relaxed); }

void CheckInterrupt() {
  if (Look()) ThrowIfInterrupted();
}

}  // namespace mica::python
