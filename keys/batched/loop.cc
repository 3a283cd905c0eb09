// What has no rule: the operator once an example, the results stacked.
#include "keys/batched/batched.h"

#include "absl/strings/str_cat.h"
#include "dispatcher/calls/boxed_results.h"
#include "dispatcher/calls/warn_once.h"
#include "mica/ops/clone.h"
#include "mica/ops/select.h"
#include "mica/ops/stack.h"

namespace mica::batched {
namespace {

std::vector<Tensor> Taken(MicaValue& v) {
  if (v.tag == MICA_VALUE_TENSORS) return TakeTensorList(v.u.tensors);
  std::vector<Tensor> one;
  if (v.tag == MICA_VALUE_TENSOR) one.push_back(TakeTensor(v));
  return one;
}

// Example `e` of a batch; what is no batch itself. In the frame's parent.
Tensor ExampleOf(const Tensor& t, int64_t e, const frames::Frame& frame) {
  const frames::Wrapper* w = Opened(t, frame);
  if (!w) return t;
  return w->hidden ? ::mica::ops::op::select_int::call(w->value, 0, e) : w->value;
}

}  // namespace

void RefuseAsTheLoop(const Operator& op, const MicaValue* args, int64_t n, const frames::Frame& frame) {
  for (int64_t e = 0; e < BatchOf(frame).size; ++e) {
    const frames::ReplacedArguments example(args, n, [&](const Tensor& t) {
      const Tensor one = ExampleOf(t, e, frame);
      return op.spec().written_args ? ::mica::ops::op::clone::call(one, std::nullopt) : one;
    });
    ResultRoom results(op);
    op.CallBoxed(example.data(), n, results);
    ReplaceResults(op, results, [](const Tensor&) { return Tensor(); });
  }
}

void Loop(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results) {
  WarnOnce(absl::StrCat("vmap ", op.spec().name),
           absl::StrCat("vmap has no batch rule for the operator ", op.spec().name,
                        " and runs it once for each example, which is slow."));
  const frames::LeaveFrame left;
  const frames::Frame& frame = left.frame();
  const int64_t size = BatchOf(frame).size;
  MICA_CHECK_IMPLEMENTED(size > 0, "Operator ", op.spec().name,
                         " has no batch rule, and an empty batch has no example to learn its results from.");
  const uint64_t written = op.spec().written_args;
  frames::ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if ((written >> i) & 1) Promote(op, t, frame);
  });
  const size_t count = op.schema().returns.size();
  const bool functional = op.spec().form == OpForm::kFunctional;
  std::vector<std::vector<std::vector<Tensor>>> made(count);  // result, element of a list, example
  std::vector<bool> lists(count);
  for (int64_t e = 0; e < size; ++e) {
    const frames::ReplacedArguments example(args, n, [&](const Tensor& t) { return ExampleOf(t, e, frame); });
    ResultRoom values(op);
    op.CallBoxed(example.data(), n, values);
    for (size_t r = 0; functional && r < count; ++r) {
      const int32_t tag = values[r].tag;
      MICA_CHECK_IMPLEMENTED(
          tag == MICA_VALUE_TENSOR || tag == MICA_VALUE_TENSORS || tag == MICA_VALUE_NONE, "Operator ",
          op.spec().name,
          " returns a number or a truth value, of which a batch has one an example; call it "
          "outside of vmap.");
      lists[r] = tag == MICA_VALUE_TENSORS;
      std::vector<Tensor> taken = Taken(values[r]);
      made[r].resize(std::max(made[r].size(), taken.size()));
      for (size_t j = 0; j < taken.size(); ++j) made[r][j].push_back(std::move(taken[j]));
    }
  }
  for (size_t r = 0; functional && r < count; ++r) {
    std::vector<Tensor> wrapped;
    for (const std::vector<Tensor>& examples : made[r]) {
      if (!examples[0].defined()) {
        wrapped.emplace_back();
        continue;
      }
      for (const Tensor& t : examples) {
        MICA_CHECK(
            t.sizes() == examples[0].sizes(), "Operator ", op.spec().name,
            " returns tensors of different shapes for the examples of a batch, which cannot become one "
            "tensor; call it outside of vmap.");
      }
      wrapped.push_back(frames::Wrap(::mica::ops::op::stack::call(examples, 0), frame, Tensor(), 1));
    }
    if (lists[r]) {
      results[r].tag = MICA_VALUE_TENSORS;
      results[r].u.tensors = GiveTensorList(std::move(wrapped));
    } else {
      results[r] = OwnedTensorValue(wrapped.empty() ? Tensor() : std::move(wrapped[0]));
    }
  }
}

}  // namespace mica::batched
