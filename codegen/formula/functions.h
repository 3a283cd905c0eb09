// Functions of the formula language that are no operators: arithmetic on numbers,
// lists of sizes, dtypes. Their C++ is in kernels/formula.h; a name may also be an
// operator's (`min(a, b)`), then the argument types decide.
#pragma once

#include <memory>
#include <vector>

#include "codegen/model.h"

namespace mica::codegen {

// All of them, in a fixed order; `cpp_name` is "::mica::formula::Product".
const std::vector<std::unique_ptr<Helper>>& FormulaFunctions();

}  // namespace mica::codegen
