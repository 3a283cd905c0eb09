// The plugin's entry: the kind, its rule, and the table that whoever enters its frames calls.
#include <mica/functionalize.h>

#include "keys/functionalize/functional.h"

namespace mica::functionalize {
namespace {

Level& Of(MicaFunctionalLevel* level) { return *reinterpret_cast<Level*>(level); }

MicaStatus Enter(int32_t remove_views, MicaFunctionalLevel** level) {
  return plugin::CatchAll(
      [&] { *level = reinterpret_cast<MicaFunctionalLevel*>(new Level(remove_views != 0)); });
}
MicaStatus Lift(MicaFunctionalLevel* level, MicaTensorSpan inputs, MicaValue* list) {
  return plugin::CatchAll([&] { *list = layer::GivenList(Of(level).Lift(inputs)); });
}
MicaStatus Updates(MicaFunctionalLevel* level, MicaValue* list) {
  return plugin::CatchAll([&] { *list = layer::GivenList(Of(level).Updates()); });
}
MicaStatus Apply(MicaFunctionalLevel* level, int32_t inputs) {
  return plugin::CatchAll([&] { Of(level).Apply(inputs != 0); });
}
MicaTensorResult Result(MicaFunctionalLevel* level, MicaTensor* t) {
  MicaTensorResult r{nullptr, nullptr};
  r.status = plugin::CatchAll([&] { r.value = Of(level).Result(Tensor::Borrow(t)).release(); });
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
  layer::Kind kind(registrar, KindRecord());
  SetKind(kind.number());
  layer::Check(layer::Table()->open_layer("Autograd"));  // whose kernels say which composites stay whole
  kind.Rule<&Choose>();
  plugin::Registrar(registrar, "").Extension(MICA_FUNCTIONALIZE_EXTENSION, &kTable.table);
}

}  // namespace
}  // namespace mica::functionalize

MICA_PLUGIN("functionalize", "Mica", "0.1", "", "", "layer:functionalize,extension:mica.functionalize",
            ::mica::functionalize::Init)
