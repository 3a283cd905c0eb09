#include "plugins/cpu/indexing/indices.h"
#include "plugins/cpu/engine/copy.h"

namespace mica::cpu {

std::vector<int64_t> BroadcastIndices(const MicaTensor* index, const std::vector<int64_t>& sizes,
                                      int64_t size, bool wrap) {
  const plugin::TensorRef t(index);
  if (t.dtype() != MICA_I64 && t.dtype() != MICA_I32) throw plugin::NotImplemented();
  const auto ndim = static_cast<int32_t>(sizes.size());
  std::vector<int64_t> from(sizes.size()), to(sizes.size());
  int64_t n = 1;
  for (int32_t d = ndim - 1; d >= 0; --d) {
    const auto at = static_cast<size_t>(d);
    const int32_t mine = d - ndim + t.ndim();
    from[at] = mine < 0 || t.size(mine) == 1 ? 0 : t.stride(mine);
    to[at] = n;
    n *= sizes[at];
  }
  std::vector<int64_t> indices(static_cast<size_t>(n));
  if (t.dtype() == MICA_I64) {
    CopyStrided(8, ndim, sizes.data(), t.data<void>(), from.data(), indices.data(), to.data(), 1);
  } else {
    std::vector<int32_t> narrow(indices.size());
    CopyStrided(4, ndim, sizes.data(), t.data<void>(), from.data(), narrow.data(), to.data(), 1);
    indices.assign(narrow.begin(), narrow.end());
  }
  bool valid = true;
  for (int64_t& i : indices) {
    if (wrap && i < 0) i += size;
    valid &= static_cast<uint64_t>(i) < static_cast<uint64_t>(size);
  }
  if (!valid) throw plugin::NotImplemented();
  return indices;
}

IndexList Indices(const MicaTensor* index, int64_t size) {
  const plugin::TensorRef t(index);
  if (t.dtype() != MICA_I64 || !t.contiguous())
    return IndexList(BroadcastIndices(index, {t.sizes(), t.sizes() + t.ndim()}, size, false));
  if (!AreInside(t.data<int64_t>(), 1, t.numel(), size)) throw plugin::NotImplemented();
  return {t.data<int64_t>(), t.numel()};
}

}  // namespace mica::cpu
