// The shape of an elementwise call: sizes and byte strides of every operand,
// broadcast, sorted into the output's memory order and collapsed.
//
// After Normalize() most calls have one dimension. Positions count elements of
// the normalized iteration space in row-major order; an operand that is dense in
// that order (`flat`) stands at data + position * size.
#ifndef MICA_PLUGINS_CPU_ENGINE_ITERATION_H_
#define MICA_PLUGINS_CPU_ENGINE_ITERATION_H_

#include <cstdint>

#include "plugins/cpu/engine/plans/plan.h"

namespace mica::cpu {

inline constexpr int kMaxDims = 24;
inline constexpr int kMaxOperands = kMaxInputs + kMaxResults;

struct Operand {
  char* data;
  int64_t size;               // bytes an element
  bool flat;                  // dense in the iteration order
  bool invariant;             // one element for all positions
  int64_t strides[kMaxDims];  // bytes
};

struct Iteration {
  int ndim = 0;
  int num_operands = 0;
  int64_t numel = 0;
  bool rows = false;  // pieces stay within a row of the last dimension, bound in place
  int64_t sizes[kMaxDims];
  Operand operands[kMaxOperands];

  // Sets the iteration space; throws above kMaxDims dimensions.
  void SetSizes(const int64_t* sizes, int ndim);
  // Adds a tensor that broadcasts to the space, aligned at the last dimension.
  void Add(const MicaTensor* tensor);
  // Adds memory with a byte stride for each dimension of the space.
  void Add(char* data, int64_t size, const int64_t* strides);
  // Sorts (unless positions have a meaning), collapses, and fills in `flat`,
  // `invariant` and `rows`.
  void Normalize(bool sort = true);

  // Byte offset of operand `k` at `position`.
  int64_t Offset(int k, int64_t position) const;
  // Copies n elements of operand `k` from `position` on, in iteration order.
  void Pack(int k, int64_t shift, int64_t position, int64_t n, void* dst) const;
  void Unpack(int k, int64_t shift, int64_t position, int64_t n, const void* src) const;
  // Whether operand `k` is dense along `dim`, and not along the last dimension: the two
  // make a matrix to transpose.
  bool LiesAcross(int k, int dim) const;

  // The elements of a piece that begins at `position`: at most `block`, and within
  // a row where pieces must be.
  int64_t PieceLength(int64_t position, int64_t end, int64_t block) const;
  // Memory of operand k for a piece, `shift` bytes on: its own where it is dense
  // there, else `buffer`, filled when it is to be read.
  char* Locate(int k, int64_t shift, int64_t position, int64_t n, char* buffer, bool read) const;
  // Writes a piece that Locate() put into `buffer` to its place.
  void Deliver(int k, int64_t shift, int64_t position, int64_t n, const char* buffer) const;

 private:
  void PackAcross(int k, int64_t shift, int64_t position, int64_t n, char* to) const;
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_ITERATION_H_
