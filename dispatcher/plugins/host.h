// The host's side of the plugin ABI: the table that every plugin gets.
#pragma once

#include <mutex>
#include <string_view>

#include <mica/abi.h>
#include "dispatcher/registration/registration.h"
#include "tensor/tensor.h"

namespace mica {

// One table for the life of the process.
const MicaHost* HostTable();

// A registrar whose context is `scope`; valid while the scope lives.
MicaRegistrar MakeRegistrar(Scope* scope);
// Held by each call of a registrar: a scope that is given up while its plugin still
// registers is so between two of them.
std::mutex& RegistrationMutex();

// Warnings go to stderr until the binding sets where they go (Python's warnings).
void SetWarningHandler(void (*handler)(std::string_view message));
void HostWarn(std::string_view message);
// While this thread holds its warnings, they are kept and said when it lets go.
void HoldWarnings(bool hold);

// The binding's interpreter lock. Whoever waits for a lock of the host lets it go
// first, because the holder may need it: `release` gives what `take` gets, NULL where
// this thread does not hold it.
struct InterpreterLock {
  void* (*release)();
  void (*take)(void*);
};
void SetInterpreterLock(InterpreterLock lock);
// While it lives, this thread does not hold the interpreter lock.
class InterpreterRelease {
 public:
  InterpreterRelease();
  ~InterpreterRelease();
  InterpreterRelease(const InterpreterRelease&) = delete;
  InterpreterRelease& operator=(const InterpreterRelease&) = delete;

 private:
  void* held_;
};

// Asked in long loops: 1 when the user wants to stop. Set by the binding.
void SetInterruptCheck(bool (*check)());
bool Interrupted();
// Throws an Error of kind kInterrupted when the user wants to stop.
void CheckInterrupted();
// The same without a lock, which a signal's handler may want, too.
void CheckInterrupted(std::unique_lock<std::mutex>& held);

// Processors that this process may run on (OMP_NUM_THREADS if it is set).
int DefaultNumThreads();

}  // namespace mica
