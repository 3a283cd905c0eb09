// The plugin's entry: the kind, its rule and its fallback.
#include <mica/plugin.h>

#include "keys/batched/batched.h"
#include "mica/fingerprint.h"

namespace mica::batched {
namespace {

const MicaBatched kTable = {
    {sizeof(MicaBatched), 1, 0},
    []() -> int32_t { return frames::KindNumber("vmap"); },
    [](void* op) { return Name(RuleOf(*static_cast<const Operator*>(op)).source); },
};

// Composites that do not decompose: they make memory, or a rule by hand takes them whole, for
// they describe memory, choose by values, or have a gradient or a fused kernel that their parts
// have not.
bool StaysWhole(const Operator& op) {
  const OperatorSpec& spec = op.spec();
  if (spec.op_class != OpClass::kDecompose) return false;
  if (spec.form != OpForm::kFunctional && spec.functional_name) return false;  // by its functional form
  return PolicyOf(spec, "batch_rule") || op.name() == "mica::empty.memory_format" ||
         op.name() == "mica::empty_strided";
}

// The operators that need more than the fallback.
LayerChoice Choose(void*, const Operator& op) {
  const BoxedFunction kernel = op.spec().op_class == OpClass::kRandom || op.name() == "mica::multinomial"
                                   ? &RunRandom
                               : op.name() == "mica::_local_scalar_dense" ? &RunRead
                               : StaysWhole(op)                           ? &RunBatched
                                                                          : nullptr;
  if (!kernel) return {};
  return {LayerChoice::What::kKernel, {kernel, nullptr, nullptr}};
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  auto& scope = *static_cast<Scope*>(registrar->context);
  BringKind(scope);
  const SourceLocation here{__FILE__, __LINE__};
  scope.AddExtension(MICA_BATCHED_EXTENSION, &kTable.table);
  scope.DecomposeAt("vmap");
  scope.AddBoxedFallback("vmap", {&RunBatched, nullptr, nullptr}, here);
  scope.AddRule("vmap", &Choose, nullptr);
}

}  // namespace
}  // namespace mica::batched

MICA_PLUGIN("batched", "Mica", "0.1", "", MICA_CORE_BUILD, "layer:Batched,layer:vmap,extension:mica.batched",
            ::mica::batched::Init)
