// Opaque tensors: what stands between a layout of a plugin's own and kernels, which read memory.
//
// A tensor with the layer's bit came from MicaHost.tensor_opaque, or is a view of such a tensor. A kernel
// whose record takes opaque tensors gets it as it is; for all others the tensor is put into memory here,
// once, by its payload's `reorder`. What is written becomes a tensor like others. Views need no memory, and
// keep the bit.
#include <mica/layer.h>

namespace mica::opaque {
namespace {

int32_t g_bit = -1;

void PutIntoMemory(const layer::Call& call, bool written_alone) {
  const uint64_t written = call.info().written_args;
  call.ForEachTensor([&](MicaTensor* t, int64_t i) {
    const bool is_written = ((written >> i) & 1) != 0;
    if ((layer::Table()->tensor_keys(t) & layer::Bit(g_bit)) != 0 && (is_written || !written_alone))
      plugin::Check(layer::Table()->make_memory(t, is_written));
  });
}

void Run(layer::Call& call) {
  PutIntoMemory(call, /*written_alone=*/false);
  call.Redispatch(call.keys() & layer::Below(g_bit), call.args());
}

// Where some backends' kernels take opaque tensors: the context has their bits.
void RunWhereTaken(layer::Call& call) {
  const uint64_t backends = call.keys() & MICA_KEYS_OF_BACKENDS;
  const auto takes = reinterpret_cast<uintptr_t>(call.context<void>());
  PutIntoMemory(call, /*written_alone=*/backends != 0 && (backends & ~takes) == 0);
  call.Redispatch(call.keys() & layer::Below(g_bit), call.args());
}

void Rule(void* op, MicaLayerChoice* out) {
  if ((layer::Table()->operator_info(op)->flags & MICA_OPERATOR_VIEW) != 0) return layer::Pass(out);
  if (const uint64_t takes = layer::Table()->takes_opaque(op))
    layer::Choose<&RunWhereTaken>(out, reinterpret_cast<void*>(static_cast<uintptr_t>(takes)));
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  layer::Layer opaque(registrar, "Opaque", {});
  opaque.Rule<&Rule>().Decompose().Fallback<&Run>();
  g_bit = opaque.number();
}

}  // namespace
}  // namespace mica::opaque

MICA_PLUGIN("opaque", "Mica", "0.1", "", "", "layer:Opaque", ::mica::opaque::Init)
