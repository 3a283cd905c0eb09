// Which numbers a dtype holds: asked wherever one is written into a tensor.
#pragma once

#include "tensor/dtype.h"
#include "tensor/scalar.h"

namespace mica {

// The largest finite number of a floating dtype, of a complex one that of its parts.
double LargestNumber(DType dtype);

// Whether the number can be written into an element of the dtype, by torch's rule: infinities
// and NaN fit floating dtypes, finite numbers up to the largest one; integers fit those that
// hold them, negative ones also an unsigned dtype that holds their magnitude (they wrap, as in
// C); fractions are cut off; what has an imaginary part fits complex dtypes. All fit bool.
bool HoldsNumber(DType dtype, const Scalar& number);

}  // namespace mica
