// Random fills on the CPU, with torch's streams (tensor/random.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "dispatcher/plugins/host.h"
#include "kernels/portable/lanes.h"
#include "kernels/portable/random_order.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/dtype.h"
#include "tensor/number_range.h"
#include "tensor/random.h"

namespace mica::portable {
namespace {

Generator& GeneratorOf(Generator* g) { return g ? *g : DefaultGenerator(Device{}); }

// The real and imaginary parts, as a last dimension; a real tensor itself.
Tensor Parts(const Tensor& t) {
  if (!IsComplex(t.dtype())) return t;
  Dims sizes = ToDims(t.sizes()), strides;
  for (const int64_t s : t.strides()) strides.push_back(2 * s);
  sizes.push_back(2);
  strides.push_back(1);
  return MakeViewAs(t, sizes, strides, t.storage_offset() * t.itemsize(), RealOf(t.dtype()), true);
}

// Fills a contiguous block of self's dtype in the order of memory, which is self
// itself or copied there.
template <typename F>
void FillContiguous(const Tensor& self, F&& fill) {
  const Tensor ordered = Permuted(self, MemoryOrder(self));
  if (ordered.is_contiguous()) {
    fill(ordered);
    return;
  }
  const Tensor block = EmptyTensor(ordered.sizes(), self.dtype(), self.device());
  fill(block);
  copy_(ordered, block, false);
}

// The same in steps, fill(data, elements, first element), between which a Ctrl-C ends
// the call. A step is a multiple of 16 and none is short, so that normal numbers,
// which come in blocks of 16, are those of one fill.
template <typename F>
void FillInSteps(const Tensor& self, F&& fill) {
  CheckNoInternalOverlap(self, "self");
  constexpr int64_t kStep = int64_t{1} << 20;
  FillContiguous(self, [&](const Tensor& t) {
    auto* data = static_cast<char*>(t.data());
    for (int64_t at = 0, left = t.numel(); left > 0;) {
      const int64_t n = left < 2 * kStep ? left : kStep;
      fill(static_cast<void*>(data + at * t.itemsize()), n, at);
      at += n;
      left -= n;
      if (left > 0) CheckInterrupted();
    }
  });
}

// The end of the whole numbers that a dtype holds without a gap, as torch's random_.
int64_t RandomLimit(DType d) {
  MICA_CHECK_IMPLEMENTED(!IsComplex(d), "random_ is not implemented for dtype (", Name(d),
                         "); expected integers, bool or floats.");
  switch (d) {
    case DType::kBool:
      return 2;
    case DType::kF64:
      return (int64_t{1} << 53) + 1;
    case DType::kF32:
      return (int64_t{1} << 24) + 1;
    case DType::kF16:
      return (int64_t{1} << 11) + 1;
    case DType::kBF16:
      return (int64_t{1} << 8) + 1;
    case DType::kI64:
    case DType::kU64:
      return std::numeric_limits<int64_t>::min();  // 2^63, as FillRandint takes it
    default:
      return int64_t{1} << (ItemSize(d) * 8 - (Kind(d) == DTypeKind::kSigned ? 1 : 0));
  }
}

// A bound of what is drawn is a number of the dtype.
void CheckDrawn(DType d, int64_t bound, const char* name) {
  const bool is_half = d == DType::kF16, is_small = IsInteger(d) && ItemSize(d) < 8;
  if (!is_half && !is_small && d != DType::kBool && d != DType::kU64) return;
  const int64_t most = is_half            ? static_cast<int64_t>(LargestNumber(d))
                       : d == DType::kU64 ? std::numeric_limits<int64_t>::max()
                                          : RandomLimit(d) - 1;
  const int64_t least = is_half ? -most : Kind(d) == DTypeKind::kSigned ? -most - 1 : 0;
  MICA_CHECK(bound >= least && bound <= most, name, " is out of bounds for ", Name(d), ": it is (", bound,
             "), and the range of the dtype is ", least, " to ", most, ".");
}

// Beyond RandomLimit a floating dtype has gaps between the whole numbers.
void WarnOfGaps(DType d, int64_t bound, const char* name) {
  if (!IsFloating(d)) return;
  const int64_t most = RandomLimit(d) - 1;
  if (bound >= -most && bound <= most) return;
  HostWarn(absl::StrCat(name, " is out of bounds [-", most, ", ", most, "]: it is (", bound,
                        "), and due to precision limitations ", Name(d),
                        " holds not every whole number outside of this range."));
}

}  // namespace

void uniform_(const Tensor& self, double from, double to, Generator* generator) {
  const Tensor parts = Parts(self);
  const DType dtype = parts.dtype();
  MICA_CHECK_IMPLEMENTED(IsFloating(dtype) && ItemSize(dtype) > 1,
                         "The distribution uniform is not defined for the dtype ", Name(dtype),
                         "; expected float16, bfloat16, float32 or float64.");
  const double most = LargestNumber(dtype);
  for (const auto& [name, bound] : {std::pair("from", from), std::pair("to", to)})
    MICA_CHECK(std::abs(bound) <= most, name, " is out of bounds for ", ScalarTypeName(dtype),
               ": uniform_ is to draw from [", from, ", ", to, ").");
  MICA_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to,
             ".");
  MICA_CHECK(to - from <= most, "uniform_ expects to-from <= std::numeric_limits<", ScalarTypeName(dtype),
             ">::max(), but found to=", to, " and from=", from,
             ", whose difference is beyond the largest number of the dtype.");
  FillInSteps(parts, [&](void* data, int64_t n, int64_t) {
    FillUniform(GeneratorOf(generator), data, n, parts.dtype(), from, to);
  });
}

void normal_(const Tensor& self, double mean, double std, Generator* generator) {
  MICA_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std, ".");
  const Tensor parts = Parts(self);
  if (IsComplex(self.dtype())) std /= std::numbers::sqrt2;  // of each part
  Generator& g = GeneratorOf(generator);
  if (parts.is_contiguous()) {
    FillInSteps(parts,
                [&](void* data, int64_t n, int64_t) { FillNormal(g, data, n, parts.dtype(), mean, std); });
    return;
  }
  // Other layouts are drawn one by one, also from 16 elements on.
  std::vector<double> values(static_cast<size_t>(parts.numel()));
  {
    std::unique_lock lock(g.mutex());
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % 65536 == 65535) CheckInterrupted(lock);
      values[i] = DrawNormal(g, mean, std);
    }
  }
  FromLanes(values, Permuted(parts, MemoryOrder(parts)));
}

void bernoulli__float(const Tensor& self, double p, Generator* generator) {
  MICA_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p, ".");
  FillInSteps(self, [&](void* data, int64_t n, int64_t) {
    FillBernoulli(GeneratorOf(generator), data, n, self.dtype(), p);
  });
}

void bernoulli__Tensor(const Tensor& self, const Tensor& p, Generator* generator) {
  const Tensor given = EmptyTensor(self.sizes(), p.dtype(), p.device());
  copy_(given, p, false);
  const Tensor in_order = Permuted(given, MemoryOrder(self));
  const Tensor probabilities = EmptyTensor(in_order.sizes(), p.dtype(), p.device());
  copy_(probabilities, in_order, false);
  const auto* all = static_cast<const char*>(probabilities.data());
  FillInSteps(self, [&](void* data, int64_t n, int64_t at) {
    FillBernoulliTensor(GeneratorOf(generator), data, n, self.dtype(), all + at * probabilities.itemsize(),
                        p.dtype());
  });
}

void random__from(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* generator) {
  const int64_t high = to.value_or(RandomLimit(self.dtype()));
  MICA_CHECK(from < high || (!to && high < 0),
             "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", high, ".");
  WarnOfGaps(self.dtype(), from, "from");
  WarnOfGaps(self.dtype(), static_cast<int64_t>(static_cast<uint64_t>(high) - 1), "to - 1");
  CheckDrawn(self.dtype(), from, "from");
  CheckDrawn(self.dtype(), static_cast<int64_t>(static_cast<uint64_t>(high) - 1), "to - 1");
  FillInSteps(self, [&](void* data, int64_t n, int64_t) {
    FillRandint(GeneratorOf(generator), data, n, self.dtype(), from, high);
  });
}
void random__to(const Tensor& self, int64_t to, Generator* generator) {
  random__from(self, 0, to, generator);
}
void random_(const Tensor& self, Generator* generator) {
  if (!IsInteger(self.dtype()) || self.itemsize() < 4) return random__from(self, 0, std::nullopt, generator);
  // One word of the dtype's own width each, without the sign.
  FillInSteps(self, [&](void* data, int64_t n, int64_t) {
    Generator& g = GeneratorOf(generator);
    const std::lock_guard lock(g.mutex());
    for (int64_t i = 0; i < n; ++i) {
      if (self.itemsize() == 8)
        static_cast<int64_t*>(data)[i] = static_cast<int64_t>(g.Random64() & INT64_MAX);
      else
        static_cast<uint32_t*>(data)[i] =
            g.Random32() & (self.dtype() == DType::kI32 ? INT32_MAX : UINT32_MAX);
    }
  });
}

void _randperm_(const Tensor& self, Generator* generator) {
  FillContiguous(self, [&](const Tensor& t) {
    FillRandperm(GeneratorOf(generator), t.data(), t.numel(), t.dtype(), &CheckInterrupted);
  });
}

}  // namespace mica::portable
