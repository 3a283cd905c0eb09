// Own loops for matrix products: integers, and tiny sizes of float32 and float64.
#include <algorithm>
#include <type_traits>

#include "mica/plugins/cpu/contraction/gemm.h"

namespace mica::cpu {
namespace {

template <class T>
T Take(const Factor& f) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(f.integer);
  else
    return static_cast<T>(f.real);
}

constexpr int64_t kCols = 128;  // of c at a time, whose sums stand in L1
constexpr int64_t kDepth = 64;  // rows of a b that is packed

// Row i of c gathers rows of b: the inner loop is over adjacent elements of b, which is packed
// block by block where it does not lie row by row. Integers sum in an unsigned type that
// wraps, as the dtype does, so that blocks add up exactly; no float comes here with k > kDepth.
template <class T, class Sum = T>
void Multiply(const Product& p) {
  const T* a = static_cast<const T*>(p.a.data);
  const T* b = static_cast<const T*>(p.b.data);
  T* c = static_cast<T*>(p.c.data);
  const Sum alpha = static_cast<Sum>(Take<T>(p.alpha)), beta = static_cast<Sum>(Take<T>(p.beta));
  const bool packs = p.b.col != 1;
  Sum row[kCols];
  T packed[kDepth * kCols];
  const auto block = [&](int64_t j0, int64_t cols, int64_t l0, int64_t depth) {
    const T* lines = b + l0 * p.b.row + j0 * p.b.col;
    const int64_t step = packs ? cols : p.b.row;
    if (packs) {
      for (int64_t l = 0; l < depth; ++l)
        for (int64_t j = 0; j < cols; ++j) packed[l * cols + j] = lines[l * p.b.row + j * p.b.col];
      lines = packed;
    }
    const Sum old = l0 == 0 ? beta : Sum{1};
    for (int64_t i = 0; i < p.m; ++i) {
      std::fill(row, row + cols, Sum{0});
      for (int64_t l = 0; l < depth; ++l) {
        const Sum factor = static_cast<Sum>(a[i * p.a.row + (l0 + l) * p.a.col]);
        const T* line = lines + l * step;
        for (int64_t j = 0; j < cols; ++j) row[j] += factor * static_cast<Sum>(line[j]);
      }
      T* to = c + i * p.c.row + j0 * p.c.col;
      for (int64_t j = 0; j < cols; ++j) {
        const Sum value = alpha * row[j];
        T& element = to[j * p.c.col];
        element = static_cast<T>(old == Sum{0} ? value : value + old * static_cast<Sum>(element));
      }
    }
  };
  const int64_t deep = packs ? kDepth : std::max<int64_t>(p.k, 1);
  for (int64_t j0 = 0; j0 < p.n; j0 += kCols)
    for (int64_t l0 = 0; l0 < p.k || l0 == 0; l0 += deep)
      block(j0, std::min(kCols, p.n - j0), l0, std::min(deep, p.k - l0));
}

}  // namespace

void PlainGemm(const Product& p) {
  switch (p.dtype) {
    case MICA_U8:
      return Multiply<uint8_t, uint32_t>(p);
    case MICA_I8:
      return Multiply<int8_t, uint32_t>(p);
    case MICA_U16:
      return Multiply<uint16_t, uint32_t>(p);
    case MICA_I16:
      return Multiply<int16_t, uint32_t>(p);
    case MICA_U32:
      return Multiply<uint32_t, uint32_t>(p);
    case MICA_I32:
      return Multiply<int32_t, uint32_t>(p);
    case MICA_U64:
      return Multiply<uint64_t>(p);
    case MICA_I64:
      return Multiply<int64_t, uint64_t>(p);
    case MICA_F64:
      return Multiply<double>(p);
    default:
      return Multiply<float>(p);
  }
}

}  // namespace mica::cpu
