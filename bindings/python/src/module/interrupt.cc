// See interrupt.h.
#include "bindings/python/src/module/interrupt.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "bindings/python/src/module/errors.h"
#include "dispatcher/plugins/host.h"

namespace mica::python {
namespace {

unsigned long g_main_thread = 0;
std::atomic<bool> g_interrupted{false};
std::atomic<int64_t> g_next_look{0};  // in nanoseconds of the steady clock

// What a handler raised, until a call or the interpreter hands it on.
struct Raised {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
} g_raised;

thread_local const ThreadState* t_caller = nullptr;

// Runs handlers as the caller would.
class HandlerModes {
 public:
  HandlerModes() : inside_(CurrentThread()) {
    ThreadState& thread = CurrentThread();
    if (t_caller != nullptr) {
      thread = *t_caller;
    } else {
      thread.include = thread.exclude = KeySet();
      thread.frame = nullptr;
    }
  }
  ~HandlerModes() { CurrentThread() = inside_; }
  HandlerModes(const HandlerModes&) = delete;
  HandlerModes& operator=(const HandlerModes&) = delete;

 private:
  ThreadState inside_;
};

int Deliver(void*) { return RestoreInterrupt() ? -1 : 0; }

bool OnMainThread() { return PyThread_get_thread_ident() == g_main_thread; }

// Signals are the main thread's: a call of another one goes on.
bool Look() {
  if (!OnMainThread() || !Py_IsInitialized()) return false;
  if (g_interrupted.load(std::memory_order_relaxed)) return true;
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  if (now < g_next_look.load(std::memory_order_relaxed)) return false;
  g_next_look.store(now + 50'000'000, std::memory_order_relaxed);
  GilAcquire gil;
  const HandlerModes modes;
  if (PyErr_CheckSignals() == 0) return false;
  PyErr_Fetch(&g_raised.type, &g_raised.value, &g_raised.traceback);
  g_interrupted.store(true, std::memory_order_relaxed);
  // A kernel may end without a look at this, and its call without an error.
  Py_AddPendingCall(Deliver, nullptr);
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

bool RestoreInterrupt() {
  if (!OnMainThread() || !g_interrupted.load(std::memory_order_relaxed)) return false;
  g_interrupted.store(false, std::memory_order_relaxed);
  const Raised raised = std::exchange(g_raised, {});
  PyErr_Restore(raised.type, raised.value, raised.traceback);
  return true;
}

void CheckInterrupt() {
  if (Look()) ThrowIfInterrupted();
}

CallerModes::CallerModes() : modes_(CurrentThread()), outer_(std::exchange(t_caller, &modes_)) {}
CallerModes::~CallerModes() { t_caller = outer_; }

}  // namespace mica::python
