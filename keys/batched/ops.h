// The operators that rules call: each a function of its name that takes all arguments of its schema, or those
// that a rule gives, over <mica/calls.h>. A rule calls them in the frame's parent.
#pragma once

#include <mica/calls.h>

#include <optional>
#include <string_view>

namespace mica::batched::ops {

using formula::Device;
using formula::DType;
using formula::IntSpan;
using formula::Layout;
using formula::MemoryFormat;
using formula::Scalar;
using formula::Tensor;
using formula::TensorSpan;
using layer::Function;

inline Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                    const Scalar& alpha) {
  static const Function<Tensor(Tensor, Tensor, Tensor, Scalar, Scalar)> op("mica::addmm");
  return op(self, mat1, mat2, beta, alpha);
}
inline Tensor all(const Tensor& self) {
  static const Function<Tensor(Tensor)> op("mica::all");
  return op(self);
}
inline Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, int64_t storage_offset) {
  static const Function<Tensor(Tensor, IntSpan, IntSpan, std::optional<int64_t>)> op("mica::as_strided");
  return op(self, size, stride, storage_offset);
}
inline Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                      const Scalar& alpha) {
  static const Function<Tensor(Tensor, Tensor, Tensor, Scalar, Scalar)> op("mica::baddbmm");
  return op(self, batch1, batch2, beta, alpha);
}
inline void _become_view_(const Tensor& self, const Tensor& view, std::string_view name) {
  static const Function<void(Tensor, Tensor, std::string_view)> op("mica::_become_view_");
  op(self, view, name);
}
inline Tensor cat(TensorSpan tensors, int64_t dim) {
  static const Function<Tensor(TensorSpan, int64_t)> op("mica::cat");
  return op(tensors, dim);
}
inline Tensor clamp_min(const Tensor& self, const Scalar& min) {
  static const Function<Tensor(Tensor, Scalar)> op("mica::clamp_min");
  return op(self, min);
}
inline Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  static const Function<Tensor(Tensor, std::optional<MemoryFormat>)> op("mica::clone");
  return op(self, memory_format);
}
inline Tensor constant_pad_nd(const Tensor& self, IntSpan pad, const Scalar& value) {
  static const Function<Tensor(Tensor, IntSpan, Scalar)> op("mica::constant_pad_nd");
  return op(self, pad, value);
}
inline void copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  static const Function<void(Tensor, Tensor, bool)> op("mica::copy_");
  op(self, src, non_blocking);
}
inline Tensor detach(const Tensor& self) {
  static const Function<Tensor(Tensor)> op("mica::detach");
  return op(self);
}
inline Tensor div(const Tensor& self, const Tensor& other) {
  static const Function<Tensor(Tensor, Tensor)> op("mica::div.Tensor");
  return op(self, other);
}
inline Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                        bool scale_grad_by_freq, bool sparse) {
  static const Function<Tensor(Tensor, Tensor, int64_t, bool, bool)> op("mica::embedding");
  return op(weight, indices, padding_idx, scale_grad_by_freq, sparse);
}
inline Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                       int64_t padding_idx, bool scale_grad_by_freq) {
  static const Function<Tensor(Tensor, Tensor, int64_t, int64_t, bool)> op("mica::embedding_dense_backward");
  return op(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq);
}
inline Tensor eq(const Tensor& self, const Scalar& other) {
  static const Function<Tensor(Tensor, Scalar)> op("mica::eq.Scalar");
  return op(self, other);
}
inline Tensor eq(const Tensor& self, const Tensor& other) {
  static const Function<Tensor(Tensor, Tensor)> op("mica::eq.Tensor");
  return op(self, other);
}
inline Tensor expand(const Tensor& self, IntSpan size, bool implicit) {
  static const Function<Tensor(Tensor, IntSpan, bool)> op("mica::expand");
  return op(self, size, implicit);
}
inline Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad) {
  static const Function<Tensor(Tensor, int64_t, Tensor, bool)> op("mica::gather");
  return op(self, dim, index, sparse_grad);
}
inline Tensor _index(const Tensor& self, TensorSpan indices) {
  static const Function<Tensor(Tensor, TensorSpan)> op("mica::_index");
  return op(self, indices);
}
inline Tensor _index_put(const Tensor& self, TensorSpan indices, const Tensor& values, bool accumulate) {
  static const Function<Tensor(Tensor, TensorSpan, Tensor, bool)> op("mica::_index_put");
  return op(self, indices, values, accumulate);
}
inline Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  static const Function<Tensor(Tensor, int64_t, Tensor)> op("mica::index_select");
  return op(self, dim, index);
}
inline Scalar item(const Tensor& self) {
  static const Function<Scalar(Tensor)> op("mica::item");
  return op(self);
}
inline Scalar _local_scalar_dense(const Tensor& self) {
  static const Function<Scalar(Tensor)> op("mica::_local_scalar_dense");
  return op(self);
}
inline Tensor matmul(const Tensor& self, const Tensor& other) {
  static const Function<Tensor(Tensor, Tensor)> op("mica::matmul");
  return op(self, other);
}
inline Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  static const Function<Tensor(Tensor, int64_t, int64_t)> op("mica::movedim.int");
  return op(self, source, destination);
}
inline Tensor movedim(const Tensor& self, IntSpan source, IntSpan destination) {
  static const Function<Tensor(Tensor, IntSpan, IntSpan)> op("mica::movedim.intlist");
  return op(self, source, destination);
}
inline Tensor mul(const Tensor& self, const Scalar& other) {
  static const Function<Tensor(Tensor, Scalar)> op("mica::mul.Scalar");
  return op(self, other);
}
inline Tensor mul(const Tensor& self, const Tensor& other) {
  static const Function<Tensor(Tensor, Tensor)> op("mica::mul.Tensor");
  return op(self, other);
}
inline Tensor ne(const Tensor& self, const Scalar& other) {
  static const Function<Tensor(Tensor, Scalar)> op("mica::ne.Scalar");
  return op(self, other);
}
inline Tensor neg(const Tensor& self) {
  static const Function<Tensor(Tensor)> op("mica::neg");
  return op(self);
}
inline Tensor permute(const Tensor& self, IntSpan dims) {
  static const Function<Tensor(Tensor, IntSpan)> op("mica::permute");
  return op(self, dims);
}
inline Tensor reshape(const Tensor& self, IntSpan shape) {
  static const Function<Tensor(Tensor, IntSpan)> op("mica::reshape");
  return op(self, shape);
}
inline Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  static const Function<Tensor(Tensor, int64_t, Tensor, Tensor)> op("mica::scatter.src");
  return op(self, dim, index, src);
}
inline Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  static const Function<Tensor(Tensor, int64_t, Tensor, Tensor)> op("mica::scatter_add");
  return op(self, dim, index, src);
}
inline Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  static const Function<Tensor(Tensor, int64_t, int64_t)> op("mica::select.int");
  return op(self, dim, index);
}
inline Tensor slice(const Tensor& self, int64_t dim, int64_t start, int64_t end, int64_t step) {
  static const Function<Tensor(Tensor, int64_t, std::optional<int64_t>, std::optional<int64_t>, int64_t)> op(
      "mica::slice.Tensor");
  return op(self, dim, start, end, step);
}
inline Tensor squeeze(const Tensor& self, int64_t dim) {
  static const Function<Tensor(Tensor, int64_t)> op("mica::squeeze.dim");
  return op(self, dim);
}
inline Tensor squeeze(const Tensor& self, IntSpan dim) {
  static const Function<Tensor(Tensor, IntSpan)> op("mica::squeeze.dims");
  return op(self, dim);
}
inline Tensor stack(TensorSpan tensors, int64_t dim) {
  static const Function<Tensor(TensorSpan, int64_t)> op("mica::stack");
  return op(tensors, dim);
}
inline Tensor t(const Tensor& self) {
  static const Function<Tensor(Tensor)> op("mica::t");
  return op(self);
}
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  static const Function<Tensor(Tensor, int64_t, int64_t)> op("mica::transpose.int");
  return op(self, dim0, dim1);
}
inline Tensor unsqueeze(const Tensor& self, int64_t dim) {
  static const Function<Tensor(Tensor, int64_t)> op("mica::unsqueeze");
  return op(self, dim);
}
inline Tensor view(const Tensor& self, IntSpan size) {
  static const Function<Tensor(Tensor, IntSpan)> op("mica::view");
  return op(self, size);
}
inline Tensor where(const Tensor& condition, const Tensor& self, const Scalar& other) {
  static const Function<Tensor(Tensor, Tensor, Scalar)> op("mica::where.ScalarOther");
  return op(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Scalar& self, const Tensor& other) {
  static const Function<Tensor(Tensor, Scalar, Tensor)> op("mica::where.ScalarSelf");
  return op(condition, self, other);
}
inline Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other) {
  static const Function<Tensor(Tensor, Tensor, Tensor)> op("mica::where.self");
  return op(condition, self, other);
}

inline Tensor add(const Tensor& self, const Tensor& other) {
  static const Function<Tensor(Tensor, Tensor, Scalar)> op("mica::add.Tensor");
  return op(self, other, Scalar(1));
}
inline Tensor amax(const Tensor& self, IntSpan dim = {}) {
  static const Function<Tensor(Tensor, IntSpan, bool)> op("mica::amax");
  return op(self, dim, false);
}
inline Tensor amin(const Tensor& self) {
  static const Function<Tensor(Tensor, IntSpan, bool)> op("mica::amin");
  return op(self, IntSpan(), false);
}
inline Tensor arange(const Scalar& end, DType dtype, Device device) {
  static const Function<Tensor(Scalar, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
                               std::optional<bool>)>
      op("mica::arange");
  return op(end, dtype, std::nullopt, device, std::nullopt);
}
inline Tensor cumsum(const Tensor& self, int64_t dim) {
  static const Function<Tensor(Tensor, int64_t, std::optional<DType>)> op("mica::cumsum");
  return op(self, dim, std::nullopt);
}
inline Tensor empty_strided(IntSpan size, IntSpan stride, DType dtype, Device device) {
  static const Function<Tensor(IntSpan, IntSpan, std::optional<DType>, std::optional<Layout>,
                               std::optional<Device>, std::optional<bool>)>
      op("mica::empty_strided");
  return op(size, stride, dtype, std::nullopt, device, std::nullopt);
}
inline Tensor ones(IntSpan size, DType dtype, Device device) {
  static const Function<Tensor(IntSpan, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
                               std::optional<bool>)>
      op("mica::ones");
  return op(size, dtype, std::nullopt, device, std::nullopt);
}
inline Tensor sum(const Tensor& self, IntSpan dim) {
  static const Function<Tensor(Tensor, std::optional<IntSpan>, bool, std::optional<DType>)> op(
      "mica::sum.dim_IntList");
  return op(self, dim, false, std::nullopt);
}
inline Tensor to(const Tensor& self, DType dtype) {
  static const Function<Tensor(Tensor, DType, bool, bool, std::optional<MemoryFormat>)> op("mica::to.dtype");
  return op(self, dtype, false, false, std::nullopt);
}
inline Tensor zeros(IntSpan size, DType dtype, Device device) {
  static const Function<Tensor(IntSpan, std::optional<DType>, std::optional<Layout>, std::optional<Device>,
                               std::optional<bool>)>
      op("mica::zeros");
  return op(size, dtype, std::nullopt, device, std::nullopt);
}

}  // namespace mica::batched::ops
