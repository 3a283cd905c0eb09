#include "dispatcher/calls/alike.h"

#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/kernel_call.h"
#include "dispatcher/calls/supported_dtypes.h"
#include "tensor/promote.h"

namespace mica {
namespace {

constexpr uint64_t kDense = MICA_TENSOR_CONTIGUOUS | MICA_TENSOR_WRAPPED_NUMBER;
constexpr uint64_t kLayout = kDense | uint64_t{0xff} << MICA_TENSOR_BACKEND_SHIFT;
constexpr uint64_t kDType = uint64_t{0xff} << MICA_TENSOR_DTYPE_SHIFT;

// Whether `t` has the sizes and device of `like` and agrees with it in these flags.
inline bool IsAlike(const TensorImpl& t, const TensorImpl& like, uint64_t compared) {
  if (((t.flags ^ like.flags) & compared) != 0 || t.dl.ndim != like.dl.ndim ||
      t.dl.device.device_id != like.dl.device.device_id)
    return false;
  for (int d = 0; d < t.dl.ndim; ++d)
    if (t.dl.shape[d] != like.dl.shape[d]) return false;
  return true;
}

__attribute__((always_inline)) inline const TensorImpl* FirstAlike(const OperatorSpec& functional,
                                                                   const MicaValue* args) {
  const TensorImpl* first = nullptr;
  for (const MicaValue *v = args, *end = args + functional.num_functional_args; v < end; ++v) {
    if (v->tag == MICA_VALUE_TENSOR) {
      const auto* t = static_cast<const TensorImpl*>(v->u.tensor);
      if (!first) {
        if ((t->flags & kDense) != MICA_TENSOR_CONTIGUOUS) return nullptr;
        first = t;
      } else if (!IsAlike(*t, *first, kLayout | kDType)) {
        return nullptr;
      }
    } else if (v->tag == MICA_VALUE_SCALAR) {
      // Truth values among numbers are for the general way to judge.
      const int rank = first ? PromotionRank(v->u.scalar) : 0;
      if (!first || rank > PromotionRank(first->dtype()) || (rank == 0 && first->dtype() != DType::kBool))
        return nullptr;
    }
  }
  return first;
}

DType ComplexOf(DType d) {
  if (IsComplex(d)) return d;
  if (d == DType::kF64) return DType::kC128;
  return IsFloating(d) ? DType::kC64 : DefaultComplexDType();
}

inline PointwiseDTypes ApplyRule(const OperatorSpec& spec, DType common) {
  switch (spec.dtype_rule) {
    case DTypeRule::kFloat:
      if (PromotionRank(common) < 2) common = DefaultDType();
      return {common, common};
    case DTypeRule::kBool:
      return {common, DType::kBool};
    case DTypeRule::kIndex:
      return {common, DType::kI64};
    case DTypeRule::kReal:
      return {common, RealOf(common)};
    case DTypeRule::kComplex:
      common = ComplexOf(common);
      return {common, common};
    case DTypeRule::kFixed:
      return {common, static_cast<DType>(spec.fixed_dtype)};
    default:
      return {common, common};
  }
}

// Whether a kernel may write the results into `out` at once: it is as a fresh result would be, and of
// the inputs' memory it has all of one, or none.
bool Fits(const TensorImpl& out, const TensorImpl& like, DType dtype, const MicaValue* args, int64_t n) {
  if (out.dtype() != dtype || !IsAlike(out, like, kLayout)) return false;
  for (int64_t i = 0; i < n; ++i) {
    if (args[i].tag != MICA_VALUE_TENSOR) continue;
    const auto* in = static_cast<const TensorImpl*>(args[i].u.tensor);
    if (in->storage == out.storage && (in->dl.data != out.dl.data || in->dtype() != dtype)) return false;
  }
  return true;
}

}  // namespace

PointwiseDTypes DTypesOf(const OperatorSpec& spec, DType common) { return ApplyRule(spec, common); }

const TensorImpl* AlikeTensors(const OperatorSpec& functional, const MicaValue* args) {
  return FirstAlike(functional, args);
}

bool ServesAlike(const OperatorSpec& functional) {
  return functional.op_class == OpClass::kPointwise && functional.meta == ClassMeta(OpClass::kPointwise) &&
         functional.dtype_arg < 0 && functional.num_outputs == 1;
}

void RunAlike(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t num_args,
              MicaValue* results) {
  const auto& c = *static_cast<const StructuredContext*>(k.context);
  const OperatorSpec& functional = *c.functional;
  const TensorImpl* const like = FirstAlike(functional, args);
  if (!like) return RunStructured(k, op, keys, args, num_args, results);
  const PointwiseDTypes dtypes = ApplyRule(functional, like->dtype());
  if (!Supports(functional, dtypes.compute)) return RunStructured(k, op, keys, args, num_args, results);
  const auto compute = static_cast<int32_t>(dtypes.compute);
  const int64_t n = functional.num_functional_args;
  if (op.spec().form == OpForm::kFunctional) {
    Tensor out = EmptyLike(*like, dtypes.output);
    if (!c.meta_only && !RunKernel(c, op, compute, args, {&out, 1}))
      return RunWithoutKernel(c, op, keys, args, n, results);
    results[0].tag = MICA_VALUE_TENSOR;
    results[0].u.tensor = out.release();
    return;
  }
  const MicaValue& target = args[op.spec().form == OpForm::kOut ? n : 0];
  if (target.tag != MICA_VALUE_TENSOR ||
      !Fits(*static_cast<const TensorImpl*>(target.u.tensor), *like, dtypes.output, args, n))
    return RunStructured(k, op, keys, args, num_args, results);
  const Tensor& out = Tensor::Ref(target.u.tensor);
  CheckWritable(out, op.spec());
  if (!c.meta_only && !RunKernel(c, op, compute, args, {&out, 1}))
    return RunWithoutKernel(c, op, keys, args, num_args, results);
  MarkWritten(out, op.spec());
}

}  // namespace mica
