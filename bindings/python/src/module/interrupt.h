// Signals during long kernels and backward passes.
//
// Kernels ask the host "interrupted?" at the borders of their chunks. The answer is looked up on the
// main thread alone, at most every 50 ms: it takes the GIL and runs Python's signal handlers, under
// the modes that the call was made in and not those of the kernel inside. An exception that one of
// them raises is kept and comes out as itself when the call returns; at the latest when Python's
// interpreter goes on.
#pragma once

#include "dispatcher/calls/thread_state.h"

namespace mica::python {

void InitInterrupt();
// Throws an Error of kind kInterrupted if a handler raised and that was not reported yet.
void ThrowIfInterrupted();
// Sets the exception of the handler, once; false if there is none. Needs the GIL.
bool RestoreInterrupt();
// For the autograd engine: looks and throws.
void CheckInterrupt();

// The modes of the thread when it called, which handlers see while this lives.
class CallerModes {
 public:
  CallerModes();
  ~CallerModes();
  CallerModes(const CallerModes&) = delete;
  CallerModes& operator=(const CallerModes&) = delete;

 private:
  ThreadState modes_;
  const ThreadState* outer_;
};

}  // namespace mica::python
