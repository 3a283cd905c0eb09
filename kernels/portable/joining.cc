// The class kernel of folds: tensors of a list copied into parts of one, one after
// the other, in a new dimension or as blocks on the diagonal.
#include <mica/program.h>
#include "dispatcher/devices/device_copy.h"
#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/operator_spec.h"
#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

// A part of `out` that a tensor of the list is copied to, by the backend's own copy_.
Tensor Part(const Tensor& out, IntSpan sizes, IntSpan strides, int64_t element_offset) {
  const auto* base = static_cast<const char*>(out.impl()->storage->data());
  const int64_t offset = out.data_as<char>() - base + element_offset * out.itemsize();
  return MakeView(out, sizes, strides, offset, /*detached=*/true);
}

void JoinAlong(TensorSpan tensors, int64_t dim, const Tensor& out) {
  const int64_t d = Wrapped(dim, out.ndim());
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (t.ndim() == 1 && t.numel() == 0 && out.ndim() != 1)
      continue;  // the empty tensor that torch lets pass
    if (t.numel() > 0) CopyValues(Part(out, t.sizes(), out.strides(), at * out.strides()[d]), t);
    at += t.sizes()[d];
  }
}

void JoinNew(TensorSpan tensors, int64_t dim, const Tensor& out) {
  const int64_t d = dim < 0 ? dim + out.ndim() : dim;
  Dims strides = ToDims(out.strides());
  strides.erase(strides.begin() + d);
  for (int64_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].numel() > 0)
      CopyValues(Part(out, tensors[i].sizes(), strides, i * out.strides()[d]), tensors[i]);
}

void JoinDiagonal(TensorSpan tensors, const Tensor& out) {
  if (out.is_contiguous()) {
    if (out.numel() > 0)
      std::memset(out.data_as<char>(), 0, static_cast<size_t>(out.numel() * out.itemsize()));
  } else {
    VisitSize(out.itemsize(), [&]<typename T>() {
      for (int64_t o : AllOffsets(out)) std::memset(out.data_as<char>() + o, 0, sizeof(T));
    });
  }
  int64_t row = 0, column = 0;
  for (const Tensor& t : tensors) {
    const int64_t rows = t.ndim() == 2 ? t.sizes()[0] : 1;
    const int64_t columns = t.ndim() == 0 ? 1 : t.sizes()[t.ndim() - 1];
    const Tensor part =
        Part(out, {rows, columns}, out.strides(), row * out.strides()[0] + column * out.strides()[1]);
    if (t.numel() > 0) CopyValues(part, t);
    row += rows;
    column += columns;
  }
}

MicaStatus RunFold(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                   int64_t) {
  return CatchAll([&] {
    const MicaProgram& p = *call->program;
    const Tensor& out = Tensor::Ref(outputs[0]);
    const MicaTensorSpan list = args[p.data_arg].u.tensors;
    const TensorSpan tensors(reinterpret_cast<const Tensor*>(list.data), list.size);
    const int64_t dim = p.dims_arg < 0 ? 0 : args[p.dims_arg].u.i;
    if (p.join == MICA_JOIN_ALONG)
      JoinAlong(tensors, dim, out);
    else if (p.join == MICA_JOIN_NEW)
      JoinNew(tensors, dim, out);
    else
      JoinDiagonal(tensors, out);
  });
}

[[maybe_unused]] const bool kRegistered = [] {
  SetPortableClass(OpClass::kFold, &RunFold);
  return true;
}();

}  // namespace
}  // namespace mica::portable
