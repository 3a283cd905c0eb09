#include "plugins/cpu/indexing/advanced.h"

#include <algorithm>
#include <utility>

namespace mica::cpu {
namespace {

void Broadcast(std::vector<int64_t>& sizes, const plugin::TensorRef& t) {
  if (static_cast<size_t>(t.ndim()) > sizes.size())
    sizes.insert(sizes.begin(), static_cast<size_t>(t.ndim()) - sizes.size(), 1);
  for (int32_t d = 0; d < t.ndim(); ++d) {
    int64_t& size = sizes[sizes.size() - static_cast<size_t>(t.ndim() - d)];
    if (size == t.size(d) || t.size(d) == 1) continue;
    if (size != 1) throw plugin::NotImplemented();
    size = t.size(d);
  }
}

}  // namespace

AdvancedIndex Resolve(const plugin::TensorRef& self, MicaTensorSpan indices) {
  int32_t first = -1, past = -1, defined = 0;
  std::vector<int64_t> shape;
  for (int32_t d = 0; d < indices.size; ++d) {
    if (!indices.data[d]) continue;
    if (first < 0) first = d;
    past = d + 1;
    ++defined;
    Broadcast(shape, indices.data[d]);
  }
  if (defined == 0 || past - first != defined || past > self.ndim()) throw plugin::NotImplemented();
  AdvancedIndex result;
  result.first = first;
  result.past = past;
  result.ndim = static_cast<int32_t>(shape.size());
  for (int32_t d = first; d < past; ++d) {
    std::vector<int64_t> one = BroadcastIndices(indices.data[d], shape, self.size(d), true);
    const int64_t stride = self.stride(d);
    for (int64_t& i : one) i *= stride;
    if (d == first)
      result.offsets = std::move(one);
    else
      for (size_t i = 0; i < one.size(); ++i) result.offsets[i] += one[i];
  }
  result.sizes.assign(self.sizes(), self.sizes() + first);
  result.sizes.insert(result.sizes.end(), shape.begin(), shape.end());
  result.sizes.insert(result.sizes.end(), self.sizes() + past, self.sizes() + self.ndim());
  return result;
}

}  // namespace mica::cpu
