// The class kernel "fold": cat, stack and block_diag. Each tensor of the list is copied into
// its part of the result, whose face stands on the stack: no tensor object is made for it.
#include <algorithm>
#include <cstring>
#include <deque>

#include <mica/program.h>
#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/indexing/indexing.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

constexpr int64_t kGrainBytes = int64_t{1} << 18;
constexpr int64_t kMostParts = 64;  // that are joined row by row

// A part of a tensor, as kernels see one.
class Part {
 public:
  Part(const MicaTensor* whole, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset)
      : face_(*whole) {
    if (ndim > kMaxDims) throw plugin::NotImplemented();
    std::copy_n(sizes, ndim, sizes_);
    std::copy_n(strides, ndim, strides_);
    face_.flags &= ~(MICA_TENSOR_CONTIGUOUS | MICA_TENSOR_CHANNELS_LAST);
    int64_t dense = 1;
    bool contiguous = true;
    for (int32_t d = ndim - 1; d >= 0; --d) {
      contiguous &= sizes[d] == 1 || strides[d] == dense;
      dense *= sizes[d];
    }
    if (contiguous) face_.flags |= MICA_TENSOR_CONTIGUOUS;
    face_.dl.ndim = ndim;
    face_.dl.shape = sizes_;
    face_.dl.strides = strides_;
    face_.dl.data = static_cast<char*>(whole->dl.data) + offset * TensorRef(whole).itemsize();
  }
  Part(const Part&) = delete;
  MicaTensor* get() { return &face_; }

 private:
  MicaTensor face_;
  int64_t sizes_[kMaxDims], strides_[kMaxDims];
};

void Copy(const MicaCall* call, MicaTensor* from, Part& to) {
  if (TensorRef(from).numel() > 0) CopyInto(call, to.get(), from, 0);
}

// How far apart the rows of a tensor lie, a row being its dimensions from `dim` on, which are
// dense, and the outer dimensions one; -1 where it is no such matrix.
int64_t RowDistance(const TensorRef& t, int32_t dim) {
  int64_t dense = 1;
  for (int32_t d = t.ndim() - 1; d >= dim; --d) {
    if (t.size(d) != 1 && t.stride(d) != dense) return -1;
    dense *= t.size(d);
  }
  int64_t distance = dense, next = -1;
  for (int32_t d = dim - 1; d >= 0; --d) {
    if (t.size(d) == 1) continue;
    if (next >= 0 && t.stride(d) != next) return -1;
    if (next < 0) distance = t.stride(d);
    next = t.stride(d) * t.size(d);
  }
  return distance;
}

// Rows of a tensor that is joined: `bytes` in one piece, `distance` from row to row.
struct Rows {
  const char* data;
  int64_t bytes, distance;
};

// Rows [begin, end) of kParts parts of one element each, element by element.
template <class T, int64_t kParts>
void Interleave(const Rows* parts, int64_t begin, int64_t end, char* to) {
  using Loose __attribute__((aligned(1), may_alias)) = T;
  const Loose* from[kParts];
  for (int64_t k = 0; k < kParts; ++k) from[k] = reinterpret_cast<const Loose*>(parts[k].data) + begin;
  auto* at = reinterpret_cast<Loose*>(to);
  for (int64_t row = 0; row < end - begin; ++row)
    for (int64_t k = 0; k < kParts; ++k) at[row * kParts + k] = from[k][row];
}

using InterleaveRows = void (*)(const Rows* parts, int64_t begin, int64_t end, char* to);

template <class T>
InterleaveRows InterleaveOf(int64_t parts) {
  return parts == 2   ? Interleave<T, 2>
         : parts == 3 ? Interleave<T, 3>
         : parts == 4 ? Interleave<T, 4>
                      : nullptr;
}

// For two to four parts whose rows are single elements side by side; NULL for others.
InterleaveRows InterleaveOf(const Rows* parts, int64_t count, int64_t size) {
  for (int64_t k = 0; k < count; ++k)
    if (parts[k].bytes != size || parts[k].distance != size) return nullptr;
  return size == 1   ? InterleaveOf<uint8_t>(count)
         : size == 2 ? InterleaveOf<uint16_t>(count)
         : size == 4 ? InterleaveOf<uint32_t>(count)
         : size == 8 ? InterleaveOf<uint64_t>(count)
                     : nullptr;
}

void CopyRows(const Rows* parts, int64_t count, int64_t begin, int64_t end, char* to) {
  for (int64_t row = begin; row < end; ++row)
    for (int64_t k = 0; k < count; to += parts[k++].bytes)
      std::memcpy(to, parts[k].data + row * parts[k].distance, static_cast<size_t>(parts[k].bytes));
}

// Rows of the result one after the other: memory is written in its order, as torch has it.
bool JoinRows(const MicaCall* call, MicaTensorSpan list, int32_t dim, const TensorRef& to) {
  if (dim == 0 || !to.contiguous() || list.size > kMostParts) return false;
  Rows parts[kMostParts];
  const int64_t size = to.itemsize();
  int64_t rows = 1, bytes = 0, n = 0;
  for (int32_t d = 0; d < dim; ++d) rows *= to.size(d);
  for (int64_t i = 0; i < list.size; ++i) {
    const TensorRef t(list.data[i]);
    if (t.numel() == 0) continue;
    const int64_t distance = RowDistance(t, dim);
    const char* end = to.data<char>() + to.numel() * size;
    parts[n] = {t.data<char>(), t.numel() / rows * size, distance * size};
    const char* last = parts[n].data + (rows - 1) * parts[n].distance + parts[n].bytes;
    const bool apart = parts[n].data >= end || last <= to.data<char>();
    if (distance < 0 || t.dtype() != to.dtype() || !apart) return false;
    bytes += parts[n++].bytes;
  }
  if (n == 0) return true;
  const InterleaveRows interleave = InterleaveOf(parts, n, size);
  ParallelSteps(rows, std::max<int64_t>(1, kGrainBytes / bytes), 1, ThreadsOf(call),
                [&](int64_t begin, int64_t end) {
                  char* at = to.data<char>() + begin * bytes;
                  if (interleave != nullptr)
                    interleave(parts, begin, end, at);
                  else
                    CopyRows(parts, n, begin, end, at);
                });
  return true;
}

// The same with the dimensions in the order of the result's memory, as where channels come last.
bool JoinRowsOfMemory(const MicaCall* call, MicaTensorSpan list, int32_t dim, MicaTensor* out) {
  const TensorRef to(out);
  const int32_t n = to.ndim();
  if (to.contiguous()) return JoinRows(call, list, dim, to);
  if (n > kMaxDims || list.size > kMostParts) return false;
  int32_t order[kMaxDims];
  for (int32_t d = 0; d < n; ++d) order[d] = d;
  std::stable_sort(order, order + n, [&](int32_t a, int32_t b) { return to.stride(a) > to.stride(b); });
  std::deque<Part> parts;
  const auto reordered = [&](MicaTensor* tensor) {
    const TensorRef t(tensor);
    int64_t sizes[kMaxDims], strides[kMaxDims];
    for (int32_t k = 0; k < n; ++k) sizes[k] = t.size(order[k]), strides[k] = t.stride(order[k]);
    return parts.emplace_back(tensor, n, sizes, strides, 0).get();
  };
  MicaTensor* faces[kMostParts];
  int64_t count = 0;
  for (int64_t i = 0; i < list.size; ++i)
    if (TensorRef(list.data[i]).numel() > 0) faces[count++] = reordered(list.data[i]);
  const TensorRef whole(reordered(out));
  const auto place = static_cast<int32_t>(std::find(order, order + n, dim) - order);
  return whole.contiguous() && JoinRows(call, {faces, count}, place, whole);
}

void JoinAlong(const MicaCall* call, MicaTensorSpan list, int64_t dim, MicaTensor* out) {
  const TensorRef to(out);
  const auto d = static_cast<int>(dim < 0 ? dim + to.ndim() : dim);
  if (JoinRowsOfMemory(call, list, d, out)) return;
  int64_t at = 0;
  for (int64_t i = 0; i < list.size; ++i) {
    const TensorRef t(list.data[i]);
    if (t.ndim() == 1 && t.numel() == 0 && to.ndim() != 1) continue;  // the empty tensor that torch lets pass
    Part part(out, to.ndim(), t.sizes(), to.strides(), at * to.stride(d));
    Copy(call, list.data[i], part);
    at += t.size(d);
  }
}

void JoinNew(const MicaCall* call, MicaTensorSpan list, int64_t dim, MicaTensor* out) {
  const TensorRef to(out);
  const auto d = static_cast<int32_t>(dim < 0 ? dim + to.ndim() : dim);
  int64_t strides[kMaxDims];
  if (to.ndim() > kMaxDims) throw plugin::NotImplemented();
  std::copy_n(to.strides(), d, strides);
  std::copy(to.strides() + d + 1, to.strides() + to.ndim(), strides + d);
  for (int64_t i = 0; i < list.size; ++i) {
    Part part(out, to.ndim() - 1, TensorRef(list.data[i]).sizes(), strides, i * to.stride(d));
    Copy(call, list.data[i], part);
  }
}

// The rows of a dense block matrix in the order of memory: zeros, a row of the block, zeros.
bool JoinBlocks(MicaTensorSpan list, const TensorRef& to) {
  if (!to.contiguous()) return false;
  for (int64_t i = 0; i < list.size; ++i) {
    const TensorRef t(list.data[i]);
    const char* end = to.data<char>() + to.numel() * to.itemsize();
    const bool apart = t.data<char>() >= end || t.data<char>() + t.numel() * t.itemsize() <= to.data<char>();
    if (!t.contiguous() || t.ndim() > 2 || t.dtype() != to.dtype() || !apart) return false;
  }
  const auto size = static_cast<size_t>(to.itemsize()), pitch = static_cast<size_t>(to.size(1)) * size;
  char* at = to.data<char>();
  size_t column = 0;
  for (int64_t i = 0; i < list.size; ++i) {
    const TensorRef t(list.data[i]);
    const int64_t rows = t.ndim() == 2 ? t.size(0) : 1;
    const size_t width = static_cast<size_t>(t.ndim() == 0 ? 1 : t.size(-1)) * size;
    const char* from = t.data<char>();
    for (int64_t r = 0; r < rows; ++r, at += pitch, from += width) {
      std::memset(at, 0, column);
      if (width > 0) std::memcpy(at + column, from, width);
      std::memset(at + column + width, 0, pitch - column - width);
    }
    column += width;
  }
  return true;
}

void JoinDiagonal(const MicaCall* call, MicaTensorSpan list, MicaTensor* out) {
  const TensorRef to(out);
  if (JoinBlocks(list, to)) return;
  const int64_t zeros[2] = {};
  CopyStrided(to.itemsize(), 2, to.sizes(), zeros, zeros, to.data<void>(), to.strides(), ThreadsOf(call));
  int64_t row = 0, column = 0;
  for (int64_t i = 0; i < list.size; ++i) {
    const TensorRef t(list.data[i]);
    const int64_t sizes[2] = {t.ndim() == 2 ? t.size(0) : 1, t.ndim() == 0 ? 1 : t.size(-1)};
    Part part(out, 2, sizes, to.strides(), row * to.stride(0) + column * to.stride(1));
    Copy(call, list.data[i], part);
    row += sizes[0];
    column += sizes[1];
  }
}

}  // namespace

void RunFold(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs, int64_t) {
  const MicaProgram& program = *call->program;
  const MicaTensorSpan list = args[program.data_arg].u.tensors;
  const int64_t dim = program.dims_arg < 0 ? 0 : args[program.dims_arg].u.i;
  if (program.join == MICA_JOIN_ALONG)
    JoinAlong(call, list, dim, outputs[0]);
  else if (program.join == MICA_JOIN_NEW)
    JoinNew(call, list, dim, outputs[0]);
  else
    JoinDiagonal(call, list, outputs[0]);
}

}  // namespace mica::cpu
