// Results of composites that own their memory.
//
// Note [Owned results]
// A composite often ends in a view of a tensor that it made itself: matmul of a batch reshapes
// the product of all rows. To the caller that is a fresh tensor, and torch's is one: it may be
// detached in place, its `_base` is None, writing it does not rebase a graph, and without a
// gradient it does not carry the Autograd key into every later call. So the kernel of every
// composite gives a result whose base nobody else holds out as an ordinary tensor: the same
// impl, memory, version and grad_fn, without the base. A view of an argument has a base that
// the caller holds and stays a view; so does an argument that is handed back.
#pragma once

#include <tuple>
#include <vector>

#include "tensor/tensor.h"

namespace mica {
namespace internal {
// `view` is one. Makes it an ordinary tensor if it is its base's only holder, and has one itself.
void LeaveLoneBase(const Tensor& view);
}  // namespace internal

inline void OwnResults(const Tensor& result) {
  if (result.defined() && __builtin_expect(result.is_view(), 0)) internal::LeaveLoneBase(result);
}
inline void OwnResults(const std::vector<Tensor>& results) {
  for (const Tensor& t : results) OwnResults(t);
}
template <typename... T>
void OwnResults(const std::tuple<T...>& results) {
  std::apply([](const auto&... t) { (OwnResults(t), ...); }, results);
}
template <typename Number>
void OwnResults(const Number&) {}

}  // namespace mica
