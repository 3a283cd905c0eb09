// Transposition of a strided matrix: what a strided copy has at its heart.
//
// Used by copy_ (copy.cc), by the packing of strided operands (iteration.cc,
// panels.h) and by the copies of explicit kernels (contraction/dense.cc).
#ifndef MICA_PLUGINS_CPU_ENGINE_TRANSPOSE_H_
#define MICA_PLUGINS_CPU_ENGINE_TRANSPOSE_H_

#include <cstdint>

namespace mica::cpu {

// Bytes of a tile along src's dense dimension; threads divide rows by whole tiles.
inline constexpr int64_t kTransposeBytes = 256;

// dst[r * dst_stride + c * size] = src[c * src_stride + r * size] for each r < rows,
// c < columns; strides in bytes, elements of 1, 2, 4, 8 or 16 bytes that lie side by
// side along c in dst and along r in src. The two do not overlap.
void Transpose(int64_t size, char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows,
               int64_t columns);

// dst[i] = src[-i] for n elements of such a size, which do not overlap.
void Reverse(int64_t size, void* dst, const void* src, int64_t n);
// dst[i] = src[2 * i], which vectors read whole.
void EverySecond(int64_t size, void* dst, const void* src, int64_t n);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_TRANSPOSE_H_
