// Elements written by index: scatter, index_add, index_put and the gradients of
// what reads by index. Each starts from a copy of `self` (or zeros) in wide lanes.
#include <string_view>

#include "kernels/portable/indexing.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/shape.h"

namespace mica::portable {
namespace {

template <typename F>
void InLanes(const Tensor& out, F&& f) {
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() { f.template operator()<T>(); });
}

// Row-major positions in a tensor of shape `shape` that scatter(dim, index) writes.
std::vector<int64_t> ScatterPositions(IntSpan shape, int64_t dim, const Tensor& index) {
  const int64_t d = Wrapped(dim, shape.size());
  const int64_t size = shape.empty() ? 1 : shape[d];
  const std::vector<int64_t> values = CheckedIndices(index, size, d, false, ErrorKind::kRuntime);
  Dims strides = ContiguousStrides(shape);
  const int64_t step = shape.empty() ? 0 : strides[static_cast<size_t>(d)];
  if (!shape.empty())
    strides[static_cast<size_t>(d)] = 0;
  else
    strides = Dims(static_cast<size_t>(index.ndim()), 0);
  std::vector<int64_t> at(values.size());
  Offsets(index.sizes(), strides, 1).Next(at.data(), static_cast<int64_t>(at.size()));
  for (size_t i = 0; i < at.size(); ++i) at[i] += values[i] * step;
  return at;
}

// The part of `src` that has the shape of `index`, in row-major order.
template <typename T>
std::vector<T> Leading(const Tensor& src, const Tensor& index) {
  std::vector<T> out(static_cast<size_t>(index.numel()));
  std::vector<int64_t> at(out.size());
  Offsets(index.sizes(),
          src.ndim() == 0 ? IntSpan(Dims(static_cast<size_t>(index.ndim()), 0)) : src.strides(),
          src.itemsize())
      .Next(at.data(), static_cast<int64_t>(at.size()));
  LoadLanes(kLaneFor<T>, src.dtype(), src.data_as<char>(), at.data(), static_cast<int64_t>(at.size()),
            out.data());
  return out;
}

template <typename T>
T Larger(T a, T b) {
  return a != a ? a : b != b ? b : a < b ? b : a;
}
template <typename T>
T Smaller(T a, T b) {
  return a != a ? a : b != b ? b : b < a ? b : a;
}

}  // namespace

void scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                    std::string_view reduce, bool include_self, const Tensor& out) {
  InLanes(out, [&]<typename T>() {
    std::vector<T> values = ToLanes<T>(self);
    const std::vector<int64_t> at = ScatterPositions(self.sizes(), dim, index);
    const std::vector<T> from = Leading<T>(src, index);
    std::vector<int64_t> count(values.size(), include_self ? 1 : 0);
    for (size_t i = 0; i < at.size(); ++i) {
      T& v = values[static_cast<size_t>(at[i])];
      if (count[static_cast<size_t>(at[i])]++ == 0)
        v = from[i];
      else if (reduce == "sum" || reduce == "mean")
        v += from[i];
      else if (reduce == "prod")
        v *= from[i];
      else if constexpr (!std::is_same_v<T, Complex>) {
        MICA_CHECK(reduce == "amax" || reduce == "amin", "`reduce` is (", std::string(reduce),
                   "); expected sum, prod, mean, amax or amin.");
        v = reduce == "amax" ? Larger(v, from[i]) : Smaller(v, from[i]);
      }
    }
    for (size_t i = 0; reduce == "mean" && i < values.size(); ++i) {
      if (count[i] < 2) continue;
      if constexpr (std::is_integral_v<T>) {
        const T n = static_cast<T>(count[i]);
        values[i] = values[i] / n - (values[i] % n != 0 && (values[i] < 0));
      } else {
        values[i] /= static_cast<double>(count[i]);
      }
    }
    FromLanes(values, out);
  });
}

void _index_put(const Tensor& self, TensorSpan indices, const Tensor& values, bool accumulate,
                const Tensor& out) {
  copy_(out, self, false);
  const auto [shape, at] = Select(out, indices);
  MICA_CHECK(CanExpandTo(values.sizes(), shape), "shape mismatch: value tensor of shape ",
             ShapeText(values.sizes()), " cannot be broadcast to indexing result of shape ", ShapeText(shape),
             ".");
  std::vector<int64_t> value_at(at.size());
  Offsets(shape, BroadcastStrides(values, shape), values.itemsize())
      .Next(value_at.data(), static_cast<int64_t>(value_at.size()));
  InLanes(out, [&, &at = at]<typename T>() {
    for (size_t i = 0; i < at.size(); ++i) {
      T v, old;
      LoadLanes(kLaneFor<T>, values.dtype(), values.data_as<char>(), &value_at[i], 1, &v);
      if (accumulate) {
        LoadLanes(kLaneFor<T>, out.dtype(), out.data_as<char>(), &at[i], 1, &old);
        v += old;
      }
      StoreLanes(kLaneFor<T>, out.dtype(), &v, out.data_as<char>(), &at[i], 1);
    }
  });
}

void unfold_backward(const Tensor& grad_in, IntSpan, int64_t dim, int64_t size, int64_t step,
                     const Tensor& out) {
  InLanes(out, [&]<typename T>() {
    const std::vector<T> from = ToLanes<T>(grad_in);
    std::vector<T> values(static_cast<size_t>(out.numel()), T(0));
    if (out.ndim() == 0) {
      for (const T& v : from) values[0] += v;
    } else {
      // grad_in is [outer, windows, inner, size].
      const int64_t d = Wrapped(dim, out.ndim());
      const Around a(out.sizes(), d);
      const int64_t windows = grad_in.sizes()[d];
      for (int64_t o = 0; o < a.outer; ++o)
        for (int64_t w = 0; w < windows; ++w)
          for (int64_t i = 0; i < a.inner; ++i)
            for (int64_t k = 0; k < size; ++k)
              values[static_cast<size_t>((o * a.size + w * step + k) * a.inner + i)] +=
                  from[static_cast<size_t>(((o * windows + w) * a.inner + i) * size + k)];
    }
    FromLanes(values, out);
  });
}

void embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                              int64_t padding_idx, bool scale_grad_by_freq, const Tensor& out) {
  InLanes(out, [&]<typename T>() {
    const std::vector<T> from = ToLanes<T>(grad_output);
    const std::vector<int64_t> rows = CheckedIndices(indices, num_weights, 0, false);
    std::vector<T> values(static_cast<size_t>(out.numel()), T(0));
    std::vector<int64_t> count(static_cast<size_t>(num_weights), 0);
    for (int64_t r : rows) ++count[static_cast<size_t>(r)];
    const auto width = static_cast<size_t>(out.sizes()[1]);
    for (size_t k = 0; k < rows.size(); ++k) {
      if (rows[k] == padding_idx) continue;
      const auto row = static_cast<size_t>(rows[k]);
      const T scale = scale_grad_by_freq ? static_cast<T>(count[row]) : T(1);
      for (size_t i = 0; i < width; ++i) values[row * width + i] += from[k * width + i] / scale;
    }
    FromLanes(values, out);
  });
}

}  // namespace mica::portable
