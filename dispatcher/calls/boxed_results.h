// Going through what a boxed call returned.
#pragma once

#include <string_view>
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

// A boxed call from a plugin: every argument is there, and room for what the operator gives.
[[noreturn]] void RefuseBoxedCall(const Operator& op, int64_t num_args, int64_t num_results);
inline void CheckBoxedCall(const Operator& op, int64_t num_args, int64_t num_results) {
  const OperatorSpec& spec = op.spec();
  const bool has_room =
      spec.form != OpForm::kFunctional || num_results >= static_cast<int64_t>(op.schema().returns.size());
  if (__builtin_expect(num_args != spec.num_args || !has_room, 0)) RefuseBoxedCall(op, num_args, num_results);
}

// The MICA_VALUE_... of what an argument or a result of the type holds where it is given; MICA_VALUE_NONE of
// types that no value has.
int32_t TagOfType(const schema::Type& type);
// Whether a kernel of the operator writes results. In-place and out= forms do not, nor do operators that were
// defined at run time and return what they write: there the written arguments are the results.
bool GivesResults(const Operator& op);
// The tag of a result that nothing was written to; no value has it.
inline constexpr int32_t kNoResult = -1;
// Before a boxed kernel from elsewhere (a plugin's): every result is one that nothing was written to. False
// where it gives none.
bool ExpectResults(const Operator& op, MicaValue* results);
// After it, where it gives some: throws a kRuntime Error, with the results released, where one is not of its
// type. `whose` names the backend or layer.
void CheckResults(const Operator& op, std::string_view whose, MicaValue* results);
// Drops what a boxed call returned.
void ReleaseResults(const Operator& op, MicaValue* results);

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
