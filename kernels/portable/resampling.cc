// The linear maps of interpolation, one pass a dimension: out[o] = sum of
// weights[o, t] * in[indices[o, t]]; and weighted sums from any place of a plane. An
// index of -1 stands for no element.
#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

std::vector<int64_t> PlacesIn(const Tensor& indices, int64_t size) {
  std::vector<int64_t> places = ToLanes<int64_t>(indices);
  for (const int64_t at : places)
    MICA_CHECK_INDEX(at >= -1 && at < size, "Index (", at, ") of a table is out of range for size (", size,
                     ").");
  return places;
}

template <typename T>
struct Pass {
  int64_t outer = 1, in, out, inner = 1, taps;
  std::vector<int64_t> places;
  std::vector<T> weights;  // empty: all 1

  // Calls f(weight, offset in the input, offset in the output) for every product.
  template <typename F>
  void ForEach(F&& f) const {
    for (int64_t a = 0; a < outer; ++a)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t at = places[static_cast<size_t>(o * taps + t)];
          if (at < 0) continue;
          const T w = weights.empty() ? T(1) : weights[static_cast<size_t>(o * taps + t)];
          for (int64_t b = 0; b < inner; ++b)
            f(w, static_cast<size_t>((a * in + at) * inner + b),
              static_cast<size_t>((a * out + o) * inner + b));
        }
  }
};

// The pass of dimension `d` (of those with a table), the later ones being done already.
template <typename T>
Pass<T> PassOf(IntSpan image, TensorSpan indices, TensorSpan weights, int64_t d) {
  Pass<T> p;
  p.in = image[d + 2];
  p.out = indices[d].sizes()[0];
  p.taps = indices[d].sizes()[1];
  for (int64_t k = 0; k < d + 2; ++k) p.outer *= image[k];
  for (int64_t k = d + 1; k < indices.size(); ++k) p.inner *= indices[k].sizes()[0];
  p.places = PlacesIn(indices[d], p.in);
  if (!weights.empty()) p.weights = ToLanes<T>(weights[d]);
  return p;
}

}  // namespace

void _resample(const Tensor& self, TensorSpan indices, TensorSpan weights, const Tensor& out) {
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    std::vector<T> x = ToLanes<T>(self);
    for (int64_t d = indices.size(); d-- > 0;) {
      const Pass<T> pass = PassOf<T>(self.sizes(), indices, weights, d);
      std::vector<T> y(static_cast<size_t>(pass.outer * pass.out * pass.inner), T(0));
      pass.ForEach([&](T w, size_t from, size_t to) { y[to] = static_cast<T>(y[to] + w * x[from]); });
      x = std::move(y);
    }
    FromLanes(x, out);
  });
}

void _resample_backward(const Tensor& grad, IntSpan sizes, TensorSpan indices, TensorSpan weights,
                        const Tensor& out) {
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    std::vector<T> y = ToLanes<T>(grad);
    for (int64_t d = 0; d < indices.size(); ++d) {
      const Pass<T> pass = PassOf<T>(sizes, indices, weights, d);
      std::vector<T> x(static_cast<size_t>(pass.outer * pass.in * pass.inner), T(0));
      pass.ForEach([&](T w, size_t from, size_t to) { x[from] = static_cast<T>(x[from] + w * y[to]); });
      y = std::move(x);
    }
    FromLanes(y, out);
  });
}

namespace {

// Calls f(offset of the tap, of the plane's element, of the place) for all taps of all
// channels, where the plane has `places` elements.
template <typename F>
void ForEachTap(const Tensor& indices, int64_t channels, int64_t places, F&& f) {
  const std::vector<int64_t> at = PlacesIn(indices, places);
  const int64_t batch = indices.sizes()[0], taps = indices.sizes()[1], length = indices.sizes()[2];
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t k = 0; k < taps; ++k)
        for (int64_t l = 0; l < length; ++l) {
          const int64_t tap = (n * taps + k) * length + l, from = at[static_cast<size_t>(tap)];
          if (from < 0) continue;
          f(static_cast<size_t>(tap), static_cast<size_t>((n * channels + c) * places + from),
            static_cast<size_t>((n * channels + c) * length + l));
        }
}

}  // namespace

void _weighted_gather(const Tensor& self, const Tensor& indices, const Tensor& weights, const Tensor& out) {
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> x = ToLanes<T>(self), w = ToLanes<T>(weights);
    std::vector<T> y(static_cast<size_t>(out.numel()), T(0));
    ForEachTap(indices, self.sizes()[1], self.sizes()[2],
               [&](size_t tap, size_t from, size_t to) { y[to] = static_cast<T>(y[to] + w[tap] * x[from]); });
    FromLanes(y, out);
  });
}

void _weighted_scatter(const Tensor& grad, const Tensor& indices, const Tensor& weights, int64_t places,
                       const Tensor& out) {
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> g = ToLanes<T>(grad), w = ToLanes<T>(weights);
    std::vector<T> x(static_cast<size_t>(out.numel()), T(0));
    ForEachTap(indices, grad.sizes()[1], places, [&](size_t tap, size_t from, size_t to) {
      x[from] = static_cast<T>(x[from] + w[tap] * g[to]);
    });
    FromLanes(x, out);
  });
}

void _weighted_gather_weights(const Tensor& grad, const Tensor& self, const Tensor& indices,
                              const Tensor& out) {
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> g = ToLanes<T>(grad), x = ToLanes<T>(self);
    std::vector<T> w(static_cast<size_t>(out.numel()), T(0));
    ForEachTap(indices, self.sizes()[1], self.sizes()[2], [&](size_t tap, size_t from, size_t to) {
      w[tap] = static_cast<T>(w[tap] + g[to] * x[from]);
    });
    FromLanes(w, out);
  });
}

}  // namespace mica::portable
