// The exception that every module throws, and the macros that throw it.
//
// MICA_CHECK is for the caller's mistake, MICA_INTERNAL for ours. A message is a
// full sentence in the present tense with each value in parentheses after its
// noun and what was expected. The dispatcher adds the call and the layer
// (Error::AddContext); Python maps each kind to one exception type.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mica {

enum class ErrorKind : int {  // the values are those of abi.h
  kRuntime = 1,
  kValue = 2,
  kType = 3,
  kIndex = 4,
  kNotImplemented = 5,
  kOutOfMemory = 6,
  kInternal = 7,
  kZeroDivision = 8,
  kOverflow = 9,
  kInterrupted = 10,
  kDeviceLost = 11,
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, const char* file, int line);
  ~Error() override;
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const char* file() const { return file_; }
  int line() const { return line_; }
  // Appends a line "  in <call>" once; later calls do nothing.
  void AddContext(const std::string& call);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
  const char* file_;
  int line_;
  bool has_context_ = false;
};

namespace internal {
[[noreturn]] void Throw(ErrorKind kind, std::string message, const char* file, int line);
}  // namespace internal

#define MICA_THROW(kind, ...) \
  ::mica::internal::Throw(::mica::ErrorKind::kind, ::absl::StrCat(__VA_ARGS__), __FILE__, __LINE__)
#define MICA_CHECK_KIND(kind, condition, ...)                             \
  do {                                                                    \
    if (__builtin_expect(!(condition), 0)) MICA_THROW(kind, __VA_ARGS__); \
  } while (0)
#define MICA_CHECK(condition, ...) MICA_CHECK_KIND(kRuntime, condition, __VA_ARGS__)
#define MICA_CHECK_VALUE(condition, ...) MICA_CHECK_KIND(kValue, condition, __VA_ARGS__)
#define MICA_CHECK_TYPE(condition, ...) MICA_CHECK_KIND(kType, condition, __VA_ARGS__)
#define MICA_CHECK_INDEX(condition, ...) MICA_CHECK_KIND(kIndex, condition, __VA_ARGS__)
#define MICA_CHECK_IMPLEMENTED(condition, ...) MICA_CHECK_KIND(kNotImplemented, condition, __VA_ARGS__)
#define MICA_INTERNAL(condition, ...) MICA_CHECK_KIND(kInternal, condition, "Internal error: ", __VA_ARGS__)

}  // namespace mica
