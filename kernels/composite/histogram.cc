// Histograms: each point's bin in each dimension, numbered together, and one
// scatter_add of the weights. Bins hold their left edge, the last one both.
#include <cmath>

#include "mica/kernels/composite_declarations.h"
#include "mica/ops/add.h"
#include "mica/ops/amax.h"
#include "mica/ops/amin.h"
#include "mica/ops/clamp_max.h"
#include "mica/ops/contiguous.h"
#include "mica/ops/diff.h"
#include "mica/ops/div.h"
#include "mica/ops/eq.h"
#include "mica/ops/ge.h"
#include "mica/ops/item.h"
#include "mica/ops/le.h"
#include "mica/ops/linspace.h"
#include "mica/ops/logical_and.h"
#include "mica/ops/logical_not.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/mul.h"
#include "mica/ops/ones.h"
#include "mica/ops/reshape.h"
#include "mica/ops/scatter_add.h"
#include "mica/ops/searchsorted.h"
#include "mica/ops/select.h"
#include "mica/ops/sub.h"
#include "mica/ops/sum.h"
#include "mica/ops/to.h"
#include "mica/ops/zeros.h"
#include "mica/tensor/shape.h"

namespace mica::composite {
namespace {

constexpr int64_t kMostBins = int64_t{1} << 31;

struct Range {
  double low, high;
};

// What is given, else the data's; an empty range grows by `margin` on both sides.
Range RangeOf(const Tensor& x, std::optional<Range> given, double margin) {
  if (!given && x.numel() == 0) return {0, 1};
  Range r = given.value_or(Range{0, 0});
  const bool has_data = x.numel() > 0 && !x.device().is_meta();
  if (!given && has_data) r = {ops::item(ops::amin(x)).ToDouble(), ops::item(ops::amax(x)).ToDouble()};
  MICA_CHECK(std::isfinite(r.low) && std::isfinite(r.high), "Range from (", r.low, ") to (", r.high,
             ") of a histogram is not finite.");
  MICA_CHECK(r.low <= r.high, "Range from (", r.low, ") to (", r.high, ") of a histogram is empty.");
  return r.low == r.high ? Range{r.low - margin, r.high + margin} : r;
}

void CheckPoints(const Tensor& self) {
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()), "Histogram of the dtype (", Name(self.dtype()),
                         ") is not supported; use a floating dtype.");
}

void CheckBins(int64_t bins) {
  MICA_CHECK(bins > 0 && bins < kMostBins, "Number of bins (", bins, ") is not between 1 and ", kMostBins,
             ".");
}

// The sums of weights in each of `bins` bins; `inside` says which points count.
Tensor Count(const Tensor& bin, const Tensor& inside, const Tensor& weight, int64_t bins, DType dtype) {
  const Tensor weights =
      weight.defined() ? weight : ops::ones(bin.sizes(), dtype, std::nullopt, bin.device());
  const Tensor kept = ops::masked_fill(weights, ops::logical_not(inside), Scalar(0));
  const Tensor safe = ops::masked_fill(bin, ops::logical_not(inside), Scalar(0));
  return ops::scatter_add(ops::zeros({bins}, dtype, std::nullopt, bin.device()), 0, safe, kept);
}

}  // namespace

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  CheckPoints(self);
  CheckBins(bins);
  const Tensor x = ops::reshape(self, {-1});
  std::optional<Range> given = Range{min.ToDouble(), max.ToDouble()};
  if (given->low == given->high) given.reset();
  const Range r = RangeOf(x, given, 1);
  // In torch's steps, since each is rounded to the dtype.
  const Tensor place = ops::div(ops::mul(ops::sub(x, r.low), bins), r.high - r.low);
  const Tensor inside = ops::logical_and(ops::ge(x, r.low), ops::le(x, r.high));
  const Tensor bin = ops::to(ops::masked_fill(place, ops::logical_not(inside), Scalar(0)), DType::kI64);
  return Count(ops::clamp_max(bin, bins - 1), inside, Tensor(), bins, self.dtype());
}

std::vector<Tensor> _histogramdd_bin_edges(const Tensor& self, IntSpan bins, std::optional<FloatSpan> range,
                                           const Tensor&, bool) {
  CheckPoints(self);
  MICA_CHECK(self.ndim() >= 2, "Number of dimensions (", self.ndim(),
             ") of `self` is below 2; expected points as rows.");
  const int64_t dims = self.size(-1);
  MICA_CHECK(bins.size() == dims, "Number of `bins` (", bins.size(), ") differs from that of dimensions (",
             dims, ") of the points.");
  MICA_CHECK(!range || range->size() == 2 * dims, "Number of limits in `range` (", range ? range->size() : 0,
             ") is not (", 2 * dims, "), two for each dimension.");
  std::vector<Tensor> edges;
  for (int64_t d = 0; d < dims; ++d) {
    CheckBins(bins[d]);
    std::optional<Range> given;
    if (range) given = Range{(*range)[2 * d], (*range)[2 * d + 1]};
    const Range r = RangeOf(ops::select(self, -1, d), given, 0.5);
    edges.push_back(ops::linspace(r.low, r.high, bins[d] + 1, self.dtype(), std::nullopt, self.device()));
  }
  return edges;
}

Tensor _histogramdd_from_bin_tensors(const Tensor& self, TensorSpan bins, const Tensor& weight,
                                     bool density) {
  CheckPoints(self);
  MICA_CHECK(self.ndim() >= 2 && bins.size() == self.size(-1) && bins.size() > 0, "Number of `bins` (",
             bins.size(), ") differs from the size of the last dimension of `self` with shape ",
             ShapeText(self.sizes()), ".");
  const Tensor points = ops::reshape(self, {-1, self.size(-1)});
  MICA_CHECK(!weight.defined() || weight.numel() == points.size(0), "Number of weights (",
             weight.defined() ? weight.numel() : 0, ") differs from that of points (", points.size(0), ").");
  MICA_CHECK(!weight.defined() || weight.dtype() == self.dtype(), "Dtype (",
             Name(weight.defined() ? weight.dtype() : self.dtype()), ") of `weight` differs from dtype (",
             Name(self.dtype()), ") of `self`.");
  Tensor bin, inside;
  std::vector<int64_t> shape;
  int64_t total = 1;
  for (int64_t d = 0; d < bins.size(); ++d) {
    const Tensor& edges = bins[d];
    MICA_CHECK(edges.ndim() == 1 && edges.numel() >= 2, "Shape ", ShapeText(edges.sizes()),
               " of the edges of dimension (", d, ") is not a vector of at least two.");
    MICA_CHECK(edges.dtype() == self.dtype(), "Dtype (", Name(edges.dtype()),
               ") of the edges differs from dtype (", Name(self.dtype()), ") of `self`.");
    const int64_t count = edges.numel() - 1;
    const Tensor x = ops::contiguous(ops::select(points, 1, d));
    const Tensor first = ops::select(edges, 0, 0), last = ops::select(edges, 0, count);
    const Tensor here = ops::logical_and(ops::ge(x, first), ops::le(x, last));
    const Tensor at = ops::clamp_max(ops::sub(ops::searchsorted(edges, x, false, true), 1), count - 1);
    inside = d == 0 ? here : ops::logical_and(inside, here);
    bin = d == 0 ? at : ops::add(ops::mul(bin, count), at);
    MICA_CHECK(!__builtin_mul_overflow(total, count, &total) && total < kMostBins,
               "Number of boxes reaches (", kMostBins, "); expected fewer bins.");
    shape.push_back(count);
  }
  Tensor hist = ops::reshape(
      Count(bin, inside, weight.defined() ? ops::reshape(weight, {-1}) : Tensor(), total, self.dtype()),
      shape);
  if (!density) return hist;
  hist = ops::div(hist, ops::sum(hist));
  for (int64_t d = 0; d < bins.size(); ++d) {
    std::vector<int64_t> along(shape.size(), 1);
    along[static_cast<size_t>(d)] = shape[static_cast<size_t>(d)];
    hist = ops::div(hist, ops::reshape(ops::diff(bins[d]), along));
  }
  return hist;
}

std::tuple<Tensor, Tensor> histogram_of_edges(const Tensor& self, const Tensor& bins, const Tensor& weight,
                                              bool density) {
  const Tensor points = ops::reshape(self, {-1, 1});
  const std::vector<Tensor> edges = {bins};
  return {_histogramdd_from_bin_tensors(points, edges, weight, density), bins};
}

std::tuple<Tensor, Tensor> histogram_of_bins(const Tensor& self, int64_t bins, std::optional<FloatSpan> range,
                                             const Tensor& weight, bool density) {
  const Tensor points = ops::reshape(self, {-1, 1});
  const std::vector<Tensor> edges = _histogramdd_bin_edges(points, {bins}, range, weight, density);
  return {_histogramdd_from_bin_tensors(points, edges, weight, density), edges[0]};
}

}  // namespace mica::composite
