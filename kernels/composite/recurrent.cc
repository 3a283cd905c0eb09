// One direction of one layer of a recurrent network, and its gradient.
//
// The gates' part from the input is one product for all steps, made before; here the
// hidden state goes through the steps: a small product and one pointwise operator each,
// written to where it stays. Rows of step t are those of the samples that are that long
// (`batch_sizes`, never growing), as in a packed sequence. `saved` keeps what the
// gradient needs: for an LSTM the gates after their activations, for a GRU also the
// hidden state's part of the new gate; nothing for the others. Within a transform (a
// frame), which has no rule for these writes, and where the gradient itself is recorded,
// the steps are made of other operators: recurrent_parts.cc.
#include "kernels/composite/recurrent.h"

#include <algorithm>

#include "dispatcher/calls/thread_state.h"
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/_gru_step.h"
#include "mica/ops/_gru_step_backward.h"
#include "mica/ops/_lstm_step.h"
#include "mica/ops/_lstm_step_backward.h"
#include "mica/ops/add.h"
#include "mica/ops/addcmul.h"
#include "mica/ops/addmm.h"
#include "mica/ops/cat.h"
#include "mica/ops/clone.h"
#include "mica/ops/copy_.h"
#include "mica/ops/empty.h"
#include "mica/ops/lerp.h"
#include "mica/ops/linear.h"
#include "mica/ops/mm.h"
#include "mica/ops/mul.h"
#include "mica/ops/narrow.h"
#include "mica/ops/relu.h"
#include "mica/ops/sigmoid.h"
#include "mica/ops/sum.h"
#include "mica/ops/t.h"
#include "mica/ops/tanh.h"
#include "mica/ops/tanh_backward.h"
#include "mica/ops/threshold_backward.h"
#include "mica/ops/zeros.h"
#include "tensor/shape.h"

namespace mica::composite {

using namespace recurrent;

namespace {

Tensor Empty(const Tensor& like, IntSpan sizes) {
  return ops::empty(sizes, like.dtype(), std::nullopt, like.device());
}
Tensor Zeros(const Tensor& like, IntSpan sizes) {
  return ops::zeros(sizes, like.dtype(), std::nullopt, like.device());
}

void CheckLayer(const Tensor& gates, const Tensor& weight, const Tensor& h0, const Tensor& c0,
                IntSpan batch_sizes, int64_t mode) {
  MICA_CHECK_VALUE(mode >= kRelu && mode <= kGru, "Mode (", mode, ") of a recurrent layer is unknown.");
  const int64_t width = h0.ndim() == 2 ? h0.size(1) : -1, count = mode == kLstm ? 4 : mode == kGru ? 3 : 1;
  int64_t rows = 0, before = batch_sizes.empty() ? 0 : batch_sizes[0];
  for (const int64_t n : batch_sizes) {
    MICA_CHECK(n >= 0 && n <= before, "Batch size (", n, ") follows (", before, "); they must not grow.");
    before = n;
    MICA_CHECK(!__builtin_add_overflow(rows, n, &rows), "The sum of the batch sizes is beyond int64.");
  }
  MICA_CHECK(!batch_sizes.empty() && h0.ndim() == 2 && h0.size(0) == batch_sizes[0] && gates.ndim() == 2 &&
                 gates.size(0) == rows && gates.size(1) == count * width && weight.ndim() == 2 &&
                 weight.size(0) == count * width && weight.size(1) == width &&
                 (mode != kLstm || (c0.defined() && c0.sizes() == h0.sizes())),
             "Shapes ", ShapeText(gates.sizes()), " of the gates, ", ShapeText(weight.sizes()),
             " of the weight and ", ShapeText(h0.sizes()), " of the state do not fit.");
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> _recurrent_layer(const Tensor& gates, const Tensor& weight,
                                                                    const Tensor& bias, const Tensor& h0,
                                                                    const Tensor& c0, IntSpan batch_sizes,
                                                                    int64_t mode, bool reverse) {
  CheckLayer(gates, weight, h0, c0, batch_sizes, mode);
  if (CurrentThread().frame) {
    auto [output, h, c] = LayerOfParts({gates, weight, bias, h0, c0, {}, batch_sizes, mode, reverse});
    const Tensor none = Empty(gates, {0});
    return {output, h, mode == kLstm ? c : none, none, none};
  }
  const int64_t width = h0.size(1), rows = gates.size(0);
  const std::vector<Step> steps = StepsOf(batch_sizes, reverse);
  const Tensor output = Empty(gates, {rows, width}), turned = ops::t(weight);
  const bool keeps = mode == kLstm || mode == kGru;
  const Tensor cells = keeps ? Empty(gates, {rows, width}) : Empty(gates, {0});
  const Tensor saved = keeps ? Empty(gates, gates.sizes()) : Empty(gates, {0});
  State h(h0, steps[0].count), c(mode == kLstm ? c0 : h0, steps[0].count);
  for (const Step& step : steps) {
    const auto part = [&](const Tensor& x) { return Rows(x, step.first, step.count); };
    const Tensor before = h.Take(step.count), y = part(output);
    if (mode == kGru) {
      const std::vector<Tensor> x = Gates(part(gates), 3), u = Gates(ops::linear(before, weight, bias), 3),
                                a = Gates(part(saved), 3);
      ops::_gru_step_out(y, a[0], a[1], a[2], x[0], x[1], x[2], u[0], u[1], u[2], before);
      ops::copy_(part(cells), u[2]);
    } else {
      const Tensor sums = ops::addmm(part(gates), before, turned);
      if (mode == kLstm) {
        const std::vector<Tensor> x = Gates(sums, 4), a = Gates(part(saved), 4);
        const Tensor cell = c.Take(step.count), after = part(cells);
        ops::_lstm_step_out(y, after, a[0], a[1], a[2], a[3], x[0], x[1], x[2], x[3], cell);
        c.now = after;
      } else {
        mode == kTanh ? ops::tanh_out(y, sums) : ops::copy_(y, ops::relu(sums));
      }
    }
    h.now = y;
  }
  return {output, h.Last(), mode == kLstm ? c.Last() : Empty(gates, {0}), cells, saved};
}

namespace {

// The gradient for the state while the steps are passed backwards: a row's gradient at
// its last step comes from the final state, and goes to the first one where it began.
struct StateGradient {
  Tensor now, last, first;
  int64_t have;

  StateGradient(const Tensor& of_last, const Tensor& like, int64_t batch, int64_t count)
      : last(of_last), first(Zeros(like, {batch, like.size(1)})), have(count) {
    now = of_last.defined() ? ops::clone(Rows(of_last, 0, count)) : Zeros(like, {count, like.size(1)});
  }
  // For `count` rows, more or fewer than before.
  const Tensor& Take(int64_t count) {
    if (count > have) {
      const Tensor more =
          last.defined() ? Rows(last, have, count - have) : Zeros(now, {count - have, now.size(1)});
      now = ops::cat({{now, more}}, 0);
    } else if (count < have) {
      ops::copy_(Rows(first, count, have - count), Rows(now, count, have - count));
      now = Rows(now, 0, count);
    }
    have = count;
    return now;
  }
  Tensor First() {
    ops::copy_(Rows(first, 0, have), now);
    return first;
  }
};

// What the backward gets fits what the layer gave.
void CheckKept(const Tensor& grad_output, const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates,
               const Tensor& h0, int64_t mode, const Tensor& output, const Tensor& cells,
               const Tensor& saved) {
  const Dims rows{gates.size(0), h0.size(1)};
  const auto fits = [](const Tensor& t, IntSpan sizes) { return !t.defined() || t.sizes() == sizes; };
  // A simple network keeps nothing, a GRU its gates, an LSTM its cells as well.
  const bool keeps = mode == kLstm || mode == kGru;
  MICA_CHECK(
      fits(grad_output, rows) && fits(grad_h, h0.sizes()) && fits(output, rows) &&
          (!keeps || fits(saved, gates.sizes())) &&
          (mode != kLstm || (fits(grad_c, h0.sizes()) && fits(cells, rows))),
      "A gradient or a kept tensor of a recurrent layer has another shape than the result; the output has ",
      ShapeText(rows), ", a state ", ShapeText(h0.sizes()), ", what is saved ", ShapeText(gates.sizes()),
      ".");
}

// The state before each row's step, in the rows' order.
Tensor StatesBefore(const Tensor& output, const Tensor& initial, const std::vector<Step>& steps) {
  const Tensor before = Empty(output, output.sizes());
  const Step* last = nullptr;
  for (const Step& step : steps) {
    const int64_t old = last ? std::min(last->count, step.count) : 0;
    if (old > 0) ops::copy_(Rows(before, step.first, old), Rows(output, last->first, old));
    if (old < step.count)
      ops::copy_(Rows(before, step.first + old, step.count - old), Rows(initial, old, step.count - old));
    last = &step;
  }
  return before;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> _recurrent_layer_backward(
    const Tensor& grad_output, const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates,
    const Tensor& weight, const Tensor& h0, const Tensor& c0, IntSpan batch_sizes, int64_t mode, bool reverse,
    const Tensor& output, const Tensor& cells, const Tensor& saved, const Tensor& bias) {
  CheckLayer(gates, weight, h0, c0, batch_sizes, mode);
  if (IsRecorded({&grad_output, &grad_h, &grad_c, &gates, &weight, &bias, &h0, &c0}))
    return GradientOfParts({gates, weight, bias, h0, c0, {}, batch_sizes, mode, reverse}, grad_output, grad_h,
                           grad_c);
  CheckKept(grad_output, grad_h, grad_c, gates, h0, mode, output, cells, saved);
  const std::vector<Step> steps = StepsOf(batch_sizes, reverse);
  const int64_t batch = h0.size(0), last_count = steps.back().count;
  const Tensor dgates = Empty(gates, gates.sizes());
  // Of the hidden state's part of the gates: a GRU's new gate has another than the input's.
  const Tensor dhidden = mode == kGru ? Empty(gates, gates.sizes()) : dgates;
  const Tensor before = StatesBefore(output, h0, steps);
  const Tensor cells_before = mode == kLstm ? StatesBefore(cells, c0, steps) : Tensor();
  StateGradient dh(grad_h, h0, batch, last_count),
      dc(mode == kLstm ? grad_c : Tensor(), h0, batch, last_count);
  for (size_t k = steps.size(); k-- > 0;) {
    const Step& step = steps[k];
    const auto rows = [&](const Tensor& x) { return Rows(x, step.first, step.count); };
    const Tensor from_later = dh.Take(step.count);
    const Tensor dy = grad_output.defined() ? ops::add(rows(grad_output), from_later) : from_later;
    const Tensor d = rows(dgates);
    Tensor rest;
    if (mode == kLstm) {
      const std::vector<Tensor> a = Gates(rows(saved), 4), out = Gates(d, 4);
      const Tensor dcell = dc.Take(step.count), earlier = Empty(dcell, dcell.sizes());
      ops::_lstm_step_backward_out(out[0], out[1], out[2], out[3], earlier, dy, dcell, a[0], a[1], a[2], a[3],
                                   rows(cells_before), rows(cells));
      dc.now = earlier;
    } else if (mode == kGru) {
      const std::vector<Tensor> a = Gates(rows(saved), 3), out = Gates(d, 3), u = Gates(rows(dhidden), 3);
      rest = Empty(dy, dy.sizes());
      ops::_gru_step_backward_out(out[0], out[1], out[2], u[2], rest, dy, a[0], a[1], a[2], rows(cells),
                                  rows(before));
      ops::copy_(u[0], out[0]);
      ops::copy_(u[1], out[1]);
    } else {
      ops::copy_(d, mode == kTanh ? ops::tanh_backward(dy, rows(output))
                                  : ops::threshold_backward(dy, rows(output), Scalar(0)));
    }
    dh.now = rest.defined() ? ops::addmm(rest, rows(dhidden), weight) : ops::mm(d, weight);
  }
  const Tensor for_bias =
      mode == kGru ? ops::op::sum_dim_IntList::call(dhidden, IntSpan({0}), false, std::nullopt) : Tensor();
  return {dgates, ops::mm(ops::t(dhidden), before), for_bias, dh.First(),
          mode == kLstm ? dc.First() : Tensor()};
}

}  // namespace mica::composite
