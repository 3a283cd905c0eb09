#include "test/unit/autograd/fixture.h"

#include <cmath>

#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/registration.h"
#include "mica/ops/copy_.h"
#include "mica/ops/mul.h"
#include "mica/ops/sum.h"

namespace mica::testing {

AutogradInterface& Autograd() {
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
  return GetAutogradInterface();
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

void Backward(const Tensor& t, const Tensor& grad, BackwardOptions options) {
  Autograd().Backward({&t, 1}, {&grad, 1}, {}, options);
}
void Backward(const Tensor& t, BackwardOptions options) { Autograd().Backward({&t, 1}, {}, {}, options); }

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
  const std::vector<Tensor> grads =
      Autograd().Gradients({&loss, 1}, inputs, {}, {.allow_unused = true, .materialize_grads = true});
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
        {&loss, 1}, in, {}, {.create_graph = true, .allow_unused = true, .materialize_grads = true});
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
