// The contraction operators of the CPU backend.
#ifndef MICA_PLUGINS_CPU_CONTRACTION_PRODUCTS_H_
#define MICA_PLUGINS_CPU_CONTRACTION_PRODUCTS_H_

#include <mica/plugin.h>

namespace mica::cpu {

// mm, bmm, mv, dot, addmm, baddbmm.
void RegisterContraction(plugin::Registrar& registrar);

void Mm(const MicaCall* call, MicaTensor* self, MicaTensor* mat2, MicaTensor* out);
void Bmm(const MicaCall* call, MicaTensor* self, MicaTensor* mat2, MicaTensor* out);
void Mv(const MicaCall* call, MicaTensor* self, MicaTensor* vec, MicaTensor* out);
void Dot(const MicaCall* call, MicaTensor* self, MicaTensor* tensor, MicaTensor* out);
void Addmm(const MicaCall* call, MicaTensor* self, MicaTensor* mat1, MicaTensor* mat2, MicaScalar beta,
           MicaScalar alpha, MicaTensor* out);
void Baddbmm(const MicaCall* call, MicaTensor* self, MicaTensor* batch1, MicaTensor* batch2, MicaScalar beta,
             MicaScalar alpha, MicaTensor* out);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_CONTRACTION_PRODUCTS_H_
