// The other way through a view: what it is a view of, after the view was written.
//
// By kind of the operator: what keeps all elements in order is undone by the shape, a
// permutation by its inverse, a part by its scatter operator. For any other view, a third
// party's too, the view of the elements' numbers says where each of its elements lies.
#include <array>
#include <string_view>

#include "keys/functionalize/functional.h"

namespace mica::functionalize {
namespace {

using Undo = Tensor (*)(const Link& link, const Tensor& from, const Tensor& src, bool copies);

Tensor Ordered(const Tensor& t) { return Clone(t, MemoryFormat::kContiguous); }

// The view's operator of another tensor.
Tensor Again(const Link& link, const Tensor& of, bool copies) {
  std::vector<MicaValue> args = link.args.values();
  args[0] = formula::Box(of);
  return (copies ? CopyFormOr(link.op) : link.op).CallForTensor(args);
}

Tensor ByShape(const Link&, const Tensor& from, const Tensor& src, bool copies) {
  return Shaped(src, from.sizes(), copies);
}
Tensor Itself(const Link&, const Tensor&, const Tensor& src, bool) { return src; }

// Transposes undo themselves, and so do conjugates and negatives.
Tensor ByItself(const Link& link, const Tensor&, const Tensor& src, bool copies) {
  return Again(link, src, copies);
}

Tensor ByPermutation(const Link& link, const Tensor& from, const Tensor& src, bool copies) {
  const MicaIntSpan dims = link.args.values()[1].u.ints;
  Dims back(static_cast<size_t>(dims.size));
  for (int64_t i = 0; i < dims.size; ++i)
    back[static_cast<size_t>(formula::WrapDim(dims.data[i], from.ndim()))] = i;
  return Permuted(src, back, copies);
}

template <const char* kScatter>
Tensor ByScatter(const Link& link, const Tensor& from, const Tensor& src, bool) {
  static const OperatorRef scatter = OperatorRef::Find(kScatter);
  const std::vector<MicaValue>& kept = link.args.values();
  std::vector<MicaValue> args = {formula::Box(from), formula::Box(src)};
  args.insert(args.end(), kept.begin() + 1, kept.end());
  return scatter.CallForTensor(args);
}

Tensor AsComplex(const Link&, const Tensor&, const Tensor& src, bool copies) {
  static const Function<Tensor(Tensor)> view("mica::view_as_complex"), copy("mica::view_as_complex_copy");
  return (copies ? copy : view)(Ordered(src));
}
Tensor AsReal(const Link&, const Tensor&, const Tensor& src, bool copies) {
  static const Function<Tensor(Tensor)> view("mica::view_as_real"), copy("mica::view_as_real_copy");
  return (copies ? copy : view)(src);
}
Tensor AsDType(const Link&, const Tensor& from, const Tensor& src, bool copies) {
  static const Function<Tensor(Tensor, DType)> view("mica::view.dtype"), copy("mica::view_copy.dtype");
  return (copies ? copy : view)(Ordered(src), from.dtype());
}
Tensor ByPlace(const Link& link, const Tensor& from, const Tensor& src, bool copies) {
  return WritePlace(from, link.from->place, link.place, src, copies);
}

// The view of the elements' numbers.
Tensor ByNumbers(const Link& link, const Tensor& from, const Tensor& src, bool copies) {
  static const Function<Tensor(Tensor, formula::TensorSpan, Tensor, bool)> index_put("mica::index_put");
  const Tensor numbers = Shaped(CountUp(from.numel(), from), from.sizes(), copies);
  const Tensor where = Flat(Again(link, numbers, copies), copies);
  const Tensor written =
      index_put(Flat(from, copies), formula::TensorSpan(&where, 1), Flat(src, copies), false);
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
    if (row.view == link.op.name()) return row.undo(link, from, src, copies);
  return ByNumbers(link, from, src, copies);
}

}  // namespace mica::functionalize
