// The choice, order and packing of panels; see panels.h.
#include "plugins/cpu/engine/panels.h"

#include <algorithm>

#include "plugins/cpu/engine/transpose.h"

namespace mica::cpu {

void Panels::Find(const Iteration& it, int first) {
  it_ = &it;
  std::fill_n(slot_, kMaxOperands, int8_t{-1});
  if (!it.rows) return;
  int64_t widest = 1;
  for (int k = first; k < it.num_operands; ++k) {
    if (it.operands[k].size > 8) continue;
    for (int d = 0; d < it.ndim - 1 && dim_ < 0; ++d) {
      if (it.LiesAcross(k, d)) dim_ = d;
    }
    if (!it.LiesAcross(k, dim_)) continue;
    slot_[k] = static_cast<int8_t>(num_held_++);
    widest = std::max(widest, it.operands[k].size);
  }
  if (dim_ < 0) return;
  const int last = it.ndim - 1;
  height_ = std::min(kMaxRows, kTransposeBytes / widest);
  width_ = std::min(kColumns, it.sizes[last]);
  bands_ = (it.sizes[dim_] + height_ - 1) / height_;
  chunks_ = (it.sizes[last] + width_ - 1) / width_;
  row_step_ = 1;
  for (int d = dim_ + 1; d <= last; ++d) row_step_ *= it.sizes[d];
}

int64_t Panels::count() const {
  return it_->numel / (it_->sizes[dim_] * it_->sizes[it_->ndim - 1]) * bands_ * chunks_;
}

Panels::Panel Panels::At(int64_t index) const {
  const int last = it_->ndim - 1;
  const int64_t column = index % chunks_ * width_;
  const int64_t row = index / chunks_ % bands_ * height_;
  int64_t rest = index / chunks_ / bands_;
  int64_t position = column + row * row_step_;
  int64_t step = it_->sizes[last];
  for (int d = last - 1; d >= 0; --d) {
    if (d != dim_) {
      position += rest % it_->sizes[d] * step;
      rest /= it_->sizes[d];
    }
    step *= it_->sizes[d];
  }
  return {position, std::min(height_, it_->sizes[dim_] - row), std::min(width_, it_->sizes[last] - column)};
}

void Panels::Pack(const Panel& panel, char* memory) const {
  for (int k = 0; k < it_->num_operands; ++k) {
    if (slot_[k] < 0) continue;
    const Operand& operand = it_->operands[k];
    Transpose(operand.size, Row(k, 0, memory), Pitch(k), operand.data + it_->Offset(k, panel.position),
              operand.strides[it_->ndim - 1], panel.rows, panel.columns);
  }
}

}  // namespace mica::cpu
