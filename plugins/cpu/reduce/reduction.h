// The class kernels "reduction", "scan" and "row".
//
// Each takes the operator's program; where the program names a hint that has a
// loop of its own (loops.h), that loop runs instead.
#ifndef MICA_PLUGINS_CPU_REDUCE_REDUCTION_H_
#define MICA_PLUGINS_CPU_REDUCE_REDUCTION_H_

#include <initializer_list>
#include <string_view>

#include "plugins/cpu/reduce/space.h"

namespace mica::cpu {

void RunReduction(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
                  int64_t num_outputs);
void RunScan(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
             int64_t num_outputs);
void RunRow(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
            int64_t num_outputs);

// Runs whose reduced elements lie together and are at least this many are folded
// along the row, shorter ones across rows.
inline constexpr int64_t kRowRun = 32;

// Whether to go along rows: the reduced elements are dense, or there are too few
// rows to fill lanes.
bool GoesAlong(const Space& space);

// The call, computing in float64 instead of float32, and in complex128 instead of complex64, where its
// program's hint is named: states that take one element after the other would lose digits, and overflow on
// the way.
MicaCall InDouble(const MicaCall& call, std::initializer_list<std::string_view> hints);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_REDUCTION_H_
