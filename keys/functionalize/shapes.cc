// Calls without values, on the meta device, of tensors that look as the wrappers do: what a
// write would throw, and how results would lie in memory.
#include "keys/functionalize/functional.h"

namespace mica::functionalize {

void CheckShapes(const OperatorRef& op, const MicaValue* args, int64_t n) {
  const MicaOperatorInfo& info = *op.info;
  if (info.form == MICA_FORM_FUNCTIONAL || op.has(MICA_OPERATOR_COMPOSITE)) return;
  const bool pointwise = std::string_view(info.class_name) == "pointwise";
  ForEachTensor(args, n, [&](const Tensor& out, int64_t i) {
    if (!((info.written_args >> i) & 1) || !pointwise) return;
    ForEachTensor(args, n, [&](const Tensor& in, int64_t j) {
      if (i != j && ShareStorage(in, out))
        layer::Check(layer::Table()->check_overlap(out.get(), info.form == MICA_FORM_INPLACE ? "self" : "out",
                                                   in.get(), info.args[j].name));
    });
  });
  bool reads = false;  // else a factory, which makes tensors where it is told to
  ForEachTensor(args, n, [&](const Tensor&, int64_t i) { reads = reads || !((info.written_args >> i) & 1); });
  if (!reads && info.form == MICA_FORM_OUT) return;
  std::vector<MicaValue> results(static_cast<size_t>(info.num_results));
  try {
    layer::Check(layer::Table()->call_on_meta(op.handle, args, n, results.data(),
                                              static_cast<int64_t>(results.size())));
  } catch (const plugin::Error& e) {
    if (e.code != MICA_ERROR_NOT_IMPLEMENTED) throw;
  }
}

std::vector<Place> PlacesOfResults(const OperatorRef& op, const MicaValue* args, int64_t n) {
  std::vector<MicaValue> results(static_cast<size_t>(op.info->num_results));
  std::vector<Place> places;
  try {
    layer::Check(layer::Table()->call_on_meta(op.handle, args, n, results.data(),
                                              static_cast<int64_t>(results.size())));
  } catch (const plugin::Error&) {  // values decide
    return places;
  }
  ReplaceResults(*op.info, results.data(), [&](const Tensor& t) {
    places.push_back(Place::Of(t));
    return Tensor();
  });
  return places;
}

}  // namespace mica::functionalize
