// Dense rows of float32 and float64 in one go: sums, extremes, softmax.
//
// The loops of a dtype for the best instruction set; `n` elements side by side.
// Used by loops.cc where a program's hint and the layout allow.
#ifndef MICA_PLUGINS_CPU_REDUCE_ROW_LOOPS_H_
#define MICA_PLUGINS_CPU_REDUCE_ROW_LOOPS_H_

#include <cstdint>

namespace mica::cpu {

struct RowLoops {
  double (*sum)(const void* x, int64_t n);
  // Of squared differences from `mean`.
  double (*squares)(const void* x, int64_t n, double mean);
  // NaN if any element is.
  double (*largest)(const void* x, int64_t n);
  double (*smallest)(const void* x, int64_t n);
  void (*softmax)(void* out, const void* x, int64_t n);
  void (*log_softmax)(void* out, const void* x, int64_t n);
  // grad, output -> output * (grad - sum(grad * output)), grad - exp(output) * sum(grad).
  void (*softmax_backward)(void* out, const void* grad, const void* output, int64_t n);
  void (*log_softmax_backward)(void* out, const void* grad, const void* output, int64_t n);
  // out = (x - mean) * rstd * weight + bias; weight and bias may be NULL. Writes
  // mean and rstd = 1 / sqrt(variance + eps).
  void (*layer_norm)(void* out, const void* x, const void* weight, const void* bias, int64_t n, double eps,
                     void* mean, void* rstd);
  // The gradient by the row (unless dx is NULL); adds to the gradients by weight
  // and bias, in double, unless they are NULL.
  void (*layer_norm_backward)(void* dx, double* dweight, double* dbias, const void* grad, const void* x,
                              const void* weight, int64_t n, const void* mean, const void* rstd);
};

// `dtype` is MICA_F32 or MICA_F64.
const RowLoops& RowLoopsOf(int32_t dtype);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_REDUCE_ROW_LOOPS_H_
