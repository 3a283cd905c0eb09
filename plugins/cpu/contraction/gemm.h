// Matrix products of any dtype and layout: chooses library or own loops, and divides
// the work. Used by the products (products.cc) and by convolution's fallback.
#ifndef MICA_PLUGINS_CPU_CONTRACTION_GEMM_H_
#define MICA_PLUGINS_CPU_CONTRACTION_GEMM_H_

#include <cstdint>

#include <mica/plugin.h>

namespace mica::cpu {

// A matrix in memory: element (i, j) is at data[i * row + j * col].
struct Strided {
  void* data;
  int64_t row, col;
};

// The factor of a product in the three kinds a dtype may need.
struct Factor {
  double real, imaginary;
  int64_t integer;
};
Factor FactorOf(const MicaScalar& scalar);

struct Product {
  int32_t dtype;  // of a, b and c; not bool, not float8
  int64_t m, n, k;
  Strided a, b, c;
  Factor alpha = {1, 0, 1}, beta = {0, 0, 0};
};

// c = alpha * a @ b + beta * c; with beta zero c is only written, with k zero the
// product is zero. Half types multiply and add in float32 and round once. False where
// the libraries are missing or the dtype has no product.
bool Gemm(const Product& product, int32_t threads);

// Products of float32 and float64 for which calling a library costs more than they do
// (gemm_plain.cc); on the calling thread.
void PlainGemm(const Product& product);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONTRACTION_GEMM_H_
