#include "plugins/cpu/engine/repeated.h"

#include "plugins/cpu/engine/copy.h"

namespace mica::cpu {
namespace {

// Under so many elements, or repetitions, a copy costs as much as it saves.
constexpr int64_t kLeastRepeated = 4096;
constexpr int64_t kLeastRepetitions = 4;

}  // namespace

bool Repeated::TakeFrom(Iteration* iteration, int num_results) {
  Iteration& it = *iteration;
  if (it.numel < kLeastRepeated) return false;
  bool repeats[kMaxDims];
  int64_t kept = 1;
  for (int d = 0; d < it.ndim; ++d) {
    repeats[d] = true;
    for (int k = num_results; k < it.num_operands; ++k) repeats[d] &= it.operands[k].strides[d] == 0;
    if (!repeats[d]) kept *= it.sizes[d];
  }
  if (it.numel / kept < kLeastRepetitions) return false;
  full_ = it;
  num_results_ = num_results;
  int64_t stride = 1;
  for (int d = it.ndim - 1; d >= 0; --d) {
    if (repeats[d]) {
      it.sizes[d] = 1;
    } else {
      strides_[d] = stride;
      stride *= it.sizes[d];
    }
  }
  for (int r = 0; r < num_results; ++r) {
    Operand& result = it.operands[r];
    memory_[r] = Temporary(kept * result.size);
    result.data = memory_[r].data();
    for (int d = 0; d < it.ndim; ++d) result.strides[d] = strides_[d] * result.size;
  }
  it.numel = kept;
  it.Normalize();
  return true;
}

void Repeated::Spread(int32_t threads) const {
  for (int r = 0; r < num_results_; ++r) {
    const Operand& result = full_.operands[r];
    int64_t strides[kMaxDims];
    for (int d = 0; d < full_.ndim; ++d) strides[d] = result.strides[d] / result.size;
    CopyStrided(result.size, full_.ndim, full_.sizes, memory_[r].data(), strides_, result.data, strides,
                threads);
  }
}

}  // namespace mica::cpu
