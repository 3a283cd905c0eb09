// Scopes, layers and overrides: what is registered is called, and what leaves is
// gone. Operators here are defined at run time and called with boxed arguments;
// each test brings its own, so that their order does not matter.
#include "dispatcher/calls/adapters.h"
#include "dispatcher/explain/explain.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/tables/dispatcher.h"
#include "test/support/mica_test.h"
#include "test/unit/dispatcher/test_operators.h"

namespace mica::testing {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("a layer gets a bit between its neighbours", "[dispatcher]") {
  const int bit = Layer("between", "Autocast", "Autograd");
  CHECK(bit < LayerBit("Autocast"));
  CHECK(bit > LayerBit("Autograd"));
  CHECK(Layer("between", "", "") == bit);
  const int above = Layer("above_between", "Autocast", "between");
  CHECK(above > bit);
}

TEST_CASE("Mica's own layers have their bits, and are no third party's", "[dispatcher]") {
#define X(bit, name, does)       \
  CHECK(LayerBit(#name) == bit); \
  CHECK_FALSE(IsThirdPartyLayer(bit));
  MICA_FORALL_LAYERS(X)
#undef X
}

TEST_CASE("five third-party layers fit between neighbours that they may part", "[dispatcher]") {
  const std::pair<int, int> gaps[] = {
      {keys::kFunctionMode, keys::kAutocast},    {keys::kAutocast, keys::kFrame},
      {keys::kFrameEscape, keys::kAutograd},     {keys::kFrameBelow, keys::kDispatchMode},
      {keys::kPythonSubclass, keys::kConjugate}, {keys::kNegative, keys::kNoData}};
  for (const auto& [above, below] : gaps) CHECK(above - below - 1 >= 5);
}

TEST_CASE("a layer's place is refused with the reason", "[dispatcher]") {
  CHECK(std::string(RegisterLayer("lost", {"NoSuchLayer", ""}).status().message())
            .find("unknown neighbour (NoSuchLayer)") != std::string::npos);
  CHECK(std::string(RegisterLayer("twisted", {"Autograd", "Autocast"}).status().message())
            .find("which makes a cycle: Autograd stands after Autocast") != std::string::npos);
  const int placed = *RegisterLayer("placed", {"frames", "autograd"});
  CHECK(placed < LayerBit("FrameEscape"));
  CHECK(placed > LayerBit("Autograd"));
  CHECK(std::string(RegisterLayer("placed", {"Autograd", ""}).status().message())
            .find("placed has a place already, which is not there") != std::string::npos);
  absl::Status full;
  for (int i = 0; i < 40 && full.ok(); ++i)
    full = RegisterLayer("filler" + std::to_string(i), {"FrameEscape", "Autograd"}).status();
  CHECK(std::string(full.message()).find("No bit is free") != std::string::npos);
}

TEST_CASE("a scope that is given up gives its layers and kinds back", "[dispatcher]") {
  const auto given_up = Scope::Create("given up", "");
  const int bit = *given_up->AddLayer("brief", {"Autograd", ""});
  const int kind = *given_up->AddKind({"brief kind", "", false, nullptr});
  CHECK(LayerBit("brief") == bit);
  CHECK_FALSE(frames::IsKindEnabled(kind));  // before Commit
  given_up->Abandon();
  CHECK(LayerBit("brief") == -1);
  CHECK(frames::KindNumber("brief kind") == -1);
  const auto next = Scope::Create("next", "");
  CHECK(*next->AddKind({"next kind", "", false, nullptr}) == kind);
  REQUIRE(next->Commit().ok());
  { const frames::FrameScope entered(kind); }
  next->Disable();
  MICA_REQUIRE_ERROR((frames::FrameScope(kind), 0), "The frame kind (next kind) is not to be entered");
  const auto thief = Scope::Create("thief", "");
  CHECK(thief->AddKind({"next kind", "", false, nullptr}).ok());  // nobody holds it
  REQUIRE(next->Enable().ok());
  CHECK(std::string(Scope::Create("late", "")->AddKind({"next kind", "", false, nullptr}).status().message())
            .find("registered by plugin (next) already") != std::string::npos);
}

TEST_CASE("an operator defined at run time is called at its backend", "[dispatcher]") {
  auto scope = Scope::Create("test", "");
  scope->AddBoxedKernel("test::early", "cpu", Leaf("cpu kernel"), {});  // before the definition
  REQUIRE(scope->Define("test::early(Tensor x) -> int", {"here.cc", 3}).ok());
  REQUIRE(scope->Commit().ok());
  Trace().clear();
  CHECK(CallWithTensor(GetOperator("test::early"), EmptyTensor({2}, DType::kF32, {})) == 8);
  CHECK(Trace() == Names{"cpu kernel"});
}

TEST_CASE("a kernel may come before its operator, from another scope", "[dispatcher]") {
  auto kernels = Scope::Create("kernels", "");
  kernels->AddBoxedKernel("test::later", "cpu", Leaf("waiting"), {});
  REQUIRE(kernels->Commit().ok());
  auto definition = Scope::Create("definition", "");
  REQUIRE(definition->Define("test::later(Tensor x) -> int", {}).ok());
  REQUIRE(definition->Commit().ok());
  CHECK(CallWithTensor(GetOperator("test::later"), EmptyTensor({2}, DType::kF32, {})) == 8);
}

TEST_CASE("layers are passed highest first, and guards take them in and out", "[dispatcher]") {
  const int outer = Layer("outer", "Autocast", "Autograd");
  const int inner = Layer("inner", "Autograd", "DispatchMode");
  auto scope = Scope::Create("layers", "");
  REQUIRE(scope->Define("test::layered(Tensor x) -> int", {}).ok());
  scope->AddBoxedKernel("test::layered", "cpu", Leaf("cpu"), {});
  scope->AddBoxedKernel("test::layered", "outer", PassOn("outer"), {});
  scope->AddBoxedKernel("test::layered", "inner", PassOn("inner"), {});
  REQUIRE(scope->Commit().ok());
  const Operator& op = GetOperator("test::layered");
  const Tensor x = EmptyTensor({2}, DType::kF32, {});
  const IncludeGuard both(KeySet::Of(outer) | KeySet::Of(inner));
  Trace().clear();
  CallWithTensor(op, x);
  CHECK(Trace() == Names{"outer", "inner", "cpu"});
  {
    const ExcludeGuard no_outer(KeySet::Of(outer));
    Trace().clear();
    CallWithTensor(op, x);
    CHECK(Trace() == Names{"inner", "cpu"});
  }
  Trace().clear();
  CallWithTensor(op, x);
  CHECK(Trace().size() == 3);
}

TEST_CASE("a layer without a kernel is passed; a boxed fallback serves every operator", "[dispatcher]") {
  const int layer = Layer("watcher", "Autocast", "Autograd");
  auto scope = Scope::Create("ops", "");
  REQUIRE(scope->Define("test::watched(Tensor x) -> int", {}).ok());
  REQUIRE(scope->Define("test::unwatched(Tensor x) -> int", {}).ok());
  scope->AddBoxedKernel("test::watched", "cpu", Leaf("cpu"), {});
  scope->AddBoxedKernel("test::unwatched", "cpu", Leaf("cpu"), {});
  scope->AddFallthrough("test::unwatched", "watcher");
  REQUIRE(scope->Commit().ok());
  const Tensor x = EmptyTensor({2}, DType::kF32, {});
  const IncludeGuard include(KeySet::Of(layer));
  Trace().clear();
  CallWithTensor(GetOperator("test::watched"), x);
  CHECK(Trace() == Names{"cpu"});
  auto fallback = Scope::Create("watcher", "");
  fallback->AddBoxedFallback("watcher", PassOn("watcher"), {});
  REQUIRE(fallback->Commit().ok());
  Trace().clear();
  CallWithTensor(GetOperator("test::watched"), x);
  CallWithTensor(GetOperator("test::unwatched"), x);
  CHECK(Trace() == Names{"watcher", "cpu", "cpu"});
  fallback->Disable();
  Trace().clear();
  CallWithTensor(GetOperator("test::watched"), x);
  CHECK(Trace() == Names{"cpu"});
}

TEST_CASE("an override serves while it is enabled and goes as it came", "[dispatcher]") {
  auto base = Scope::Create("base", "");
  REQUIRE(base->Define("test::overridden(Tensor x) -> int", {}).ok());
  base->AddBoxedKernel("test::overridden", "cpu", Leaf("base"), {});
  REQUIRE(base->Commit().ok());
  const Operator& op = GetOperator("test::overridden");
  const Tensor x = EmptyTensor({2}, DType::kF32, {});
  {
    auto over = Scope::Create("over", "");
    over->AddBoxedKernel("test::overridden", "cpu", Leaf("override"), {});
    REQUIRE(over->Commit().ok());
    Trace().clear();
    CHECK(CallWithTensor(op, x) == 8);
    over->Disable();
    CHECK(CallWithTensor(op, x) == 8);
    REQUIRE(over->Enable().ok());
    CHECK(CallWithTensor(op, x) == 8);
  }
  CHECK(CallWithTensor(op, x) == 8);
  CHECK(Trace() == Names{"override", "base", "override", "base"});
}

TEST_CASE("registration is all or nothing", "[dispatcher]") {
  auto scope = Scope::Create("halfway", "");
  REQUIRE(scope->Define("test::halfway(Tensor x) -> int", {}).ok());
  scope->AddBoxedKernel("test::halfway", "no_such_backend", Leaf("x"), {});
  const absl::Status s = scope->Commit();
  CHECK(std::string(s.message()).find("neither a layer nor a backend") != std::string::npos);
  CHECK(FindOperator("test::halfway") == nullptr);
  auto again = Scope::Create("again", "");
  REQUIRE(again->Define("mica::add.Tensor(Tensor self, Tensor other) -> Tensor", {}).ok());
  CHECK(std::string(again->Commit().message()).find("is defined already") != std::string::npos);
  CHECK(!again->Define("no_namespace(Tensor x) -> int", {}).ok());
  CHECK(!again->Define("test::bad(Tensr x) -> int", {}).ok());
}

MicaStatus Nothing(const MicaCall*, const MicaValue*, int64_t, MicaValue*, int64_t) { return nullptr; }

MicaKernelRecord Record(const char* op, uint64_t hash) {
  MicaKernelRecord r{};
  r.struct_size = sizeof(r);
  r.name = op;
  r.backend = "cpu";
  r.boxed = &Nothing;
  r.schema_hash = hash;
  return r;
}

TEST_CASE("a kernel built for another schema is left out by name, alone", "[dispatcher]") {
  auto scope = Scope::Create("stale", "");
  REQUIRE(scope->AddLeaf(Record("mica::add.out", 12345)).ok());
  REQUIRE(scope->Define("test::kept(Tensor x) -> int", {}).ok());
  REQUIRE(scope->AddLeaf(Record("test::kept", schema::HashText("test::kept(Tensor x) -> int"))).ok());
  REQUIRE(scope->Commit().ok());
  REQUIRE(scope->Notes().size() == 1);
  CHECK_THAT(scope->Notes()[0], Catch::Contains("(mica::add.out) at (cpu) was built for another schema"));
  const std::vector<Registration> r = scope->Registrations();
  REQUIRE(r.size() == 2);
  CHECK(r[0].kind == "operator");
  CHECK(r[1].kind == "kernel");
  CHECK(r[1].name == "test::kept");
}

TEST_CASE("a kernel that waited for another schema is left out when the operator comes", "[dispatcher]") {
  auto early = Scope::Create("early", "");
  REQUIRE(early->AddLeaf(Record("test::awaited", 12345)).ok());
  REQUIRE(early->Commit().ok());
  REQUIRE(early->Registrations().size() == 1);
  CHECK(early->Registrations()[0].waits);
  auto late = Scope::Create("late", "");
  REQUIRE(late->Define("test::awaited(Tensor x) -> int", {}).ok());
  REQUIRE(late->Commit().ok());
  REQUIRE(early->Notes().size() == 1);
  CHECK_THAT(early->Notes()[0], Catch::Contains("plugin (early) for (test::awaited), which waited"));
}

TEST_CASE("registrations say whose kernel they stand above", "[dispatcher]") {
  auto below = Scope::Create("below", ""), above = Scope::Create("above", "");
  REQUIRE(below->Define("test::stacked(Tensor x) -> int", {}).ok());
  below->AddBoxedKernel("test::stacked", "cpu", Leaf("below"), {});
  above->AddBoxedKernel("test::stacked", "cpu", Leaf("above"), {});
  REQUIRE(below->Commit().ok());
  REQUIRE(above->Commit().ok());
  CHECK(below->Registrations()[1].overrides.empty());
  CHECK(above->Registrations()[0].overrides == "below");
  above->Disable();
  CHECK(above->Registrations().empty());
}

TEST_CASE("a scope that is given up takes nothing more", "[dispatcher]") {
  auto scope = Scope::Create("given up", "");
  REQUIRE(scope->Define("test::given_up(Tensor x) -> int", {}).ok());
  scope->Abandon();
  CHECK_FALSE(scope->open());
  CHECK_FALSE(scope->Commit().ok());
  CHECK(FindOperator("test::given_up") == nullptr);
}

TEST_CASE("an operator leaves with the scope that defined it", "[dispatcher]") {
  {
    auto scope = Scope::Create("gone", "");
    REQUIRE(scope->Define("test::gone(Tensor x) -> int", {}).ok());
    REQUIRE(scope->Commit().ok());
    CHECK(FindOperator("test::gone") != nullptr);
  }
  CHECK(FindOperator("test::gone") == nullptr);
}

TEST_CASE("no call passes a backend", "[dispatcher]") {
  auto scope = Scope::Create("passer", "");
  scope->AddFallthrough("neg", "cpu");
  const absl::Status status = scope->Commit();
  CHECK_FALSE(status.ok());
  CHECK(std::string(status.message()) ==
        "Plugin (passer) lets calls of (mica::neg) pass the backend (cpu), behind which is nothing; only "
        "layers "
        "are passed.");
}

TEST_CASE("a handle that outlives its operator is told so", "[dispatcher]") {
  const Operator* kept = nullptr;
  {
    auto scope = Scope::Create("outlived", "");
    REQUIRE(scope->Define("test::outlived(Tensor x) -> int", {}).ok());
    scope->AddBoxedKernel("test::outlived", "cpu", Leaf("cpu"), {});
    REQUIRE(scope->Commit().ok());
    kept = &GetOperator("test::outlived");
    CHECK(CallWithTensor(*kept, EmptyTensor({2}, DType::kF32, {})) == 8);
  }
  MICA_REQUIRE_ERROR(CallWithTensor(*kept, EmptyTensor({2}, DType::kF32, {})), "test::outlived is gone");
  CHECK_THAT(ExplainText(*kept, KeySet::Of(0)), Catch::Contains("1. cpu: the operator is gone"));
}

TEST_CASE("an unknown operator's message names what is near", "[dispatcher]") {
  MICA_REQUIRE_ERROR(GetOperator("mica::add.Tensr"), "add.Tensor");
}

TEST_CASE("explain names each layer and the plugin that fills it", "[dispatcher]") {
  Layer("explained", "FunctionMode", "Autocast");
  auto scope = Scope::Create("explainer", "/somewhere/x.so");
  REQUIRE(scope->Define("test::explained(Tensor x) -> int", {}).ok());
  scope->AddBoxedKernel("test::explained", "cpu", Leaf("cpu"), {});
  scope->AddBoxedKernel("test::explained", "explained", PassOn("explained"), {});
  REQUIRE(scope->Commit().ok());
  const std::string text =
      ExplainText(GetOperator("test::explained"), KeySet::Of(LayerBit("explained")) | KeySet::Of(0));
  CHECK_THAT(text, Catch::Contains("1. explained:"));
  CHECK_THAT(text, Catch::Contains("2. cpu:"));
  CHECK_THAT(text, Catch::Contains("explainer (/somewhere/x.so)"));
}

// What a kernel built for the schema "grown(Tensor x) -> int" is.
MicaIntResult Grown(const MicaCall*, MicaTensor* x) {
  return {static_cast<TensorImpl*>(x)->dl.ndim, nullptr};
}

// Of a kernel that was built for a schema.
MicaKernelRecord GrownRecord(const char* name, const char* schema) {
  MicaKernelRecord record{};
  record.struct_size = sizeof(record);
  record.name = name;
  record.backend = "cpu";
  record.function = reinterpret_cast<MicaFunction>(&Grown);
  record.schema_hash = schema::HashText(schema);
  return record;
}
int64_t CallGrown(const Operator& op, int64_t extra) {
  const Tensor x = EmptyTensor({2, 3}, DType::kF32, {});
  const MicaValue args[] = {AbiType<const Tensor&>::Box(x.impl()), AbiType<int64_t>::Box(extra)};
  MicaValue result;
  op.CallBoxed(args, 2, &result);
  return result.u.i;
}

TEST_CASE("a kernel of an earlier schema gets the calls that it knows", "[dispatcher]") {
  static const SchemaGeneration earlier[] = {{"grown(Tensor x) -> int", &kAdapters<int64_t(const Tensor&)>}};
  auto scope = Scope::Create("grown", "");
  REQUIRE(scope->Define("test::grown(Tensor x, *, int extra=5) -> int", {}).ok());
  scope->LastDefined().adapters = &kAdapters<int64_t(const Tensor&, int64_t)>;
  scope->LastDefined().generations = earlier;
  scope->LastDefined().num_generations = 1;
  REQUIRE(scope->Commit().ok());
  const Operator& op = GetOperator("test::grown");

  auto plugin = Scope::Create("built long ago", "");
  REQUIRE(plugin->AddLeaf(GrownRecord("test::grown", "test::grown(Tensor x) -> int")).ok());
  REQUIRE(plugin->Commit().ok());
  CHECK(plugin->Notes().empty());
  CHECK(CallGrown(op, 5) == 2);
  MICA_REQUIRE_ERROR(CallGrown(op, 4), "does not support this call");
  CHECK(ExplainText(op, KeySet::Of(keys::kCpu))
            .find("built for the earlier schema grown(Tensor x) -> int and "
                  "takes calls with the default of `extra`") != std::string::npos);

  // With a decomposition, what the kernel does not know goes there.
  auto parts = Scope::Create("parts", "");
  parts->AddBoxedKernel("test::grown", "Composite", Leaf("parts"), {});
  REQUIRE(parts->Commit().ok());
  CHECK(CallGrown(op, 5) == 2);
  CHECK(CallGrown(op, 4) == 9);
}

TEST_CASE("a scope comes back to the operators that are there then", "[dispatcher]") {
  const auto defined = [](const char* schema) {
    auto scope = Scope::Create("definer", "");
    REQUIRE(scope->Define(schema, {}).ok());
    return scope;
  };
  auto first = defined("test::changing(Tensor x) -> int");
  REQUIRE(first->Commit().ok());
  first->Disable();
  auto second = defined("test::changing(Tensor x, int y) -> int");
  REQUIRE(second->Commit().ok());
  const absl::Status clash = first->Enable();
  CHECK(std::string(clash.message()).find("Operator (test::changing) is defined already") == 0);

  // A kernel for the first one, which waited meanwhile, does not serve the second.
  auto kernel = Scope::Create("kernel", "");
  MicaKernelRecord record = GrownRecord("test::changing", "test::changing(Tensor x) -> int");
  record.boxed = [](const MicaCall*, const MicaValue*, int64_t, MicaValue*, int64_t) -> MicaStatus {
    return nullptr;
  };
  REQUIRE(kernel->AddLeaf(record).ok());
  second->Disable();
  REQUIRE(first->Enable().ok());
  REQUIRE(kernel->Commit().ok());
  CHECK(kernel->Notes().empty());
  kernel->Disable();
  first->Disable();
  REQUIRE(second->Enable().ok());
  REQUIRE(kernel->Enable().ok());
  CHECK(ExplainText(GetOperator("test::changing"), KeySet::Of(keys::kCpu)).find("from plugin kernel") ==
        std::string::npos);
}

TEST_CASE("a scope takes another's place in one step, and leaves it where it cannot", "[dispatcher]") {
  const auto made = [](const std::shared_ptr<Scope>& scope, const char* leaf) {
    REQUIRE(scope->Define("test::succeeded(Tensor x) -> int", {leaf, 1}).ok());
    scope->AddBoxedKernel("test::succeeded", "cpu", Leaf(leaf), {});
    return scope;
  };
  const Tensor x = EmptyTensor({1}, DType::kF32, Device{});
  const auto first = made(Scope::Create("succeeded", ""), "first");
  REQUIRE(first->Commit().ok());
  const Operator& op = GetOperator("test::succeeded");
  const auto answers = [&] {
    Trace().clear();
    CallWithTensor(op, x);
    return Trace();
  };
  CHECK(answers() == Names{"first"});

  // Another's kernel for it, which stays above whichever build serves below.
  auto other = Scope::Create("other", "");
  other->AddBoxedKernel("test::succeeded", "meta", Leaf("other"), {});
  REQUIRE(other->Commit().ok());

  const auto bad = made(Scope::CreateInPlaceOf(first, "succeeded", ""), "bad");
  bad->AddBoxedKernel("test::succeeded", "nowhere", Leaf("bad"), {});
  CHECK_FALSE(bad->Commit().ok());
  bad->Abandon();
  CHECK(first->enabled());
  CHECK(answers() == Names{"first"});

  const auto twice = made(made(Scope::CreateInPlaceOf(first, "succeeded", ""), "once"), "again");
  CHECK(std::string(twice->Commit().message()).find("is defined twice by (succeeded)") != std::string::npos);
  twice->Abandon();
  CHECK(answers() == Names{"first"});

  const auto second = made(Scope::CreateInPlaceOf(first, "succeeded", ""), "second");
  REQUIRE(second->Commit().ok());
  CHECK_FALSE(first->enabled());
  CHECK(&GetOperator("test::succeeded") == &op);
  CHECK(second->rank() == first->rank());
  CHECK(answers() == Names{"second"});
  CHECK(ExplainText(op, KeySet::Of(keys::kMeta)).find("from plugin other") != std::string::npos);

  REQUIRE(first->Enable(second.get()).ok());
  CHECK(answers() == Names{"first"});
  CHECK_FALSE(second->enabled());
  first->Disable();
  CHECK(Dispatcher::Get().Find("test::succeeded") == nullptr);
  REQUIRE(second->Enable().ok());
  CHECK(answers() == Names{"second"});
}

}  // namespace
}  // namespace mica::testing
