// Index programs over two coordinates, run for all of their values at once.
//
// Where `index` and `keep` of the class gather are linear in the coordinates, as those
// of pad, flip and tril are, a register holds slope * x + row_slope * y + start, and a
// mask the half planes in which it is true: x goes along a row, y from row to row. With
// slopes of 0 the same machine computes any integer program for one place; over a range of x
// where its absolute values, extremes and remainders do not break, any that is linear there
// (roll, reflection). Not for programs that read an index tensor.
#ifndef MICA_PLUGINS_CPU_INDEXING_LINEAR_H_
#define MICA_PLUGINS_CPU_INDEXING_LINEAR_H_

#include <cstdint>

#include <mica/program.h>

namespace mica::cpu {

struct Linear {
  int64_t slope, row_slope, start;
};
struct Interval {
  int64_t begin, end;
};

// Where each of a few linear forms is at most 0.
struct Region {
  static constexpr int kMost = 4;
  int count = 0;
  Linear forms[kMost];
  // The x of [0, length) in it, in row y.
  Interval Row(int64_t y, int64_t length) const;
};

// What sources read besides the coordinates.
struct LinearContext {
  const MicaProgram* program;
  const MicaValue* args;
  const int64_t* sizes;  // of SIZE, and as many as COORD has dimensions
  int32_t ndim;
  int32_t named;      // the place of this dimension in LIST's lists
  int32_t dimension;  // from the end: the pair that BEFORE and AFTER read
  // The x to be linear over; the first of them after which a program is not goes to `split`.
  Interval range = {0, 0};
  int64_t* split = nullptr;
};

// What STORE 0 of `code` gets, for coordinates[d]; false where that is not linear.
bool RunLinear(const LinearContext& context, const MicaCode& code, const Linear* coordinates, Linear* result);
// The same of a mask.
bool RunLinearMask(const LinearContext& context, const MicaCode& code, const Linear* coordinates,
                   Region* result);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_INDEXING_LINEAR_H_
