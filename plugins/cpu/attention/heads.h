// The operands of attention: rows of each head by their strides, and the mask.
#ifndef MICA_PLUGINS_CPU_ATTENTION_HEADS_H_
#define MICA_PLUGINS_CPU_ATTENTION_HEADS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include <mica/plugin.h>
#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/contraction/gemm.h"

namespace mica::cpu {

// Rows and columns of a block of scores: 128 KB of float32, which second-level caches hold.
inline constexpr int64_t kQueries = 128, kKeys = 256;

struct Range {
  int64_t first, count;
};

// query [batch, heads, queries, width], key [batch, heads / group, keys, width], value
// the same with a width of its own. Throws NotImplemented for other dtypes and shapes.
struct Shape {
  int64_t batch, heads, queries, keys, width, value_width, group;
  int32_t dtype;  // computed in
  bool causal;
  double scale;

  Shape(const plugin::TensorRef& q, const plugin::TensorRef& k, const plugin::TensorRef& v, bool is_causal,
        double by)
      : causal(is_causal), scale(by) {
    if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4) throw plugin::NotImplemented();
    batch = q.size(0), heads = q.size(1), queries = q.size(2), width = q.size(3);
    keys = k.size(2), value_width = v.size(3);
    const bool half = q.dtype() == MICA_F16 || q.dtype() == MICA_BF16;
    dtype = half ? static_cast<int32_t>(MICA_F32) : q.dtype();
    const bool fits = (dtype == MICA_F32 || dtype == MICA_F64) && k.dtype() == q.dtype() &&
                      v.dtype() == q.dtype() && k.size(0) == batch && v.size(0) == batch && k.size(1) > 0 &&
                      heads % k.size(1) == 0 && v.size(1) == k.size(1) && v.size(2) == keys &&
                      k.size(3) == width;
    if (!fits || batch * heads * queries * keys * width * value_width == 0) throw plugin::NotImplemented();
    group = heads / k.size(1);
  }
  // How many keys a block of queries sees.
  int64_t KeysSeenBy(const Range& q) const { return causal ? std::min(keys, q.first + q.count) : keys; }
};

// The strides of heads, of their rows, and within a row: the tensor's own, or those of a row-major copy.
struct HeadStrides {
  int64_t batch, head, row, col;

  // `swapped`: dimensions 1 and 2 are rows and heads.
  HeadStrides(const plugin::TensorRef& t, bool own, bool swapped) {
    int64_t strides[4];
    strides[3] = own ? t.stride(3) : 1;
    for (int d = 2; d >= 0; --d) strides[d] = own ? t.stride(d) : strides[d + 1] * t.size(d + 1);
    batch = strides[0], head = strides[swapped ? 2 : 1], row = strides[swapped ? 1 : 2], col = strides[3];
  }
};

// A tensor of four dimensions whose rows (last dimension) are adjacent elements of T: its
// own memory if it is so, else a copy.
template <class T>
struct Heads {
  const T* data;
  int64_t batch, head, step;  // strides
  std::optional<DenseInput> copy;

  Heads(const MicaTensor* tensor, int32_t dtype, int32_t threads, bool swapped = false) {
    const plugin::TensorRef t(tensor);
    const bool own = t.dtype() == dtype && (t.stride(3) == 1 || t.size(3) == 1) && Ordered(t);
    data = own ? t.data<T>() : copy.emplace(tensor, dtype, threads).template data<T>();
    const HeadStrides strides(t, own, swapped);
    batch = strides.batch, head = strides.head, step = strides.row;
  }
  const T* Row(int64_t b, int64_t h, int64_t i) const { return data + b * batch + h * head + i * step; }

 private:
  // BLAS takes no row shorter than its elements, which expanded ones are.
  static bool Ordered(const plugin::TensorRef& t) {
    return (t.stride(2) >= t.size(3) || t.size(2) == 1) && (t.stride(1) >= t.size(3) || t.size(1) == 1);
  }
};

// What is added to the scores: a floating tensor that broadcasts to [batch, heads,
// queries, keys], or nothing. Throws NotImplemented for any other.
template <class T>
struct Mask {
  const T* data = nullptr;
  int64_t strides[4] = {};
  std::optional<DenseInput> copy;

  Mask(const Shape& s, const MicaTensor* tensor, int32_t threads) {
    if (tensor == nullptr) return;
    const plugin::TensorRef t(tensor);
    const int64_t scores[4] = {s.batch, s.heads, s.queries, s.keys};
    if (t.ndim() > 4 || t.dtype() == MICA_BOOL) throw plugin::NotImplemented();
    for (int d = 0; d < t.ndim(); ++d)
      if (t.size(d) != 1 && t.size(d) != scores[4 - t.ndim() + d]) throw plugin::NotImplemented();
    const int32_t dtype = s.dtype;
    const bool own = t.dtype() == dtype;
    data = own ? t.data<T>() : copy.emplace(tensor, dtype, threads).template data<T>();
    int64_t dense = 1;
    for (int d = t.ndim() - 1; d >= 0; --d) {
      strides[4 - t.ndim() + d] = t.size(d) == 1 ? 0 : own ? t.stride(d) : dense;
      dense *= t.size(d);
    }
  }
  void AddTo(T* row, int64_t b, int64_t h, int64_t q, const Range& k) const {
    if (data == nullptr) return;
    const T* from = data + b * strides[0] + h * strides[1] + q * strides[2] + k.first * strides[3];
    if (strides[3] == 1)
      for (int64_t j = 0; j < k.count; ++j) row[j] += from[j];
    else
      for (int64_t j = 0; j < k.count; ++j) row[j] += from[j * strides[3]];
  }
};

template <class T>
struct Operands {
  Heads<T> query, key, value;
  Mask<T> mask;
  Operands(const Shape& s, const MicaTensor* q, const MicaTensor* k, const MicaTensor* v, const MicaTensor* m,
           int32_t threads)
      : query(q, s.dtype, threads),
        key(k, s.dtype, threads),
        value(v, s.dtype, threads),
        mask(s, m, threads) {}
};

// The gradients of one head, each a matrix of rows and width.
struct Gradients {
  Strided query, key, value;
};

// A matrix from one of its rows on.
template <class T>
Strided From(const Strided& x, int64_t row) {
  return {static_cast<T*>(x.data) + row * x.row, x.row, x.col};
}

// Dimensions of [batch, heads, rows, width] from the outermost in memory to the innermost.
using Order = std::array<int, 4>;
inline constexpr Order kInOrder{0, 1, 2, 3}, kHeadsInside{0, 2, 1, 3}, kRowsInside{0, 1, 3, 2};

// As torch, whose flash attention takes adjacent rows of one width only: where it computes by whole
// matrices instead, results lie in another order.
inline bool FlashInTorch(const plugin::TensorRef& q, const plugin::TensorRef& k, const plugin::TensorRef& v) {
  return q.stride(3) == 1 && k.stride(3) == 1 && v.stride(3) == 1 && q.size(3) == v.size(3);
}

// The order of a dense tensor like `t`: by falling strides, where 0 tells nothing. The width stays inside.
inline Order OrderOf(const plugin::TensorRef& t) {
  Order order = kInOrder;
  for (size_t i = 1; i < 3; ++i)
    for (size_t j = i; j > 0; --j) {
      const int64_t outer = t.stride(order[j - 1]), inner = t.stride(order[j]);
      if (outer == 0 || inner == 0) continue;
      if (outer > inner || (outer == inner && t.size(order[j - 1]) >= t.size(order[j]))) break;
      std::swap(order[j - 1], order[j]);
    }
  return order;
}

// A result [batch, heads, rows, width] of a dtype, whose memory has the dimensions in an order; `swapped`:
// its dimensions 1 and 2 are rows and heads. It is computed in its own memory where its dtype is `computed`,
// else in a row-major copy until Finish.
class HeadsResult {
 public:
  HeadsResult(const std::array<int64_t, 4>& sizes, const Order& order, int32_t dtype, int32_t computed,
              int32_t threads, bool swapped = false)
      : tensor_(Laid(sizes, order, dtype, swapped)), strides_(tensor_.get(), dtype == computed, swapped) {
    data_ = dtype == computed ? plugin::TensorRef(tensor_.get()).data<void>()
                              : copy_.emplace(tensor_.get(), computed, threads).data<void>();
  }
  template <class T>
  Strided Head(int64_t b, int64_t h) const {
    return {static_cast<T*>(data_) + b * strides_.batch + h * strides_.head, strides_.row, strides_.col};
  }
  template <class T>
  void Clear() {
    std::fill_n(static_cast<T*>(data_), plugin::TensorRef(tensor_.get()).numel(), T(0));
  }
  void Finish() {
    if (copy_) copy_->Finish();
  }
  MicaTensor* get() const { return tensor_.get(); }
  plugin::OwnedTensor Take() { return std::move(tensor_); }

 private:
  static plugin::OwnedTensor Laid(const std::array<int64_t, 4>& sizes, const Order& order, int32_t dtype,
                                  bool swapped) {
    int64_t in_memory[4], seen[4], strides[4], step = 1;
    for (size_t i = 4; i-- > 0;) {
      in_memory[i] = sizes[static_cast<size_t>(order[i])];
      strides[order[i]] = step;
      step *= in_memory[i];
    }
    std::copy(sizes.begin(), sizes.end(), seen);
    if (swapped) {
      std::swap(seen[1], seen[2]);
      std::swap(strides[1], strides[2]);
    }
    const plugin::OwnedTensor memory = plugin::OwnedTensor::Empty(in_memory, 4, dtype, MicaDevice{0, 0});
    const MicaTensorResult r = plugin::Host()->tensor_as_strided(memory.get(), {seen, 4}, {strides, 4}, 0);
    plugin::Check(r.status);
    return plugin::OwnedTensor(r.value);
  }

  plugin::OwnedTensor tensor_;
  HeadStrides strides_;
  std::optional<DenseOutput> copy_;
  void* data_;
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ATTENTION_HEADS_H_
