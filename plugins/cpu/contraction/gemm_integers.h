// Products of integer matrices, of any layout; sums and products wrap as the dtype does.
#ifndef MICA_PLUGINS_CPU_CONTRACTION_GEMM_INTEGERS_H_
#define MICA_PLUGINS_CPU_CONTRACTION_GEMM_INTEGERS_H_

#include "plugins/cpu/contraction/gemm.h"

namespace mica::cpu {

// The product of an integer dtype. Throws on a Ctrl-C.
void IntegerGemm(const Product& product, int32_t threads);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONTRACTION_GEMM_INTEGERS_H_
