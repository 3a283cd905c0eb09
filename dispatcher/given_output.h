// What an out= form may do with the tensor that it is given.
#pragma once

#include "mica/tensor/tensor.h"

namespace mica {

// Before `out`, which has elements, is resized to the result's sizes. Throws for a view where
// elements beside its own would be written: one with gaps, or with fewer elements.
void CheckResizable(const Tensor& out, IntSpan sizes);

}  // namespace mica
