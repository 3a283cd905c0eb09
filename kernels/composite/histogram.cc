// Histograms: each point's bin in each dimension, numbered together, and one
// scatter_add of the weights. Bins hold their left edge, the last one both.
#include <cmath>

#include "mica/kernels/composite_declarations.h"
#include "mica/ops/add.h"
#include "mica/ops/amax.h"
#include "mica/ops/amin.h"
#include "mica/ops/arange.h"
#include "mica/ops/clamp_max.h"
#include "mica/ops/clone.h"
#include "mica/ops/contiguous.h"
#include "mica/ops/diff.h"
#include "mica/ops/div.h"
#include "mica/ops/eq.h"
#include "mica/ops/ge.h"
#include "mica/ops/isfinite.h"
#include "mica/ops/item.h"
#include "mica/ops/le.h"
#include "mica/ops/linspace.h"
#include "mica/ops/logical_and.h"
#include "mica/ops/logical_not.h"
#include "mica/ops/lt.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/mul.h"
#include "mica/ops/ones.h"
#include "mica/ops/reshape.h"
#include "mica/ops/rsub.h"
#include "mica/ops/scatter_add.h"
#include "mica/ops/searchsorted.h"
#include "mica/ops/select.h"
#include "mica/ops/sub.h"
#include "mica/ops/sum.h"
#include "mica/ops/to.h"
#include "mica/ops/where.h"
#include "mica/ops/zeros.h"
#include "tensor/shape.h"

namespace mica::composite {
namespace {

constexpr int64_t kMostBins = int64_t{1} << 31;

void CheckRange(double low, double high) {
  MICA_CHECK(std::isfinite(low) && std::isfinite(high), "histogram: range of [", low, ", ", high,
             "] is not finite.");
  MICA_CHECK(low <= high, "max must be larger than min, but the range of the histogram is [", low, ", ", high,
             "]; min should not exceed max.");
}

struct Range {
  double low, high;
};

// An empty range grows by `margin` on both sides.
Range Checked(Range r, double margin) {
  CheckRange(r.low, r.high);
  return r.low == r.high ? Range{r.low - margin, r.high + margin} : r;
}

// The range of the data. Of tensors, not numbers: each example of a batch (vmap) has its own.
struct DataRange {
  Tensor low, high;
};

DataRange RangeOfData(const Tensor& x, double margin) {
  const Tensor low = ops::amin(x), high = ops::amax(x);
  const bool known = !x.device().is_meta();
  if (known && !ops::item(ops::isfinite(ops::sub(high, low))).ToBool())
    CheckRange(ops::item(low).ToDouble(), ops::item(high).ToDouble());
  const Tensor one = ops::eq(low, high);
  return {ops::where(one, ops::sub(low, margin), low), ops::where(one, ops::add(high, margin), high)};
}

// linspace of tensors: from each end to the middle.
Tensor Edges(const DataRange& r, int64_t bins) {
  const Tensor i = ops::arange(bins + 1, r.low.dtype(), std::nullopt, r.low.device());
  const Tensor step = ops::div(ops::sub(r.high, r.low), bins);
  return ops::where(ops::lt(i, static_cast<double>(bins + 1) / 2), ops::add(r.low, ops::mul(i, step)),
                    ops::sub(r.high, ops::mul(ops::rsub(i, bins), step)));
}

void CheckPoints(const Tensor& self) {
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()), "Histogram of the dtype (", Name(self.dtype()),
                         ") is not supported; use a floating dtype.");
}

void CheckBins(int64_t bins) {
  MICA_CHECK(bins > 0 && bins < kMostBins, "bins must be > 0, but the number of `bins` is (", bins,
             "), and below ", kMostBins, ".");
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

namespace {

// With the limits as numbers or tensors. In torch's steps, since each is rounded to the dtype.
template <typename Limit>
Tensor CountEqualBins(const Tensor& x, const Limit& low, const Limit& high, const Limit& span, int64_t bins) {
  const Tensor place = ops::div(ops::mul(ops::sub(x, low), bins), span);
  const Tensor inside = ops::logical_and(ops::ge(x, low), ops::le(x, high));
  const Tensor bin = ops::to(ops::masked_fill(place, ops::logical_not(inside), Scalar(0)), DType::kI64);
  return Count(ops::clamp_max(bin, bins - 1), inside, Tensor(), bins, x.dtype());
}

}  // namespace

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  CheckPoints(self);
  CheckBins(bins);
  const Tensor x = ops::reshape(self, {-1});
  const Range given = {min.ToDouble(), max.ToDouble()};
  if (given.low == given.high && x.numel() > 0) {
    const auto [low, high] = RangeOfData(x, 1);
    const Tensor span = ops::sub(ops::to(high, DType::kF64), ops::to(low, DType::kF64));
    return CountEqualBins(x, low, high, ops::to(span, x.dtype()), bins);
  }
  const Range r = given.low == given.high ? Range{0, 1} : Checked(given, 1);
  return CountEqualBins(x, Scalar(r.low), Scalar(r.high), Scalar(r.high - r.low), bins);
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
    const Tensor x = ops::select(self, -1, d);
    if (!range && x.numel() > 0) {
      edges.push_back(Edges(RangeOfData(x, 0.5), bins[d]));
      continue;
    }
    const Range r = range ? Checked({(*range)[2 * d], (*range)[2 * d + 1]}, 0.5) : Range{0, 1};
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
  MICA_CHECK(!weight.defined() || weight.numel() == points.size(0),
             "if weight tensor is provided it should have the same shape as the input tensor excluding its "
             "innermost dimension; it has ",
             weight.defined() ? weight.numel() : 0, " elements for ", points.size(0), " points.");
  MICA_CHECK(!weight.defined() || weight.dtype() == self.dtype(),
             "input tensor and weight tensor should have the same dtype, but the dtype (",
             Name(weight.defined() ? weight.dtype() : self.dtype()), ") of `weight` differs from dtype (",
             Name(self.dtype()), ") of `self`.");
  Tensor bin, inside;
  std::vector<int64_t> shape;
  int64_t total = 1;
  for (int64_t d = 0; d < bins.size(); ++d) {
    const Tensor& edges = bins[d];
    MICA_CHECK(edges.ndim() == 1 && edges.numel() >= 2,
               "bins tensor should have one dimension and bins tensor should have at least 1 element, of "
               "which two make a bin; the shape of the edges of dimension (",
               d, ") is ", ShapeText(edges.sizes()), ".");
    MICA_CHECK(edges.dtype() == self.dtype(),
               "input tensor and bins tensors should have the same dtype, but the dtype (",
               Name(edges.dtype()), ") of the edges differs from dtype (", Name(self.dtype()),
               ") of `self`.");
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
  return {_histogramdd_from_bin_tensors(points, edges, weight, density),
          ops::clone(bins, MemoryFormat::kContiguous)};
}

std::tuple<Tensor, Tensor> histogram_of_bins(const Tensor& self, int64_t bins, std::optional<FloatSpan> range,
                                             const Tensor& weight, bool density) {
  const Tensor points = ops::reshape(self, {-1, 1});
  const std::vector<Tensor> edges = _histogramdd_bin_edges(points, {bins}, range, weight, density);
  return {_histogramdd_from_bin_tensors(points, edges, weight, density), edges[0]};
}

}  // namespace mica::composite
