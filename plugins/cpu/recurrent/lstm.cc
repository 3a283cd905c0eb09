// An LSTM's steps without a call for each; see recurrent.h.
//
// With few units and samples a step is some microseconds, of which a dozen views, a product of the
// library's and a pointwise operator over parts of rows are calls most of all. Here a step's gates are
// summed where they stay: copied from the input's part, the hidden state's added by a product, and put
// through their activations in place. The weight is turned once for all steps.
#include <algorithm>
#include <cstring>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/contraction/gemm.h"
#include "plugins/cpu/contraction/gemm_rows.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/recurrent/recurrent.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr int64_t kLstm = 2, kGates = 4;
// Rows up to which a product of the library's is slower than gemm_rows.h, however short they are.
constexpr int64_t kFew = 8;
// Activations that make a second thread worth waking.
constexpr int64_t kGrain = 1 << 13;
// Multiplications between two questions for a Ctrl-C.
constexpr int64_t kPatience = int64_t{1} << 24;

// What the steps read and write; rows of a step are `samples` that follow each other.
class Lstm {
 public:
  int64_t samples, width, steps;
  const float* gates;   // [steps * samples, 4 * width]
  const float* weight;  // [4 * width, width]
  float* output;        // [steps * samples, width]
  float* cells;
  float* saved;  // [steps * samples, 4 * width]
  int32_t threads;

  // The state in `h` and `c` goes through all steps; returns where the last ones stand.
  void Run(const float** h, const float** c, bool reverse) const {
    const bool turns = steps > 1 && samples <= kMostRows;
    const Temporary memory(turns ? kGates * width * width * static_cast<int64_t>(sizeof(float)) : 0);
    if (turns) {
      const int64_t sizes[] = {width, kGates * width}, from[] = {1, width}, to[] = {kGates * width, 1};
      CopyStrided(sizeof(float), 2, sizes, weight, from, memory.data(), to, threads);
    }
    const Strided w =
        turns ? Strided{memory.data(), kGates * width, 1} : Strided{const_cast<float*>(weight), 1, width};
    StopSign sign;
    const Watched watched(&sign);
    Patience patience(kPatience);
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t first = (reverse ? steps - 1 - k : k) * samples;
      Sum(first, *h, w);
      ParallelFor(samples, std::max<int64_t>(1, kGrain / width), 1, threads, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) Activate(first + i, *c + i * width);
      });
      *h = output + first * width;
      *c = cells + first * width;
      if (patience.Ends(samples * kGates * width * width)) sign.ThrowIfRaised();
    }
  }

 private:
  // saved = gates + h @ w for a step's rows.
  void Sum(int64_t first, const float* h, const Strided& w) const {
    const int64_t n = kGates * width;
    float* sums = saved + first * n;
    std::memcpy(sums, gates + first * n, static_cast<size_t>(samples * n) * sizeof(float));
    const Strided x{const_cast<float*>(h), width, 1}, to{sums, n, 1};
    if (samples <= kFew && w.col == 1) return GemmRows({samples, n, width, x, w, to, 1, 1}, threads);
    Product p{MICA_F32, samples, n, width, x, w, to};
    p.beta = {1, 0, 1};
    if (!Gemm(p, threads)) throw plugin::NotImplemented();
  }

  // Gates in the order input, forget, cell, output; `c` is the cell before.
  void Activate(int64_t row, const float* c) const {
    const PrimitiveTable& table = *LaneTable(MICA_F32);
    const Primitive sigmoid = table.at[MICA_OP_SIGMOID], tanh = table.at[MICA_OP_TANH];
    float *i = saved + row * kGates * width, *f = i + width, *g = f + width, *o = g + width;
    float *y = output + row * width, *after = cells + row * width;
    sigmoid(i, i, nullptr, nullptr, 2 * width);
    tanh(g, g, nullptr, nullptr, width);
    sigmoid(o, o, nullptr, nullptr, width);
    for (int64_t j = 0; j < width; ++j) after[j] = f[j] * c[j] + i[j] * g[j];
    tanh(y, after, nullptr, nullptr, width);
    for (int64_t j = 0; j < width; ++j) y[j] *= o[j];
  }
};

// Whether a tensor is a dense float32 matrix of these sizes.
bool Is(MicaTensor* tensor, int64_t rows, int64_t columns) {
  const TensorRef t(tensor);
  return t.defined() && t.dtype() == MICA_F32 && t.ndim() == 2 && t.contiguous() && t.size(0) == rows &&
         t.size(1) == columns;
}

OwnedTensor Made(int64_t rows, int64_t columns) {
  const int64_t sizes[] = {rows, columns};
  return OwnedTensor::Empty(sizes, 2, MICA_F32, MicaDevice{0, 0});
}

}  // namespace

void RecurrentLayer(const MicaCall* call, MicaTensor* gates, MicaTensor* weight, MicaTensor*, MicaTensor* h0,
                    MicaTensor* c0, MicaIntSpan batch_sizes, int64_t mode, int32_t reverse,
                    MicaValue* results) {
  const TensorRef h(h0);
  if (mode != kLstm || batch_sizes.size == 0 || h.ndim() != 2) throw plugin::NotImplemented();
  const int64_t samples = batch_sizes.data[0], width = h.size(1), steps = batch_sizes.size;
  const bool alike =
      std::all_of(batch_sizes.data, batch_sizes.data + steps, [samples](int64_t n) { return n == samples; });
  int64_t rows = 0;
  if (!alike || samples <= 0 || width <= 0 || __builtin_mul_overflow(samples, steps, &rows) ||
      !Is(gates, rows, kGates * width) || !Is(weight, kGates * width, width) || !Is(h0, samples, width) ||
      !Is(c0, samples, width))
    throw plugin::NotImplemented();
  OwnedTensor made[] = {Made(rows, width), Made(samples, width), Made(samples, width), Made(rows, width),
                        Made(rows, kGates * width)};
  const auto data = [&](int k) { return TensorRef(made[k].get()).data<float>(); };
  const Lstm lstm{samples,
                  width,
                  steps,
                  TensorRef(gates).data<float>(),
                  TensorRef(weight).data<float>(),
                  data(0),
                  data(3),
                  data(4),
                  ThreadsOf(call)};
  const float *last_h = h.data<float>(), *last_c = TensorRef(c0).data<float>();
  lstm.Run(&last_h, &last_c, reverse != 0);
  std::copy_n(last_h, samples * width, data(1));
  std::copy_n(last_c, samples * width, data(2));
  for (int k = 0; k < 5; ++k) {
    results[k] = {};
    results[k].tag = MICA_VALUE_TENSOR;
    results[k].u.tensor = made[k].release();
  }
}

void RegisterRecurrent(plugin::Registrar& r) { r.Kernel<&RecurrentLayer>("_recurrent_layer"); }

}  // namespace mica::cpu
