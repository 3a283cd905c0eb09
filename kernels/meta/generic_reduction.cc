// The meta functions of the classes reduction, scan, row, random and factory.
#include <string_view>

#include <mica/program.h>
#include "kernels/meta/generic.h"
#include "kernels/meta/meta_helpers.h"

namespace mica::meta {
namespace {

const Tensor& FirstTensor(const OperatorSpec& spec, const MicaValue* args) {
  for (int i = 0; i < spec.num_functional_args; ++i)
    if (args[i].tag == MICA_VALUE_TENSOR) return Tensor::Ref(args[i].u.tensor);
  MICA_THROW(kType, "Operator ", spec.name, " gets no tensor; expected one.");
}

std::string_view Hint(const OperatorSpec& spec) {
  for (const MicaProgram* p : spec.programs)
    if (p) return p->hint;
  return "";
}

struct DTypes {
  DType compute, output;
};
DTypes RuleDTypes(const OperatorSpec& spec, const MicaValue* args, DType d) {
  if (spec.dtype_arg >= 0 && args[spec.dtype_arg].tag == MICA_VALUE_DTYPE) {
    d = static_cast<DType>(args[spec.dtype_arg].u.i);
    // Sums into bool count first: there are no programs over bool.
    return {spec.dtype_rule == DTypeRule::kAccumulate && d == DType::kBool ? DType::kI64 : d, d};
  }
  switch (spec.dtype_rule) {
    case DTypeRule::kFloat: {
      const DType f = IsDifferentiable(d) ? d : DefaultDType();
      return {f, f};
    }
    case DTypeRule::kBool:
      return {d, DType::kBool};
    case DTypeRule::kIndex:
      return {d, DType::kI64};
    case DTypeRule::kReal:
      return {d, RealOf(d)};
    case DTypeRule::kAccumulate: {
      const DType wide = IsDifferentiable(d) ? d : DType::kI64;
      return {wide, wide};
    }
    case DTypeRule::kFixed:
      return {d, static_cast<DType>(spec.fixed_dtype)};
    default:
      return {d, d};
  }
}

// Whether the call names dimensions: it then reduces those only.
bool NamesDims(const OperatorSpec& spec, const MicaValue* args) {
  if (spec.dims_arg < 0) return false;
  const MicaValue& dims = args[spec.dims_arg];
  return dims.tag == MICA_VALUE_INT || (dims.tag == MICA_VALUE_INTS && dims.u.ints.size > 0);
}

}  // namespace

Dims ReductionDims(const OperatorSpec& spec, const MicaValue* args, int64_t ndim) {
  Dims all;
  for (int64_t d = 0; d < ndim; ++d) all.push_back(d);
  if (spec.dims_arg < 0) return all;
  const MicaValue& dims = args[spec.dims_arg];
  if (dims.tag == MICA_VALUE_INT) return {WrapDim(dims.u.i, ndim)};
  if (dims.tag == MICA_VALUE_INTS && dims.u.ints.size > 0)
    return WrapDims(IntSpan(dims.u.ints.data, dims.u.ints.size), ndim);
  MICA_CHECK(spec.none_dims == 1, "Operator ", spec.name,
             " gets no dimension; expected at least one in `dim`.");
  return all;
}

void GenericReduction(const OperatorSpec& spec, const MicaValue* args, MetaResult& result) {
  const Tensor& self = FirstTensor(spec, args);
  const Dims dims = ReductionDims(spec, args, self.ndim());
  const std::string_view hint = Hint(spec);
  if (hint.starts_with("amax") || hint.starts_with("amin") || hint.starts_with("arg") || hint == "max_dim" ||
      hint == "min_dim") {
    MICA_CHECK(NamesDims(spec, args) || hint.starts_with("arg") || self.numel() > 0, spec.name,
               ": Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
               "with the 'dim' argument; `self` has the shape ",
               ShapeText(self.sizes()), ".");
    for (const int64_t d : dims)
      MICA_CHECK_INDEX(
          self.ndim() == 0 || self.sizes()[d] > 0, spec.name,
          NamesDims(spec, args)
              ? ": Expected reduction dim "
              : ": Expected reduction dim to be specified for input.numel() == 0, and dimension ",
          d, " to have non-zero size; `self` has the shape ", ShapeText(self.sizes()), ".");
  }
  const bool keepdim = spec.keepdim_arg >= 0 && args[spec.keepdim_arg].u.i != 0;
  DTypes dtypes = RuleDTypes(spec, args, self.dtype());
  // any and all of uint8 are uint8, as in torch.
  if (spec.dtype_rule == DTypeRule::kBool && self.dtype() == DType::kU8) dtypes.output = DType::kU8;
  ComputeIn(result, dtypes.compute);
  const Dims sizes = ReducedSizes(self.sizes(), dims, keepdim);
  for (int i = 0; i < spec.num_outputs; ++i) AddOutput(result, sizes, dtypes.output, self.device());
}

// The shape is the first tensor's. The others of a row broadcast to it; a step of a scan takes one element of
// each.
void CheckOthers(const OperatorSpec& spec, const MicaValue* args, const Tensor& self, bool broadcast) {
  for (int i = 0; i < spec.num_functional_args; ++i) {
    if (args[i].tag != MICA_VALUE_TENSOR) continue;
    const Tensor& other = Tensor::Ref(args[i].u.tensor);
    CheckSameDevice(self, other, "self", "another argument");
    MICA_CHECK(broadcast ? CanExpandTo(other.sizes(), self.sizes()) : other.sizes() == self.sizes(),
               spec.name, ": shape ", ShapeText(other.sizes()), " of an argument ",
               broadcast ? "does not broadcast to" : "is not the", " shape ", ShapeText(self.sizes()),
               " of the first.");
  }
}

void GenericScan(const OperatorSpec& spec, const MicaValue* args, MetaResult& result) {
  const Tensor& self = FirstTensor(spec, args);
  WrapDim(args[spec.dims_arg].u.i, self.ndim());
  CheckOthers(spec, args, self, false);
  const DTypes dtypes = RuleDTypes(spec, args, self.dtype());
  ComputeIn(result, dtypes.compute);
  for (int i = 0; i < spec.num_outputs; ++i) AddOutput(result, self.sizes(), dtypes.output, self.device());
}

void GenericRow(const OperatorSpec& spec, const MicaValue* args, MetaResult& result) {
  const Tensor& self = FirstTensor(spec, args);
  const MicaValue& dims = args[spec.dims_arg];
  if (dims.tag == MICA_VALUE_INT) WrapDim(dims.u.i, self.ndim());
  CheckOthers(spec, args, self, true);
  const DTypes dtypes = RuleDTypes(spec, args, self.dtype());
  ComputeIn(result, dtypes.compute);
  for (int i = 0; i < spec.num_outputs; ++i) AddOutput(result, self.sizes(), dtypes.output, self.device());
}

void GenericRandom(const OperatorSpec& spec, const MicaValue* args, MetaResult& result) {
  const Tensor& self = FirstTensor(spec, args);
  const DType d = self.dtype();
  MICA_CHECK_IMPLEMENTED((spec.supports >> static_cast<int>(Kind(d))) & 1, "Operator ", spec.name,
                         " does not support the dtype (", Name(d), ") of `self`.");
  ComputeIn(result, IsFloating(d) ? d : DType::kF64);
  for (int i = 0; i < spec.num_outputs; ++i) AddLike(result, self, d);
}

void GenericFactory(const OperatorSpec& spec, const MicaValue* args, MetaResult& result) {
  Device device;
  IntSpan sizes;
  bool has_sizes = false;
  for (int i = 0; i < spec.num_functional_args; ++i) {
    if (args[i].tag == MICA_VALUE_DEVICE) device = Device::FromAbi(args[i].u.device);
    if (args[i].tag == MICA_VALUE_INTS && !has_sizes) {
      sizes = IntSpan(args[i].u.ints.data, args[i].u.ints.size);
      has_sizes = true;
    }
  }
  CheckedNumel(sizes);
  const DTypes dtypes = RuleDTypes(spec, args, DefaultDType());
  ComputeIn(result, dtypes.compute);
  AddOutput(result, sizes, dtypes.output, device);
}

namespace {
[[maybe_unused]] const bool kRegistered = [] {
  SetClassMeta(OpClass::kPointwise, &GenericPointwise);
  SetClassMeta(OpClass::kReduction, &GenericReduction);
  SetClassMeta(OpClass::kScan, &GenericScan);
  SetClassMeta(OpClass::kRow, &GenericRow);
  return true;
}();
}  // namespace

}  // namespace mica::meta
