// Functions as a C ABI sees them: a letter for the result and one for each argument, to compare declarations
// of two sources.
#pragma once

#include <string>
#include <type_traits>

namespace cuda::test {

// p pointer, d double, f float, v void, and the size of integers and enumerations, whose sign C passes alike.
template <typename T>
char Letter() {
  if (std::is_void_v<T>) return 'v';
  if (std::is_pointer_v<T>) return 'p';
  if (std::is_same_v<T, double>) return 'd';
  if (std::is_same_v<T, float>) return 'f';
  if constexpr (!std::is_void_v<T>) return static_cast<char>('0' + sizeof(T));
}

template <typename R, typename... A>
std::string Letters(R (*)(A...)) {
  std::string letters(1, Letter<R>());
  (letters.push_back(Letter<A>()), ...);
  return letters;
}

}  // namespace cuda::test
