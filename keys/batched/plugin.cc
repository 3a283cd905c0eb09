// The plugin's entry: the kind, its fallback for all operators, and the operators that need
// more than the fallback.
#include <mica/plugin.h>

#include "keys/batched/batched.h"

namespace mica::batched {
namespace {

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  auto& scope = *static_cast<Scope*>(registrar->context);
  BringKind(scope);
  const SourceLocation here{__FILE__, __LINE__};
  static const frames::BatchingLayer layer = {[](const Operator& op) { return Name(RuleOf(op).source); }};
  scope.AddExtension(frames::kBatchingExtension, &layer);
  scope.DecomposeAt("vmap");
  scope.AddBoxedFallback("vmap", {&RunBatched, nullptr, nullptr}, here);
  for (const Operator* op : AllOperators()) {
    if (op->spec().op_class == OpClass::kRandom || op->name() == "mica::multinomial")
      scope.AddBoxedKernel(op->name(), "vmap", {&RunRandom, nullptr, nullptr}, here);
  }
  scope.AddBoxedKernel("mica::_local_scalar_dense", "vmap", {&RunRead, nullptr, nullptr}, here);
  // Composites that do not decompose: they make memory, or a rule by hand takes them whole, for
  // they describe memory, choose by values, or have a gradient or a fused kernel that their parts
  // have not.
  std::vector<NamedRule> whole = NamedRules();
  whole.insert(whole.end(), {{"mica::empty.memory_format", {}}, {"mica::empty_strided", {}}});
  for (const NamedRule& rule : whole) {
    const Operator* op = FindOperator(rule.name);
    if (op && op->spec().op_class == OpClass::kDecompose)
      scope.AddBoxedKernel(std::string(rule.name), "vmap", {&RunBatched, nullptr, nullptr}, here);
  }
}

}  // namespace
}  // namespace mica::batched

MICA_PLUGIN("batched", "Mica", "0.1", "", "", "layer:Batched,layer:vmap", ::mica::batched::Init)
