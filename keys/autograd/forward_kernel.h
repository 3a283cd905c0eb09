// What generated forward-mode kernels are written with, beside forward.h
// (build/generated/mica/forward_<i>.cc, codegen/emit/forward.cc).
//
//   Tensor Tangent_mul_Tensor(const Dual& self, const Dual& other) {
//     Tensor tangent;
//     if (HasTangent(self)) {
//       const Tensor grad = Conj(self.tangent);
//       Add(tangent, Conj(mul(grad, conj(other.value))));   // the gradient's formula
//     }
//     ... the same for `other` ...
//     return tangent;
//   }
// and kernels of the functional and in-place forms around it, as forward.h shows.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "dispatcher/calls/adapters.h"
#include "keys/autograd/engine_ops.h"
#include "keys/autograd/forward.h"

namespace mica::autograd::forward {

inline bool HasTangent(const Dual& d) { return d.tangent.defined(); }
bool HasTangent(const std::vector<Dual>& list);

inline Tensor TangentOrZeros(const Dual& d) {
  return d.tangent.defined() || !d.value.defined() ? d.tangent : Zeros(d.value);
}
std::vector<Tensor> Values(const std::vector<Dual>& list);
// Zeros where a tangent is zero.
std::vector<Tensor> Tangents(const std::vector<Dual>& list);

// total -= term.
void Subtract(Tensor& total, Tensor term);

// The conjugate; a real tensor itself.
Tensor Conjugate(const Tensor& t);
inline Tensor Conj(Tensor t) { return t.defined() && IsComplex(t.dtype()) ? Conjugate(t) : t; }

// The sum over `dims` (all, if none are given) of conj(weights) * tangent.
Tensor WeighedSum(const Tensor& weights, const Tensor& tangent, std::optional<IntSpan> dims, bool keepdim);

// Results of one call, as an array.
template <size_t n, typename Tuple>
void Add(std::array<Tensor, n>& totals, Tuple&& terms) {
  [&]<size_t... i>(std::index_sequence<i...>) {
    (Add(totals[i], std::get<i>(std::forward<Tuple>(terms))), ...);
  }
  (std::make_index_sequence<n>());
}

// The generated rules, in forward_<i>.cc.
void RegisterForwardRules(Scope& scope);

}  // namespace mica::autograd::forward
