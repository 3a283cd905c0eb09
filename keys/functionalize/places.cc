// as_strided of a value whose strides are not those that the program sees: the value's
// elements in a row, each at the place that it would have in the storage, stand for it.
#include <algorithm>
#include <numeric>

#include "keys/functionalize/functional.h"

namespace mica::functionalize {

using std::optional;

Tensor Shaped(const Tensor& t, IntSpan sizes, bool copies) {
  static const Function<Tensor(Tensor, IntSpan)> reshape("mica::reshape"), view_copy("mica::view_copy");
  return (copies ? view_copy : reshape)(t, sizes);
}
Tensor Flat(const Tensor& t, bool copies) { return Shaped(t, Dims{-1}, copies); }
Tensor Permuted(const Tensor& t, IntSpan dims, bool copies) {
  static const Function<Tensor(Tensor, IntSpan)> permute("mica::permute"), permute_copy("mica::permute_copy");
  return (copies ? permute_copy : permute)(t, dims);
}
Tensor CountUp(int64_t count, const Tensor& like) {
  static const Function<Tensor(formula::Scalar, optional<DType>, optional<formula::Layout>,
                               optional<formula::Device>, optional<bool>)>
      arange("mica::arange");
  return arange(formula::Scalar(count), DType::kI64, std::nullopt, like.device(), std::nullopt);
}
Tensor Zeros(int64_t count, const Tensor& like) {
  static const Function<Tensor(Tensor, IntSpan, optional<DType>, optional<formula::Layout>,
                               optional<formula::Device>, optional<bool>)>
      new_zeros("mica::new_zeros");
  return new_zeros(like, Dims{count}, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}

namespace {

using StridedFunction = Function<Tensor(Tensor, IntSpan, IntSpan, optional<int64_t>)>;

Tensor StridedCopy(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset) {
  static const StridedFunction as_strided_copy("mica::as_strided_copy");
  return as_strided_copy(t, sizes, strides, offset);
}
Tensor Strided(const Tensor& t, const Place& p, int64_t offset, bool copies) {
  static const StridedFunction as_strided("mica::as_strided");
  return copies ? StridedCopy(t, p.sizes, p.strides, offset) : as_strided(t, p.sizes, p.strides, offset);
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
  return Flat(StridedCopy(CountUp(ExtentOf(of), like), of.sizes, of.strides, 0), false);
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
  MICA_CHECK_IMPLEMENTED(inside, "as_strided of shape ", formula::Show(wanted.sizes), ", strides ",
                         formula::Show(wanted.strides), " and offset ", wanted.offset,
                         " reaches memory beyond the tensor of shape ", formula::Show(of.sizes), ", strides ",
                         formula::Show(of.strides), " and offset ", of.offset,
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
  static const Function<Tensor(Tensor, formula::TensorSpan, Tensor, bool)> index_put("mica::index_put");
  if (IsDense(of)) return Flat(Permuted(value, OrderOf(of), copies), copies);
  const Tensor row = Zeros(ExtentOf(of), value);
  const Tensor places = PlacesOf(value, of);
  return index_put(row, formula::TensorSpan(&places, 1), Flat(value, copies), false);
}

Tensor ReadPlace(const Tensor& value, const Place& of, const Place& wanted, bool original, bool copies) {
  if (!original) CheckInside(of, wanted);
  const int64_t at = wanted.offset - of.offset;
  if (value.strides() == IntSpan(of.strides)) return Strided(value, wanted, OffsetOf(value) + at, copies);
  CheckInside(of, wanted);
  const Tensor row = RowOf(value, of, copies);
  return Strided(row, wanted, OffsetOf(row) + at, copies);
}

Tensor WritePlace(const Tensor& value, const Place& of, const Place& written, const Tensor& src,
                  bool copies) {
  static const Function<Tensor(Tensor, Tensor, IntSpan, IntSpan, optional<int64_t>)> scatter(
      "mica::as_strided_scatter");
  CheckInside(of, written);
  const Tensor row = RowOf(value, of, copies);
  const Tensor next =
      scatter(row, src, written.sizes, written.strides, OffsetOf(row) + written.offset - of.offset);
  if (!IsDense(of)) return StridedCopy(next, of.sizes, of.strides, 0);
  const Dims order = OrderOf(of);
  Dims sizes, back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sizes.push_back(of.sizes[static_cast<size_t>(order[i])]);
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return Permuted(Shaped(next, sizes, copies), back, copies);
}

}  // namespace mica::functionalize
