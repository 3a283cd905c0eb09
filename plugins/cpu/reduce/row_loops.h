// Dense rows of a floating dtype in one go: softmax, layer norm and their gradients.
//
// The loops of a dtype for the best instruction set; `n` elements side by side. They
// compute in the dtype's lane, float32 for half types, whose elements are widened as
// they are read and rounded once as they are written. A long row asks whether to stop
// (threads.h), and has no result then. Used where a program's hint and
// the layout allow (loops.cc), and by layer_norm.cc.
#ifndef MICA_PLUGINS_CPU_REDUCE_ROW_LOOPS_H_
#define MICA_PLUGINS_CPU_REDUCE_ROW_LOOPS_H_

#include <cstdint>

#include <mica/abi.h>

namespace mica::cpu {

struct RowLoops {
  // `lanes` has room for n lanes; it may be `out` where that is in the lane's dtype.
  void (*softmax)(void* out, const void* x, int64_t n, void* lanes);
  void (*log_softmax)(void* out, const void* x, int64_t n, void* lanes);
  // grad, output -> output * (grad - sum(grad * output)), grad - exp(output) * sum(grad).
  void (*softmax_backward)(void* out, const void* grad, const void* output, int64_t n);
  void (*log_softmax_backward)(void* out, const void* grad, const void* output, int64_t n);
  // out = (x - mean) * rstd * weight + bias; weight and bias may be NULL. Writes
  // mean and rstd = 1 / sqrt(variance + eps). These four are in the lane's dtype.
  void (*layer_norm)(void* out, const void* x, const void* weight, const void* bias, int64_t n, double eps,
                     void* mean, void* rstd);
  // The gradient by the row (unless dx is NULL); adds to the gradients by weight
  // and bias, in double, unless they are NULL.
  void (*layer_norm_backward)(void* dx, double* dweight, double* dbias, const void* grad, const void* x,
                              const void* weight, int64_t n, const void* mean, const void* rstd);
};

// The loops of MICA_F16, MICA_BF16, MICA_F32 and MICA_F64, and whether a dtype is one.
const RowLoops& RowLoopsOf(int32_t dtype);
inline bool HasRowLoops(int32_t dtype) { return dtype >= MICA_F16 && dtype <= MICA_F64; }

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_ROW_LOOPS_H_
