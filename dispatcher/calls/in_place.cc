#include "dispatcher/calls/in_place.h"

#include "tensor/shape.h"

namespace mica {
namespace {

bool SamePlace(const Tensor& a, const Tensor& b) {
  return a.is_same(b) || (a.data() == b.data() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
                          a.dtype() == b.dtype());
}

// Which inputs a kernel may find in the very place of its output: those of which it reads each
// element before it writes there. Of scans, of `keep` and of sums with a product the plugin and
// the portable kernels promise that for the CPU.
enum class InPlace { kNone, kFirst, kAll };

InPlace MayBeInPlace(const OperatorSpec& spec, bool cpu) {
  const MicaProgram* const program = AnyProgram(spec);
  const auto on_cpu = [&](bool may, InPlace which) { return cpu && may ? which : InPlace::kNone; };
  switch (spec.op_class) {
    case OpClass::kPointwise:
    case OpClass::kRandom:
      return InPlace::kAll;
    case OpClass::kScatter:
      return InPlace::kFirst;
    case OpClass::kScan:
      return on_cpu(true, InPlace::kAll);
    case OpClass::kGather:  // each element stays, or is filled
      return on_cpu(program && program->index.size == 0 && program->keep.size > 0, InPlace::kAll);
    case OpClass::kContraction:  // an equation of two; what more there is, the result starts from
      return on_cpu(program && program->num_inputs > 2, InPlace::kFirst);
    default:
      return InPlace::kNone;
  }
}

}  // namespace

const MicaProgram* AnyProgram(const OperatorSpec& spec) {
  const MicaProgram* any = nullptr;
  for (const MicaProgram* p : spec.programs)
    if (p) any = p;
  return any;
}

bool MustNotAlias(const Operator& op, const Tensor& out, const char* out_name, const MicaValue* args,
                  int64_t n) {
  const OperatorSpec& spec = op.spec();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t count = args[i].tag == MICA_VALUE_TENSOR    ? 1
                          : args[i].tag == MICA_VALUE_TENSORS ? args[i].u.tensors.size
                                                              : 0;
    for (int64_t j = 0; j < count; ++j) {
      MicaTensor* const p = args[i].tag == MICA_VALUE_TENSOR ? args[i].u.tensor : args[i].u.tensors.data[j];
      if (!p) continue;
      const Tensor& in = Tensor::Ref(p);
      if (in.impl()->storage != out.impl()->storage) continue;
      const InPlace may = MayBeInPlace(spec, out.device().is_cpu());
      if ((may == InPlace::kAll || (may == InPlace::kFirst && i == 0)) && SamePlace(in, out)) continue;
      if (spec.op_class == OpClass::kPointwise)
        CheckNoPartialOverlap(out, in, out_name, op.schema().arguments[static_cast<size_t>(i)].name.c_str());
      const Overlap overlap = GetOverlap(out, in);
      if (spec.op_class == OpClass::kScatter && spec.form == OpForm::kInplace)
        MICA_CHECK(overlap != Overlap::kPartial && overlap != Overlap::kFull,
                   "unsupported operation: some elements of the input tensor `",
                   op.schema().arguments[static_cast<size_t>(i)].name,
                   "` and the written-to tensor refer to a single memory location. Please clone() the tensor "
                   "before performing the operation.");
      if (overlap != Overlap::kNo) return true;
    }
  }
  return false;
}

bool ConvertsAtStore(const StructuredContext& c, DType want, const Tensor& out) {
  const OperatorSpec& spec = *c.functional;
  return spec.op_class == OpClass::kPointwise && spec.dtype_rule == DTypeRule::kBool &&
         want == DType::kBool && out.device().is_cpu() && !c.leaf && !c.leaf_boxed && !c.portable;
}

}  // namespace mica
