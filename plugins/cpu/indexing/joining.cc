// The class kernel "fold": cat, stack and block_diag. Each tensor of the list is copied into
// its part of the result, whose face stands on the stack: no tensor object is made for it.
#include <algorithm>
#include <cstring>

#include "mica/plugins/cpu/contraction/dense.h"
#include "mica/plugins/cpu/engine/copy.h"
#include "mica/plugins/cpu/engine/iteration.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/indexing/indexing.h"
#include "mica/program.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

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

void JoinAlong(const MicaCall* call, MicaTensorSpan list, int64_t dim, MicaTensor* out) {
  const TensorRef to(out);
  const auto d = static_cast<int>(dim < 0 ? dim + to.ndim() : dim);
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

void JoinDiagonal(const MicaCall* call, MicaTensorSpan list, MicaTensor* out) {
  const TensorRef to(out);
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
