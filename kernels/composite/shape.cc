// Composites of views: other names, other arguments, and reshape, which copies
// where no view exists.
#include <algorithm>

#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/clone.h"
#include "mica/ops/conj.h"
#include "mica/ops/contiguous.h"
#include "mica/ops/diag_embed.h"
#include "mica/ops/diagonal.h"
#include "mica/ops/diagonal_backward.h"
#include "mica/ops/expand.h"
#include "mica/ops/narrow.h"
#include "mica/ops/permute.h"
#include "mica/ops/reshape.h"
#include "mica/ops/select.h"
#include "mica/ops/slice.h"
#include "mica/ops/transpose.h"
#include "mica/ops/view.h"

namespace mica::composite {
namespace {

// More than any tensor has, and far from the end of int64_t.
constexpr int64_t kMostElements = int64_t{1} << 62;

// A list of more tensors than memory holds ends in a sentence, not in swapping.
void CheckPieces(int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 26;  // some 16 GB of tensors without data
  MICA_CHECK_KIND(kOutOfMemory, count <= kMost, "The call asks for (", count,
                  ") tensors; a list holds at most (", kMost, ").");
}

}  // namespace

Tensor reshape(const Tensor& self, IntSpan shape) {
  const Dims sizes = InferSize(shape, self.numel());
  if (ComputeStride(self.sizes(), self.strides(), sizes)) return ops::view(self, sizes);
  return ops::view(ops::clone(self, MemoryFormat::kContiguous), sizes);
}
Tensor view_as(const Tensor& self, const Tensor& other) { return ops::view(self, other.sizes()); }
Tensor reshape_as(const Tensor& self, const Tensor& other) { return ops::reshape(self, other.sizes()); }
Tensor swapaxes(const Tensor& self, int64_t axis0, int64_t axis1) {
  return ops::transpose(self, axis0, axis1);
}
Tensor swapdims(const Tensor& self, int64_t dim0, int64_t dim1) { return ops::transpose(self, dim0, dim1); }

Tensor movedim_list(const Tensor& self, IntSpan source, IntSpan destination) {
  MICA_CHECK(source.size() == destination.size(), "Number of `source` dimensions (", source.size(),
             ") differs from that of `destination` (", destination.size(), ").");
  const int64_t n = self.ndim();
  const Dims from = WrapDims(source, n), to = WrapDims(destination, n);
  if (n == 0) return ops::permute(self, {});
  Dims order(static_cast<size_t>(n), -1);
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
  int64_t next = 0;
  for (int64_t& place : order) {
    if (place >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    place = next++;
  }
  return ops::permute(self, order);
}
Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return movedim_list(self, IntSpan(&source, 1), IntSpan(&destination, 1));
}
Tensor moveaxis(const Tensor& self, int64_t source, int64_t destination) {
  return movedim(self, source, destination);
}

Tensor adjoint(const Tensor& self) {
  MICA_CHECK(self.ndim() >= 2, "Number of dimensions (", self.ndim(),
             ") of `self` is below 2; expected matrices.");
  return ops::conj(ops::transpose(self, -2, -1));
}

Tensor expand_as(const Tensor& self, const Tensor& other) { return ops::expand(self, other.sizes()); }
Tensor broadcast_to(const Tensor& self, IntSpan size) { return ops::expand(self, size); }
std::vector<Tensor> broadcast_tensors(TensorSpan tensors) {
  Dims shape;
  for (const Tensor& t : tensors) shape = BroadcastShapes(shape, t.sizes(), "the tensors before", "a tensor");
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) result.push_back(ops::expand(t, shape));
  return result;
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  MICA_CHECK(self.ndim() > 0, "A 0-d tensor has no dimension to narrow; expected at least one dimension.");
  MICA_CHECK(length >= 0, "Length (", length, ") is negative; expected 0 or more.");
  const int64_t size = self.size(dim);
  MICA_CHECK_INDEX(start >= -size && start <= size, "Start (", start, ") is out of range for dimension (",
                   dim, ") of size (", size, ").");
  if (start < 0) start += size;
  MICA_CHECK(length <= size - start, "Start (", start, ") and length (", length, ") exceed the size (", size,
             ") of dimension (", dim, ").");
  return ops::slice(self, dim, start, start + length, 1);
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  MICA_CHECK(self.ndim() == 1 || self.ndim() == 2, "Number of dimensions (", self.ndim(),
             ") of `self` is not 1 or 2; expected a vector or a matrix.");
  return self.ndim() == 1 ? ops::diag_embed(self, diagonal) : ops::clone(ops::diagonal(self, diagonal));
}
Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t n = self.ndim() + 1;
  MICA_CHECK(self.ndim() > 0, "A 0-d tensor has no diagonal; expected at least one dimension.");
  dim1 = WrapDim(dim1, n);
  dim2 = WrapDim(dim2, n);
  MICA_CHECK(dim1 != dim2, "Dimensions `dim1` and `dim2` are the same (", dim1, "); expected two.");
  MICA_CHECK(offset > -kMostElements && offset < kMostElements, "Offset (", offset,
             ") of a diagonal is out of range.");
  const int64_t side = self.size(-1) + (offset < 0 ? -offset : offset);
  Dims sizes = ToDims(self.sizes().subspan(0, self.ndim() - 1));
  sizes.insert(sizes.begin() + std::min(dim1, dim2), side);
  sizes.insert(sizes.begin() + std::max(dim1, dim2), side);
  return ops::diagonal_backward(self, sizes, offset, dim1, dim2);
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  MICA_CHECK(self.ndim() > 0, "A 0-d tensor cannot be split; expected at least one dimension.");
  dim = WrapDim(dim, self.ndim());
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (const int64_t length : split_sizes) {
    MICA_CHECK(length >= 0, "Split size (", length, ") is negative; expected 0 or more.");
    pieces.push_back(ops::narrow(self, dim, start, length));
    start += length;
  }
  MICA_CHECK(start == self.size(dim), "Split sizes add up to (", start, "), which is not the size (",
             self.size(dim), ") of dimension (", dim, ").");
  return pieces;
}
std::vector<Tensor> split_sizes(const Tensor& self, IntSpan split_size, int64_t dim) {
  return split_with_sizes(self, split_size, dim);
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  MICA_CHECK(self.ndim() > 0, "A 0-d tensor cannot be split; expected at least one dimension.");
  const int64_t size = self.size(dim);
  MICA_CHECK(split_size > 0 || (split_size == 0 && size == 0), "Split size (", split_size,
             ") is not positive.");
  std::vector<Tensor> pieces;
  if (size == 0) return {ops::narrow(self, dim, 0, 0)};
  const int64_t count = (size - 1) / split_size + 1;
  CheckPieces(count);
  for (int64_t i = 0; i < count; ++i)
    pieces.push_back(ops::narrow(self, dim, i * split_size, std::min(split_size, size - i * split_size)));
  return pieces;
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  MICA_CHECK(chunks > 0, "Number of chunks (", chunks, ") is not positive.");
  MICA_CHECK(self.ndim() > 0, "A 0-d tensor cannot be split; expected at least one dimension.");
  const int64_t size = self.size(dim);
  if (size > 0) return split(self, (size - 1) / chunks + 1, dim);
  CheckPieces(chunks);
  return std::vector<Tensor>(static_cast<size_t>(chunks), ops::narrow(self, dim, 0, 0));
}

std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  MICA_CHECK(sections > 0, "Number of sections (", sections, ") is not positive.");
  MICA_CHECK(self.ndim() > 0, "A 0-d tensor cannot be split; expected at least one dimension.");
  CheckPieces(sections);
  const int64_t size = self.size(dim);
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t length = size / sections + (i < size % sections);
    pieces.push_back(ops::narrow(self, dim, start, length));
    start += length;
  }
  return pieces;
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  MICA_CHECK_INDEX(self.ndim() > 0, "A 0-d tensor cannot be unbound; expected at least one dimension.");
  dim = WrapDim(dim, self.ndim());
  CheckPieces(self.sizes()[dim]);
  std::vector<Tensor> slices;
  for (int64_t i = 0; i < self.sizes()[dim]; ++i) slices.push_back(ops::select(self, dim, i));
  return slices;
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  if (self.ndim() == 0) return ops::reshape(self, {1});
  start_dim = WrapDim(start_dim, self.ndim());
  end_dim = WrapDim(end_dim, self.ndim());
  MICA_CHECK(start_dim <= end_dim, "Argument `start_dim` (", start_dim, ") comes after `end_dim` (", end_dim,
             ").");
  if (start_dim == end_dim) return self;
  Dims sizes = ToDims(self.sizes().subspan(0, start_dim));
  int64_t together = 1;
  for (int64_t d = start_dim; d <= end_dim; ++d) together *= self.sizes()[d];
  sizes.push_back(together);
  for (int64_t d = end_dim + 1; d < self.ndim(); ++d) sizes.push_back(self.sizes()[d]);
  return ops::reshape(self, sizes);
}
Tensor unflatten(const Tensor& self, int64_t dim, IntSpan sizes) {
  dim = WrapDim(dim, self.ndim());
  const Dims parts = InferSize(sizes, self.size(dim));
  Dims shape = ToDims(self.sizes());
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, parts.begin(), parts.end());
  return ops::view(self, shape);
}
Tensor ravel(const Tensor& self) { return ops::reshape(ops::contiguous(self), {-1}); }
Tensor atleast_1d(const Tensor& self) { return self.ndim() == 0 ? ops::reshape(self, {1}) : self; }

}  // namespace mica::composite
