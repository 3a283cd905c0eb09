// Meta functions of the Fourier transforms' cores: dimensions are distinct and in range.
#include <algorithm>

#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

void CheckTransform(const Tensor& self, IntSpan dim, int64_t normalization, bool is_complex) {
  const DType d = self.dtype();
  const bool fits = is_complex ? IsComplex(d) : d == DType::kF32 || d == DType::kF64;
  MICA_CHECK(fits, "Dtype (", Name(d), ") of `self` is not supported; expected ",
             is_complex ? "a complex dtype." : "float32 or float64.");
  MICA_CHECK_VALUE(normalization >= 0 && normalization <= 2, "Normalization (", normalization,
                   ") is unknown; expected 0 (none), 1 (by the root of the size) or 2 (by the size).");
  std::vector<bool> seen(static_cast<size_t>(self.ndim()), false);
  for (const int64_t k : dim) {
    MICA_CHECK_INDEX(k >= 0 && k < self.ndim(), "Dimension (", k, ") is not between 0 and (", self.ndim(),
                     "), the number of dimensions.");
    MICA_CHECK(!seen[static_cast<size_t>(k)], "Dimension (", k, ") stands twice in `dim`.");
    seen[static_cast<size_t>(k)] = true;
    MICA_CHECK(self.sizes()[k] > 0, "Size (0) of dimension (", k, ") leaves no data points to transform.");
  }
}

DType ComplexOf(DType d) { return d == DType::kF32 ? DType::kC64 : DType::kC128; }

}  // namespace

void _fft_c2c(MetaResult& result, const Tensor& self, IntSpan dim, int64_t normalization, bool) {
  CheckTransform(self, dim, normalization, true);
  AddOutput(result, self.sizes(), self.dtype(), self.device());
}

void _fft_r2c(MetaResult& result, const Tensor& self, IntSpan dim, int64_t normalization, bool onesided) {
  CheckTransform(self, dim, normalization, false);
  MICA_CHECK(!dim.empty(), "List `dim` is empty; expected at least one dimension.");
  Dims sizes = ToDims(self.sizes());
  int64_t& last = sizes[static_cast<size_t>(dim[dim.size() - 1])];
  if (onesided) last = last / 2 + 1;
  AddOutput(result, sizes, ComplexOf(self.dtype()), self.device());
}

void _fft_c2r(MetaResult& result, const Tensor& self, IntSpan dim, int64_t normalization,
              int64_t last_dim_size) {
  CheckTransform(self, dim, normalization, true);
  MICA_CHECK(!dim.empty(), "List `dim` is empty; expected at least one dimension.");
  Dims sizes = ToDims(self.sizes());
  int64_t& last = sizes[static_cast<size_t>(dim[dim.size() - 1])];
  MICA_CHECK(last_dim_size >= 1 && last_dim_size / 2 + 1 == last, "Size (", last, ") of dimension (",
             dim[dim.size() - 1], ") is not (", last_dim_size / 2 + 1, "), that of the spectrum of (",
             last_dim_size, ") real data points.");
  last = last_dim_size;
  AddOutput(result, sizes, RealOf(self.dtype()), self.device());
}

}  // namespace mica::meta
