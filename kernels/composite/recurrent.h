// What the two ways through a recurrent layer share: recurrent.cc, which writes each step to
// where it stays, and recurrent_parts.cc, which makes the steps of operators that transforms
// and autograd know. recurrent_networks.cc chooses between them.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <tuple>
#include <vector>

#include "mica/ops/cat.h"
#include "mica/ops/clone.h"
#include "mica/ops/narrow.h"
#include "tensor/tensor.h"

namespace mica::composite::recurrent {

constexpr int64_t kRelu = 0, kTanh = 1, kLstm = 2, kGru = 3;

inline Tensor Rows(const Tensor& x, int64_t first, int64_t count) { return ops::narrow(x, 0, first, count); }

// Column block k of [rows, n * width].
inline std::vector<Tensor> Gates(const Tensor& x, int64_t n) {
  std::vector<Tensor> parts;
  const int64_t width = x.size(1) / n;
  for (int64_t k = 0; k < n; ++k) parts.push_back(ops::narrow(x, 1, k * width, width));
  return parts;
}

// The steps in the order in which the state passes them: first row and number of rows.
struct Step {
  int64_t first, count;
};
inline std::vector<Step> StepsOf(IntSpan batch_sizes, bool reverse) {
  std::vector<Step> steps;
  int64_t first = 0;
  for (const int64_t count : batch_sizes) {
    steps.push_back({first, count});
    first += count;
  }
  if (reverse) std::reverse(steps.begin(), steps.end());
  return steps;
}

// The state as `steps` pass: rows that end leave it, rows that begin come from the first.
struct State {
  Tensor now, first;
  std::vector<Tensor> ended;  // in the order of leaving: the last rows first

  State(const Tensor& initial, int64_t count) : now(Rows(initial, 0, count)), first(initial) {}
  const Tensor& Take(int64_t count) {
    const int64_t have = now.size(0);
    if (count < have) {
      ended.push_back(Rows(now, count, have - count));
      now = Rows(now, 0, count);
    } else if (count > have) {
      now = ops::cat({{now, Rows(first, have, count - have)}}, 0);
    }
    return now;
  }
  Tensor Last() {
    ended.push_back(now);
    std::reverse(ended.begin(), ended.end());
    return ended.size() == 1 ? ops::clone(ended[0]) : ops::cat(ended, 0);
  }
};

// One direction of one layer. `gates` is the input's part of the gates; `projection` makes the hidden state
// of an LSTM's smaller, where it is defined.
struct Layer {
  Tensor gates, weight, bias, h0, c0, projection;
  IntSpan batch_sizes;
  int64_t mode;
  bool reverse;
};

// Output, last hidden state and last cell state (undefined but for an LSTM), each in fresh memory.
std::tuple<Tensor, Tensor, Tensor> LayerOfParts(const Layer& layer);

// Whether autograd records what is computed from one of these.
bool IsRecorded(std::initializer_list<const Tensor*> tensors);

// The gradients of LayerOfParts for gates, weight, bias, h0 and c0, themselves recorded: those of inputs
// that require grad, the others undefined.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> GradientOfParts(Layer layer, const Tensor& grad_output,
                                                                   const Tensor& grad_h,
                                                                   const Tensor& grad_c);

}  // namespace mica::composite::recurrent
