// The other way through a view: what it is a view of, after the view was written.
//
// By kind of the operator: what keeps all elements in order is undone by the shape, a
// permutation by its inverse, a part by its scatter operator. For any other view, a third
// party's too, the view of the elements' numbers says where each of its elements lies.
#include <array>

#include "keys/functionalize/functional.h"
#include "mica/ops/arange.h"
#include "mica/ops/clone.h"
#include "mica/ops/index_put.h"
#include "mica/ops/permute.h"
#include "mica/ops/permute_copy.h"
#include "mica/ops/reshape.h"
#include "mica/ops/view.h"
#include "mica/ops/view_as_complex.h"
#include "mica/ops/view_as_complex_copy.h"
#include "mica/ops/view_as_real.h"
#include "mica/ops/view_as_real_copy.h"
#include "mica/ops/view_copy.h"
#include "tensor/shape.h"

namespace mica::functionalize {
namespace {

using Undo = Tensor (*)(const Link& link, const Tensor& from, const Tensor& src, bool copies);

Tensor Shaped(const Tensor& t, IntSpan sizes, bool copies) {
  return copies ? ::mica::ops::op::view_copy::call(t, sizes) : ::mica::ops::op::reshape::call(t, sizes);
}
Tensor Ordered(const Tensor& t) { return ::mica::ops::op::clone::call(t, MemoryFormat::kContiguous); }

Tensor ByShape(const Link&, const Tensor& from, const Tensor& src, bool copies) {
  return Shaped(src, from.sizes(), copies);
}
Tensor Itself(const Link&, const Tensor&, const Tensor& src, bool) { return src; }

// Transposes undo themselves, and so do conjugates and negatives.
Tensor ByItself(const Link& link, const Tensor&, const Tensor& src, bool copies) {
  const Operator* copy = copies ? CopyForm(*link.op) : nullptr;
  std::vector<MicaValue> args = link.args.values();
  args[0] = AbiType<const Tensor&>::Box(src.impl());
  MicaValue made[1];
  (copy ? copy : link.op)->CallBoxed(args.data(), static_cast<int64_t>(args.size()), made);
  return TakeTensor(made[0]);
}

Tensor ByPermutation(const Link& link, const Tensor& from, const Tensor& src, bool copies) {
  const MicaIntSpan dims = link.args.values()[1].u.ints;
  const Dims forth = WrapDims({dims.data, dims.size}, from.ndim());
  Dims back(forth.size());
  for (size_t i = 0; i < forth.size(); ++i) back[static_cast<size_t>(forth[i])] = static_cast<int64_t>(i);
  return copies ? ::mica::ops::op::permute_copy::call(src, back) : ::mica::ops::op::permute::call(src, back);
}

template <const char* kScatter>
Tensor ByScatter(const Link& link, const Tensor& from, const Tensor& src, bool) {
  static const Operator& scatter = GetOperator(kScatter);
  const std::vector<MicaValue>& kept = link.args.values();
  std::vector<MicaValue> args = {AbiType<const Tensor&>::Box(from.impl()),
                                 AbiType<const Tensor&>::Box(src.impl())};
  args.insert(args.end(), kept.begin() + 1, kept.end());
  MicaValue made[1];
  scatter.CallBoxed(args.data(), static_cast<int64_t>(args.size()), made);
  return TakeTensor(made[0]);
}

Tensor AsComplex(const Link&, const Tensor&, const Tensor& src, bool copies) {
  return copies ? ::mica::ops::op::view_as_complex_copy::call(Ordered(src))
                : ::mica::ops::op::view_as_complex::call(Ordered(src));
}
Tensor AsReal(const Link&, const Tensor&, const Tensor& src, bool copies) {
  return copies ? ::mica::ops::op::view_as_real_copy::call(src) : ::mica::ops::op::view_as_real::call(src);
}
Tensor AsDType(const Link&, const Tensor& from, const Tensor& src, bool copies) {
  return copies ? ::mica::ops::op::view_copy_dtype::call(Ordered(src), from.dtype())
                : ::mica::ops::op::view_dtype::call(Ordered(src), from.dtype());
}
Tensor ByPlace(const Link& link, const Tensor& from, const Tensor& src, bool copies) {
  return WritePlace(from, link.from->place, link.place, src, copies);
}

// The view of the elements' numbers.
Tensor ByNumbers(const Link& link, const Tensor& from, const Tensor& src, bool copies) {
  const Tensor numbers = ::mica::ops::op::arange::call(Scalar(from.numel()), DType::kI64, std::nullopt,
                                                       from.device(), std::nullopt);
  std::vector<MicaValue> args = link.args.values();
  const Tensor shaped = Shaped(numbers, from.sizes(), copies);
  args[0] = AbiType<const Tensor&>::Box(shaped.impl());
  MicaValue made[1];
  const Operator* copy = copies ? CopyForm(*link.op) : nullptr;
  (copy ? copy : link.op)->CallBoxed(args.data(), static_cast<int64_t>(args.size()), made);
  const Tensor where = Shaped(TakeTensor(made[0]), Dims{-1}, copies);
  const Tensor written = ::mica::ops::op::index_put::call(
      Shaped(from, Dims{-1}, copies), TensorSpan(&where, 1), Shaped(src, Dims{-1}, copies), false);
  return Shaped(written, from.sizes(), copies);
}

constexpr char kSelect[] = "mica::select_scatter";
constexpr char kSlice[] = "mica::slice_scatter";
constexpr char kDiagonal[] = "mica::diagonal_scatter";

struct Row {
  std::string_view view;
  Undo undo;
};
// expand adds no element where it may be written.
constexpr std::array<Row, 21> kUndo = {{
    {"mica::view", &ByShape},
    {"mica::_reshape_alias", &ByShape},
    {"mica::expand", &ByShape},
    {"mica::squeeze", &ByShape},
    {"mica::squeeze.dim", &ByShape},
    {"mica::squeeze.dims", &ByShape},
    {"mica::unsqueeze", &ByShape},
    {"mica::transpose.int", &ByItself},
    {"mica::t", &ByItself},
    {"mica::_conj", &ByItself},
    {"mica::_neg_view", &ByItself},
    {"mica::permute", &ByPermutation},
    {"mica::alias", &Itself},
    {"mica::detach", &Itself},
    {"mica::select.int", &ByScatter<kSelect>},
    {"mica::slice.Tensor", &ByScatter<kSlice>},
    {"mica::diagonal", &ByScatter<kDiagonal>},
    {"mica::view_as_real", &AsComplex},
    {"mica::view_as_complex", &AsReal},
    {"mica::view.dtype", &AsDType},
    {"mica::as_strided", &ByPlace},
}};

}  // namespace

Tensor Inverse(const Link& link, const Tensor& from, const Tensor& src) {
  const bool copies = link.base->copies;
  for (const Row& row : kUndo)
    if (row.view == link.op->name()) return row.undo(link, from, src, copies);
  return ByNumbers(link, from, src, copies);
}

}  // namespace mica::functionalize
