// The parts of generated forward-mode kernels that need no template.
#include "keys/autograd/forward_kernel.h"

#include "mica/ops/_conj_physical.h"
#include "mica/ops/mul.h"
#include "mica/ops/neg.h"
#include "mica/ops/sum.h"

namespace mica::autograd::forward {

bool HasTangent(const std::vector<Dual>& list) {
  for (const Dual& d : list)
    if (d.tangent.defined()) return true;
  return false;
}

std::vector<Tensor> Values(const std::vector<Dual>& list) {
  std::vector<Tensor> values;
  values.reserve(list.size());
  for (const Dual& d : list) values.push_back(d.value);
  return values;
}

std::vector<Tensor> Tangents(const std::vector<Dual>& list) {
  std::vector<Tensor> tangents;
  tangents.reserve(list.size());
  for (const Dual& d : list) tangents.push_back(TangentOrZeros(d));
  return tangents;
}

void Subtract(Tensor& total, Tensor term) {
  if (term.defined()) Add(total, ::mica::ops::op::neg::call(term));
}

Tensor Conjugate(const Tensor& t) { return ::mica::ops::op::_conj_physical::call(t); }

Tensor WeighedSum(const Tensor& weights, const Tensor& tangent, std::optional<IntSpan> dims, bool keepdim) {
  const Tensor terms = ::mica::ops::op::mul_Tensor::call(Conj(weights), tangent);
  return dims ? ::mica::ops::op::sum_dim_IntList::call(terms, dims, keepdim, std::nullopt)
              : ::mica::ops::op::sum::call(terms, std::nullopt);
}

// In the generated shards.
void RegisterRules0(Scope&);
void RegisterRules1(Scope&);
void RegisterRules2(Scope&);
void RegisterRules3(Scope&);

void RegisterForwardRules(Scope& scope) {
  for (auto* shard : {&RegisterRules0, &RegisterRules1, &RegisterRules2, &RegisterRules3}) shard(scope);
}

}  // namespace mica::autograd::forward
