// Calls operators as C functions (<mica/calls.h>): rightly, by a wrong signature, and many times over.
#include <mica/calls.h>

#include <atomic>
#include <string>

namespace {

using mica::formula::Argument;
using mica::formula::Box;
using mica::formula::Device;
using mica::formula::DType;
using mica::formula::IntSpan;
using mica::formula::Layout;
using mica::formula::Scalar;
using mica::formula::Tensor;
using mica::layer::Function;
using std::optional;

void Return(Tensor t, MicaValue* results) {
  results[0] = Box(t);
  t.release();
}

// test_caller::product(Tensor x, Tensor y) -> Tensor: it raises as x @ y does.
void Product(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  static const Function<Tensor(Tensor, Tensor)> matmul("mica::matmul");
  Return(matmul(Argument<Tensor>(args[0]), Argument<Tensor>(args[1])), results);
}

// test_caller::various(Tensor x) -> Tensor: arguments of each kind that crosses, given and None.
void Various(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  static const Function<Tensor(IntSpan, optional<DType>, optional<Layout>, optional<Device>, optional<bool>)>
      ones("mica::ones");
  static const Function<Tensor(Tensor, Tensor, Scalar)> add("mica::add.Tensor");
  static const Function<Tensor(Tensor, int64_t, optional<int64_t>, optional<int64_t>, int64_t)> slice(
      "mica::slice.Tensor");
  static const Function<Tensor(mica::formula::TensorSpan, int64_t)> cat("mica::cat");
  static const Function<void(Tensor, Tensor, bool)> copy("mica::copy_");
  static const Function<Scalar(Tensor)> item("mica::item");
  static const Function<Tensor(Tensor, optional<IntSpan>, bool, optional<DType>)> sum(
      "mica::sum.dim_IntList");
  static const Function<Tensor(Tensor)> boxed("test_caller::same");  // defined at run time
  const Tensor x = boxed(Argument<Tensor>(args[0]));
  const Tensor one = ones(x.sizes(), DType::kF64, std::nullopt, std::nullopt, false);  // of no tensor
  const Tensor both[] = {slice(add(x, one, 2.0), 0, std::nullopt, 2, 1), x};
  const Tensor joined = cat({both, 2}, 0);
  copy(slice(joined, 0, 0, 1, 1), slice(one, 0, 0, 1, 1), false);
  const double total = item(sum(joined, std::nullopt, false, std::nullopt)).ToDouble();
  Return(add(joined, one.size(0) == 1 ? one : slice(one, 0, 0, 1, 1), Scalar(total)), results);
}
void Same(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  Return(Argument<Tensor>(args[0]), results);
}

// test_caller::lie(int which) -> (): a Function that is not what the schema asks for.
void Lie(const MicaCall*, const MicaValue* args, int64_t, MicaValue*, int64_t) {
  if (args[0].u.i == 0) Function<Tensor(Tensor)>("mica::add.Tensor");
  if (args[0].u.i == 1) Function<Tensor(Tensor, IntSpan, Scalar)>("mica::add.Tensor");
  if (args[0].u.i == 2) Function<void(Tensor)>("mica::neg");
  if (args[0].u.i == 3) Function<Tensor(Tensor)>("mica::nobodys");
}

std::atomic<int64_t> g_calls{0};

// test_caller::wrong(Tensor x, int calls) -> int: how often neg of x, all ones, is not minus one.
void Wrong(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  static const Function<Tensor(Tensor)> neg("mica::neg");
  const auto x = Argument<Tensor>(args[0]);
  int64_t wrong = 0;
  for (int64_t i = 0; i < args[1].u.i; ++i, ++g_calls) {
    const Tensor y = neg(x);
    const float* const data = mica::plugin::TensorRef(y.get()).data<float>();
    for (int64_t j = 0; j < y.numel(); ++j) wrong += data[j] != -1;
  }
  results[0] = Box(wrong);
}
// test_caller::calls() -> int: of neg so far.
void Calls(const MicaCall*, const MicaValue*, int64_t, MicaValue* results, int64_t) {
  results[0] = Box(g_calls.load());
}

void Init(const MicaHost*, const MicaRegistrar* r) {
  mica::plugin::Registrar cpu(r, "cpu");
  cpu.Define("test_caller::product(Tensor x, Tensor y) -> Tensor");
  cpu.Boxed<&Product>("test_caller::product");
  cpu.Define("test_caller::various(Tensor x) -> Tensor");
  cpu.Boxed<&Various>("test_caller::various");
  cpu.Define("test_caller::same(Tensor x) -> Tensor");
  cpu.Boxed<&Same>("test_caller::same");
  cpu.Define("test_caller::lie(int which) -> ()");
  cpu.Boxed<&Lie>("test_caller::lie");
  cpu.Define("test_caller::wrong(Tensor x, int calls) -> int");
  cpu.Boxed<&Wrong>("test_caller::wrong");
  cpu.Define("test_caller::calls() -> int");
  cpu.Boxed<&Calls>("test_caller::calls");
}

}  // namespace

MICA_PLUGIN("caller", "Mica tests", "1.0", "", "", "operators:test_caller", Init)
