// The operators of the CPU backend that read and write by index.
#ifndef MICA_PLUGINS_CPU_INDEXING_INDEXING_H_
#define MICA_PLUGINS_CPU_INDEXING_INDEXING_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterIndexing(plugin::Registrar& registrar);

// arithmetic.cc: the class kernel "gather" where coordinates are computed
void RunGather(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
               int64_t num_outputs);

// gather.cc
void Gather(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, int32_t sparse_grad,
            MicaTensor* out);
void IndexSelect(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* out);
void Embedding(const MicaCall* call, MicaTensor* weight, MicaTensor* indices, int64_t padding_idx,
               int32_t scale_grad_by_freq, int32_t sparse, MicaTensor* out);
void Index(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensor* out);

// scatter.cc
void EmbeddingDenseBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* indices,
                            int64_t num_weights, int64_t padding_idx, int32_t scale_grad_by_freq,
                            MicaTensor* out);
void IndexAdd(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* source,
              MicaScalar alpha, MicaTensor* out);
void ScatterAdd(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out);
void ScatterSrc(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out);
void ScatterValue(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaScalar value,
                  MicaTensor* out);
void ScatterReduce(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                   MicaStr reduce, int32_t include_self, MicaTensor* out);
void IndexCopy(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* source,
               MicaTensor* out);
void IndexPut(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensor* values,
              int32_t accumulate, MicaTensor* out);

// masks.cc. Kernels of the functional form: the size of the result depends on data.
MicaTensor* Nonzero(const MicaCall* call, MicaTensor* self);
MicaTensor* MaskedSelect(const MicaCall* call, MicaTensor* self, MicaTensor* mask);
// Into a given tensor, which they resize.
void NonzeroOut(const MicaCall* call, MicaTensor* self, MicaTensor* out);
void MaskedSelectOut(const MicaCall* call, MicaTensor* self, MicaTensor* mask, MicaTensor* out);
void MaskedScatter(const MicaCall* call, MicaTensor* self, MicaTensor* mask, MicaTensor* source,
                   MicaTensor* out);

// joining.cc: the class kernel "fold"
void RunFold(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
             int64_t num_outputs);

// bags.cc
void EmbeddingBag(const MicaCall* call, MicaTensor* weight, MicaTensor* indices, MicaTensor* offsets,
                  int32_t scale_grad_by_freq, int64_t mode, int32_t sparse, MicaTensor* per_sample_weights,
                  int32_t include_last_offset, MicaValue* results);
void EmbeddingBagPadding(const MicaCall* call, MicaTensor* weight, MicaTensor* indices, MicaTensor* offsets,
                         int32_t scale_grad_by_freq, int64_t mode, int32_t sparse,
                         MicaTensor* per_sample_weights, int32_t include_last_offset, MicaOptInt padding_idx,
                         MicaValue* results);

// counts.cc
MicaTensor* Bincount(const MicaCall* call, MicaTensor* self, MicaTensor* weights, int64_t minlength);
MicaTensor* OneHot(const MicaCall* call, MicaTensor* self, int64_t num_classes);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_INDEXING_INDEXING_H_
