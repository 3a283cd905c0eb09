// Attention that never holds the score matrix (Dao et al., 2022; Rabe & Staats, 2021).
//
// Scores exist for one block of queries and one of keys at a time. The forward pass
// keeps each row's maximum and sum while key blocks pass; the backward pass makes the
// scores again from the logarithm of that sum, which the forward pass returns.
#ifndef MICA_PLUGINS_CPU_ATTENTION_ATTENTION_H_
#define MICA_PLUGINS_CPU_ATTENTION_ATTENTION_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterAttention(plugin::Registrar& registrar);

// Loops over rows of a block of scores; elements are float or double. Compiled per
// instruction set in attention_rows.cc.
template <class T>
struct AttentionRows {
  // Takes n scores into a row's softmax: makes them exp(score - maximum), raises the
  // maximum and the sum, and returns by what earlier results of the row must be scaled.
  T (*accumulate)(T* scores, int64_t n, T* maximum, T* sum);
  // scores = exp(scores - log_sum), 0 where log_sum is infinite.
  void (*probabilities)(T* scores, int64_t n, T log_sum);
  // gradient = probabilities * (gradient - delta)
  void (*score_gradient)(const T* probabilities, T* gradient, int64_t n, T delta);
  void (*scale)(T* row, int64_t n, T factor);
  void (*add)(T* row, const T* more, int64_t n);
};

const AttentionRows<float>& RowsOf(float);
const AttentionRows<double>& RowsOf(double);

// _flash_attention and _flash_attention_backward, in the functional form.
void FlashAttention(const MicaCall* call, MicaTensor* query, MicaTensor* key, MicaTensor* value,
                    MicaTensor* mask, int32_t is_causal, double scale, MicaValue* results);
void FlashAttentionBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* query, MicaTensor* key,
                            MicaTensor* value, MicaTensor* mask, int32_t is_causal, double scale,
                            MicaTensor* output, MicaTensor* log_sum, MicaBoolSpan output_mask,
                            MicaValue* results);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ATTENTION_ATTENTION_H_
