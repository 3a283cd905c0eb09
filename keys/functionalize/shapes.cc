// Calls without values, on the meta device, of tensors that look as the wrappers do: what a
// write would throw, and how results would lie in memory.
#include "keys/functionalize/functional.h"
#include "tensor/shape.h"

namespace mica::functionalize {
namespace {

using frames::ForEachTensor;

// While it lives, calls go to backends alone.
class Bare {
 public:
  Bare() : saved_(t_state) {
    t_state.frame = nullptr;
    t_state.include = t_state.include - KeySet::Of(keys::kFrame);
    t_state.exclude = t_state.exclude | keys::kAboveBackends;
  }
  ~Bare() { t_state = saved_; }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

 private:
  ThreadState saved_;
};

// The same tensor without elements.
Tensor WithoutElements(const Tensor& t) {
  const Storage storage = Storage::Allocate(t.impl()->storage->nbytes(), Device{keys::kMeta, 0});
  Tensor twin = Tensor::Steal(
      TensorImpl::Make(storage, t.storage_offset() * t.itemsize(), t.sizes(), t.strides(), t.dtype()));
  twin.impl()->flags |= t.impl()->flags & MICA_TENSOR_WRAPPED_NUMBER;
  return twin;
}

}  // namespace

void CheckShapes(const Operator& op, const MicaValue* args, int64_t n) {
  const OperatorSpec& spec = op.spec();
  if (spec.form == OpForm::kFunctional || spec.composite) return;
  ForEachTensor(args, n, [&](const Tensor& out, int64_t i) {
    if (!((spec.written_args >> i) & 1) || spec.op_class != OpClass::kPointwise) return;
    ForEachTensor(args, n, [&](const Tensor& in, int64_t j) {
      if (i != j && in.impl()->storage == out.impl()->storage)
        CheckNoPartialOverlap(out, in, spec.form == OpForm::kInplace ? "self" : "out",
                              op.schema().arguments[static_cast<size_t>(j)].name.c_str());
    });
  });
  bool reads = false;  // else a factory, which makes tensors where it is told to
  ForEachTensor(args, n, [&](const Tensor&, int64_t i) { reads = reads || !((spec.written_args >> i) & 1); });
  if (!reads && spec.form == OpForm::kOut) return;
  const Bare bare;
  const frames::ReplacedArguments twins(args, n, [](const Tensor& t) { return WithoutElements(t); });
  ResultRoom results(op);
  try {
    op.CallBoxed(twins.data(), n, results);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kNotImplemented) throw;
  }
}

std::vector<Place> PlacesOfResults(const Operator& op, const MicaValue* args, int64_t n) {
  const Bare bare;
  const frames::ReplacedArguments twins(args, n, [](const Tensor& t) { return WithoutElements(t); });
  ResultRoom results(op);
  std::vector<Place> places;
  try {
    op.CallBoxed(twins.data(), n, results);
  } catch (const Error&) {  // values decide
    return places;
  }
  ReplaceResults(op, results, [&](Tensor t) {
    places.push_back(Place::Of(t));
    return Tensor();
  });
  return places;
}

}  // namespace mica::functionalize
