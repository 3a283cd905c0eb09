// Ctrl-C during long kernels and backward passes.
//
// Kernels ask the host "interrupted?" at the borders of their chunks. The answer
// is looked up on the main thread alone, at most every 20 ms: it takes the GIL
// and runs Python's signal handlers. An exception they raise is remembered for
// the thread and comes out as KeyboardInterrupt when the call returns.
#pragma once

namespace mica::python {

void InitInterrupt();
// Throws an Error of kind kInterrupted if a Ctrl-C was seen and not reported yet.
void ThrowIfInterrupted();
void ForgetInterrupt();
// For the autograd engine: looks and throws.
void CheckInterrupt();

}  // namespace mica::python
