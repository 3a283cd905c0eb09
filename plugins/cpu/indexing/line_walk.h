// The lines of a shape one after the other: where each begins in a few operands, kept up step by step,
// since divisions would cost more than a short line.
#ifndef MICA_PLUGINS_CPU_INDEXING_LINE_WALK_H_
#define MICA_PLUGINS_CPU_INDEXING_LINE_WALK_H_

#include <cstdint>

#include "plugins/cpu/engine/iteration.h"

namespace mica::cpu {

template <int kOperands>
class LineWalk {
 public:
  // Of a shape whose last dimension is a line; before Seek(), strides[k][d] are given for the others.
  LineWalk(const int64_t* sizes, int32_t ndim) : sizes_(sizes), outer_(ndim - 1) {}

  int64_t strides[kOperands][kMaxDims];
  int64_t offsets[kOperands];  // of the line, in elements

  void Seek(int64_t line) {
    for (int64_t& offset : offsets) offset = 0;
    for (int32_t d = outer_ - 1; d >= 0; --d) {
      at_[d] = line % sizes_[d];
      line /= sizes_[d];
      for (int k = 0; k < kOperands; ++k) offsets[k] += at_[d] * strides[k][d];
    }
  }

  void Next() {
    for (int32_t d = outer_ - 1; d >= 0; --d) {
      for (int k = 0; k < kOperands; ++k) offsets[k] += strides[k][d];
      if (++at_[d] < sizes_[d]) return;
      for (int k = 0; k < kOperands; ++k) offsets[k] -= at_[d] * strides[k][d];
      at_[d] = 0;
    }
  }

 private:
  const int64_t* sizes_;
  int32_t outer_;
  int64_t at_[kMaxDims];
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_INDEXING_LINE_WALK_H_
