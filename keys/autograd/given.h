// What callers of the table give (<mica/autograd.h>), as this folder has it; what may not be NULL is refused
// with the name of the function.
#pragma once

#include <string_view>

#include "dispatcher/calls/adapters.h"
#include "keys/autograd/node.h"

namespace mica::autograd {

[[gnu::always_inline]] inline const Tensor& Given(MicaTensor* const& t, const char* call) {
  MICA_CHECK_TYPE(t, "MicaAutograd::", call, " was given NULL in the place of a tensor.");
  return Tensor::Ref(t);
}
inline Node& Given(MicaNode* node, const char* call) {
  MICA_CHECK_TYPE(node, "MicaAutograd::", call, " was given NULL in the place of a node.");
  return *FromAbi(node);
}
template <typename Function>
void CheckFunction(Function function, const char* call) {
  MICA_CHECK_TYPE(function, "MicaAutograd::", call, " was given NULL in the place of a function.");
}
template <typename Struct>
const Struct& Given(const Struct* s, const char* call) {
  MICA_CHECK_TYPE(s, "MicaAutograd::", call, " was given NULL in the place of a struct.");
  MICA_CHECK_VALUE(s->struct_size >= sizeof(Struct), "A struct that MicaAutograd::", call,
                   " was given has the struct_size (", s->struct_size, "); expected at least (",
                   sizeof(Struct), ").");
  return *s;
}
inline TensorSpan ListOf(MicaTensorSpan list) {
  return list.size > 0 ? AbiType<TensorSpan>::From(list) : TensorSpan();
}
inline MicaStr StrOf(std::string_view s) { return {s.data(), static_cast<int64_t>(s.size())}; }

}  // namespace mica::autograd
