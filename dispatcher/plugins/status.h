// Between statuses of the C ABI and C++ exceptions.
#pragma once

#include <exception>
#include <string_view>

#include <mica/abi.h>
#include "tensor/error.h"

namespace mica {

// Throws the Error that `status` stands for, and destroys the status. A bare
// code gets a general sentence.
[[noreturn]] void ThrowStatus(MicaStatus status);
inline void ThrowIfError(MicaStatus status) {
  if (__builtin_expect(status != nullptr, 0)) ThrowStatus(status);
}
// A status owned by its receiver.
MicaStatus MakeStatus(ErrorKind kind, std::string_view message, const char* file, int line);
// The status of the exception being handled; for use in a catch block.
MicaStatus StatusOfCurrentException() noexcept;
// Whether the exception that a status was made of is of a class of its own (a PythonException).
bool HasOwnClass(MicaStatus status);
inline std::string_view TextOf(MicaStr s) { return {s.data, static_cast<size_t>(s.size > 0 ? s.size : 0)}; }
constexpr bool IsBareCode(MicaStatus s) { return reinterpret_cast<uintptr_t>(s) < 4096; }
inline MicaStatus BareStatus(int code) { return reinterpret_cast<MicaStatus>(static_cast<uintptr_t>(code)); }

// The code of a status that is no success; 0 of one.
inline int64_t CodeOf(MicaStatus s) {
  return IsBareCode(s) ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(s)) : s->code;
}

// For calls whose failure changes nothing: destroys the status.
inline void DropStatus(MicaStatus s) {
  if (s && !IsBareCode(s)) s->destroy(s);
}
// Whether the callee says that it does not do this; then the status is destroyed.
inline bool Declined(MicaStatus s) {
  if (CodeOf(s) != MICA_ERROR_NOT_IMPLEMENTED) return false;
  DropStatus(s);
  return true;
}

template <typename F>
MicaStatus CatchAll(F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return StatusOfCurrentException();
  }
}

}  // namespace mica
