// Matrix products through dnnl_sgemm, which keeps no state between calls.
#include <oneapi/dnnl/dnnl.h>

#include "mica/plugins/cpu/libraries/dnnl.h"
#include "mica/plugins/cpu/libraries/dnnl_threads.h"

namespace mica::cpu {

void DnnlGemm(const GemmTask& t, int32_t threads) {
  const DnnlThreads guard(threads);
  dnnl_sgemm(t.a.transposed ? 'T' : 'N', t.b.transposed ? 'T' : 'N', t.m, t.n, t.k,
             static_cast<float>(t.alpha[0]), static_cast<const float*>(t.a.data), t.a.stride,
             static_cast<const float*>(t.b.data), t.b.stride, static_cast<float>(t.beta[0]),
             static_cast<float*>(t.c), t.c_stride);
}

}  // namespace mica::cpu
