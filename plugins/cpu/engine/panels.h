// Panels: how a pointwise call walks long rows when inputs lie across them.
//
// Row by row, such an input (a transposed matrix) would touch a cache line for each
// element and use it in no other. A panel is a few dozen rows by a few hundred
// columns: its part of each input that lies across is transposed into a buffer that
// stays in cache, and its rows are computed from there one after another.
#ifndef MICA_PLUGINS_CPU_ENGINE_PANELS_H_
#define MICA_PLUGINS_CPU_ENGINE_PANELS_H_

#include <cstdint>

#include "plugins/cpu/engine/iteration.h"

namespace mica::cpu {

class Panels {
 public:
  // A rectangle of the last dimension and `dim`.
  struct Panel {
    int64_t position;  // of its first element
    int64_t rows, columns;
  };

  // Looks for operands from `first` on that lie across the rows of `it`, which is
  // normalized and outlives this.
  void Find(const Iteration& it, int first);

  bool any() const { return dim_ >= 0; }
  bool Holds(int k) const { return any() && slot_[k] >= 0; }
  int64_t count() const;
  int64_t Elements() const { return height_ * width_; }
  // Of the buffers of all operands that are held.
  int64_t bytes() const { return num_held_ * kHeld; }
  Panel At(int64_t index) const;
  // Distance in positions between the rows of a panel.
  int64_t row_step() const { return row_step_; }
  void Pack(const Panel& panel, char* memory) const;
  // The memory of operand k for row `row` of the panel packed last.
  char* Row(int k, int64_t row, char* memory) const { return memory + slot_[k] * kHeld + row * Pitch(k); }

 private:
  static constexpr int64_t kColumns = 256, kMaxRows = 64;
  static constexpr int64_t kHeld = kMaxRows * (kColumns * 8 + 64);

  int64_t Pitch(int k) const { return kColumns * it_->operands[k].size + 64; }

  const Iteration* it_ = nullptr;
  int dim_ = -1;
  int num_held_ = 0;
  int64_t height_ = 0, width_ = 0, bands_ = 0, chunks_ = 0, row_step_ = 0;
  int8_t slot_[kMaxOperands];
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_PANELS_H_
