// The terms of a `tangent:` formula: what its loader checks and EmitForward prints.
//
// A formula is a sum of terms, each linear in the tangents that it reads. A term
// whose tangents are all zero is left out; in the others a zero tangent that is
// read is a tensor of zeros. So `mm(self_t, mat2) + mm(self, mat2_t)` costs one
// product where one input has a tangent.
#pragma once

#include <string>
#include <vector>

#include "codegen/formula/formula.h"
#include "codegen/model.h"

namespace mica::codegen {

struct TangentTerm {
  const FormulaExpr* expr;
  bool subtracted;
  std::vector<int> inputs;  // numbers of the arguments whose tangents it reads
};

// "self_t" is the tangent of `self`.
std::string TangentName(const std::string& argument);
// Arguments that have tangents: those whose gradient is a formula.
std::vector<int> TangentInputs(const Derivative& derivative);
// The terms of the tangent of one result.
std::vector<TangentTerm> TangentTerms(const FormulaExpr& root, const Derivative& derivative);
// Numbers of the results that have tangents.
std::vector<int> TangentResults(const Derivative& derivative);

}  // namespace mica::codegen
