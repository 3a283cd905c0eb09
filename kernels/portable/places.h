// Where gather reads and scatter writes: the `index`, `keep` and bounds of a
// MicaProgram, run for every element of the other side.
#pragma once

#include <vector>

#include "mica/kernels/portable/lanes.h"
#include "mica/program.h"

namespace mica::portable {

// Byte offsets into `data` in row-major order of the element's side (the output of
// a gather, the source of a scatter), -1 where the element is filled or left out.
// `side` is that side's shape; where the program has an index of its own shape
// (MICA_INDEX_WHOLE), the index's. Throws where the program's bounds say so.
std::vector<int64_t> PlacesOf(const MicaProgram& program, const MicaValue* args, const Tensor& data,
                              IntSpan side);

}  // namespace mica::portable
