// Composites of joining, repeating and turning.
#include <algorithm>
#include <limits>

#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_clamp.h"
#include "mica/ops/abs.h"
#include "mica/ops/arange.h"
#include "mica/ops/cat.h"
#include "mica/ops/clone.h"
#include "mica/ops/constant_pad_nd.h"
#include "mica/ops/expand.h"
#include "mica/ops/flip.h"
#include "mica/ops/index_select.h"
#include "mica/ops/remainder.h"
#include "mica/ops/reshape.h"
#include "mica/ops/rsub.h"
#include "mica/ops/transpose.h"
#include "mica/ops/unsqueeze.h"

namespace mica::composite {

Tensor concat(TensorSpan tensors, int64_t dim) { return ops::cat(tensors, dim); }

namespace {
std::vector<Tensor> AtLeast(TensorSpan tensors, int64_t ndim) {
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) {
    Tensor x = t;
    if (x.ndim() == 0) x = ops::reshape(x, {1});
    if (ndim == 2 && x.ndim() == 1) x = ops::unsqueeze(x, 0);
    result.push_back(x);
  }
  return result;
}
}  // namespace

Tensor hstack(TensorSpan tensors) {
  MICA_CHECK(!tensors.empty(), "List `tensors` is empty; expected at least one tensor.");
  const std::vector<Tensor> parts = AtLeast(tensors, 1);
  return ops::cat(parts, parts[0].ndim() == 1 ? 0 : 1);
}
Tensor vstack(TensorSpan tensors) {
  MICA_CHECK(!tensors.empty(), "List `tensors` is empty; expected at least one tensor.");
  return ops::cat(AtLeast(tensors, 2), 0);
}

Tensor repeat(const Tensor& self, IntSpan repeats) {
  MICA_CHECK(repeats.size() >= self.ndim(), "Number of repeats (", repeats.size(),
             ") is below the number of dimensions (", self.ndim(), ") of `self`.");
  const int64_t extra = repeats.size() - self.ndim();
  // [r0, s0, r1, s1, ...], expanded and then folded: one copy.
  Dims split, grown, sizes;
  for (int64_t d = 0; d < repeats.size(); ++d) {
    const int64_t size = d < extra ? 1 : self.sizes()[d - extra];
    MICA_CHECK(repeats[d] >= 0, "Repeat (", repeats[d], ") of dimension (", d,
               ") is negative; expected 0 or more.");
    split.push_back(1);
    split.push_back(size);
    grown.push_back(repeats[d]);
    grown.push_back(size);
    sizes.push_back(repeats[d] * size);
  }
  return ops::reshape(ops::clone(ops::expand(ops::reshape(self, split), grown), MemoryFormat::kContiguous),
                      sizes);
}
Tensor tile(const Tensor& self, IntSpan dims) {
  Dims repeats = ToDims(dims);
  while (static_cast<int64_t>(repeats.size()) < self.ndim()) repeats.insert(repeats.begin(), 1);
  return repeat(self, repeats);
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t>) {
  MICA_CHECK(repeats >= 0, "Number of repeats (", repeats, ") is negative; expected 0 or more.");
  const Tensor x = dim ? (self.ndim() == 0 ? ops::reshape(self, {1}) : self) : ops::reshape(self, {-1});
  const int64_t d = WrapDim(dim.value_or(0), x.ndim());
  Dims grown = ToDims(x.sizes()), sizes = grown;
  grown.insert(grown.begin() + d + 1, repeats);
  sizes[static_cast<size_t>(d)] *= repeats;
  return ops::reshape(ops::clone(ops::expand(ops::unsqueeze(x, d + 1), grown), MemoryFormat::kContiguous),
                      sizes);
}

std::vector<Tensor> meshgrid_indexing(TensorSpan tensors, std::string_view indexing) {
  MICA_CHECK(indexing == "ij" || indexing == "xy", "Order (", std::string(indexing),
             ") of meshgrid is unknown; expected ij or xy.");
  MICA_CHECK(!tensors.empty(), "List `tensors` is empty; expected at least one vector.");
  std::vector<Tensor> vectors(tensors.begin(), tensors.end());
  const bool swap = indexing == "xy" && vectors.size() >= 2;
  if (swap) std::swap(vectors[0], vectors[1]);
  Dims shape;
  for (const Tensor& t : vectors) {
    MICA_CHECK(t.ndim() <= 1, "Number of dimensions (", t.ndim(),
               ") of a tensor is above 1; expected vectors.");
    shape.push_back(t.numel());
  }
  std::vector<Tensor> grids;
  for (size_t i = 0; i < vectors.size(); ++i) {
    Dims place(vectors.size(), 1);
    place[i] = vectors[i].numel();
    grids.push_back(ops::expand(ops::reshape(vectors[i], place), shape));
  }
  if (swap) std::swap(grids[0], grids[1]);
  return grids;
}
std::vector<Tensor> meshgrid(TensorSpan tensors) { return meshgrid_indexing(tensors, "ij"); }

Tensor fliplr(const Tensor& self) {
  MICA_CHECK(self.ndim() >= 2, "Number of dimensions (", self.ndim(), ") of `self` is below 2.");
  return ops::flip(self, {1});
}
Tensor flipud(const Tensor& self) {
  MICA_CHECK(self.ndim() >= 1, "A 0-d tensor cannot be flipped; expected at least one dimension.");
  return ops::flip(self, {0});
}
Tensor rot90(const Tensor& self, int64_t k, IntSpan dims) {
  MICA_CHECK(dims.size() == 2, "Number of `dims` (", dims.size(), ") is not 2; expected the two of a plane.");
  const Dims plane = WrapDims(dims, self.ndim());
  k = ((k % 4) + 4) % 4;
  if (k == 0) return ops::clone(self);
  if (k == 2) return ops::flip(self, plane);
  const Tensor turned = ops::flip(self, {k == 1 ? plane[1] : plane[0]});
  return ops::clone(ops::transpose(turned, plane[0], plane[1]), MemoryFormat::kContiguous);
}

namespace {
// Where the padded elements of one dimension come from.
Tensor PaddedPlaces(std::string_view mode, int64_t size, int64_t before, int64_t after, Device device) {
  const Tensor p = ops::op::arange_start::call(Scalar(-before), Scalar(size + after), DType::kI64,
                                               std::nullopt, device, std::nullopt);
  if (mode == "replicate") return ops::_clamp(p, Scalar(0), Scalar(size - 1));
  if (mode == "circular") return ops::remainder(p, Scalar(size));
  return ops::rsub(ops::abs(ops::rsub(ops::abs(p), Scalar(size - 1))), Scalar(size - 1));
}
}  // namespace

Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  if (mode == "constant") {
    const double number = value.value_or(0.0);
    const bool whole = IsInteger(self.dtype()) || self.dtype() == DType::kBool;
    return ops::constant_pad_nd(self, pad, whole ? Scalar(static_cast<int64_t>(number)) : Scalar(number));
  }
  MICA_CHECK_IMPLEMENTED(mode == "reflect" || mode == "replicate" || mode == "circular", "Padding mode (",
                         std::string(mode),
                         ") is unknown; expected constant, reflect, replicate or circular.");
  MICA_CHECK(!value, "Argument `value` has no meaning for padding mode (", std::string(mode), ").");
  const int64_t count = pad.size() / 2;
  MICA_CHECK(pad.size() % 2 == 0 && (self.ndim() == count + 1 || self.ndim() == count + 2),
             "Number of paddings (", pad.size(), ") does not fit the number of dimensions (", self.ndim(),
             ") of `self`; expected a pair for each dimension but the first one or two.");
  Tensor x = self;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t d = self.ndim() - 1 - i, size = self.sizes()[d], before = pad[2 * i],
                  after = pad[2 * i + 1];
    const int64_t most = mode == "reflect"    ? size - 1
                         : mode == "circular" ? size
                                              : std::numeric_limits<int64_t>::max();
    MICA_CHECK(before <= most && after <= most, "Padding (", before, ", ", after, ") of dimension (", d,
               ") is too large for its size (", size, ").");
    MICA_CHECK(size > 0 && size + before + after > 0, "Padding (", before, ", ", after, ") of dimension (", d,
               ") of size (", size, ") leaves no element.");
    x = ops::index_select(x, d, PaddedPlaces(mode, size, before, after, self.device()));
  }
  return x;
}

}  // namespace mica::composite
