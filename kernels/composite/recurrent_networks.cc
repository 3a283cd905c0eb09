// LSTM, GRU and plain recurrent networks of several layers and directions, over padded
// and packed sequences: each direction of a layer is a product for the input's part of
// the gates and one _recurrent_layer.
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/frames/frames.h"
#include "kernels/composite/recurrent.h"
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/_recurrent_layer.h"
#include "mica/ops/_to_copy.h"
#include "mica/ops/add.h"
#include "mica/ops/cat.h"
#include "mica/ops/contiguous.h"
#include "mica/ops/dropout.h"
#include "mica/ops/linear.h"
#include "mica/ops/reshape.h"
#include "mica/ops/select.h"
#include "mica/ops/stack.h"
#include "mica/ops/transpose.h"
#include "tensor/shape.h"

namespace mica::composite {

using namespace recurrent;

namespace {

struct Network {
  int64_t mode;
  TensorSpan params;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t per_direction() const { return (has_biases ? 4 : 2) + (is_projected() ? 1 : 0); }
  // A projection's weight stands last in each direction's list.
  bool is_projected() const {
    return mode == kLstm && params.size() == layers * directions() * (has_biases ? 5 : 3);
  }
};

struct Result {
  Tensor output, h, c;
};

// Weights of one direction: of the input, of the hidden state, their biases, the projection.
struct Weights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
  Weights(const Network& n, int64_t at) {
    const int64_t first = at * n.per_direction();
    input = n.params[first];
    hidden = n.params[first + 1];
    if (n.is_projected()) projection = n.params[first + n.per_direction() - 1];
    if (!n.has_biases) return;
    input_bias = n.params[first + 2];
    hidden_bias = n.params[first + 3];
  }
};

// What a projection's shapes must be; those of a layer without one are _recurrent_layer's to check.
void CheckProjected(const Layer& l) {
  const int64_t width = l.c0.size(-1), rows = l.projection.ndim() == 2 ? l.projection.size(0) : -1;
  MICA_CHECK(
      l.h0.ndim() == 2 && l.c0.ndim() == 2 && l.projection.ndim() == 2 && l.projection.size(1) == width &&
          l.h0.size(1) == rows && l.h0.size(0) == l.c0.size(0) && l.gates.size(1) == 4 * width &&
          l.weight.ndim() == 2 && l.weight.size(0) == 4 * width && l.weight.size(1) == rows,
      "Shapes ", ShapeText(l.gates.sizes()), " of the gates, ", ShapeText(l.weight.sizes()),
      " of the weight, ", ShapeText(l.projection.sizes()), " of the projection, ", ShapeText(l.h0.sizes()),
      " of the hidden and ", ShapeText(l.c0.sizes()), " of the cell state do not fit.");
  int64_t steps = 0, before = l.h0.size(0);
  for (const int64_t n : l.batch_sizes) {
    MICA_CHECK(n >= 0 && n <= before, "Batch size (", n, ") follows (", before, "); they must not grow.");
    MICA_CHECK(!__builtin_add_overflow(steps, before = n, &steps),
               "The sum of the batch sizes is beyond int64.");
  }
  MICA_CHECK(!l.batch_sizes.empty() && l.batch_sizes[0] == l.h0.size(0) && steps == l.gates.size(0),
             "The sum (", steps, ") of the batch sizes is not the number (", l.gates.size(0),
             ") of rows, or the first of them not the number (", l.h0.size(0), ") of first states.");
}

// Output and last states, by the operator; of its parts with a projection, and within a transform, where the
// parts' gradients can be differentiated again.
std::tuple<Tensor, Tensor, Tensor> RunLayer(const Layer& l) {
  if (l.projection.defined()) {
    CheckProjected(l);
    return LayerOfParts(l);
  }
  const auto run = CurrentThread().frame ? &_recurrent_layer : &ops::_recurrent_layer;
  auto [out, h, c, cells, saved] =
      run(l.gates, l.weight, l.bias, l.h0, l.c0, l.batch_sizes, l.mode, l.reverse);
  return {out, h, c};
}

// The rows of all steps through every layer.
Result Run(const Network& n, const Tensor& rows, IntSpan batch_sizes, const Tensor& h0, const Tensor& c0) {
  const int64_t wanted = n.layers * n.directions() * n.per_direction();
  MICA_CHECK(n.params.size() == wanted, "Number of weights (", n.params.size(), ") is not (", wanted, ").");
  MICA_CHECK(h0.ndim() == 3 && h0.size(0) == n.layers * n.directions(), "Shape ", ShapeText(h0.sizes()),
             " of the first hidden state does not begin with the number (", n.layers * n.directions(),
             ") of layers and directions.");
  Tensor x = rows;
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < n.directions(); ++d) {
      const int64_t at = layer * n.directions() + d;
      const Weights w(n, at);
      const bool joined = n.mode != kGru && n.has_biases;  // a GRU's are inside of a product
      const Tensor gates =
          ops::linear(x, w.input, joined ? ops::add(w.input_bias, w.hidden_bias) : w.input_bias);
      const Layer part{gates,
                       w.hidden,
                       n.mode == kGru ? w.hidden_bias : Tensor(),
                       ops::select(h0, 0, at),
                       n.mode == kLstm ? ops::select(c0, 0, at) : Tensor(),
                       w.projection,
                       batch_sizes,
                       n.mode,
                       d == 1};
      auto [out, h, c] = RunLayer(part);
      outputs.push_back(out);
      last_h.push_back(h);
      last_c.push_back(c);
    }
    x = outputs.size() == 1 ? outputs[0] : ops::cat(outputs, 1);
    if (n.dropout > 0 && n.train && layer + 1 < n.layers) x = ops::dropout(x, n.dropout, true);
  }
  return {x, ops::stack(last_h, 0), n.mode == kLstm ? ops::stack(last_c, 0) : Tensor()};
}

// Padded sequences: every step has the whole batch.
Result RunPadded(const Network& n, const Tensor& input, bool batch_first, const Tensor& h0,
                 const Tensor& c0) {
  MICA_CHECK(input.ndim() == 3, "Number of dimensions (", input.ndim(), ") of `input` is not 3.");
  const Tensor x = batch_first ? ops::transpose(input, 0, 1) : input;
  const int64_t steps = x.size(0), batch = x.size(1);
  MICA_CHECK(steps > 0, "`input` has no steps; expected at least one.");
  const Dims sizes(static_cast<size_t>(steps), batch);
  Result r = Run(n, ops::reshape(x, {steps * batch, x.size(2)}), sizes, h0, c0);
  r.output = ops::reshape(r.output, {steps, batch, r.output.size(1)});
  if (batch_first) r.output = ops::transpose(r.output, 0, 1);
  return r;
}

Dims SizesIn(const Tensor& batch_sizes) {
  MICA_CHECK(batch_sizes.ndim() == 1 && batch_sizes.dtype() == DType::kI64 && batch_sizes.device().is_cpu(),
             "Batch sizes with shape ", ShapeText(batch_sizes.sizes()), " and dtype (",
             Name(batch_sizes.dtype()), ") are no int64 vector on the CPU.");
  const Tensor here = ops::contiguous(frames::Readable(batch_sizes, "a table of batch sizes"));
  return Dims(here.data_as<int64_t>(), here.data_as<int64_t>() + here.numel());
}

void CheckStates(TensorSpan hx) {
  MICA_CHECK(hx.size() == 2, "Number of states (", hx.size(), ") of an LSTM is not 2; expected h and c.");
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm_input(const Tensor& input, TensorSpan hx, TensorSpan params,
                                              bool has_biases, int64_t num_layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first) {
  CheckStates(hx);
  const Network n{kLstm, params, has_biases, num_layers, dropout, train, bidirectional};
  const Result r = RunPadded(n, input, batch_first, hx[0], hx[1]);
  return {r.output, r.h, r.c};
}
std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes, TensorSpan hx,
                                             TensorSpan params, bool has_biases, int64_t num_layers,
                                             double dropout, bool train, bool bidirectional) {
  CheckStates(hx);
  const Network n{kLstm, params, has_biases, num_layers, dropout, train, bidirectional};
  const Result r = Run(n, data, SizesIn(batch_sizes), hx[0], hx[1]);
  return {r.output, r.h, r.c};
}

#define MICA_RECURRENT(name, mode)                                                                         \
  std::tuple<Tensor, Tensor> name##_input(const Tensor& input, const Tensor& hx, TensorSpan params,        \
                                          bool has_biases, int64_t num_layers, double dropout, bool train, \
                                          bool bidirectional, bool batch_first) {                          \
    const Network n{mode, params, has_biases, num_layers, dropout, train, bidirectional};                  \
    const Result r = RunPadded(n, input, batch_first, hx, Tensor());                                       \
    return {r.output, r.h};                                                                                \
  }                                                                                                        \
  std::tuple<Tensor, Tensor> name##_data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,  \
                                         TensorSpan params, bool has_biases, int64_t num_layers,           \
                                         double dropout, bool train, bool bidirectional) {                 \
    const Network n{mode, params, has_biases, num_layers, dropout, train, bidirectional};                  \
    const Result r = Run(n, data, SizesIn(batch_sizes), hx, Tensor());                                     \
    return {r.output, r.h};                                                                                \
  }

MICA_RECURRENT(gru, kGru)
MICA_RECURRENT(rnn_tanh, kTanh)
MICA_RECURRENT(rnn_relu, kRelu)
#undef MICA_RECURRENT

}  // namespace mica::composite
