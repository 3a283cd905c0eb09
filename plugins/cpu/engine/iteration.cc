// Normalization of an iteration space and the walks over strided operands; see
// iteration.h.
#include "plugins/cpu/engine/iteration.h"

#include <algorithm>

#include <mica/plugin.h>
#include "plugins/cpu/engine/short_rows.h"
#include "plugins/cpu/engine/transpose.h"

namespace mica::cpu {
namespace {

// Rows from this length on are bound in place.
constexpr int64_t kRowLength = 256;
// From this many rows on a transposition beats element by element.
constexpr int64_t kPackedRows = 4;

}  // namespace

void Iteration::SetSizes(const int64_t* from, int count) {
  MICA_PLUGIN_CHECK(count <= kMaxDims, MICA_ERROR_NOT_IMPLEMENTED,
                    "The CPU backend takes tensors of at most 24 dimensions; this one has more.");
  ndim = count;
  num_operands = 0;
  numel = 1;
  for (int d = 0; d < count; ++d) {
    sizes[d] = from[d];
    numel *= from[d];
  }
}

void Iteration::Add(const MicaTensor* tensor) {
  Operand& operand = operands[num_operands++];
  operand.data = static_cast<char*>(tensor->dl.data);
  operand.size = tensor->dl.dtype.bits / 8;
  const int missing = ndim - tensor->dl.ndim;
  for (int d = 0; d < ndim; ++d) {
    const int own = d - missing;
    const bool repeats = own < 0 || tensor->dl.shape[own] == 1;
    operand.strides[d] = repeats ? 0 : tensor->dl.strides[own] * operand.size;
  }
}

void Iteration::Add(char* data, int64_t size, const int64_t* strides) {
  Operand& operand = operands[num_operands++];
  operand.data = data;
  operand.size = size;
  std::copy_n(strides, ndim, operand.strides);
}

void Iteration::Normalize(bool sort) {
  int kept = 0;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 1) continue;
    sizes[kept] = sizes[d];
    for (int k = 0; k < num_operands; ++k) operands[k].strides[kept] = operands[k].strides[d];
    ++kept;
  }
  ndim = kept;
  // Largest stride of the first operand (an output) outermost; stable insertion.
  for (int d = 1; sort && d < ndim; ++d) {
    for (int e = d; e > 0 && operands[0].strides[e - 1] < operands[0].strides[e]; --e) {
      std::swap(sizes[e - 1], sizes[e]);
      for (int k = 0; k < num_operands; ++k) std::swap(operands[k].strides[e - 1], operands[k].strides[e]);
    }
  }
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    bool joins = true;
    for (int k = 0; k < num_operands && joins; ++k) {
      joins = operands[k].strides[last] == operands[k].strides[d] * sizes[d];
    }
    if (joins) {
      sizes[last] *= sizes[d];
    } else {
      sizes[++last] = sizes[d];
    }
    for (int k = 0; k < num_operands; ++k) operands[k].strides[last] = operands[k].strides[d];
  }
  if (ndim == 0) {
    sizes[0] = 1;
    for (int k = 0; k < num_operands; ++k) operands[k].strides[0] = operands[k].size;
  }
  ndim = ndim == 0 ? 1 : last + 1;
  bool all_flat = true;
  for (int k = 0; k < num_operands; ++k) {
    Operand& operand = operands[k];
    operand.flat = operand.invariant = true;
    int64_t dense = operand.size;
    for (int d = ndim - 1; d >= 0; --d) {
      operand.flat &= operand.strides[d] == dense;
      operand.invariant &= operand.strides[d] == 0;
      dense *= sizes[d];
    }
    all_flat &= operand.flat || operand.invariant;
  }
  rows = !all_flat && sizes[ndim - 1] >= kRowLength;
}

int64_t Iteration::PieceLength(int64_t position, int64_t end, int64_t block) const {
  const int64_t n = std::min(block, end - position);
  return rows ? std::min(n, sizes[ndim - 1] - position % sizes[ndim - 1]) : n;
}

char* Iteration::Locate(int k, int64_t shift, int64_t position, int64_t n, char* buffer, bool read) const {
  const Operand& operand = operands[k];
  if (operand.flat) return operand.data + shift + position * operand.size;
  if (rows) {
    const int64_t stride = operand.strides[ndim - 1];
    char* data = operand.data + shift + Offset(k, position);
    if (stride == operand.size) return data;
    if (read) GatherStrided(buffer, data, stride, operand.size, n);
    return buffer;
  }
  if (read) Pack(k, shift, position, n, buffer);
  return buffer;
}

void Iteration::Deliver(int k, int64_t shift, int64_t position, int64_t n, const char* buffer) const {
  const Operand& operand = operands[k];
  if (rows) {
    ScatterStrided(operand.data + shift + Offset(k, position), operand.strides[ndim - 1], buffer,
                   operand.size, n);
  } else {
    Unpack(k, shift, position, n, buffer);
  }
}

int64_t Iteration::Offset(int k, int64_t position) const {
  const int64_t* strides = operands[k].strides;
  int64_t offset = 0;
  for (int d = ndim - 1; d > 0; --d) {
    offset += position % sizes[d] * strides[d];
    position /= sizes[d];
  }
  return offset + position * strides[0];
}

namespace {

// Calls visit(offset, rows) for runs along the last dimension: whole rows as long as the
// dimension before it goes on, and what stands before and after them.
template <class Visit>
void WalkRows(const Iteration& it, const Operand& operand, int64_t position, int64_t n, Visit visit) {
  int64_t index[kMaxDims];
  int64_t offset = 0;
  int64_t rest = position;
  for (int d = it.ndim - 1; d >= 0; --d) {
    index[d] = d > 0 ? rest % it.sizes[d] : rest;
    if (d > 0) rest /= it.sizes[d];
    offset += index[d] * operand.strides[d];
  }
  const int inner = it.ndim - 1;
  const int64_t width = it.sizes[inner], column = operand.strides[inner];
  while (n > 0) {
    int moved = inner;
    int64_t steps = std::min(n, width - index[inner]);
    RowsOf rows{1, steps, 0, column, operand.size};
    if (inner > 0 && steps == width) {
      moved = inner - 1;
      steps = std::min(n / width, it.sizes[moved] - index[moved]);
      rows = {steps, width, operand.strides[moved], column, operand.size};
    }
    visit(offset, rows);
    n -= rows.rows * rows.width;
    offset += steps * operand.strides[moved];
    index[moved] += steps;
    for (int d = moved; d > 0 && index[d] == it.sizes[d]; --d) {
      offset += operand.strides[d - 1] - it.sizes[d] * operand.strides[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

}  // namespace

void Iteration::Pack(int k, int64_t shift, int64_t position, int64_t n, void* dst) const {
  const Operand& operand = operands[k];
  char* to = static_cast<char*>(dst);
  if (LiesAcross(k, ndim - 2) && n >= kPackedRows * sizes[ndim - 1])
    return PackAcross(k, shift, position, n, to);
  WalkRows(*this, operand, position, n, [&](int64_t offset, const RowsOf& rows) {
    GatherRows(to, operand.data + shift + offset, rows);
    to += rows.rows * rows.width * operand.size;
  });
}

bool Iteration::LiesAcross(int k, int dim) const {
  const Operand& operand = operands[k];
  const int64_t inner = operand.strides[ndim - 1];
  return dim >= 0 && operand.strides[dim] == operand.size && inner != operand.size && inner != 0 &&
         sizes[dim] >= kPackedRows;
}

// Whole rows by transposition, up to the end of the dimension before the last; what
// stands before and after them run by run.
void Iteration::PackAcross(int k, int64_t shift, int64_t position, int64_t n, char* to) const {
  const Operand& operand = operands[k];
  const int64_t stride = operand.strides[ndim - 1], width = sizes[ndim - 1];
  while (n > 0) {
    const int64_t column = position % width, row = position / width % sizes[ndim - 2];
    const char* from = operand.data + shift + Offset(k, position);
    int64_t taken = std::min(n, width - column);
    if (column == 0 && n >= width) {
      const int64_t rows = std::min(n / width, sizes[ndim - 2] - row);
      taken = rows * width;
      Transpose(operand.size, to, width * operand.size, from, stride, rows, width);
    } else {
      GatherStrided(to, from, stride, operand.size, taken);
    }
    to += taken * operand.size;
    position += taken;
    n -= taken;
  }
}

void Iteration::Unpack(int k, int64_t shift, int64_t position, int64_t n, const void* src) const {
  const Operand& operand = operands[k];
  const char* from = static_cast<const char*>(src);
  WalkRows(*this, operand, position, n, [&](int64_t offset, const RowsOf& rows) {
    ScatterRows(operand.data + shift + offset, from, rows);
    from += rows.rows * rows.width * operand.size;
  });
}

}  // namespace mica::cpu
