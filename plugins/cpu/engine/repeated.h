// What repeats is computed once: a call none of whose inputs moves along a dimension (a number or a
// row that was expanded, the gradient of a sum, a fill) runs over one place of it, into memory of
// its own, and the results are copied along that dimension.
#ifndef MICA_PLUGINS_CPU_ENGINE_REPEATED_H_
#define MICA_PLUGINS_CPU_ENGINE_REPEATED_H_

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/iteration.h"

namespace mica::cpu {

class Repeated {
 public:
  // Takes the dimensions that repeat out of the normalized `iteration`, whose first `num_results` operands
  // are written; false, and nothing is changed, where that would save little.
  bool TakeFrom(Iteration* iteration, int num_results);
  // Copies what was computed to where the results belong.
  void Spread(int32_t threads) const;

 private:
  Iteration full_;
  int num_results_ = 0;
  Temporary memory_[kMaxResults];
  int64_t strides_[kMaxDims] = {};  // of that memory, in elements; 0 along what repeats
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_REPEATED_H_
