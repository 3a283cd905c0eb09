// Sizes, dims, memory formats and broadcasting.
#include "tensor/shape.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "tensor/error.h"

namespace mica {

std::string ShapeText(IntSpan shape) {
  return absl::StrCat("[", absl::StrJoin(shape.begin(), shape.end(), ", "), "]");
}

int64_t CheckedNumel(IntSpan sizes) {
  int64_t product = 1;
  bool empty = false;
  bool overflow = false;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    MICA_CHECK(sizes[i] >= 0, "Trying to create tensor with negative dimension ", sizes[i], ": ",
               ShapeText(sizes), "; the size of dimension (", i, ") is 0 or more.");
    if (sizes[i] == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(product, sizes[i], &product);
  }
  MICA_CHECK(!overflow, empty ? "Stride" : "Storage size",
             " calculation overflowed with sizes=", ShapeText(sizes),
             "; a shape has at most 2^63 - 1 elements.");
  return empty ? 0 : product;
}

int64_t WrapDim(int64_t dim, int64_t ndim, bool allow_scalar) {
  if (dim >= 0 ? dim < ndim : dim >= -ndim) return dim >= 0 ? dim : dim + ndim;
  if (ndim == 0) {
    MICA_CHECK_INDEX(allow_scalar, "Dimension specified as ", dim, " but tensor has no dimensions.");
    if (dim == 0 || dim == -1) return 0;
    ndim = 1;
  }
  MICA_THROW(kIndex, "The dimension (", dim,
             ") is not one of the tensor: Dimension out of range (expected to be in range of [", -ndim, ", ",
             ndim - 1, "], but got ", dim, ").");
}

Dims WrapDims(IntSpan dims, int64_t ndim, bool allow_scalar) {
  Dims out(dims.size());
  for (int64_t i = 0; i < dims.size(); ++i) {
    out[i] = WrapDim(dims[i], ndim, allow_scalar);
    for (int64_t j = 0; j < i; ++j) {
      MICA_CHECK(out[j] != out[i], "The dim ", out[i], " appears multiple times in the list of dims, ",
                 ShapeText(dims), "; dims must be unique.");
    }
  }
  return out;
}

Dims ContiguousStrides(IntSpan sizes) {
  Dims strides(sizes.size());
  uint64_t step = 1;  // wraps for sizes that whoever allocates them refuses
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    strides[i] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(sizes[i], 1));
  }
  return strides;
}

Dims ChannelsLastStrides(IntSpan sizes) {
  const int64_t n = sizes.size();
  MICA_CHECK(n == 4 || n == 5, "Channels come last in tensors of 4 or 5 dimensions, but the shape ",
             ShapeText(sizes), " has ", n, ".");
  Dims strides(n);
  strides[1] = 1;
  int64_t step = std::max<int64_t>(sizes[1], 1);
  for (int64_t i = n - 1; i >= 0; --i) {
    if (i == 1) continue;
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

bool IsContiguous(IntSpan sizes, IntSpan strides) {
  uint64_t expected = 1;  // wraps for sizes that whoever allocates them refuses
  bool contiguous = true;
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    contiguous &= strides[i] == static_cast<int64_t>(expected);
    expected *= static_cast<uint64_t>(sizes[i]);
  }
  return contiguous;
}

bool IsChannelsLast(IntSpan sizes, IntSpan strides) {
  const int64_t n = sizes.size();
  if (n != 4 && n != 5) return false;
  for (int64_t size : sizes) {
    if (size == 0) return true;
  }
  uint64_t expected = 1;
  const auto fits = [&](int64_t i) {
    if (sizes[i] == 1) return true;
    if (strides[i] != static_cast<int64_t>(expected)) return false;
    expected *= static_cast<uint64_t>(sizes[i]);
    return true;
  };
  if (!fits(1)) return false;
  for (int64_t i = n - 1; i >= 2; --i) {
    if (!fits(i)) return false;
  }
  return fits(0);
}
bool HasChannelsLastStrides(IntSpan sizes, IntSpan strides) {
  const int64_t n = sizes.size();
  if ((n != 4 && n != 5) || strides[1] == 0) return false;
  int64_t least = 0;
  const auto grows = [&](int64_t d) {
    if (sizes[d] == 0 || strides[d] < least || (d == 0 && least == strides[1])) return false;
    least = strides[d] * sizes[d];
    return true;
  };
  if (!grows(1)) return false;
  for (int64_t d = n - 1; d >= 2; --d)
    if (!grows(d)) return false;
  return grows(0);
}

bool IsNonOverlappingAndDense(IntSpan sizes, IntSpan strides) {
  Dims order;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  uint64_t expected = 1;
  for (int64_t i : order) {
    if (strides[i] != static_cast<int64_t>(expected)) return false;
    expected *= static_cast<uint64_t>(sizes[i]);
  }
  return true;
}

Dims BroadcastShapes(IntSpan a, IntSpan b, const char* a_name, const char* b_name) {
  const int64_t n = std::max(a.size(), b.size());
  Dims out(n);
  for (int64_t i = 0; i < n; ++i) {  // i counts from the last dim
    const int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    MICA_CHECK(from_a == from_b || from_a == 1 || from_b == 1, "The size of tensor a (", from_a,
               ") must match the size of tensor b (", from_b, ") at non-singleton dimension ", n - 1 - i,
               ": `", a_name, "` has the shape ", ShapeText(a), " and `", b_name, "` the shape ",
               ShapeText(b), ", and a dimension broadcasts only when one size is 1.");
    out[n - 1 - i] = from_a == 1 ? from_b : from_a;
  }
  return out;
}

bool CanExpandTo(IntSpan from, IntSpan to) {
  if (from.size() > to.size()) return false;
  const int64_t shift = to.size() - from.size();
  for (int64_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1 && from[i] != to[i + shift]) return false;
  }
  return true;
}

Dims ExpandStrides(IntSpan sizes, IntSpan strides, IntSpan to, Dims* resolved) {
  const int64_t n = to.size();
  const int64_t shift = n - sizes.size();
  MICA_CHECK(shift >= 0, "expand to ", ShapeText(to), ": the number of sizes provided (", n,
             ") must be greater or equal to the number of dimensions in the tensor (", sizes.size(),
             "), whose shape is ", ShapeText(sizes), ".");
  resolved->resize(n);
  Dims out(n);
  for (int64_t i = 0; i < n; ++i) {
    const bool is_new = i < shift;
    int64_t target = to[i];
    if (target == -1) {
      MICA_CHECK(!is_new,
                 "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ",
                 i, " of the tensor of shape ", ShapeText(sizes), ".");
      target = sizes[i - shift];
    }
    MICA_CHECK(target >= 0, "The size (", target, ") of dimension (", i, ") to expand to is negative.");
    const bool grows = !is_new && sizes[i - shift] == 1 && target != 1;
    MICA_CHECK(is_new || grows || sizes[i - shift] == target, "The expanded size of the tensor (", target,
               ") must match the existing size (", is_new ? 0 : sizes[i - shift],
               ") at non-singleton dimension ", i, ".  Target sizes: ", ShapeText(to),
               ".  Tensor sizes: ", ShapeText(sizes), ".");
    (*resolved)[i] = target;
    out[i] = is_new || grows ? 0 : strides[i - shift];
  }
  if (sizes.empty()) return out;
  // A new dimension of size 1 gets the stride that a contiguous one would have.
  for (int64_t i = shift - 1; i >= 0; --i) {
    if ((*resolved)[i] == 1) out[i] = (*resolved)[i + 1] * out[i + 1];
  }
  return out;
}

Dims InferSize(IntSpan sizes, int64_t numel) {
  Dims out = ToDims(sizes);
  int64_t inferred = -1;
  int64_t product = 1;
  bool overflow = false;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      MICA_CHECK(inferred < 0, "In the shape ", ShapeText(sizes),
                 " more than one size is -1: only one dimension can be inferred.");
      inferred = i;
    } else {
      MICA_CHECK(sizes[i] >= 0, "The shape ", ShapeText(sizes), " has an invalid shape dimension ", sizes[i],
                 "; a size is 0 or more, or -1 where it is inferred.");
      overflow |= __builtin_mul_overflow(product, sizes[i], &product);
    }
  }
  if (inferred >= 0) {
    MICA_CHECK(product != 0, "The shape ", ShapeText(sizes), " of ", numel,
               " elements cannot be reshaped, because the unspecified dimension size -1 can be any value and "
               "is ambiguous: another size is 0.");
  }
  const bool fits = !overflow && (inferred >= 0 ? numel % product == 0 : numel == product);
  MICA_CHECK(fits, "The shape '", ShapeText(sizes), "' is invalid for input of size ", numel, ".");
  if (inferred >= 0) out[inferred] = numel / product;
  return out;
}

std::optional<Dims> ComputeStride(IntSpan old_sizes, IntSpan old_strides, IntSpan new_sizes) {
  if (old_sizes.empty()) return Dims(new_sizes.size(), 1);
  int64_t numel = 1;
  for (int64_t size : old_sizes) numel *= size;
  if (numel == 0) {
    return old_sizes == new_sizes ? ToDims(old_strides) : ContiguousStrides(new_sizes);
  }
  // Runs of old dims that are contiguous among themselves are cut into new dims.
  Dims out(new_sizes.size());
  int64_t view = new_sizes.size() - 1;
  int64_t base_stride = old_strides[old_strides.size() - 1];
  int64_t run = 1;
  int64_t taken = 1;
  for (int64_t d = old_sizes.size() - 1; d >= 0; --d) {
    run *= old_sizes[d];
    const bool run_ends = d == 0 || (old_sizes[d - 1] != 1 && old_strides[d - 1] != run * base_stride);
    if (!run_ends) continue;
    while (view >= 0 && (taken < run || new_sizes[view] == 1)) {
      out[view] = taken * base_stride;
      taken *= new_sizes[view];
      --view;
    }
    if (taken != run) return std::nullopt;
    if (d > 0) {
      base_stride = old_strides[d - 1];
      run = taken = 1;
    }
  }
  if (view != -1) return std::nullopt;
  return out;
}

}  // namespace mica
