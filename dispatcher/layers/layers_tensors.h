// Of the table T2 (<mica/layers.h>), what reads and changes single tensors, and what a layer checks
// before it takes a write out of a program. layers_extension.cc puts these into the table.
#pragma once

#include <mica/layers.h>
#include "dispatcher/plugins/status.h"
#include "tensor/tensor.h"

namespace mica::layers {

template <typename F>
MicaTensorResult ReturnTensor(F&& f) noexcept {
  try {
    return {f().release(), nullptr};
  } catch (...) {
    return {nullptr, StatusOfCurrentException()};
  }
}

uint64_t TensorTraits(MicaTensor* t);
uint64_t TensorVersion(MicaTensor* t);
MicaStatus SetRequiresGrad(MicaTensor* t, int32_t on);
MicaTensorResult GradientOf(MicaTensor* t);
MicaStatus SetGradient(MicaTensor* t, MicaTensor* grad);
MicaTensorResult EmptyStridedOf(MicaIntSpan sizes, MicaIntSpan strides, int32_t dtype, MicaDevice device);

void TensorDetails(MicaTensor* t, MicaTensorDetails* out);
const void* TensorStorage(MicaTensor* t);
MicaTensorResult ViewTensor(MicaTensor* t, MicaIntSpan sizes, MicaIntSpan strides, int64_t offset,
                            int32_t dtype, int32_t detached);
MicaTensorResult ViewByOperator(void* op, const MicaValue* args, int64_t n);
MicaStatus SetViewCreation(MicaTensor* view, int32_t creation);
MicaStatus ShowMemory(MicaTensor* wrapper, MicaTensor* of, MicaIntSpan sizes, MicaIntSpan strides,
                      int64_t offset);
MicaStatus MakeMemory(MicaTensor* t, int32_t is_written);
MicaStatus CallOnMeta(void* op, const MicaValue* args, int64_t n, MicaValue* results, int64_t num_results);

int32_t OverlapOf(MicaTensor* a, MicaTensor* b);
MicaStatus CheckOverlap(MicaTensor* output, const char* output_name, MicaTensor* input,
                        const char* input_name);
MicaStatus CheckWritableBy(void* op, MicaTensor* t);
MicaStatus CheckRecordedWrite(void* op, const char* name, MicaTensor* t);
MicaStatus RefuseCaptured(void* op, const MicaFrame* frame, MicaTensor* t);
void MarkWrittenBy(void* op, MicaTensor* t);

}  // namespace mica::layers
