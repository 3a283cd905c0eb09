// Parts of gradient formulas, as operators: views, joining, indexing, products.
#include <algorithm>

#include "mica/kernels/composite/composite_helpers.h"
#include "mica/ops/_index_put.h"
#include "mica/ops/_to_copy.h"
#include "mica/ops/adjoint.h"
#include "mica/ops/arange.h"
#include "mica/ops/as_strided.h"
#include "mica/ops/clamp_min.h"
#include "mica/ops/conj.h"
#include "mica/ops/constant_pad_nd.h"
#include "mica/ops/copy_.h"
#include "mica/ops/diagonal.h"
#include "mica/ops/div.h"
#include "mica/ops/embedding.h"
#include "mica/ops/eq.h"
#include "mica/ops/expand.h"
#include "mica/ops/flatten.h"
#include "mica/ops/gather.h"
#include "mica/ops/index_add.h"
#include "mica/ops/index_select.h"
#include "mica/ops/linalg_solve_triangular.h"
#include "mica/ops/masked_fill.h"
#include "mica/ops/masked_scatter.h"
#include "mica/ops/masked_select.h"
#include "mica/ops/matmul.h"
#include "mica/ops/mm.h"
#include "mica/ops/mul.h"
#include "mica/ops/narrow.h"
#include "mica/ops/neg.h"
#include "mica/ops/permute.h"
#include "mica/ops/reciprocal.h"
#include "mica/ops/reshape.h"
#include "mica/ops/roll.h"
#include "mica/ops/scatter.h"
#include "mica/ops/scatter_add.h"
#include "mica/ops/select.h"
#include "mica/ops/slice.h"
#include "mica/ops/t.h"
#include "mica/ops/tril.h"
#include "mica/ops/triu.h"
#include "mica/ops/unbind.h"
#include "mica/ops/unsqueeze.h"

namespace mica::composite {

Tensor select_backward(const Tensor& grad_output, IntSpan input_sizes, int64_t dim, int64_t index) {
  const Tensor grad = ZerosLike(grad_output, input_sizes);
  ops::copy_(ops::select(grad, dim, index), grad_output, false);
  return grad;
}
Tensor _slice_backward(const Tensor& grad_output, IntSpan sizes, int64_t dim, std::optional<int64_t> start,
                       std::optional<int64_t> end, int64_t step) {
  const Tensor grad = ZerosLike(grad_output, sizes);
  ops::copy_(ops::slice(grad, dim, start, end, step), grad_output, false);
  return grad;
}
Tensor slice_backward(const Tensor& grad_output, IntSpan input_sizes, int64_t dim, int64_t start, int64_t end,
                      int64_t step) {
  return _slice_backward(grad_output, input_sizes, dim, start, end, step);
}
Tensor diagonal_backward(const Tensor& grad_output, IntSpan input_sizes, int64_t offset, int64_t dim1,
                         int64_t dim2) {
  const Tensor grad = ZerosLike(grad_output, input_sizes);
  ops::copy_(ops::diagonal(grad, offset, dim1, dim2), grad_output, false);
  return grad;
}

Tensor _as_strided_backward(const Tensor& grad, const Tensor& self, IntSpan size, IntSpan stride,
                            std::optional<int64_t> storage_offset) {
  // All in one flat buffer that begins at the smaller of the two offsets.
  const int64_t of_self = self.storage_offset(), of_view = storage_offset.value_or(of_self),
                base = std::min(of_self, of_view);
  MICA_CHECK(size.size() == stride.size() && grad.sizes() == size && of_view >= 0, "Shape ",
             ShapeText(grad.sizes()), " of `grad`, size ", ShapeText(size), ", stride ", ShapeText(stride),
             " and offset (", of_view, ") do not describe one view.");
  const auto extent = [](IntSpan sizes, IntSpan strides) {
    int64_t last = 0;
    for (int64_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    return last + 1;
  };
  if (grad.numel() == 0 || self.numel() == 0) return ZerosLike(grad, self.sizes());
  const int64_t length =
      std::max(of_view - base + extent(size, stride), of_self - base + extent(self.sizes(), self.strides()));
  const Tensor places = ops::as_strided(ops::arange(Scalar(length), DType::kI64, std::nullopt, grad.device()),
                                        size, stride, of_view - base);
  const Tensor flat =
      ops::index_add(ZerosLike(grad, {length}), 0, ops::reshape(places, {-1}), ops::reshape(grad, {-1}));
  const Tensor own = ops::as_strided(ops::arange(Scalar(length), DType::kI64, std::nullopt, grad.device()),
                                     self.sizes(), self.strides(), of_self - base);
  return ops::reshape(ops::index_select(flat, 0, ops::reshape(own, {-1})), self.sizes());
}

Tensor _inverse_permute(const Tensor& self, IntSpan dims) {
  const Dims order = WrapDims(dims, self.ndim());
  MICA_CHECK(dims.size() == self.ndim(), "Number of dims (", dims.size(),
             ") is not the number of dimensions (", self.ndim(), ") of `self`.");
  Dims inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return ops::permute(self, inverse);
}
Tensor _roll_backward(const Tensor& grad, IntSpan shifts, IntSpan dims) {
  Dims back;
  for (const int64_t s : shifts) back.push_back(-s);
  return ops::roll(grad, back, dims);
}
Tensor _unsqueeze_to(const Tensor& grad, IntSpan sizes) { return ops::reshape(grad, sizes); }
Tensor _constant_pad_backward(const Tensor& grad, IntSpan pad) {
  Dims crop;
  for (const int64_t p : pad) crop.push_back(-p);
  return ops::constant_pad_nd(grad, crop, Scalar(0));
}

std::vector<Tensor> _cat_backward(const Tensor& grad, TensorSpan tensors, int64_t dim) {
  dim = WrapDim(dim, grad.ndim());
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (t.ndim() != grad.ndim()) {  // an empty vector among tensors of more dimensions
      pieces.push_back(ZerosLike(grad, t.sizes()));
      continue;
    }
    pieces.push_back(ops::narrow(grad, dim, start, t.sizes()[dim]));
    start += t.sizes()[dim];
  }
  return pieces;
}
std::vector<Tensor> _stack_backward(const Tensor& grad, int64_t dim) { return ops::unbind(grad, dim); }
std::vector<Tensor> _block_diag_backward(const Tensor& grad, TensorSpan tensors) {
  std::vector<Tensor> blocks;
  int64_t row = 0, column = 0;
  for (const Tensor& t : tensors) {
    const int64_t rows = t.ndim() == 2 ? t.sizes()[0] : 1,
                  columns = t.ndim() == 0 ? 1 : t.sizes()[t.ndim() - 1];
    blocks.push_back(
        ops::reshape(ops::narrow(ops::narrow(grad, 0, row, rows), 1, column, columns), t.sizes()));
    row += rows;
    column += columns;
  }
  return blocks;
}

Tensor index_select_backward(const Tensor& grad, IntSpan self_sizes, int64_t dim, const Tensor& index) {
  return ops::index_add(ZerosLike(grad, self_sizes), dim, index, grad);
}
Tensor _gather_backward(const Tensor& grad, IntSpan sizes, int64_t dim, const Tensor& index) {
  return ops::scatter_add(ZerosLike(grad, sizes), dim, index, grad);
}
Tensor _index_backward(const Tensor& grad, IntSpan sizes, TensorSpan indices) {
  return ops::_index_put(ZerosLike(grad, sizes), indices, grad, true);
}
Tensor _index_put_backward_self(const Tensor& grad, TensorSpan indices, bool accumulate) {
  return accumulate ? grad : ops::_index_put(grad, indices, ZerosLike(grad, {}), false);
}

Tensor _masked_select_backward(const Tensor& grad, const Tensor& self, const Tensor& mask) {
  const Dims shape = BroadcastShapes(self.sizes(), mask.sizes(), "self", "mask");
  return ops::masked_scatter(ZerosLike(grad, shape), ops::expand(mask, shape), grad);
}
Tensor _masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntSpan sizes) {
  const Tensor used = ops::masked_select(grad, ops::expand(mask, grad.sizes()));
  const int64_t count = CheckedNumel(sizes);
  const Tensor flat =
      used.numel() == count ? used : ops::constant_pad_nd(used, {0, count - used.numel()}, Scalar(0));
  return ops::reshape(flat, sizes);
}

namespace {
// How much of the result's gradient each candidate gets, and which candidates
// count: for mean all, for amax and amin those that equal the result.
struct Shares {
  Tensor grad;             // for each place of the result
  Tensor of_self, of_src;  // factors; undefined where 1
};
Shares SharesOf(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                std::string_view reduce, bool include_self, const Tensor& result) {
  if (reduce == "sum") return {grad, {}, {}};
  if (reduce == "prod") {
    const Tensor product = ops::mul(grad, result);
    return {product, ops::reciprocal(self), ops::reciprocal(src)};
  }
  const Scalar one(1.0), none(0.0);
  if (reduce == "mean") {
    const Tensor start = FullLike(grad, grad.sizes(), include_self ? one : none);
    const Tensor count =
        ops::clamp_min(ops::scatter_add(start, dim, index, FullLike(grad, src.sizes(), one)), one);
    return {ops::div(grad, count), {}, {}};
  }
  Tensor of_self = Cast(ops::eq(self, result), grad.dtype());
  if (!include_self) of_self = ops::scatter(of_self, dim, index, none);
  const Tensor of_src = Cast(ops::eq(src, ops::gather(result, dim, index)), grad.dtype());
  const Tensor count = ops::clamp_min(ops::scatter_add(of_self, dim, index, of_src), one);
  return {ops::div(grad, count), of_self, of_src};
}
}  // namespace

Tensor _scatter_reduce_backward_self(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                     const Tensor& src, std::string_view reduce, bool include_self,
                                     const Tensor& result) {
  const Shares s = SharesOf(grad, self, dim, index, src, reduce, include_self, result);
  const Tensor g = s.of_self.defined() ? ops::mul(s.grad, s.of_self) : s.grad;
  return include_self ? g : ops::scatter(g, dim, index, Scalar(0.0));
}
Tensor _scatter_reduce_backward_src(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                    const Tensor& src, std::string_view reduce, bool include_self,
                                    const Tensor& result) {
  const Shares s = SharesOf(grad, self, dim, index, src, reduce, include_self, result);
  const Tensor g = ops::gather(s.grad, dim, index);
  return s.of_src.defined() ? ops::mul(g, s.of_src) : g;
}

Tensor _embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                  bool scale_grad_by_freq) {
  Tensor rows = ops::embedding(grad, indices);
  if (scale_grad_by_freq) {  // each row was divided by how often it occurs
    const Tensor flat = ops::reshape(indices, {-1});
    const Tensor count = ops::index_add(ZerosLike(grad, {grad.sizes()[0]}), 0, flat,
                                        FullLike(grad, flat.sizes(), Scalar(1.0)));
    rows = ops::div(rows, ops::embedding(ops::unsqueeze(count, 1), indices));
  }
  if (padding_idx < 0) return rows;
  return ops::masked_fill(rows, ops::unsqueeze(ops::eq(indices, Scalar(padding_idx)), -1), Scalar(0.0));
}

Tensor _mm_backward_self(const Tensor& grad, const Tensor& mat2) {
  return ops::mm(grad, ops::conj(ops::t(mat2)));
}
Tensor _mm_backward_mat2(const Tensor& grad, const Tensor& self) {
  return ops::mm(ops::conj(ops::t(self)), grad);
}
Tensor _to_copy_backward(const Tensor& grad, DType dtype, Device device) {
  return ops::_to_copy(grad, dtype, std::nullopt, device);
}

Tensor _plane_gather(const Tensor& self, const Tensor& indices) {
  return ops::reshape(ops::gather(ops::flatten(self, -2, -1), -1, ops::flatten(indices, -2, -1)),
                      indices.sizes());
}
Tensor _plane_scatter(const Tensor& grad, IntSpan sizes, const Tensor& indices) {
  MICA_CHECK(sizes.size() >= 2, "Number of sizes (", sizes.size(), ") is below 2; expected planes.");
  Dims flat = ToDims(sizes.subspan(0, sizes.size() - 2));
  flat.push_back(sizes[sizes.size() - 2] * sizes[sizes.size() - 1]);
  const Tensor added =
      ops::scatter_add(ZerosLike(grad, flat), -1, ops::flatten(indices, -2, -1), ops::flatten(grad, -2, -1));
  return ops::reshape(added, sizes);
}

Tensor _solve_triangular_backward(const Tensor& grad, const Tensor& self, const Tensor& result, bool upper,
                                  bool left, bool unitriangular) {
  const Tensor of_b = ops::linalg_solve_triangular(ops::adjoint(self), grad, !upper, left, unitriangular);
  const Tensor full =
      ops::neg(left ? ops::matmul(of_b, ops::adjoint(result)) : ops::matmul(ops::adjoint(result), of_b));
  const int64_t shift = unitriangular ? 1 : 0;
  return upper ? ops::triu(full, shift) : ops::tril(full, -shift);
}

}  // namespace mica::composite
