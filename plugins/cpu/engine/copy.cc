// copy_: writes one tensor into another, broadcast and converted.
//
// The same dtype moves bytes: dense memory by memcpy in parallel, a transposition by
// transpose.h, anything else row by row. A conversion is the pointwise
// program "load, store", whose casts are casts.cc's.
#include "plugins/cpu/engine/copy.h"

#include <algorithm>
#include <cstring>

#include <mica/overlap.h>
#include <mica/plugin.h>
#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/engine/transpose.h"
#include "plugins/cpu/kernels.h"

namespace mica::cpu {
namespace {

constexpr int64_t kGrainBytes = int64_t{1} << 18;
// Rows of the destination that are worth a call each.
constexpr int64_t kLongRowBytes = 128;
// The dimension along which the source is dense while the destination is not, or
// -1: together with the last dimension, a matrix to transpose.
int TransposedDim(const Iteration& it) {
  const Operand& dst = it.operands[0];
  const Operand& src = it.operands[1];
  const int last = it.ndim - 1;
  if (it.ndim < 2 || dst.strides[last] != dst.size || src.strides[last] == src.size || src.strides[last] == 0)
    return -1;
  for (int d = 0; d < last; ++d) {
    if (src.strides[d] == src.size && it.sizes[d] >= 8) return d;
  }
  return -1;
}

void CopyTransposed(const Iteration& it, int dim, int32_t threads) {
  const Operand& dst = it.operands[0];
  const Operand& src = it.operands[1];
  const int last = it.ndim - 1;
  const int64_t rows = it.sizes[dim];
  const int64_t columns = it.sizes[last];
  // The other dimensions, and the bands of `dim`, make the parallel space.
  Iteration rest;
  int64_t sizes[kMaxDims], dst_strides[kMaxDims], src_strides[kMaxDims];
  int n = 0;
  for (int d = 0; d < last; ++d) {
    if (d == dim) continue;
    sizes[n] = it.sizes[d];
    dst_strides[n] = dst.strides[d];
    src_strides[n++] = src.strides[d];
  }
  rest.SetSizes(sizes, n);
  rest.Add(dst.data, dst.size, dst_strides);
  rest.Add(src.data, src.size, src_strides);
  rest.Normalize();
  const int64_t band = std::max<int64_t>(16, kTransposeBytes / dst.size);
  const int64_t bands = (rows + band - 1) / band;
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (band * columns * dst.size));
  ParallelSteps(rest.numel * bands, grain, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i % bands * band;
      Transpose(dst.size, rest.operands[0].data + rest.Offset(0, i / bands) + r * dst.strides[dim],
                dst.strides[dim], rest.operands[1].data + rest.Offset(1, i / bands) + r * src.size,
                src.strides[last], std::min(band, rows - r), columns);
    }
  });
}

// Operand 1 into operand 0.
void CopyBytes(Iteration& it, int32_t threads) {
  if (it.numel == 0) return;
  it.Normalize();
  const Operand& to = it.operands[0];
  const Operand& from = it.operands[1];
  if (to.data == from.data && std::equal(to.strides, to.strides + it.ndim, from.strides)) return;
  if (const int dim = TransposedDim(it); dim >= 0) return CopyTransposed(it, dim, threads);
  const int64_t size = to.size, inner = it.sizes[it.ndim - 1] * size;
  const bool long_rows = to.strides[it.ndim - 1] == size && inner >= kLongRowBytes;
  ParallelSteps(it.numel, kGrainBytes / size, 64, threads, [&](int64_t begin, int64_t end) {
    if (to.flat && from.flat) {
      std::memmove(to.data + begin * size, from.data + begin * size,
                   static_cast<size_t>((end - begin) * size));
    } else if (to.flat) {
      it.Pack(1, 0, begin, end - begin, to.data + begin * size);
    } else if (from.flat) {
      it.Unpack(0, 0, begin, end - begin, from.data + begin * size);
    } else if (long_rows) {
      const int64_t width = it.sizes[it.ndim - 1];
      for (int64_t p = begin, n; p < end; p += n) {
        n = std::min(end - p, width - p % width);
        it.Pack(1, 0, p, n, to.data + it.Offset(0, p));
      }
    } else {
      alignas(64) char buffer[16384];
      for (int64_t p = begin; p < end;) {
        const int64_t n = std::min<int64_t>(end - p, static_cast<int64_t>(sizeof(buffer)) / size);
        it.Pack(1, 0, p, n, buffer);
        it.Unpack(0, 0, p, n, buffer);
        p += n;
      }
    }
  });
}

constexpr int32_t kFirst[] = {0};
constexpr MicaInstruction kLoadStore[] = {{MICA_OP_LOAD, 0, 0, 0, 0, 0}, {MICA_OP_STORE, 255, 0, 0, 0, 0}};
constexpr MicaInstruction kLoadTestStore[] = {
    {MICA_OP_LOAD, 0, 0, 0, 0, 0}, {MICA_OP_TO_MASK, 1, 0, 0, 0, 0}, {MICA_OP_STORE, 255, 1, 0, 0, 0}};

MicaProgram ConvertProgram(const MicaInstruction* code, int64_t size) {
  MicaProgram program = {};
  program.struct_size = sizeof(program);
  program.class_name = "pointwise";
  program.source = "self";
  program.hint = "";
  program.num_inputs = program.num_outputs = 1;
  program.num_registers = 2;
  program.input_args = kFirst;
  program.main = {code, size};
  program.dims_arg = program.keepdim_arg = -1;
  return program;
}

bool Broadcasts(const MicaTensor* from, const MicaTensor* to) {
  if (from->dl.ndim > to->dl.ndim) return false;
  const int32_t lead = to->dl.ndim - from->dl.ndim;
  for (int32_t d = 0; d < from->dl.ndim; ++d)
    if (from->dl.shape[d] != 1 && from->dl.shape[d] != to->dl.shape[lead + d]) return false;
  return true;
}

// Both lie in the same places, element by element.
bool SamePlace(const MicaTensor* a, const MicaTensor* b) {
  return a->dl.data == b->dl.data && a->dl.ndim == b->dl.ndim &&
         std::equal(a->dl.shape, a->dl.shape + a->dl.ndim, b->dl.shape) &&
         std::equal(a->dl.strides, a->dl.strides + a->dl.ndim, b->dl.strides);
}

bool NumelIsZero(const MicaTensor* t) {
  return std::find(t->dl.shape, t->dl.shape + t->dl.ndim, 0) != t->dl.shape + t->dl.ndim;
}

}  // namespace

void CopyInto(const MicaCall* call, MicaTensor* self, MicaTensor* src, int32_t) {
  const int32_t to = DtypeOf(self);
  const int32_t from = DtypeOf(src);
  if (!Broadcasts(src, self)) throw plugin::NotImplemented();  // the portable kernel says what is wrong
  if (NumelIsZero(self)) return;
  if (!(to == from && SamePlace(self, src)) && MayShareBytes(self->dl, src->dl)) {
    // What overlaps is read whole before it is written.
    const plugin::OwnedTensor whole =
        plugin::OwnedTensor::Empty(src->dl.shape, src->dl.ndim, from, MicaDevice{0, 0});
    CopyInto(call, whole.get(), src, 0);
    return CopyInto(call, self, whole.get(), 0);
  }
  if (to == from) {
    Iteration it;
    it.SetSizes(self->dl.shape, self->dl.ndim);
    it.Add(self);
    it.Add(src);
    return CopyBytes(it, ThreadsOf(call));
  }
  static const MicaProgram convert = ConvertProgram(kLoadStore, 2);
  static const MicaProgram test = ConvertProgram(kLoadTestStore, 3);
  MicaCall inner = *call;
  inner.program = to == MICA_BOOL && IsComplex(from) ? &test : &convert;
  inner.compute_dtype = IsComplex(from) && !IsComplex(to) ? from : to;
  MicaValue value = {};
  value.tag = MICA_VALUE_TENSOR;
  value.u.tensor = src;
  RunPointwise(&inner, &value, 1, &self, 1);
}

void CopyStrided(int64_t itemsize, int32_t ndim, const int64_t* sizes, const void* src,
                 const int64_t* src_strides, void* dst, const int64_t* dst_strides, int32_t threads) {
  Iteration it;
  if (ndim > kMaxDims) throw plugin::NotImplemented();
  it.SetSizes(sizes, ndim);
  int64_t bytes[kMaxDims];
  const auto add = [&](void* data, const int64_t* strides) {
    for (int32_t d = 0; d < ndim; ++d) bytes[d] = strides[d] * itemsize;
    it.Add(static_cast<char*>(data), itemsize, bytes);
  };
  add(dst, dst_strides);
  add(const_cast<void*>(src), src_strides);
  CopyBytes(it, threads);
}

void RegisterCopy(plugin::Registrar& registrar) { registrar.Kernel<CopyInto>("mica::copy_"); }

}  // namespace mica::cpu
