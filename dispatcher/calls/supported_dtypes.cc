#include "dispatcher/calls/supported_dtypes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace mica {
namespace {

// "bool, int8, int32": the dtypes of the kinds that an operator supports.
std::string SupportedDTypes(const OperatorSpec& spec) {
  std::string names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType d = static_cast<DType>(i);
    if (!Supports(spec, d)) continue;
    names += std::string(names.empty() ? "" : ", ") + Name(d);
  }
  return names;
}

// " of `self`": the first argument of this dtype; "" where it comes of promotion.
std::string ArgumentOf(const Operator& op, const MicaValue* args, int64_t n, DType dtype) {
  for (int64_t i = 0; i < n; ++i)
    if (args[i].tag == MICA_VALUE_TENSOR && args[i].u.tensor &&
        Tensor::Ref(args[i].u.tensor).dtype() == dtype)
      return absl::StrCat(" of `", op.schema().arguments[static_cast<size_t>(i)].name, "`");
  return op.spec().dtype_arg >= 0 ? " of `dtype`" : "";
}

[[noreturn]] void Refuse(const OperatorSpec& spec, const Operator& op, const MicaValue* args, int64_t n,
                         DType dtype) {
  MICA_THROW(kNotImplemented, "Operator ", spec.name, " does not support the dtype (", Name(dtype), ")",
             ArgumentOf(op, args, n, dtype), ": it is not implemented for '", ScalarTypeName(dtype),
             "'; convert to one that it does, as in x.to(mica.float32): ", SupportedDTypes(spec), ".");
}

}  // namespace

void CheckSupported(const OperatorSpec& spec, const Operator& op, const MicaValue* args, int64_t n,
                    int32_t compute_dtype) {
  if (compute_dtype < 0) return;
  const DType dtype = static_cast<DType>(compute_dtype);
  if (!Supports(spec, dtype)) Refuse(spec, op, args, n, dtype);
}

}  // namespace mica
