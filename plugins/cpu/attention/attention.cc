// Flash attention over blocks; see attention.h. Products of blocks are calls of Gemm on
// the calling thread; threads share the blocks of queries forward, the heads of keys
// backward, where each head's gradients are summed by one thread.
#include "plugins/cpu/attention/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "plugins/cpu/attention/heads.h"
#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/contraction/gemm.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

// c = alpha * a @ b + beta * c on this thread.
void Multiply(int32_t dtype, int64_t m, int64_t n, int64_t k, Strided a, Strided b, Strided c, double alpha,
              double beta) {
  Product p{dtype, m, n, k, a, b, c};
  p.alpha = {alpha, 0, 1};
  p.beta = {beta, 0, 0};
  if (!Gemm(p, 1)) throw plugin::NotImplemented();
}

Strided Turned(Strided x) { return {x.data, x.col, x.row}; }

template <class T>
Strided Block(T* data, int64_t row) {
  return {const_cast<std::remove_const_t<T>*>(data), row, 1};
}

// The scores of a block: rows [q, q + rows) and columns [k, k + columns), masked.
template <class T>
void Scores(const Shape& s, const Heads<T>& query, const Heads<T>& key, const Mask<T>& mask, int64_t b,
            int64_t h, const Range& q, const Range& k, T* scores) {
  Multiply(s.dtype, q.count, k.count, s.width, Block(query.Row(b, h, q.first), query.step),
           Turned(Block(key.Row(b, h / s.group, k.first), key.step)), Block(scores, k.count), s.scale, 0);
  for (int64_t i = 0; i < q.count; ++i) {
    T* row = scores + i * k.count;
    mask.AddTo(row, b, h, q.first + i, k);
    if (s.causal)
      for (int64_t j = std::max<int64_t>(q.first + i + 1 - k.first, 0); j < k.count; ++j)
        row[j] = -std::numeric_limits<T>::infinity();
  }
}

// One block of queries: its rows of the output and the logarithms of its sums.
template <class T>
void ForwardBlock(const Shape& s, const Heads<T>& query, const Heads<T>& key, const Heads<T>& value,
                  const Mask<T>& mask, int64_t b, int64_t h, const Range& q, T* scores, const Strided& to,
                  T* log_sum) {
  T* const out = static_cast<T*>(to.data);
  const int64_t out_step = to.row;
  const AttentionRows<T>& rows = RowsOf(T());
  T maximum[kQueries], sum[kQueries];
  std::fill(maximum, maximum + q.count, -std::numeric_limits<T>::infinity());
  std::fill(sum, sum + q.count, T(0));
  for (int64_t first = 0; first < s.KeysSeenBy(q); first += kKeys) {
    const Range k{first, std::min(kKeys, s.KeysSeenBy(q) - first)};
    Scores(s, query, key, mask, b, h, q, k, scores);
    for (int64_t i = 0; i < q.count; ++i) {
      const T factor = rows.accumulate(scores + i * k.count, k.count, &maximum[i], &sum[i]);
      if (first > 0 && factor != 1) rows.scale(out + i * out_step, s.value_width, factor);
    }
    Multiply(s.dtype, q.count, s.value_width, k.count, Block(scores, k.count),
             Block(value.Row(b, h / s.group, k.first), value.step), Block(out, out_step), 1,
             first > 0 ? 1 : 0);
  }
  for (int64_t i = 0; i < q.count; ++i) {
    T* row = out + i * out_step;
    if (sum[i] == 0)  // a row that sees nothing
      std::fill(row, row + s.value_width, T(0));
    else
      rows.scale(row, s.value_width, T(1) / sum[i]);
    log_sum[i] = sum[i] == 0 ? std::numeric_limits<T>::infinity() : maximum[i] + std::log(sum[i]);
  }
}

template <class T>
void Forward(const Shape& s, const Operands<T>& in, const HeadsResult& out, T* log_sum, int32_t threads) {
  const int64_t blocks = (s.queries + kQueries - 1) / kQueries;
  ParallelSteps(s.batch * s.heads * blocks, 1, 1, threads, [&](int64_t begin, int64_t end) {
    const Temporary scores(kQueries * kKeys * static_cast<int64_t>(sizeof(T)));
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / blocks / s.heads, h = at / blocks % s.heads, first = at % blocks * kQueries;
      const Range q{first, std::min(kQueries, s.queries - first)};
      ForwardBlock(s, in.query, in.key, in.value, in.mask, b, h, q, scores.data<T>(),
                   From<T>(out.Head<T>(b, h), first), log_sum + (b * s.heads + h) * s.queries + first);
    }
  });
}

// The gradients of one block of queries against one of keys. `keys` and `values` are
// sums over query blocks and heads of the group, `queries` over key blocks.
template <class T>
void BackwardBlock(const Shape& s, const Operands<T>& in, const Heads<T>& grad, int64_t b, int64_t h,
                   const Range& q, const Range& k, const T* log_sum, const T* delta, T* scores, T* gradient,
                   const Gradients& out) {
  const AttentionRows<T>& rows = RowsOf(T());
  Scores(s, in.query, in.key, in.mask, b, h, q, k, scores);
  for (int64_t i = 0; i < q.count; ++i) rows.probabilities(scores + i * k.count, k.count, log_sum[i]);
  const Strided p = Block(scores, k.count), dp = Block(gradient, k.count);
  const Strided g = Block(grad.Row(b, h, q.first), grad.step);
  Multiply(s.dtype, k.count, s.value_width, q.count, Turned(p), g, From<T>(out.value, k.first), 1, 1);
  Multiply(s.dtype, q.count, k.count, s.value_width, g,
           Turned(Block(in.value.Row(b, h / s.group, k.first), in.value.step)), dp, 1, 0);
  for (int64_t i = 0; i < q.count; ++i)
    rows.score_gradient(scores + i * k.count, gradient + i * k.count, k.count, delta[i]);
  Multiply(s.dtype, q.count, s.width, k.count, dp, Block(in.key.Row(b, h / s.group, k.first), in.key.step),
           From<T>(out.query, q.first), s.scale, 1);
  Multiply(s.dtype, k.count, s.width, q.count, Turned(dp), Block(in.query.Row(b, h, q.first), in.query.step),
           From<T>(out.key, k.first), s.scale, 1);
}

// delta = the sum of gradient times output of each row.
template <class T>
void Deltas(const Shape& s, const Heads<T>& grad, const Heads<T>& output, int64_t b, int64_t h, T* delta) {
  for (int64_t i = 0; i < s.queries; ++i) {
    const T *g = grad.Row(b, h, i), *o = output.Row(b, h, i);
    T sum = 0;
    for (int64_t e = 0; e < s.value_width; ++e) sum += g[e] * o[e];
    delta[i] = sum;
  }
}

template <class T>
void Backward(const Shape& s, const Operands<T>& in, const Heads<T>& grad, const Heads<T>& output,
              const T* log_sum, const HeadsResult (&out)[3], int32_t threads) {
  const int64_t key_heads = s.heads / s.group;
  ParallelSteps(s.batch * key_heads, 1, 1, threads, [&](int64_t begin, int64_t end) {
    const Temporary memory((2 * kQueries * kKeys + s.queries) * static_cast<int64_t>(sizeof(T)));
    T *scores = memory.data<T>(), *gradient = scores + kQueries * kKeys, *delta = gradient + kQueries * kKeys;
    for (int64_t at = begin; at < end; ++at)
      for (int64_t h = at % key_heads * s.group; h < (at % key_heads + 1) * s.group; ++h) {
        const int64_t b = at / key_heads, head = b * s.heads + h;
        const int64_t key_head = at % key_heads;
        const Gradients own{out[0].Head<T>(b, h), out[1].Head<T>(b, key_head), out[2].Head<T>(b, key_head)};
        Deltas(s, grad, output, b, h, delta);
        for (int64_t q0 = 0; q0 < s.queries; q0 += kQueries) {
          const Range q{q0, std::min(kQueries, s.queries - q0)};
          for (int64_t k0 = 0; k0 < s.KeysSeenBy(q); k0 += kKeys) {
            const Range k{k0, std::min(kKeys, s.KeysSeenBy(q) - k0)};
            BackwardBlock(s, in, grad, b, h, q, k, log_sum + head * s.queries + q0, delta + q0, scores,
                          gradient, own);
          }
        }
      }
  });
}

void Give(MicaValue* result, OwnedTensor tensor) {
  *result = {};
  result->tag = tensor.get() != nullptr ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
  result->u.tensor = tensor.release();
}

OwnedTensor Made(std::initializer_list<int64_t> sizes, int32_t dtype) {
  return OwnedTensor::Empty(sizes.begin(), static_cast<int64_t>(sizes.size()), dtype, MicaDevice{0, 0});
}

}  // namespace

void FlashAttention(const MicaCall* call, MicaTensor* query, MicaTensor* key, MicaTensor* value,
                    MicaTensor* mask, int32_t is_causal, double scale, MicaValue* results) {
  const Shape s(query, key, value, is_causal != 0, scale);
  const int32_t threads = ThreadsOf(call), kept = TensorRef(query).dtype();
  HeadsResult out(std::array{s.batch, s.heads, s.queries, s.value_width},
                  FlashInTorch(query, key, value) ? OrderOf(query) : kInOrder, kept, s.dtype, threads, true);
  OwnedTensor log_sum = Made({s.batch, s.heads, s.queries}, s.dtype);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const Operands<T> in(s, query, key, value, mask, threads);
    Forward<T>(s, in, out, TensorRef(log_sum.get()).data<T>(), threads);
  };
  s.dtype == MICA_F32 ? run(float()) : run(double());
  out.Finish();
  Give(&results[0], out.Take());
  Give(&results[1], std::move(log_sum));
}

void FlashAttentionBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* query, MicaTensor* key,
                            MicaTensor* value, MicaTensor* mask, int32_t is_causal, double scale,
                            MicaTensor* output, MicaTensor* log_sum, MicaBoolSpan output_mask,
                            MicaValue* results) {
  const Shape s(query, key, value, is_causal != 0, scale);
  if (output_mask.data[3] || TensorRef(log_sum).dtype() != s.dtype) throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call), kept = TensorRef(query).dtype();
  const bool flash = FlashInTorch(query, key, value);
  const int64_t key_heads = s.heads / s.group;
  HeadsResult made[] = {
      {{s.batch, s.heads, s.queries, s.width}, flash ? kHeadsInside : kInOrder, kept, s.dtype, threads},
      {{s.batch, key_heads, s.keys, s.width}, flash ? kHeadsInside : kRowsInside, kept, s.dtype, threads},
      {{s.batch, key_heads, s.keys, s.value_width}, flash ? kHeadsInside : kInOrder, kept, s.dtype, threads}};
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const Operands<T> in(s, query, key, value, mask, threads);
    // What a half type's rounding took from the output would be missed where its product with
    // the gradient nearly cancels: the output is computed again, in float32.
    std::optional<HeadsResult> wide;
    if (kept != s.dtype) {
      wide.emplace(std::array{s.batch, s.heads, s.queries, s.value_width}, kHeadsInside, s.dtype, s.dtype,
                   threads, true);
      const OwnedTensor sums = Made({s.batch, s.heads, s.queries}, s.dtype);
      Forward<T>(s, in, *wide, TensorRef(sums.get()).data<T>(), threads);
    }
    // Both are [batch, queries, heads, width].
    const Heads<T> grad(grad_output, s.dtype, threads, true);
    const Heads<T> result(wide ? wide->get() : output, s.dtype, threads, true);
    const DenseInput sums(log_sum, s.dtype, threads);
    for (HeadsResult& g : made) g.Clear<T>();
    Backward<T>(s, in, grad, result, sums.data<T>(), made, threads);
  };
  s.dtype == MICA_F32 ? run(float()) : run(double());
  for (int k = 0; k < 3; ++k) {
    made[k].Finish();
    Give(&results[k], output_mask.data[k] ? made[k].Take() : OwnedTensor());
  }
  Give(&results[3], OwnedTensor());
}

void RegisterAttention(plugin::Registrar& registrar) {
  registrar.Kernel<FlashAttention>("_flash_attention");
  registrar.Kernel<FlashAttentionBackward>("_flash_attention_backward");
}

}  // namespace mica::cpu
