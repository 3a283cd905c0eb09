// What has no rule: the operator once an example, the results stacked.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

std::vector<Tensor> Taken(MicaValue& v) {
  std::vector<Tensor> taken(v.tag == MICA_VALUE_TENSORS  ? static_cast<size_t>(v.u.tensors.size)
                            : v.tag == MICA_VALUE_TENSOR ? 1
                                                         : 0);
  if (v.tag == MICA_VALUE_TENSORS)
    layer::Table()->take_list(&v, reinterpret_cast<MicaTensor**>(taken.data()));
  else if (!taken.empty())
    taken[0] = formula::Unboxed<Tensor>::Take(v);
  return taken;
}

// Example `e` of a batch; what is no batch itself. In the frame's parent.
Tensor ExampleOf(const Tensor& t, int64_t e, const MicaFrame& frame) {
  const MicaWrapper* const w = Opened(t.get(), frame);
  if (!w) return t;
  Tensor value = Tensor::Borrow(w->value);
  return w->hidden ? ops::select(value, 0, e) : value;
}

void WarnOnce(const std::string& key, const std::string& message) {
  layer::Table()->warn_once(plugin::Str(key), plugin::Str(message));
}

}  // namespace

void RefuseAsTheLoop(const Op& op, const MicaValue* args, int64_t n, const MicaFrame& frame) {
  for (int64_t e = 0; e < BatchOf(frame).size; ++e) {
    const layer::ReplacedArguments example(args, n, [&](const Tensor& t) {
      const Tensor one = ExampleOf(t, e, frame);
      return op.info->written_args ? ops::clone(one, std::nullopt) : one;
    });
    Results results(static_cast<size_t>(op.info->num_results));
    CallBoxed(op, example.data(), n, results.data());
    layer::ReplaceResults(*op.info, results.data(), [](const Tensor&) { return Tensor(); });
  }
}

void Loop(const Op& op, const MicaValue* args, int64_t n, MicaValue* results) {
  WarnOnce("vmap " + std::string(op.name()), "vmap has no batch rule for the operator " +
                                                 std::string(op.name()) +
                                                 " and runs it once for each example, which is slow.");
  const layer::LeaveFrame left;
  const MicaFrame& frame = left.frame();
  const int64_t size = BatchOf(frame).size;
  MICA_CHECK_IMPLEMENTED(size > 0, "Operator ", op.name(),
                         " has no batch rule, and an empty batch has no example to learn its results from.");
  const uint64_t written = op.info->written_args;
  ForEachTensor(args, n, [&](MicaTensor* t, int64_t i) {
    if ((written >> i) & 1) Promote(op, t, frame);
  });
  const size_t count = static_cast<size_t>(op.info->num_results);
  const bool functional = op.info->form == MICA_FORM_FUNCTIONAL;
  std::vector<std::vector<std::vector<Tensor>>> made(count);  // result, element of a list, example
  std::vector<bool> lists(count);
  for (int64_t e = 0; e < size; ++e) {
    const layer::ReplacedArguments example(args, n, [&](const Tensor& t) { return ExampleOf(t, e, frame); });
    Results values(count);
    CallBoxed(op, example.data(), n, values.data());
    bool refused = false;
    for (size_t r = 0; functional && r < count; ++r) {
      const int32_t tag = values[r].tag;
      if (tag == MICA_VALUE_OBJECT) plugin::Host()->object_release(values[r].u.object);
      if (tag != MICA_VALUE_TENSOR && tag != MICA_VALUE_TENSORS && tag != MICA_VALUE_NONE) {
        refused = true;
        continue;
      }
      lists[r] = tag == MICA_VALUE_TENSORS;
      std::vector<Tensor> taken = Taken(values[r]);
      made[r].resize(std::max(made[r].size(), taken.size()));
      for (size_t j = 0; j < taken.size(); ++j) made[r][j].push_back(std::move(taken[j]));
    }
    MICA_CHECK_IMPLEMENTED(
        !refused, "Operator ", op.name(),
        " returns a number, a truth value or an object, of which a batch has one an example; call it "
        "outside of vmap.");
  }
  for (size_t r = 0; functional && r < count; ++r) {
    std::vector<Tensor> wrapped;
    for (const std::vector<Tensor>& examples : made[r]) {
      const auto defined =
          std::count_if(examples.begin(), examples.end(), [](const Tensor& t) { return t.defined(); });
      MICA_CHECK(
          static_cast<int64_t>(examples.size()) == size && (defined == 0 || defined == size), "Operator ",
          op.name(),
          " returns a tensor for some examples of a batch and none for others, which cannot become one "
          "tensor; call it outside of vmap.");
      if (defined == 0) {
        wrapped.emplace_back();
        continue;
      }
      for (const Tensor& t : examples) {
        MICA_CHECK(
            t.sizes() == examples[0].sizes(), "Operator ", op.name(),
            " returns tensors of different shapes for the examples of a batch, which cannot become one "
            "tensor; call it outside of vmap.");
      }
      wrapped.push_back(Wrapped(ops::stack(examples, 0), frame));
    }
    if (lists[r]) {
      results[r] = layer::GivenList(std::move(wrapped));
    } else {
      results[r] = Given(wrapped.empty() ? Tensor() : std::move(wrapped[0]));
    }
  }
}

}  // namespace mica::batched
