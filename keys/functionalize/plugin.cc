// The plugin's entry: the kind, its fallback for all operators, views, and what is kept whole.
#include <mica/functionalize.h>
#include <mica/plugin.h>

#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/plugins/status.h"
#include "dispatcher/registration/registration.h"
#include "keys/functionalize/functional.h"
#include "mica/fingerprint.h"

namespace mica::functionalize {
namespace {

// Whether a composite runs as one operator: its schema neither writes nor returns a view, and
// Autograd has a kernel for the whole, whose gradient the parts would not have.
bool StaysWhole(const Operator& op, const Scope& scope) {
  const OperatorSpec& spec = op.spec();
  if (!spec.composite || spec.written_args || spec.form != OpForm::kFunctional) return false;
  for (const auto& result : op.schema().returns)
    if (result.alias()) return false;
  return PreviousSlot(op, "Autograd", scope).fn != spec.composite;
}

Level& Of(MicaFunctionalLevel* level) { return *reinterpret_cast<Level*>(level); }

void GiveList(std::vector<Tensor> tensors, MicaValue* list) {
  list->tag = MICA_VALUE_TENSORS;
  list->u.tensors = GiveTensorList(std::move(tensors));
}

MicaStatus Enter(int32_t remove_views, MicaFunctionalLevel** level) {
  return CatchAll([&] { *level = reinterpret_cast<MicaFunctionalLevel*>(new Level(remove_views != 0)); });
}
MicaStatus Lift(MicaFunctionalLevel* level, MicaTensorSpan inputs, MicaValue* list) {
  return CatchAll([&] { GiveList(Of(level).Lift(AbiType<TensorSpan>::From(inputs)), list); });
}
MicaStatus Updates(MicaFunctionalLevel* level, MicaValue* list) {
  return CatchAll([&] { GiveList(Of(level).Updates(), list); });
}
MicaStatus Apply(MicaFunctionalLevel* level, int32_t inputs) {
  return CatchAll([&] { Of(level).Apply(inputs != 0); });
}
MicaTensorResult Result(MicaFunctionalLevel* level, MicaTensor* t) {
  MicaTensorResult r{nullptr, nullptr};
  r.status = CatchAll([&] { r.value = Of(level).Result(Tensor::Ref(t)).release(); });
  return r;
}

const MicaFunctionalize kTable = {
    {sizeof(MicaFunctionalize), 1, 0},
    &Enter,
    [](MicaFunctionalLevel* level) { delete &Of(level); },
    &Lift,
    &Updates,
    &Apply,
    &Result,
};

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  auto& scope = *static_cast<Scope*>(registrar->context);
  BringKind(scope);
  EnsureProvider("layer:Autograd");
  const SourceLocation here{__FILE__, __LINE__};
  scope.AddBoxedFallback("functionalize", {&RunCall, nullptr, nullptr}, here);
  for (const Operator* op : AllOperators()) {
    if (op->spec().view) {
      scope.AddBoxedKernel(op->name(), "functionalize", {&RunView, nullptr, nullptr}, here);
    } else if (StaysWhole(*op, scope)) {
      scope.AddBoxedKernel(op->name(), "functionalize", {&RunWhole, nullptr, nullptr}, here);
    }
  }
  // Composites that make or read memory.
  for (const char* name : {"mica::empty.memory_format", "mica::empty_strided", "mica::empty_like",
                           "mica::_linalg_failure", "mica::_linalg_failure_code", "mica::_any_true"})
    scope.AddBoxedKernel(name, "functionalize", {&RunWhole, nullptr, nullptr}, here);
  scope.AddBoxedKernel("mica::copy_", "functionalize", {&RunCopy, nullptr, nullptr}, here);
  scope.AddBoxedKernel("mica::resize_", "functionalize", {&RunResize, nullptr, nullptr}, here);
  scope.AddBoxedKernel("mica::_become_view_", "functionalize", {&RunBecomeView, nullptr, nullptr}, here);
  scope.AddExtension(MICA_FUNCTIONALIZE_EXTENSION, &kTable.table);
}

}  // namespace
}  // namespace mica::functionalize

MICA_PLUGIN("functionalize", "Mica", "0.1", "", MICA_CORE_BUILD,
            "layer:functionalize,extension:mica.functionalize", ::mica::functionalize::Init)
