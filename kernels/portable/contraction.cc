// Matrix products by plain loops in wide lanes.
#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/shape.h"

namespace mica::portable {
namespace {

// c[m, n] += a[m, k] b[k, n], all row-major.
template <typename T>
void Multiply(const T* a, const T* b, T* c, int64_t m, int64_t k, int64_t n) {
  Patience patience;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l) {
      const T v = a[i * k + l];
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += v * b[l * n + j];
      patience.Spend(n);
    }
}

template <typename T>
std::vector<T> BroadcastLanes(const Tensor& t, IntSpan shape) {
  std::vector<T> out(static_cast<size_t>(CheckedNumel(shape)));
  std::vector<int64_t> at(out.size());
  Offsets(shape, BroadcastStrides(t, shape), t.itemsize()).Next(at.data(), static_cast<int64_t>(at.size()));
  LoadLanes(kLaneFor<T>, t.dtype(), t.data_as<char>(), at.data(), static_cast<int64_t>(at.size()),
            out.data());
  return out;
}

// out = beta * self + alpha * a b over batches.
void Product(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
             int64_t batches, int64_t m, int64_t k, int64_t n, const Tensor& out) {
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> left = ToLanes<T>(a), right = ToLanes<T>(b);
    std::vector<T> c(static_cast<size_t>(out.numel()), T(0));
    for (int64_t i = 0; i < batches; ++i)
      Multiply(left.data() + i * m * k, right.data() + i * k * n, c.data() + i * m * n, m, k, n);
    // A beta of 0 does not read self, NaN included.
    const T scale = alpha.To<T>(), keep = beta.To<T>();
    const std::vector<T> old =
        keep == T(0) ? std::vector<T>(c.size(), T(0)) : BroadcastLanes<T>(self, out.sizes());
    for (size_t i = 0; i < c.size(); ++i) c[i] = scale * c[i] + keep * old[i];
    FromLanes(c, out);
  });
}

}  // namespace

void addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
           const Scalar& alpha, const Tensor& out) {
  Product(self, mat1, mat2, beta, alpha, 1, mat1.sizes()[0], mat1.sizes()[1], mat2.sizes()[1], out);
}
void baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
             const Scalar& alpha, const Tensor& out) {
  Product(self, batch1, batch2, beta, alpha, batch1.sizes()[0], batch1.sizes()[1], batch1.sizes()[2],
          batch2.sizes()[2], out);
}

}  // namespace mica::portable
