// Where gather reads and scatter writes: the `index`, `keep` and bounds of a
// MicaProgram, run for every element of the other side.
#pragma once

#include <functional>
#include <vector>

#include <mica/program.h>
#include "kernels/portable/lanes.h"

namespace mica::portable {

// Byte offsets into `data` in row-major order of the element's side (the output of
// a gather, the source of a scatter), -1 where the element is filled or left out.
// `side` is that side's shape; where the program has an index of its own shape
// (MICA_INDEX_WHOLE), the index's. Throws where the program's bounds say so.
std::vector<int64_t> PlacesOf(const MicaProgram& program, const MicaValue* args, const Tensor& data,
                              IntSpan side);

// The same row by row, where each dimension's coordinate depends on itself alone: an
// element's place is `base` plus the table's entry of its last coordinate. Either is -1
// where it is filled; so is an element whose `kept` is 0 (NULL: all are kept).
struct PlaceRow {
  int64_t base;
  const std::vector<int64_t>& last;
  const int64_t* kept;
};
// Calls f for every row in order. False, and nothing done, where coordinates do not
// separate.
bool ForEachPlaceRow(const MicaProgram& program, const MicaValue* args, const Tensor& data, IntSpan side,
                     const std::function<void(const PlaceRow&)>& f);

}  // namespace mica::portable
