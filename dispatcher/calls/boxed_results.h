// Going through what a boxed call returned.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/tables/operator.h"

namespace mica {

// Room for what a boxed call of the operator returns, however much that is.
class ResultRoom {
 public:
  explicit ResultRoom(const Operator& op) : values_(op.schema().returns.size()) {}
  operator MicaValue*() { return values_.data(); }

 private:
  absl::InlinedVector<MicaValue, 8> values_;
};

// Puts f(tensor) in the place of each tensor among boxed results, a list's undefined ones left
// out. In-place and out= forms return what they were given, which stays.
template <typename F>
void ReplaceResults(const Operator& op, MicaValue* results, F&& f) {
  if (op.spec().form != OpForm::kFunctional) return;
  const size_t count = op.schema().returns.size();
  for (size_t i = 0; i < count; ++i) {
    MicaValue& r = results[i];
    if (r.tag == MICA_VALUE_TENSOR) {
      r = OwnedTensorValue(f(TakeTensor(r)));
    } else if (r.tag == MICA_VALUE_TENSORS) {
      std::vector<Tensor> list = TakeTensorList(r.u.tensors);
      for (Tensor& t : list)
        if (t.defined()) t = f(std::move(t));
      r.u.tensors = GiveTensorList(std::move(list));
    }
  }
}

}  // namespace mica
