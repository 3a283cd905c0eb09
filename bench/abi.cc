// What the plugin border costs: `neg.out` on four floats, its kernel in this program
// or in a plugin.
//
//   bench_abi direct N          N calls of the kernel as a C++ function
//   bench_abi tree N            N calls of the operator, the kernel compiled in here
//   bench_abi function N        the same, by the C function that layers get of the operator
//   bench_abi <plugin.so> N     N calls of the operator, the same kernel in the plugin
//   bench_abi ... N other.so    the same, with another plugin loaded
//   bench_abi mul N             N calls of `mul` on four floats, by the CPU's plugin
//
// Run under callgrind by test/abi/test_cost.py and test_layers.py, which count instructions.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "dispatcher/calls/typed_operator_impl.h"
#include "dispatcher/layers/layers_extension.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/registration/registration.h"
#include "mica/ops/mul.h"
#include "test/abi/plugins/neg_kernel.h"

namespace {

using namespace mica;

MicaStatus Neg(const MicaCall*, MicaTensor* self, MicaTensor* out) {
  NegateFloats(self, out);
  return nullptr;
}

absl::Status RegisterInTree(Scope& scope) {
  MicaKernelRecord r{};
  r.struct_size = sizeof(r);
  r.name = "mica::neg.out";
  r.backend = "cpu";
  r.function = reinterpret_cast<MicaFunction>(&Neg);
  if (absl::Status s = scope.AddLeaf(r); !s.ok()) return s;
  return scope.Commit();
}

Tensor FourFloats() {
  const Tensor x = EmptyTensor({4}, DType::kF32, {});
  for (int i = 0; i < 4; ++i) x.data_as<float>()[i] = static_cast<float>(i);
  return x;
}

int CallMul(int64_t n) {
  const Tensor x = FourFloats();
  Tensor product;
  for (int64_t i = 0; i < n; ++i) product = ops::mul(x, x);
  return product.data_as<float>()[3] == 9.0f ? 0 : 1;
}

int CallInCore(const Operator& op, int64_t n) {
  const Tensor x = FourFloats(), y = FourFloats();
  for (int64_t i = 0; i < n; ++i) TypedOperator<void(const Tensor&, const Tensor&)>::Call(op, x, y);
  return y.data_as<float>()[3] == -3.0f ? 0 : 1;
}

int CallFunction(const Operator& op, int64_t n) {
  const Tensor x = FourFloats(), y = FourFloats();
  void* const handle = const_cast<Operator*>(&op);
  MicaFunction function = nullptr;
  if (LayersExtension()->call_of(handle, "tt>v", &function) || !function) return 1;
  const auto call = reinterpret_cast<MicaStatus (*)(void*, MicaTensor*, MicaTensor*)>(function);
  for (int64_t i = 0; i < n; ++i)
    if (call(handle, x.impl(), y.impl())) return 1;
  return y.data_as<float>()[3] == -3.0f ? 0 : 1;
}

int CallDirectly(int64_t n) {
  const Tensor x = FourFloats(), y = FourFloats();
  for (int64_t i = 0; i < n; ++i) NegateFloats(x.impl(), y.impl());
  return y.data_as<float>()[3] == -3.0f ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const int64_t n = std::atoll(argv[2]);
  if (std::string(argv[1]) == "mul") return CallMul(n);
  if (std::string(argv[1]) == "direct") return CallDirectly(n);
  auto device = Scope::Create("device", ""), scope = Scope::Create("tree", "");
  device->AddBackend("cpu");
  if (!device->Commit().ok()) return 1;
  const bool by_function = std::string(argv[1]) == "function";
  const bool in_tree = by_function || std::string(argv[1]) == "tree";
  const absl::Status ready = in_tree ? RegisterInTree(*scope) : LoadPlugin(argv[1]);
  if (!ready.ok()) {
    std::fprintf(stderr, "%s\n", std::string(ready.message()).c_str());
    return 1;
  }
  if (!in_tree && RegistrationsOf(RealPath(argv[1])).empty()) return 1;  // its kernel was left out
  if (argc == 4 && !LoadPlugin(argv[3]).ok()) return 1;
  const Operator& op = GetOperator("mica::neg.out");
  return by_function ? CallFunction(op, n) : CallInCore(op, n);
}
