// as_strided of a value whose strides are not those that the program sees: the value's
// elements in a row, each at the place that it would have in the storage, stand for it.
#include <algorithm>
#include <numeric>

#include "keys/functionalize/functional.h"
#include "mica/ops/arange.h"
#include "mica/ops/as_strided.h"
#include "mica/ops/as_strided_copy.h"
#include "mica/ops/as_strided_scatter.h"
#include "mica/ops/index_put.h"
#include "mica/ops/new_zeros.h"
#include "mica/ops/permute.h"
#include "mica/ops/permute_copy.h"
#include "mica/ops/reshape.h"
#include "mica/ops/view_copy.h"
#include "tensor/shape.h"

namespace mica::functionalize {
namespace {

Tensor Shaped(const Tensor& t, IntSpan sizes, bool copies) {
  return copies ? ::mica::ops::op::view_copy::call(t, sizes) : ::mica::ops::op::reshape::call(t, sizes);
}
Tensor Permuted(const Tensor& t, IntSpan dims, bool copies) {
  return copies ? ::mica::ops::op::permute_copy::call(t, dims) : ::mica::ops::op::permute::call(t, dims);
}
Tensor Strided(const Tensor& t, const Place& p, int64_t offset, bool copies) {
  return copies ? ::mica::ops::op::as_strided_copy::call(t, p.sizes, p.strides, offset)
                : ::mica::ops::op::as_strided::call(t, p.sizes, p.strides, offset);
}

bool IsDense(const Place& p) { return IsNonOverlappingAndDense(p.sizes, p.strides); }

// The dimensions from the widest stride to the narrowest.
Dims OrderOf(const Place& p) {
  Dims order(p.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int64_t d) {
    const auto i = static_cast<size_t>(d);
    return p.sizes[i] == 1 ? INT64_MAX : p.strides[i];
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) > key(b); });
  return order;
}

// The place of each element in the row, as int64.
Tensor PlacesOf(const Tensor& like, const Place& of) {
  const Tensor row = ::mica::ops::op::arange::call(Scalar(ExtentOf(of)), DType::kI64, std::nullopt,
                                                   like.device(), std::nullopt);
  return ::mica::ops::op::reshape::call(::mica::ops::op::as_strided_copy::call(row, of.sizes, of.strides, 0),
                                        Dims{-1});
}

// Calls f(offset from the first element) for each element.
template <typename F>
void ForEachOffset(const Place& p, size_t dim, int64_t offset, F&& f) {
  if (dim == p.sizes.size()) return f(offset);
  for (int64_t i = 0; i < p.sizes[dim]; ++i) ForEachOffset(p, dim + 1, offset + i * p.strides[dim], f);
}

// Raises where `wanted` has places that `of` has not: nobody knows what stands there.
void CheckInside(const Place& of, const Place& wanted) {
  const int64_t at = wanted.offset - of.offset;
  bool inside = ExtentOf(wanted) == 0 || (at >= 0 && at + ExtentOf(wanted) <= ExtentOf(of));
  if (inside && ExtentOf(wanted) > 0 && !IsDense(of)) {
    std::vector<bool> known(static_cast<size_t>(ExtentOf(of)), false);
    ForEachOffset(of, 0, 0, [&](int64_t i) { known[static_cast<size_t>(i)] = true; });
    ForEachOffset(wanted, 0, at, [&](int64_t i) { inside = inside && known[static_cast<size_t>(i)]; });
  }
  MICA_CHECK_IMPLEMENTED(inside, "as_strided of shape ", ShapeText(wanted.sizes), ", strides ",
                         ShapeText(wanted.strides), " and offset ", wanted.offset,
                         " reaches memory beyond the tensor of shape ", ShapeText(of.sizes), ", strides ",
                         ShapeText(of.strides), " and offset ", of.offset,
                         ", which functionalize knows nothing of once the tensor was written. Give the "
                         "function the whole tensor and make the view inside.");
}

}  // namespace

int64_t ExtentOf(const Place& place) {
  int64_t last = 0;
  for (size_t i = 0; i < place.sizes.size(); ++i) {
    if (place.sizes[i] == 0) return 0;
    last += (place.sizes[i] - 1) * place.strides[i];
  }
  return last + 1;
}

Tensor RowOf(const Tensor& value, const Place& of, bool copies) {
  if (IsDense(of)) return Shaped(Permuted(value, OrderOf(of), copies), Dims{-1}, copies);
  const Tensor row = ::mica::ops::op::new_zeros::call(value, Dims{ExtentOf(of)}, std::nullopt, std::nullopt,
                                                      std::nullopt, std::nullopt);
  const Tensor places = PlacesOf(value, of);
  return ::mica::ops::op::index_put::call(row, TensorSpan(&places, 1), Shaped(value, Dims{-1}, copies),
                                          false);
}

Tensor ReadPlace(const Tensor& value, const Place& of, const Place& wanted, bool original, bool copies) {
  if (!original) CheckInside(of, wanted);
  const int64_t at = wanted.offset - of.offset;
  if (value.strides() == IntSpan(of.strides))
    return Strided(value, wanted, value.storage_offset() + at, copies);
  CheckInside(of, wanted);
  const Tensor row = RowOf(value, of, copies);
  return Strided(row, wanted, row.storage_offset() + at, copies);
}

Tensor WritePlace(const Tensor& value, const Place& of, const Place& written, const Tensor& src,
                  bool copies) {
  CheckInside(of, written);
  const Tensor row = RowOf(value, of, copies);
  const Tensor next = ::mica::ops::op::as_strided_scatter::call(
      row, src, written.sizes, written.strides, row.storage_offset() + written.offset - of.offset);
  if (!IsDense(of)) return ::mica::ops::op::as_strided_copy::call(next, of.sizes, of.strides, 0);
  const Dims order = OrderOf(of);
  Dims sizes, back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sizes.push_back(of.sizes[static_cast<size_t>(order[i])]);
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return Permuted(Shaped(next, sizes, copies), back, copies);
}

}  // namespace mica::functionalize
