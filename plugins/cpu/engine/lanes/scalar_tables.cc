// Primitives made of the scalar functions of mica/maths/: one loop each, compiled
// once, since nothing in them gains from a wider instruction set.
#include <mica/maths/maths.h>
#include "plugins/cpu/engine/lanes/scalar_maths.h"

namespace mica::cpu {
namespace {

template <class T, double (*F)(double)>
int Apply(void* dst, const void* a, const void*, const void*, int64_t n) {
  const T* x = static_cast<const T*>(a);
  T* out = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(F(static_cast<double>(x[i])));
  return kFlagNone;
}

template <class T, double (*F)(double, double)>
int Apply(void* dst, const void* a, const void* b, const void*, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* out = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(F(static_cast<double>(x[i]), static_cast<double>(y[i])));
  return kFlagNone;
}

template <class T>
void Fill(Primitive* at) {
#define ROW(X, NAME, name) at[MICA_OP_##NAME] = Apply<T, mica_##name>;
  MICA_FORALL_MATHS1(ROW, _)
  MICA_FORALL_MATHS2(ROW, _)
#undef ROW
}

}  // namespace

void AddScalarMaths(int32_t dtype, PrimitiveTable* table) {
  dtype == MICA_F32 ? Fill<float>(table->at) : Fill<double>(table->at);
}

}  // namespace mica::cpu
