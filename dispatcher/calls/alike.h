// The usual call of a pointwise operator: dense tensors of one shape and dtype, and numbers that promote
// nothing. Its result has that shape and, by the operator's dtype rule, a dtype that the tensors' gives.
//
// RunAlike stands in the slots of pointwise operators in place of RunStructured, to which it hands all other
// calls. It spares a MetaResult, lists of outputs, and the questions that an output answers which fits at
// once: `mul` of 4 floats from C++ takes 880 instructions so, and 1,290 through RunStructured.
#pragma once

#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica {

// What a pointwise operator computes in, and the dtype of its results.
struct PointwiseDTypes {
  DType compute, output;
};
// By the operator's dtype rule, from the dtype that its inputs promote to.
PointwiseDTypes DTypesOf(const OperatorSpec& spec, DType common);

// 0 to 3: bool, integer, floating, complex. Promotion changes a dtype only towards a higher one.
inline int PromotionRank(DType d) { return d == DType::kBool ? 0 : IsInteger(d) ? 1 : IsFloating(d) ? 2 : 3; }
inline int PromotionRank(const MicaScalar& s) { return s.tag - MICA_SCALAR_BOOL; }

// The first tensor of a call that is of the usual kind, by its arguments in the functional form; NULL for
// another call.
const TensorImpl* AlikeTensors(const OperatorSpec& functional, const MicaValue* args);

// Whether RunAlike may serve the operator: its shapes and dtypes are those of the class, and it has one
// result.
bool ServesAlike(const OperatorSpec& functional);

// A BoxedFunction for all three forms (StructuredContext*).
void RunAlike(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
              MicaValue* results);

}  // namespace mica
