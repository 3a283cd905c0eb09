// cat, stack and block_diag: tensors copied into parts of one.
#include "mica/kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

// `out` from `start` on in dimension `dim`, with the sizes of `like`: written to
// by copy_.
Tensor Part(const Tensor& out, IntSpan sizes, IntSpan strides, int64_t element_offset) {
  const auto* base = static_cast<const char*>(out.impl()->storage->data());
  const int64_t offset = out.data_as<char>() - base + element_offset * out.itemsize();
  return MakeView(out, sizes, strides, offset, /*detached=*/true);
}

}  // namespace

void cat(TensorSpan tensors, int64_t dim, const Tensor& out) {
  const int64_t d = Wrapped(dim, out.ndim());
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (t.ndim() == 1 && t.numel() == 0 && out.ndim() != 1)
      continue;  // the empty tensor that torch lets pass
    if (t.numel() > 0) copy_(Part(out, t.sizes(), out.strides(), at * out.strides()[d]), t, false);
    at += t.sizes()[d];
  }
}

void stack(TensorSpan tensors, int64_t dim, const Tensor& out) {
  const int64_t d = dim < 0 ? dim + out.ndim() : dim;
  Dims strides = ToDims(out.strides());
  strides.erase(strides.begin() + d);
  for (int64_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].numel() > 0)
      copy_(Part(out, tensors[i].sizes(), strides, i * out.strides()[d]), tensors[i], false);
}

void block_diag(TensorSpan tensors, const Tensor& out) {
  VisitSize(out.itemsize(), [&]<typename T>() {
    for (int64_t o : AllOffsets(out)) std::memset(out.data_as<char>() + o, 0, sizeof(T));
  });
  int64_t row = 0, column = 0;
  for (const Tensor& t : tensors) {
    const int64_t rows = t.ndim() == 2 ? t.sizes()[0] : 1;
    const int64_t columns = t.ndim() == 0 ? 1 : t.sizes()[t.ndim() - 1];
    const Tensor part =
        Part(out, {rows, columns}, out.strides(), row * out.strides()[0] + column * out.strides()[1]);
    if (t.numel() > 0) copy_(part, t, false);
    row += rows;
    column += columns;
  }
}

}  // namespace mica::portable
