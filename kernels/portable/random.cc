// Random fills on the CPU, with torch's streams (tensor/random.h).
#include <cmath>
#include <limits>
#include <numeric>

#include "mica/dispatcher/host.h"
#include "mica/kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"
#include "mica/tensor/random.h"

namespace mica::portable {
namespace {

Generator& GeneratorOf(Generator* g) { return g ? *g : DefaultGenerator(Device{}); }

// Fills a contiguous block of self's dtype, which is self itself or copied there.
template <typename F>
void FillContiguous(const Tensor& self, F&& fill) {
  if (self.is_contiguous()) {
    fill(self);
    return;
  }
  const Tensor block = EmptyTensor(self.sizes(), self.dtype(), self.device());
  fill(block);
  copy_(self, block, false);
}

// The same in steps, fill(data, elements, first element), between which a Ctrl-C ends
// the call. A step is a multiple of 16 and none is short, so that normal numbers,
// which come in blocks of 16, are those of one fill.
template <typename F>
void FillInSteps(const Tensor& self, F&& fill) {
  constexpr int64_t kStep = int64_t{1} << 20;
  FillContiguous(self, [&](const Tensor& t) {
    auto* data = static_cast<char*>(t.data());
    for (int64_t at = 0, left = t.numel(); left > 0;) {
      const int64_t n = left < 2 * kStep ? left : kStep;
      fill(static_cast<void*>(data + at * t.itemsize()), n, at);
      at += n;
      left -= n;
      MICA_CHECK_KIND(kInterrupted, left == 0 || !Interrupted(), "The call was interrupted.");
    }
  });
}

// The end of the whole numbers that a dtype holds without a gap, as torch's random_.
int64_t RandomLimit(DType d) {
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

}  // namespace

void uniform_(const Tensor& self, double from, double to, Generator* generator) {
  MICA_CHECK(from <= to, "uniform_ needs `from` (", from, ") to be at most `to` (", to, ").");
  FillInSteps(self, [&](void* data, int64_t n, int64_t) {
    FillUniform(GeneratorOf(generator), data, n, self.dtype(), from, to);
  });
}

void normal_(const Tensor& self, double mean, double std, Generator* generator) {
  MICA_CHECK(std >= 0, "normal_ needs a standard deviation (", std, ") of at least 0.");
  FillInSteps(self, [&](void* data, int64_t n, int64_t) {
    FillNormal(GeneratorOf(generator), data, n, self.dtype(), mean, std);
  });
}

void bernoulli__float(const Tensor& self, double p, Generator* generator) {
  MICA_CHECK(p >= 0 && p <= 1, "bernoulli_ needs a probability (", p, ") from 0 to 1.");
  FillInSteps(self, [&](void* data, int64_t n, int64_t) {
    FillBernoulli(GeneratorOf(generator), data, n, self.dtype(), p);
  });
}

void bernoulli__Tensor(const Tensor& self, const Tensor& p, Generator* generator) {
  const Tensor probabilities = EmptyTensor(self.sizes(), p.dtype(), p.device());
  copy_(probabilities, p, false);
  const auto* all = static_cast<const char*>(probabilities.data());
  FillInSteps(self, [&](void* data, int64_t n, int64_t at) {
    FillBernoulliTensor(GeneratorOf(generator), data, n, self.dtype(), all + at * probabilities.itemsize(),
                        p.dtype());
  });
}

void random__from(const Tensor& self, int64_t from, std::optional<int64_t> to, Generator* generator) {
  MICA_CHECK(!to || from < *to, "random_ needs `from` (", from, ") to be less than `to` (", to.value_or(0),
             ").");
  const int64_t high = to.value_or(RandomLimit(self.dtype()));
  FillInSteps(self, [&](void* data, int64_t n, int64_t) {
    FillRandint(GeneratorOf(generator), data, n, self.dtype(), from, high);
  });
}
void random__to(const Tensor& self, int64_t to, Generator* generator) {
  random__from(self, 0, to, generator);
}
void random_(const Tensor& self, Generator* generator) { random__from(self, 0, std::nullopt, generator); }

void exponential_(const Tensor& self, double lambd, Generator* generator) {
  MICA_CHECK(lambd > 0, "exponential_ needs a rate (", lambd, ") greater than 0.");
  Generator& g = GeneratorOf(generator);
  std::vector<double> values(static_cast<size_t>(self.numel()));
  {
    std::lock_guard lock(g.mutex());
    for (double& v : values) v = -std::log1p(-DrawUniform53(g)) / lambd;
  }
  FromLanes(values, self);
}

void _randperm_(const Tensor& self, Generator* generator) {
  FillContiguous(
      self, [&](const Tensor& t) { FillRandperm(GeneratorOf(generator), t.data(), t.numel(), t.dtype()); });
}

void multinomial(const Tensor& self, int64_t num_samples, bool replacement, Generator* generator,
                 const Tensor& out) {
  const int64_t categories = self.sizes()[self.ndim() - 1];
  const int64_t rows = self.ndim() == 1 ? 1 : self.sizes()[0];
  std::vector<double> weights = ToLanes<double>(self);
  std::vector<int64_t> drawn;
  Generator& g = GeneratorOf(generator);
  std::lock_guard lock(g.mutex());
  for (int64_t r = 0; r < rows; ++r) {
    double* w = weights.data() + r * categories;
    for (int64_t c = 0; c < categories; ++c)
      MICA_CHECK(w[c] >= 0 && std::isfinite(w[c]), "The probability (", w[c], ") of category (", c,
                 ") in row (", r, ") is negative, infinite or NaN.");
    for (int64_t s = 0; s < num_samples; ++s) {
      const double total = std::accumulate(w, w + categories, 0.0);
      MICA_CHECK(total > 0, "Row (", r, ") has no probability left for sample (", s, ") of multinomial.");
      double u = DrawUniform53(g) * total;
      int64_t c = 0;
      while (c + 1 < categories && (u -= w[c]) >= 0) ++c;
      while (c > 0 && w[c] == 0) --c;
      drawn.push_back(c);
      if (!replacement) w[c] = 0;
    }
  }
  FromLanes(drawn, out);
}

}  // namespace mica::portable
