// Through the generated functions, so that each call dispatches.
#include "keys/autograd/engine_ops.h"

#include "dispatcher/frames/frames.h"
#include "mica/ops/_conj.h"
#include "mica/ops/_neg_view.h"
#include "mica/ops/_to_copy.h"
#include "mica/ops/add.h"
#include "mica/ops/any.h"
#include "mica/ops/arange.h"
#include "mica/ops/as_strided.h"
#include "mica/ops/clone.h"
#include "mica/ops/copy_.h"
#include "mica/ops/detach.h"
#include "mica/ops/div.h"
#include "mica/ops/empty_strided.h"
#include "mica/ops/expand.h"
#include "mica/ops/index_add.h"
#include "mica/ops/isnan.h"
#include "mica/ops/item.h"
#include "mica/ops/new_empty_strided.h"
#include "mica/ops/ones_like.h"
#include "mica/ops/real.h"
#include "mica/ops/reshape.h"
#include "mica/ops/sum.h"
#include "mica/ops/view_as_complex.h"
#include "mica/ops/view_as_real.h"
#include "mica/ops/zero.h"
#include "mica/ops/zeros.h"

namespace mica::autograd::ops {

namespace op = ::mica::ops::op;

Tensor Add(const Tensor& a, const Tensor& b) { return op::add_Tensor::call(a, b, Scalar(1)); }
void AddInPlace(const Tensor& a, const Tensor& b) { op::add__Tensor::call(a, b, Scalar(1)); }
Tensor Detach(const Tensor& t) { return ::mica::ops::detach(t); }
Tensor Clone(const Tensor& t) { return op::clone::call(t, std::nullopt); }

Tensor CloneLike(const Tensor& t, const Tensor& layout) {
  if (t.sizes() != layout.sizes()) return Clone(t);
  if (!IsNonOverlappingAndDense(layout.sizes(), layout.strides()))
    return op::clone::call(t, MemoryFormat::kContiguous);
  if (t.strides() == layout.strides()) return Clone(t);
  const Tensor copy = EmptyStrided(layout.sizes(), layout.strides(), t);
  CopyInto(copy, t);
  return copy;
}

void CopyInto(const Tensor& to, const Tensor& from) { op::copy_::call(to, from, false); }
void Zero(const Tensor& t) { op::zero_::call(t); }

Tensor ZerosOf(IntSpan sizes, DType dtype, Device device) {
  return op::zeros::call(sizes, dtype, std::nullopt, device, std::nullopt);
}

Tensor OnesLike(const Tensor& t) {
  // What every backward begins with, without a call, where nobody wants to see it.
  if (t.numel() == 1 && t.device().is_cpu() && (t.dtype() == DType::kF32 || t.dtype() == DType::kF64) &&
      !IsSeen(t)) {
    Tensor one = EmptyTensor(t.sizes(), t.dtype(), t.device());
    if (t.dtype() == DType::kF32)
      *one.data_as<float>() = 1;
    else
      *one.data_as<double>() = 1;
    return frames::Adopt(std::move(one));
  }
  return op::ones_like::call(t, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                             MemoryFormat::kPreserve);
}

Tensor EmptyStrided(IntSpan sizes, IntSpan strides, const Tensor& like) {
  if (__builtin_expect(IsSeen(like), 0))
    return op::new_empty_strided::call(like, sizes, strides, std::nullopt, std::nullopt, std::nullopt,
                                       std::nullopt);
  if (t_state.frame)  // the frame shall see it
    return op::empty_strided::call(sizes, strides, like.dtype(), std::nullopt, like.device(), std::nullopt);
  return ::mica::EmptyStrided(sizes, strides, like.dtype(), like.device());
}

Tensor AsStrided(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset) {
  return op::as_strided::call(t, sizes, strides, offset);
}

Tensor Expand(const Tensor& t, IntSpan sizes) { return op::expand::call(t, sizes, false); }
Tensor ConjView(const Tensor& t) { return op::_conj::call(t); }
Tensor NegView(const Tensor& t) { return op::_neg_view::call(t); }
Tensor ViewAsReal(const Tensor& t) { return op::view_as_real::call(t); }
Tensor ViewAsComplex(const Tensor& t) { return op::view_as_complex::call(t); }
Tensor Real(const Tensor& t) { return op::real::call(t); }

Tensor ToDType(const Tensor& t, DType dtype) {
  return op::_to_copy::call(t, dtype, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt);
}

Tensor ToDevice(const Tensor& t, Device device) {
  return op::_to_copy::call(t, std::nullopt, std::nullopt, device, std::nullopt, false, std::nullopt);
}

Tensor SumToSize(const Tensor& t, IntSpan sizes) {
  const int64_t lead = t.ndim() - sizes.size();
  Dims dims;
  for (int64_t i = 0; i < t.ndim(); ++i)
    if (i < lead || (sizes[i - lead] == 1 && t.sizes()[i] != 1)) dims.push_back(i);
  if (dims.empty()) return t;
  const Tensor sum = op::sum_dim_IntList::call(t, IntSpan(dims), true, std::nullopt);
  return lead == 0 ? sum : op::reshape::call(sum, sizes);
}

bool IsZero(const Tensor& t) {
  Tensor value = t;
  while (frames::IsWrapper(value)) value = Tensor(frames::WrapperOf(value).value);
  if (value.device().is_meta() || value.numel() == 0) return true;
  const KeySet saved = t_state.exclude;
  t_state.exclude = saved | KeySet::Of(keys::kFrame) | KeySet::Of(keys::kAutograd);
  const bool any = op::item::call(op::any::call(value)).ToBool();
  t_state.exclude = saved;
  return !any;
}
bool HasNan(const Tensor& t) { return op::item::call(op::any::call(op::isnan::call(t))).ToBool(); }

Tensor Arange(int64_t size, Device device) {
  return op::arange::call(Scalar(size), DType::kI64, std::nullopt, device, std::nullopt);
}

Tensor IndexAdd(const Tensor& to, const Tensor& index, const Tensor& values) {
  return op::index_add::call(to, 0, index, values, Scalar(1));
}

Tensor Flatten(const Tensor& t) { return op::reshape::call(t, {-1}); }
Tensor Div(const Tensor& a, const Tensor& b) { return op::div_Tensor::call(a, b); }

}  // namespace mica::autograd::ops
