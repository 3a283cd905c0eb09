// The error of a matrix that has no result: singular, not positive-definite, not
// converging. Python's mica.linalg.LinAlgError, a RuntimeError.
//
// A kind of its own beside those of error.h, for few throw or catch it: the formula
// language (`check.linalg`), and the map to Python's exceptions. Its number is far from those of abi.h, which
// go on.
#pragma once

#include "tensor/error.h"

namespace mica {

inline constexpr ErrorKind kLinAlgError{1000};

}  // namespace mica

#define MICA_CHECK_LINALG(condition, ...)                                                             \
  do {                                                                                                \
    if (__builtin_expect(!(condition), 0))                                                            \
      ::mica::internal::Throw(::mica::kLinAlgError, ::absl::StrCat(__VA_ARGS__), __FILE__, __LINE__); \
  } while (0)
