// The operators that rules call: each a function of its name that takes all arguments of its schema, or those
// that a rule gives, over <mica/formula.h>. A rule calls them in the frame's parent.
#pragma once

#include <mica/formula.h>

#include <optional>
#include <string_view>

namespace mica::batched::ops {

using formula::Device;
using formula::DType;
using formula::IntSpan;
using formula::MemoryFormat;
using formula::Operator;
using formula::Scalar;
using formula::Tensor;
using formula::TensorSpan;

inline Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                    const Scalar& alpha) {
  static const Operator op("mica::addmm");
  return op.Call<Tensor>(self, mat1, mat2, beta, alpha);
}
inline Tensor all(const Tensor& self) {
  static const Operator op("mica::all");
  return op.Call<Tensor>(self);
}
inline Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, int64_t storage_offset) {
  static const Operator op("mica::as_strided");
  return op.Call<Tensor>(self, size, stride, storage_offset);
}
inline Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                      const Scalar& alpha) {
  static const Operator op("mica::baddbmm");
  return op.Call<Tensor>(self, batch1, batch2, beta, alpha);
}
inline void _become_view_(const Tensor& self, const Tensor& view, std::string_view name) {
  static const Operator op("mica::_become_view_");
  op.Call<void>(self, view, name);
}
inline Tensor cat(TensorSpan tensors, int64_t dim) {
  static const Operator op("mica::cat");
  return op.Call<Tensor>(tensors, dim);
}
inline Tensor clamp_min(const Tensor& self, const Scalar& min) {
  static const Operator op("mica::clamp_min");
  return op.Call<Tensor>(self, min);
}
inline Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  static const Operator op("mica::clone");
  return op.Call<Tensor>(self, memory_format);
}
inline Tensor constant_pad_nd(const Tensor& self, IntSpan pad, const Scalar& value) {
  static const Operator op("mica::constant_pad_nd");
  return op.Call<Tensor>(self, pad, value);
}
inline void copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  static const Operator op("mica::copy_");
  op.Call<void>(self, src, non_blocking);
}
inline Tensor detach(const Tensor& self) {
  static const Operator op("mica::detach");
  return op.Call<Tensor>(self);
}
inline Tensor div(const Tensor& self, const Tensor& other) {
  static const Operator op("mica::div.Tensor");
  return op.Call<Tensor>(self, other);
}
inline Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                        bool scale_grad_by_freq, bool sparse) {
  static const Operator op("mica::embedding");
  return op.Call<Tensor>(weight, indices, padding_idx, scale_grad_by_freq, sparse);
}
inline Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                       int64_t padding_idx, bool scale_grad_by_freq) {
  static const Operator op("mica::embedding_dense_backward");
  return op.Call<Tensor>(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq);
}
inline Tensor eq(const Tensor& self, const Scalar& other) {
  static const Operator op("mica::eq.Scalar");
  return op.Call<Tensor>(self, other);
}
inline Tensor eq(const Tensor& self, const Tensor& other) {
  static const Operator op("mica::eq.Tensor");
  return op.Call<Tensor>(self, other);
}
inline Tensor expand(const Tensor& self, IntSpan size, bool implicit) {
  static const Operator op("mica::expand");
  return op.Call<Tensor>(self, size, implicit);
}
inline Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad) {
  static const Operator op("mica::gather");
  return op.Call<Tensor>(self, dim, index, sparse_grad);
}
inline Tensor _index(const Tensor& self, TensorSpan indices) {
  static const Operator op("mica::_index");
  return op.Call<Tensor>(self, indices);
}
inline Tensor _index_put(const Tensor& self, TensorSpan indices, const Tensor& values, bool accumulate) {
  static const Operator op("mica::_index_put");
  return op.Call<Tensor>(self, indices, values, accumulate);
}
inline Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  static const Operator op("mica::index_select");
  return op.Call<Tensor>(self, dim, index);
}
inline Scalar item(const Tensor& self) {
  static const Operator op("mica::item");
  return op.Call<Scalar>(self);
}
inline Scalar _local_scalar_dense(const Tensor& self) {
  static const Operator op("mica::_local_scalar_dense");
  return op.Call<Scalar>(self);
}
inline Tensor matmul(const Tensor& self, const Tensor& other) {
  static const Operator op("mica::matmul");
  return op.Call<Tensor>(self, other);
}
inline Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  static const Operator op("mica::movedim.int");
  return op.Call<Tensor>(self, source, destination);
}
inline Tensor movedim(const Tensor& self, IntSpan source, IntSpan destination) {
  static const Operator op("mica::movedim.intlist");
  return op.Call<Tensor>(self, source, destination);
}
inline Tensor mul(const Tensor& self, const Scalar& other) {
  static const Operator op("mica::mul.Scalar");
  return op.Call<Tensor>(self, other);
}
inline Tensor mul(const Tensor& self, const Tensor& other) {
  static const Operator op("mica::mul.Tensor");
  return op.Call<Tensor>(self, other);
}
inline Tensor ne(const Tensor& self, const Scalar& other) {
  static const Operator op("mica::ne.Scalar");
  return op.Call<Tensor>(self, other);
}
inline Tensor neg(const Tensor& self) {
  static const Operator op("mica::neg");
  return op.Call<Tensor>(self);
}
inline Tensor permute(const Tensor& self, IntSpan dims) {
  static const Operator op("mica::permute");
  return op.Call<Tensor>(self, dims);
}
inline Tensor reshape(const Tensor& self, IntSpan shape) {
  static const Operator op("mica::reshape");
  return op.Call<Tensor>(self, shape);
}
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  static const Operator op("mica::scatter.src");
  return op.Call<Tensor>(self, dim, index, src);
}
inline Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  static const Operator op("mica::scatter_add");
  return op.Call<Tensor>(self, dim, index, src);
}
inline Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  static const Operator op("mica::select.int");
  return op.Call<Tensor>(self, dim, index);
}
inline Tensor slice(const Tensor& self, int64_t dim, int64_t start, int64_t end, int64_t step) {
  static const Operator op("mica::slice.Tensor");
  return op.Call<Tensor>(self, dim, start, end, step);
}
inline Tensor squeeze(const Tensor& self, int64_t dim) {
  static const Operator op("mica::squeeze.dim");
  return op.Call<Tensor>(self, dim);
}
inline Tensor squeeze(const Tensor& self, IntSpan dim) {
  static const Operator op("mica::squeeze.dims");
  return op.Call<Tensor>(self, dim);
}
inline Tensor stack(TensorSpan tensors, int64_t dim) {
  static const Operator op("mica::stack");
  return op.Call<Tensor>(tensors, dim);
}
inline Tensor t(const Tensor& self) {
  static const Operator op("mica::t");
  return op.Call<Tensor>(self);
}
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  static const Operator op("mica::transpose.int");
  return op.Call<Tensor>(self, dim0, dim1);
}
inline Tensor unsqueeze(const Tensor& self, int64_t dim) {
  static const Operator op("mica::unsqueeze");
  return op.Call<Tensor>(self, dim);
}
inline Tensor view(const Tensor& self, IntSpan size) {
  static const Operator op("mica::view");
  return op.Call<Tensor>(self, size);
}
inline Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  static const Operator op("mica::where.ScalarOther");
  return op.Call<Tensor>(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  static const Operator op("mica::where.ScalarSelf");
  return op.Call<Tensor>(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  static const Operator op("mica::where.self");
  return op.Call<Tensor>(condition, self, other);
}

inline Tensor add(const Tensor& self, const Tensor& other) {
  static const Operator op("mica::add.Tensor");
  return op.Call<Tensor>(self, other, Scalar(1));
}
inline Tensor amax(const Tensor& self, IntSpan dim = {}) {
  static const Operator op("mica::amax");
  return op.Call<Tensor>(self, dim, false);
}
inline Tensor amin(const Tensor& self) {
  static const Operator op("mica::amin");
  return op.Call<Tensor>(self, IntSpan(), false);
}
inline Tensor arange(const Scalar& end, DType dtype, Device device) {
  static const Operator op("mica::arange");
  return op.Call<Tensor>(end, dtype, std::nullopt, device, std::nullopt);
}
inline Tensor cumsum(const Tensor& self, int64_t dim) {
  static const Operator op("mica::cumsum");
  return op.Call<Tensor>(self, dim, std::nullopt);
}
inline Tensor empty_strided(IntSpan size, IntSpan stride, DType dtype, Device device) {
  static const Operator op("mica::empty_strided");
  return op.Call<Tensor>(size, stride, dtype, std::nullopt, device, std::nullopt);
}
inline Tensor ones(IntSpan size, DType dtype, Device device) {
  static const Operator op("mica::ones");
  return op.Call<Tensor>(size, dtype, std::nullopt, device, std::nullopt);
}
inline Tensor sum(const Tensor& self, IntSpan dim) {
  static const Operator op("mica::sum.dim_IntList");
  return op.Call<Tensor>(self, dim, false, std::nullopt);
}
inline Tensor to(const Tensor& self, DType dtype) {
  static const Operator op("mica::to.dtype");
  return op.Call<Tensor>(self, dtype, false, false, std::nullopt);
}
inline Tensor zeros(IntSpan size, DType dtype, Device device) {
  static const Operator op("mica::zeros");
  return op.Call<Tensor>(size, dtype, std::nullopt, device, std::nullopt);
}

}  // namespace mica::batched::ops
