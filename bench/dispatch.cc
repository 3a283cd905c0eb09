// What a C++ call through the dispatcher costs to an empty kernel, with 0, 1 and 3
// layers that pass it on, and with 1 layer that falls through.
//
//   bench_dispatch              nanoseconds a call, as JSON
//   bench_dispatch N LAYERS     N calls and nothing else (to count instructions)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "dispatcher/calls/typed_operator_impl.h"
#include "dispatcher/registration/registration.h"
#include "dispatcher/tables/keys.h"

namespace {

using namespace mica;
using Neg = TypedOperator<Tensor(const Tensor&)>;

MicaTensorResult Empty(void*, uint64_t, MicaTensor*) { return {nullptr, nullptr}; }

const Operator* g_op = nullptr;
template <int kLayer>
int g_bit = 0;
template <int kLayer>
Tensor PassOn(KeySet keys, const Tensor& x) {
  return Neg::Redispatch(*g_op, keys & KeySet::Below(g_bit<kLayer>), x);
}

template <int kLayer>
KeySet AddLayer(Scope& scope, const char* name) {
  g_bit<kLayer> = RegisterLayer(name, {"Autocast", "Autograd"}).value();
  scope.AddKernel("mica::neg", name, LayerKernel<&PassOn<kLayer>>::Get(), nullptr, {});
  return KeySet::Of(g_bit<kLayer>);
}

void Run(const Tensor& x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) Neg::Call(*g_op, x);
}

double Nanoseconds(const Tensor& x) {
  std::vector<double> times;
  constexpr int64_t kCalls = 200000;
  for (int i = 0; i < 21; ++i) {
    const auto start = std::chrono::steady_clock::now();
    Run(x, kCalls);
    times.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kCalls);
  }
  std::nth_element(times.begin(), times.begin() + 10, times.end());
  return times[10];
}

}  // namespace

int main(int argc, char** argv) {
  auto scope = Scope::Create("bench", "");
  scope->AddBackend("cpu");
  scope->AddKernel("mica::neg", "cpu", reinterpret_cast<MicaFunction>(&Empty), nullptr, {});
  const KeySet one = AddLayer<0>(*scope, "bench_a");
  const KeySet three = one | AddLayer<1>(*scope, "bench_b") | AddLayer<2>(*scope, "bench_c");
  const KeySet passing = KeySet::Of(RegisterLayer("bench_falls_through", {"Autocast", "Autograd"}).value());
  if (!scope->Commit().ok()) return 1;
  g_op = &GetOperator("mica::neg");
  const Tensor x = EmptyTensor({4}, DType::kF32, {});
  const auto keys_for = [&](const std::string& layers) {
    return layers == "1" ? one : layers == "3" ? three : layers == "falls through" ? passing : KeySet();
  };
  if (argc == 3) {
    const IncludeGuard include(keys_for(argv[2]));
    Run(x, std::atoll(argv[1]));
    return 0;
  }
  std::printf("{");
  const char* separator = "";
  for (const char* layers : {"0", "1", "3", "falls through"}) {
    const IncludeGuard include(keys_for(layers));
    std::printf("%s\"%s\": %.2f", separator, layers, Nanoseconds(x));
    separator = ", ";
  }
  std::printf("}\n");
}
