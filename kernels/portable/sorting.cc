// Sorting and what is built on order: sort, topk, searchsorted, bincount, unique.
//
// The order is torch's: ascending numbers, then NaN as the largest. Sorts are
// stable, so topk prefers the earlier of equal elements.
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/shape.h"

namespace mica::portable {
namespace {

template <typename T>
bool IsNan(T v) {
  return v != v;
}
template <typename T>
bool Less(T a, T b) {
  return a < b || (IsNan(b) && !IsNan(a));
}

// VisitLane for the lanes that have an order.
template <typename F>
void VisitOrdered(DType dtype, const char* what, F&& f) {
  MICA_CHECK(!IsComplex(dtype), "Dtype (", Name(dtype), ") has no order, which ", what,
             " needs; expected a real dtype.");
  VisitLane(LaneOf(dtype), [&]<typename T>() {
    if constexpr (!std::is_same_v<T, Complex>) f.template operator()<T>();
  });
}

// The positions of values[0], values[step], ... in sorted order.
template <typename T>
void Order(const T* values, int64_t step, bool descending, std::vector<int64_t>& order) {
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? Less(values[b * step], values[a * step]) : Less(values[a * step], values[b * step]);
  });
}

// The first `kept` elements of each sorted line along `dim`.
void SortLines(const Tensor& self, int64_t dim, bool descending, int64_t kept, const Tensor& values,
               const Tensor& indices) {
  const Around around(self.sizes(), Wrapped(dim, self.ndim()));
  VisitOrdered(self.dtype(), "sorting", [&]<typename T>() {
    const std::vector<T> in = ToLanes<T>(self);
    std::vector<T> sorted(static_cast<size_t>(values.numel()));
    std::vector<int64_t> places(sorted.size()), order(static_cast<size_t>(around.size));
    for (int64_t o = 0; o < around.outer; ++o) {
      for (int64_t i = 0; i < around.inner; ++i) {
        const T* line = in.data() + o * around.size * around.inner + i;
        Order(line, around.inner, descending, order);
        for (int64_t k = 0; k < kept; ++k) {
          const auto to = static_cast<size_t>((o * kept + k) * around.inner + i);
          places[to] = order[static_cast<size_t>(k)];
          sorted[to] = line[places[to] * around.inner];
        }
      }
    }
    FromLanes(sorted, values);
    FromLanes(places, indices);
  });
}

// The first position of `line` (read through `sorter` when given) whose element
// is >= value, or > value with `right`. NaN as value goes to the end.
template <typename T>
int64_t Search(const T* line, const int64_t* sorter, int64_t size, T value, bool right) {
  int64_t low = 0, high = size;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const T at = line[sorter ? sorter[middle] : middle];
    if (right ? at > value : at >= value)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

void sort_stable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending, const Tensor& values,
                 const Tensor& indices) {
  SortLines(self, dim, descending, Around(self.sizes(), Wrapped(dim, self.ndim())).size, values, indices);
}

void topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool, const Tensor& values,
          const Tensor& indices) {
  SortLines(self, dim, largest, k, values, indices);
}

void searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool, bool right,
                  std::optional<std::string_view> side, const Tensor& sorter, const Tensor& out) {
  right = right || (side && *side == "right");
  const int64_t size = sorted_sequence.sizes()[sorted_sequence.ndim() - 1];
  const bool one_line = sorted_sequence.ndim() == 1;
  const std::vector<int64_t> order =
      sorter.defined() ? CheckedIndices(sorter, size, sorter.ndim() - 1, false) : std::vector<int64_t>();
  VisitOrdered(sorted_sequence.dtype(), "searchsorted", [&]<typename T>() {
    const std::vector<T> lines = ToLanes<T>(sorted_sequence), values = ToLanes<T>(self);
    const int64_t values_per_line = one_line ? self.numel() : self.sizes()[self.ndim() - 1];
    std::vector<int64_t> found(values.size());
    for (int64_t i = 0; i < self.numel(); ++i) {
      const int64_t start = one_line ? 0 : i / values_per_line * size;
      const int64_t* line_order = sorter.defined() ? order.data() + start : nullptr;
      found[static_cast<size_t>(i)] =
          Search(lines.data() + start, line_order, size, values[static_cast<size_t>(i)], right);
    }
    FromLanes(found, out);
  });
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  MICA_CHECK(minlength >= 0, "Argument minlength should be >= 0; it is (", minlength, ").");
  MICA_CHECK_IMPLEMENTED(!IsDifferentiable(self.dtype()) && self.dtype() != DType::kBool,
                         "Operator bincount does not support the dtype (", Name(self.dtype()),
                         ") of `self`; expected integers.");
  MICA_CHECK(self.ndim() == 1, "bincount only supports 1-d non-negative integral inputs, but `self` has ",
             self.ndim(), " dimensions.");
  MICA_CHECK(!weights.defined() || weights.sizes() == self.sizes(),
             "weights should be 1-d and have the same length as input; `weights` has the shape ",
             weights.defined() ? ShapeText(weights.sizes()) : "", " and `self` ", ShapeText(self.sizes()),
             ".");
  const std::vector<int64_t> bins = ToLanes<int64_t>(self);
  int64_t size = minlength;
  for (const int64_t bin : bins) {
    MICA_CHECK(bin >= 0,
               "bincount only supports 1-d non-negative integral inputs, but an element of `self` is (", bin,
               ").");
    MICA_CHECK(bin < std::numeric_limits<int64_t>::max(), "Element (", bin,
               ") of `self` is too large a bin.");
    size = std::max(size, bin + 1);
  }
  const auto count = [&]<typename T>(DType dtype, const std::vector<T>& amounts) {
    const Tensor out = EmptyTensor({size}, dtype, self.device());  // refuses what memory does not hold
    std::vector<T> sums(static_cast<size_t>(size), T(0));
    for (size_t i = 0; i < bins.size(); ++i) sums[static_cast<size_t>(bins[i])] += amounts[i];
    FromLanes(sums, out);
    return out;
  };
  if (!weights.defined() || bins.empty()) return count(DType::kI64, std::vector<int64_t>(bins.size(), 1));
  return count(weights.dtype() == DType::kF32 ? DType::kF32 : DType::kF64, ToLanes<double>(weights));
}

}  // namespace mica::portable
