// Advanced indexing with adjacent index tensors: self[:, i, j] is one slice of self for each
// element of the broadcast indices.
#ifndef MICA_PLUGINS_CPU_INDEXING_ADVANCED_H_
#define MICA_PLUGINS_CPU_INDEXING_ADVANCED_H_

#include "plugins/cpu/indexing/indices.h"

namespace mica::cpu {

struct AdvancedIndex {
  int32_t first = 0, past = 0;   // the indexed dimensions of self
  int32_t ndim = 0;              // of the broadcast indices
  std::vector<int64_t> offsets;  // of self's slices, in elements, row-major over the broadcast shape
  std::vector<int64_t> sizes;    // of self[indices], where the shape stands from `first` on
};

// Throws NotImplemented for indices that are not adjacent, do not broadcast or are out
// of range.
AdvancedIndex Resolve(const plugin::TensorRef& self, MicaTensorSpan indices);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_INDEXING_ADVANCED_H_
