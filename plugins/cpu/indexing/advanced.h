// Advanced indexing with adjacent index tensors as rows: self[:, i, j] reads
// `rows` runs of `inner` elements in each of `outer` parts of `extent` runs.
#ifndef MICA_PLUGINS_CPU_INDEXING_ADVANCED_H_
#define MICA_PLUGINS_CPU_INDEXING_ADVANCED_H_

#include "mica/plugins/cpu/indexing/indices.h"

namespace mica::cpu {

struct AdvancedIndex {
  int64_t outer = 1, extent = 1, inner = 1;
  std::vector<int64_t> rows;   // run numbers in [0, extent), row-major over the broadcast index shape
  std::vector<int64_t> sizes;  // of self[indices]
};

// Throws NotImplemented for indices that are not adjacent, do not broadcast or are out
// of range.
AdvancedIndex Resolve(const plugin::TensorRef& self, MicaTensorSpan indices);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_INDEXING_ADVANCED_H_
