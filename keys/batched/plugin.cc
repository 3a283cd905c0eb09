// The plugin's entry: the kind, its rule and its fallback.
#include <atomic>

#include "keys/batched/batched.h"

namespace mica::batched {
namespace {

std::atomic<int32_t> g_kind{-1};

const MicaBatched kTable = {
    {sizeof(MicaBatched), 1, 0},
    []() -> int32_t { return g_kind.load(std::memory_order_relaxed); },
    [](void* op) { return Name(RuleOf(op).source); },
};

// Composites that do not decompose: they make memory, or a rule by hand takes them whole, for
// they describe memory, choose by values, or have a gradient or a fused kernel that their parts
// have not.
bool StaysWhole(void* handle, const MicaOperatorInfo& info) {
  const std::string_view name = info.name;
  if (std::string_view(info.class_name) != "decompose") return false;
  if (info.form != MICA_FORM_FUNCTIONAL && info.functional_name) return false;  // by its functional form
  return layer::Table()->operator_policy(handle, "batch_rule") || name == "mica::empty.memory_format" ||
         name == "mica::empty_strided";
}

// The operators that need more than the fallback.
void ChooseKernel(void* handle, MicaLayerChoice* out) {
  const MicaOperatorInfo& info = *layer::Table()->operator_info(handle);
  const std::string_view name = info.name;
  if (std::string_view(info.class_name) == "random" || name == "mica::multinomial")
    return layer::Choose<&RunRandom>(out);
  if (name == "mica::_local_scalar_dense") return layer::Choose<&RunRead>(out);
  if (StaysWhole(handle, info)) layer::Choose<&RunBatched>(out);
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  layer::Kind kind(registrar, KindRecord());
  g_kind.store(kind.number(), std::memory_order_relaxed);
  plugin::Registrar(registrar, "").Extension(MICA_BATCHED_EXTENSION, &kTable.table);
  kind.Decompose().Fallback<&RunBatched>().Rule<&ChooseKernel>();
}

}  // namespace

}  // namespace mica::batched

MICA_PLUGIN("batched", "Mica", "0.1", "", "", "layer:Batched,layer:vmap,extension:mica.batched",
            ::mica::batched::Init)
