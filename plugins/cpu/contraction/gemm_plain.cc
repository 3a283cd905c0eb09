// Own loops for products of float32 and float64 that are too small to call a library for.
#include "plugins/cpu/contraction/gemm.h"

namespace mica::cpu {
namespace {

template <class T>
void Multiply(const Product& p) {
  const T* a = static_cast<const T*>(p.a.data);
  const T* b = static_cast<const T*>(p.b.data);
  T* c = static_cast<T*>(p.c.data);
  const T alpha = static_cast<T>(p.alpha.real), beta = static_cast<T>(p.beta.real);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      T sum = 0;
      for (int64_t l = 0; l < p.k; ++l) sum += a[i * p.a.row + l * p.a.col] * b[l * p.b.row + j * p.b.col];
      T& element = c[i * p.c.row + j * p.c.col];
      element = beta == 0 ? alpha * sum : alpha * sum + beta * element;
    }
  }
}

}  // namespace

void PlainGemm(const Product& p) { p.dtype == MICA_F64 ? Multiply<double>(p) : Multiply<float>(p); }

}  // namespace mica::cpu
