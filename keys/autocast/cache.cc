#include "keys/autocast/cache.h"

#include <unordered_map>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/layers/autocast.h"
#include "dispatcher/layers/autograd_interface.h"
#include "mica/ops/_to_copy.h"

namespace mica::autocast {
namespace {

struct Entry {
  Tensor source;   // keeps the key's address its own
  Tensor cast[2];  // without and with history
  DType dtype = DType::kF32;
  uint32_t version = 0;
};

std::unordered_map<const TensorImpl*, Entry>& Cache() {
  thread_local std::unordered_map<const TensorImpl*, Entry> cache;
  return cache;
}

bool IsParameter(const Tensor& t) {
  return t.dtype() == DType::kF32 && t.requires_grad() && !t.is_view() && !t.keys().has(keys::kFrameEscape) &&
         GetAutogradInterface().IsLeaf(t);
}

Tensor Cast(const Tensor& t, DType dtype) { return ops::_to_copy(t, dtype); }

}  // namespace

Tensor CachedCast(const Tensor& t, DType dtype) {
  const AutocastState& state = CurrentAutocast();
  if (!state.cache || state.depth == 0 || dtype == DType::kF32 || !IsParameter(t)) return Cast(t, dtype);
  Entry& entry = Cache()[t.impl()];
  if (entry.dtype != dtype || entry.version != t.version()) entry = {t, {}, dtype, t.version()};
  Tensor& kept = entry.cast[CurrentThread().grad_enabled];
  if (kept.defined()) return kept;
  Tensor made = Cast(t, dtype);
  // Inside of a transform it is a tensor of that level, which ends before the cache does.
  if (!made.keys().has(keys::kFrameEscape)) kept = made;
  return made;
}

void ClearCache() { Cache().clear(); }

}  // namespace mica::autocast
