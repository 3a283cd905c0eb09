// Lists of tensors in one call of a device's class kernel, and which rows go one by one. The kernels here add
// their first two arguments, whatever the operator.
#include "dispatcher/calls/list_call.h"

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/thread_state.h"
#include "test/support/mica_test.h"
#include "test/unit/dispatcher/lazy_device.h"

namespace mica::testing {
namespace {

int64_t g_lists = 0, g_rows = 0;
bool g_declines = false;

void AddRow(const MicaValue* args, MicaTensor* out) {
  for (int64_t i = 0; i < Tensor::Ref(out).numel(); ++i)
    static_cast<float*>(out->dl.data)[i] =
        static_cast<float*>(args[0].u.tensor->dl.data)[i] + static_cast<float*>(args[1].u.tensor->dl.data)[i];
}
MicaStatus AddOne(const MicaCall*, const MicaValue* args, int64_t, MicaTensor* const* outs, int64_t) {
  AddRow(args, outs[0]);
  return nullptr;
}
MicaStatus AddList(const MicaCall*, const MicaValue* args, int64_t n, MicaTensor* const* outs, int64_t,
                   int64_t rows) {
  if (g_declines) return BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
  for (int64_t i = 0; i < rows; ++i) AddRow(args + i * n, outs[i]);
  ++g_lists;
  g_rows += rows;
  return nullptr;
}

// The device "lazy" with kernels for lists, while it lives.
class WithLists {
 public:
  WithLists() : scope_(Scope::Create("lists", "")) {
    Lazy();
    MicaClassRecord r{};
    r.struct_size = sizeof(r);
    r.class_name = "pointwise";
    r.backend = "lazy";
    r.function = &AddOne;
    r.list_function = &AddList;
    REQUIRE(scope_->AddClass(r).ok());
    REQUIRE(scope_->Commit().ok());
    g_lists = g_rows = 0;
    g_declines = false;
  }

 private:
  std::shared_ptr<Scope> scope_;
};

Tensor Filled(IntSpan sizes, float value) {
  const Tensor t = EmptyTensor(sizes, DType::kF32, Device{static_cast<int16_t>(BackendIndex("lazy")), 0});
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = value;
  return t;
}

// Rows of add.Tensor's forms: self, other, alpha, and for add.out the output.
std::vector<bool> Call(const char* op, const std::vector<std::vector<Tensor>>& rows,
                       std::vector<Tensor>& results) {
  ListOfCalls calls{GetOperator(op), {}, rows.size()};
  for (const std::vector<Tensor>& row : rows) {
    calls.args.push_back(AbiType<const Tensor&>::Box(row[0].impl()));
    calls.args.push_back(AbiType<const Tensor&>::Box(row[1].impl()));
    calls.args.push_back(AbiType<const Scalar&>::Box(Scalar(int64_t{1}).ToAbi()));
    for (size_t i = 2; i < row.size(); ++i) calls.args.push_back(AbiType<const Tensor&>::Box(row[i].impl()));
  }
  results.resize(rows.size());
  return CallList(calls, results);
}

TEST_CASE("rows of different shapes go to the device in one call", "[dispatcher]") {
  const WithLists lists;
  std::vector<Tensor> results;
  const auto done = Call("mica::add.Tensor",
                         {{Filled({2}, 1), Filled({2}, 2)}, {Filled({3, 2}, 3), Filled({3, 2}, 4)}}, results);
  CHECK(done == std::vector<bool>{true, true});
  CHECK((g_lists == 1 && g_rows == 2));
  CHECK(results[1].sizes() == IntSpan({3, 2}));
  CHECK((results[0].data_as<float>()[1] == 3 && results[1].data_as<float>()[5] == 7));
}

TEST_CASE("lists are written in place, and their versions count", "[dispatcher]") {
  const WithLists lists;
  std::vector<Tensor> none;
  const Tensor a = Filled({2}, 1), b = Filled({4}, 2), c = Filled({0}, 0);
  const uint32_t before = a.version();
  CHECK(Call("mica::add_.Tensor", {{a, a}, {b, Filled({4}, 5)}, {c, c}}, none) ==
        std::vector<bool>{true, true, true});
  CHECK((g_lists == 1 && g_rows == 2));  // a row without elements needs no kernel
  CHECK((a.data_as<float>()[0] == 2 && b.data_as<float>()[3] == 7 && a.version() == before + 1));
}

TEST_CASE("an unusual row goes by itself, the others together", "[dispatcher]") {
  const WithLists lists;
  std::vector<Tensor> none;
  const auto row = [](const Tensor& out) { return std::vector<Tensor>{Filled({2}, 1), Filled({2}, 2), out}; };
  const Tensor resized = Filled({5}, 0), apart = Filled({4}, 0);
  const Tensor gaps = MakeView(apart, {2}, {2}, 0);
  const Device cpu;
  const std::vector<Tensor> broadcast = {Filled({2}, 1), Filled({1}, 2), Filled({2}, 0)};
  const std::vector<Tensor> elsewhere = {Filled({2}, 1), EmptyTensor({2}, DType::kF32, cpu), Filled({2}, 0)};
  CHECK(Call("mica::add.out",
             {row(Filled({2}, 0)), row(resized), row(gaps), broadcast, elsewhere, row(Filled({2}, 0))},
             none) == std::vector<bool>{true, false, false, false, false, true});
  CHECK((g_lists == 1 && g_rows == 2));
}

TEST_CASE("rows that share memory with what another writes go one by one", "[dispatcher]") {
  const WithLists lists;
  std::vector<Tensor> none;
  const Tensor a = Filled({2}, 1), b = Filled({2}, 2), flat = Filled({4}, 1);
  const std::vector<bool> neither = {false, false};
  CHECK(Call("mica::add_.Tensor", {{a, b}, {b, b}}, none) == neither);
  CHECK(Call("mica::add_.Tensor", {{a, a}, {a, a}}, none) == neither);
  // A row that goes by itself may neither, whatever it is that makes it unusual.
  const Tensor gaps = MakeView(flat, {2}, {2}, 0);
  CHECK(Call("mica::add_.Tensor", {{gaps, a}, {b, MakeView(flat, {2}, {1}, 0)}, {Filled({2}, 1), a}}, none) ==
        std::vector<bool>{false, false, false});
  // Parts of one storage that lie apart are no such rows.
  const Tensor left = MakeView(flat, {2}, {1}, 0), right = MakeView(flat, {2}, {1}, 2 * sizeof(float));
  CHECK(Call("mica::add_.Tensor", {{left, a}, {right, a}}, none) == std::vector<bool>{true, true});
  CHECK(g_lists == 1);
}

TEST_CASE("lists that the device declines, and one row, are left to their calls", "[dispatcher]") {
  const WithLists lists;
  std::vector<Tensor> none;
  const Tensor a = Filled({2}, 1), b = Filled({2}, 2);
  CHECK(Call("mica::add_.Tensor", {{a, a}}, none) == std::vector<bool>{false});
  g_declines = true;
  CHECK(Call("mica::add_.Tensor", {{a, a}, {b, b}}, none) == std::vector<bool>{false, false});
  CHECK((a.data_as<float>()[0] == 1 && g_lists == 0));
}

}  // namespace
}  // namespace mica::testing
