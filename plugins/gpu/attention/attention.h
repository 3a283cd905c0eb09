// Attention that never holds the score matrix (Dao, 2023), on tensor cores.
//
// _flash_attention and _flash_attention_backward for float16 and bfloat16, by the vendor's library
// (libraries/attention.h) where it takes them: no mask, and as much work as makes up for the library's calls.
// Else by kernels of its own, for rows of 32, 64, 96 or 128 adjacent elements: texts warp.inc, tiles.inc,
// flash.inc, flash_backward.inc. All else is refused, so that the host decomposes it into products and
// softmax. NVIDIA's devices need sm_80.
#pragma once

#include <mica/plugin.h>

#include "plugins/gpu/devices.h"
#include "plugins/gpu/libraries/attention.h"

namespace gpu {

// Behind mica::kit::Register, whose driver launches the kernels; `devices`, and `library` (or NULL), live as
// long as the process.
void RegisterAttention(mica::plugin::Registrar& registrar, Devices& devices, Attention* library);

// In the functional form. Query [batch, heads, rows, width], key and value with a divisor of the number of
// heads and rows of their own, mask broadcast to [batch, heads, rows, columns] or NULL. Results: [batch,
// rows, heads, width], laid in memory as `query`, and float [batch, heads, rows], the logarithm of each row's
// sum.
void FlashAttention(const MicaCall* call, MicaTensor* query, MicaTensor* key, MicaTensor* value,
                    MicaTensor* mask, int32_t is_causal, double scale, MicaValue* results);
// Gradients of query, key and value; a mask's own gradient is refused.
void FlashAttentionBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* query, MicaTensor* key,
                            MicaTensor* value, MicaTensor* mask, int32_t is_causal, double scale,
                            MicaTensor* output, MicaTensor* log_sum, MicaBoolSpan output_mask,
                            MicaValue* results);

}  // namespace gpu
