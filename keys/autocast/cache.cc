#include "keys/autocast/cache.h"

#include <optional>
#include <unordered_map>

#include <mica/calls.h>
#include <mica/layer.h>
#include "keys/autocast/state.h"

namespace mica::autocast {
namespace {

using formula::Tensor;

struct Entry {
  Tensor source;   // keeps the key's address its own
  Tensor cast[2];  // without and with history
  int32_t dtype = MICA_F32;
  uint64_t version = 0;
};

std::unordered_map<const MicaTensor*, Entry>& Cache() {
  thread_local std::unordered_map<const MicaTensor*, Entry> cache;
  return cache;
}

bool IsParameter(MicaTensor* t) {
  if (plugin::TensorRef(t).dtype() != MICA_F32) return false;
  constexpr uint64_t kIs = MICA_TRAIT_REQUIRES_GRAD | MICA_TRAIT_LEAF;
  constexpr uint64_t kIsNot = MICA_TRAIT_VIEW | MICA_TRAIT_WRAPPER;
  return (layer::Table()->tensor_traits(t) & (kIs | kIsNot)) == kIs;
}

Tensor Cast(MicaTensor* t, int32_t dtype) {
  static const layer::Function<Tensor(Tensor, std::optional<formula::DType>, std::optional<formula::Layout>,
                                      std::optional<formula::Device>, std::optional<bool>, bool,
                                      std::optional<formula::MemoryFormat>)>
      to_copy("mica::_to_copy");
  const auto none = std::nullopt;
  return to_copy(Tensor::Borrow(t), static_cast<formula::DType>(dtype), none, none, none, false, none);
}

}  // namespace

Tensor CachedCast(MicaTensor* t, int32_t dtype) {
  const State& state = CurrentState();
  if (!state.cache || state.depth == 0 || dtype == MICA_F32 || !IsParameter(t)) return Cast(t, dtype);
  const MicaLayers& layers = *layer::Table();
  const uint64_t version = layers.tensor_version(t);
  Entry& entry = Cache()[t];
  if (entry.dtype != dtype || entry.version != version) entry = {Tensor::Borrow(t), {}, dtype, version};
  Tensor& kept = entry.cast[layer::Thread().grad_enabled];
  if (kept.defined()) return kept;
  Tensor made = Cast(t, dtype);
  // Inside of a transform it is a tensor of that level, which ends before the cache does.
  if ((layers.tensor_traits(made.get()) & MICA_TRAIT_WRAPPER) == 0) kept = made;
  return made;
}

void ClearCache() { Cache().clear(); }

}  // namespace mica::autocast
