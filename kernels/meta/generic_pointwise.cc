// The meta function of class pointwise: type promotion, broadcasting, and output
// strides in the inputs' memory order.
//
// Nearly every call has contiguous tensors of one shape and one dtype; those are
// recognised first, without reading argument names.
#include <algorithm>
#include <string_view>

#include <mica/program.h>
#include "dispatcher/calls/alike.h"
#include "kernels/meta/generic.h"
#include "kernels/meta/meta_helpers.h"

namespace mica::meta {
namespace {

// Whether the strides are those that a fresh tensor has; those of dimensions of size 1 count, too.
bool IsRowMajor(IntSpan sizes, IntSpan strides) {
  uint64_t step = 1;  // wraps for sizes that whoever allocates them refuses
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    if (strides[i] != static_cast<int64_t>(step)) return false;
    step *= static_cast<uint64_t>(std::max<int64_t>(sizes[i], 1));
  }
  return true;
}

// The name of argument `index` in "add.Tensor(Tensor self, Tensor other, *, ...".
std::string_view ArgumentName(const OperatorSpec& spec, int index) {
  std::string_view text(spec.schema);
  size_t at = text.find('(') + 1;
  int depth = 0;
  for (size_t begin = at; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '[') ++depth;
    if (depth > 0) {
      if (c == ')' || c == ']') --depth;
      continue;
    }
    if (c != ',' && c != ')') continue;
    std::string_view piece = text.substr(begin, at - begin);
    while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    begin = at + 1;
    if (piece == "*") continue;
    if (index-- == 0) {
      piece = piece.substr(0, piece.find('='));
      return piece.substr(piece.rfind(' ') + 1);
    }
    if (c == ')') break;
  }
  return {};
}

// Numbers that are operands take part in promotion; the others (alpha, value,
// slopes) are converted to the result's dtype.
bool IsOperand(std::string_view name) {
  return name == "other" || name == "exponent" || name == "self" || name == "min" || name == "max";
}
bool IsMask(std::string_view name) { return name == "mask" || name == "condition"; }

void CheckFactorFits(const OperatorSpec& spec, int index, const MicaScalar& value, DType dtype) {
  const std::string_view name = ArgumentName(spec, index);
  if (IsOperand(name)) return;
  MICA_CHECK((name != "alpha" && name != "beta") || value.tag != MICA_SCALAR_BOOL || dtype == DType::kBool,
             "Boolean ", std::string(name),
             " only supported for Boolean results. The dtype of the result is (", Name(dtype), ").");
  // Integers do for bool results: any but 0 is True.
  if (PromotionRank(value) <= std::max(PromotionRank(dtype), 1)) return;
  if (name != "alpha" && name != "value" && name != "beta" && PromotionRank(value) != 3) return;
  MICA_THROW(kRuntime, "For ",
             IsInteger(dtype)    ? "integral"
             : IsFloating(dtype) ? "real"
                                 : "bool",
             " input tensors, argument ", std::string(name), " must not be a ",
             PromotionRank(value) == 3 ? "complex" : "floating point", " number. `", std::string(name),
             "` is (", Scalar::FromAbi(value).ToString(), ") and the dtype of the result (", Name(dtype),
             ").");
}

// The first tensor's dtype where the rule is `same`, the one asked for where it is an argument, else
// promotion over all.
DType CommonDType(const OperatorSpec& spec, const MicaValue* args) {
  if (spec.dtype_rule == DTypeRule::kArgument) return static_cast<DType>(args[spec.dtype_arg].u.i);
  ResultType type;
  const int n = spec.num_functional_args;
  for (int i = 0; i < n; ++i) {
    if (args[i].tag == MICA_VALUE_TENSOR) {
      const Tensor& t = Tensor::Ref(args[i].u.tensor);
      if (spec.dtype_rule == DTypeRule::kSame) return t.dtype();
      if (t.dtype() == DType::kBool && IsMask(ArgumentName(spec, i))) continue;
      type.Add(t);
    } else if (args[i].tag == MICA_VALUE_SCALAR && IsOperand(ArgumentName(spec, i))) {
      type.Add(Scalar::FromAbi(args[i].u.scalar));
    }
  }
  return type.dtype();
}

// One of dense tensors of one shape and dtype.
bool TryAlike(const OperatorSpec& spec, const MicaValue* args, MetaResult& result) {
  if (spec.dtype_rule == DTypeRule::kArgument) return false;
  const TensorImpl* const like = AlikeTensors(spec, args);
  if (!like) return false;
  const PointwiseDTypes dtypes = DTypesOf(spec, like->dtype());
  ComputeIn(result, dtypes.compute);
  for (int i = 0; i < spec.num_outputs; ++i) AddOutput(result, like->sizes(), dtypes.output, like->device());
  return true;
}

}  // namespace

void GenericPointwise(const OperatorSpec& spec, const MicaValue* args, MetaResult& result) {
  result.outputs.reserve(static_cast<size_t>(spec.num_outputs));
  if (TryAlike(spec, args, result)) return;
  const DType common = CommonDType(spec, args);
  const PointwiseDTypes dtypes = DTypesOf(spec, common);
  Dims shape;
  const Tensor* first = nullptr;
  const Tensor* first_dim = nullptr;  // whose device counts
  const char* const kNames[] = {"self", "other"};
  absl::InlinedVector<Layouted, 4> layouts;
  for (int i = 0; i < spec.num_functional_args; ++i) {
    if (args[i].tag == MICA_VALUE_SCALAR && spec.dtype_rule != DTypeRule::kSame)
      CheckFactorFits(spec, i, args[i].u.scalar, dtypes.compute);
    if (args[i].tag != MICA_VALUE_TENSOR) continue;
    const Tensor& t = Tensor::Ref(args[i].u.tensor);
    layouts.push_back({t.sizes(), t.strides()});
    if (!first) {
      first = &t;
      shape = ToDims(t.sizes());
    } else if (!(IntSpan(shape) == t.sizes())) {
      shape =
          BroadcastShapes(shape, t.sizes(), kNames[0], layouts.size() == 2 ? kNames[1] : "another argument");
    }
    const bool number_first = first_dim && first_dim->ndim() == 0 &&
                              (t.ndim() > 0 || (first_dim->device().is_cpu() && !t.device().is_cpu()));
    if (!first_dim || number_first) {
      if (first_dim) CheckSameDevice(*first_dim, t, "self", "other");
      first_dim = &t;
    } else {
      CheckSameDevice(*first_dim, t, "self", "other");
    }
  }
  MICA_CHECK_TYPE(first, "Operator ", spec.name, " gets no tensor; expected at least one.");
  ComputeIn(result, dtypes.compute);
  Dims strides =
      ElementwiseStrides(shape, Span<Layouted>(layouts.data(), static_cast<int64_t>(layouts.size())));
  if (IsRowMajor(shape, strides)) strides.clear();
  for (int i = 0; i < spec.num_outputs; ++i)
    AddOutput(result, shape, dtypes.output, first_dim->device()).strides = strides;
}

}  // namespace mica::meta
