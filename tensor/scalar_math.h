// Arithmetic of the formula language (mica/formula_numbers.inc) for the code that codegen/formula writes;
// kernels have no use for it.
#pragma once

#include <cmath>

#include <mica/maths/complex_power.h>
#include "tensor/error.h"
#include "tensor/scalar.h"

#define MICA_CHECK_DIVISOR(condition, ...) MICA_CHECK_KIND(kZeroDivision, condition, __VA_ARGS__)

namespace mica::scalar_math {

#include <mica/formula_numbers.inc>

}  // namespace mica::scalar_math
