#include "test/unit/autograd/fixture.h"

#include <cmath>

#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/registration.h"
#include "mica/ops/copy_.h"
#include "mica/ops/mul.h"
#include "mica/ops/sum.h"

namespace mica::testing {

namespace {

// A function as what is held for a hook.
template <typename F>
MicaHeld Hold(F f) {
  return {new F(std::move(f)), [](void* object) { delete static_cast<F*>(object); }};
}
template <typename F>
F& As(void* object) {
  return *static_cast<F*>(object);
}

python::GradientPoints PointsFrom(TensorSpan tensors) {
  python::GradientPoints points;
  for (const Tensor& t : tensors) points.push_back({t, {}});
  return points;
}

// Lets `f` change a list of tensors that C owns.
template <typename F>
MicaStatus ChangeList(MicaTensor** tensors, int64_t n, F&& f) {
  return CatchAll([&] {
    std::vector<Tensor> list;
    for (int64_t i = 0; i < n; ++i) list.push_back(tensors[i] ? Tensor::Borrow(tensors[i]) : Tensor());
    f(list);
    for (int64_t i = 0; i < n; ++i) {
      const Tensor before = Tensor::Steal(tensors[i]);
      tensors[i] = list[static_cast<size_t>(i)].release();
    }
  });
}
std::vector<Tensor> Copied(MicaTensor* const* tensors, int64_t n) {
  const TensorSpan span = AbiType<TensorSpan>::From({tensors, n});
  return {span.begin(), span.end()};
}

constexpr MicaCustomFunction kLambdaFunction = {
    .struct_size = sizeof(MicaCustomFunction),
    .backward =
        [](void* object, MicaTensorSpan grads, MicaTensor** gradients, int64_t n) {
          return CatchAll([&] {
            std::vector<Tensor> given = As<LambdaBackward>(object).apply(Copied(grads.data, grads.size));
            REQUIRE(std::ssize(given) <= n);
            for (Tensor& t : given) *gradients++ = t.release();
          });
        },
    .release_saved =
        [](void* object) {
          if (As<LambdaBackward>(object).release) As<LambdaBackward>(object).release();
        },
    .keep = nullptr,
    .visit_held = nullptr,
    .destroy = [](void* object) { delete &As<LambdaBackward>(object); },
};

}  // namespace

void TestedAutograd::Backward(TensorSpan outputs, TensorSpan grads, TensorSpan inputs, uint64_t flags) const {
  Autograd::Backward(PointsFrom(outputs), grads, PointsFrom(inputs), flags);
}
std::vector<Tensor> TestedAutograd::Gradients(TensorSpan outputs, TensorSpan inputs, TensorSpan grad_outputs,
                                              uint64_t flags) const {
  return Autograd::Gradients(PointsFrom(outputs), PointsFrom(inputs), grad_outputs, flags);
}
HookRemover TestedAutograd::AddTensorHook(const Tensor& t, std::function<Tensor(const Tensor&)> hook) const {
  using F = std::function<Tensor(const Tensor&)>;
  const auto call = [](void* f, MicaTensor* grad) {
    return AbiReturn<Tensor>::PackNoexcept([&] { return As<F>(f)(Tensor::Ref(grad)); });
  };
  return Autograd::AddTensorHook(t, call, Hold(std::move(hook)));
}
HookRemover TestedAutograd::AddAccumulateHook(const Tensor& leaf,
                                              std::function<void(const Tensor&)> hook) const {
  using F = std::function<void(const Tensor&)>;
  const auto call = [](void* f, MicaTensor* t) { return CatchAll([&] { As<F>(f)(Tensor::Ref(t)); }); };
  return Autograd::AddAccumulateHook(leaf, call, Hold(std::move(hook)));
}
HookRemover TestedAutograd::AddNodeHook(MicaNode* node,
                                        std::function<void(std::vector<Tensor>&)> hook) const {
  using F = std::function<void(std::vector<Tensor>&)>;
  const auto call = [](void* f, MicaTensor** grads, int64_t n) { return ChangeList(grads, n, As<F>(f)); };
  return Autograd::AddNodeHook(node, call, Hold(std::move(hook)));
}
HookRemover TestedAutograd::AddNodePostHook(
    MicaNode* node, std::function<void(std::vector<Tensor>&, const std::vector<Tensor>&)> hook) const {
  using F = std::function<void(std::vector<Tensor>&, const std::vector<Tensor>&)>;
  const auto call = [](void* f, MicaTensor** in, int64_t n, MicaTensor* const* out, int64_t num_out) {
    return ChangeList(in, n, [&](std::vector<Tensor>& list) { As<F>(f)(list, Copied(out, num_out)); });
  };
  return Autograd::AddNodePostHook(node, call, Hold(std::move(hook)));
}
void TestedAutograd::QueueCallback(std::function<void()> callback) const {
  using F = std::function<void()>;
  const auto call = [](void* f) { return CatchAll(As<F>(f)); };
  Autograd::QueueCallback(call, Hold(std::move(callback)));
}
void TestedAutograd::PushSavedTensorHooks(LambdaHooks hooks) const {
  const auto pack = [](void* f, MicaTensor* t, MicaHeld* packed) {
    return CatchAll([&] { *packed = Hold(As<LambdaHooks>(f).pack(Tensor::Ref(t))); });
  };
  const auto unpack = [](void* f, void* packed) {
    return AbiReturn<Tensor>::PackNoexcept(
        [&] { return As<LambdaHooks>(f).unpack(As<std::vector<double>>(packed)); });
  };
  Autograd::PushSavedTensorHooks({sizeof(MicaSavedTensorHooks), pack, unpack, Hold(std::move(hooks))});
}
NodePtr TestedAutograd::MakeCustomNode(LambdaBackward backward, TensorSpan inputs) const {
  const std::string name = backward.name;
  return Autograd::MakeCustomNode(kLambdaFunction, new LambdaBackward(std::move(backward)), name, inputs);
}

const TestedAutograd& Autograd() {
  static const std::shared_ptr<Scope> cpu = [] {
    std::shared_ptr<Scope> scope = Scope::Create("portable cpu", "");
    scope->AddBackend("cpu");
    REQUIRE(scope->Commit().ok());
    const absl::Status loaded =
        LoadPlugin(std::string(MICA_BUILD_DIR) + "/lib/mica/plugins/mica_autograd.so");
    INFO(std::string(loaded.message()));
    REQUIRE(loaded.ok());
    return scope;
  }();
  static const TestedAutograd table(&AutogradTable());
  return table;
}

Tensor Values(std::vector<double> values, IntSpan sizes) {
  Autograd();
  Tensor t = EmptyTensor(sizes, DType::kF64, Device{});
  std::copy(values.begin(), values.end(), t.data_as<double>());
  return t;
}
Tensor Values(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Values(std::move(values), {n});
}
Tensor Leaf(std::vector<double> values, IntSpan sizes) {
  Tensor t = Values(std::move(values), sizes);
  Autograd().SetRequiresGrad(t, true);
  return t;
}
Tensor Leaf(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Leaf(std::move(values), {n});
}

std::vector<double> Read(const Tensor& t) {
  if (!t.defined()) return {};
  const GradModeGuard guard(false);
  Tensor flat = EmptyTensor(t.sizes(), DType::kF64, Device{});
  ops::copy_(flat, Autograd().Detach(t));
  return std::vector<double>(flat.data_as<double>(), flat.data_as<double>() + flat.numel());
}

void Backward(const Tensor& t, const Tensor& grad, uint64_t flags) {
  Autograd().Backward({&t, 1}, {&grad, 1}, {}, flags);
}
void Backward(const Tensor& t, uint64_t flags) { Autograd().Backward({&t, 1}, {}, {}, flags); }

namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

Tensor WeightsFor(const Tensor& t) {
  Tensor w = EmptyTensor(t.sizes(), DType::kF64, Device{});
  for (int64_t i = 0; i < w.numel(); ++i)
    w.data_as<double>()[i] = std::cos(static_cast<double>(3 * i + 1)) + 1.5;
  return w;
}

Tensor WeightedSum(const Function& f, const std::vector<Tensor>& inputs) {
  const Tensor y = f(inputs);
  return ops::sum(ops::mul(y, WeightsFor(y)));
}

double Number(const Tensor& t) { return Read(t)[0]; }

double ErrorOf(const Function& scalar, const std::vector<Tensor>& inputs) {
  const Tensor loss = scalar(inputs);
  const std::vector<Tensor> grads = Autograd().Gradients(
      {&loss, 1}, inputs, {}, MICA_BACKWARD_ALLOW_UNUSED | MICA_BACKWARD_MATERIALIZE_GRADS);
  double worst = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<double> analytic = Read(grads[k]);
    double* data = inputs[k].data_as<double>();
    for (size_t i = 0; i < analytic.size(); ++i) {
      const double x = data[i], h = 1e-6 * std::max(1.0, std::fabs(x));
      data[i] = x + h;
      const double up = Number(scalar(inputs));
      data[i] = x - h;
      const double down = Number(scalar(inputs));
      data[i] = x;
      worst = std::max(
          worst, std::fabs((up - down) / (2 * h) - analytic[i]) / std::max(1.0, std::fabs(analytic[i])));
    }
  }
  return worst;
}

}  // namespace

double GradientError(const Function& f, const std::vector<Tensor>& inputs) {
  return ErrorOf([&](const std::vector<Tensor>& in) { return WeightedSum(f, in); }, inputs);
}

double SecondGradientError(const Function& f, const std::vector<Tensor>& inputs) {
  const auto first = [&](const std::vector<Tensor>& in) {
    const Tensor loss = WeightedSum(f, in);
    const std::vector<Tensor> grads = Autograd().Gradients(
        {&loss, 1}, in, {}, MICA_BACKWARD_CREATE_GRAPH | MICA_BACKWARD_MATERIALIZE_GRADS);
    Tensor sum;
    for (const Tensor& g : grads) {
      const Tensor part = ops::sum(ops::mul(ops::mul(g, g), WeightsFor(g)));
      sum = sum.defined() ? ops::sum(ops::mul(sum, part)) : part;
    }
    return sum;
  };
  return ErrorOf(first, inputs);
}

}  // namespace mica::testing
