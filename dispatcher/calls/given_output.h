// What an out= form may do with the tensor that it is given.
#pragma once

#include <string>

#include "dispatcher/calls/structured.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace mica {

// Before `out`, which has elements and no two in one place, is resized to the result's sizes. Throws for a
// view where elements beside its own would be written: one with gaps, or with fewer elements than its
// storage.
void CheckResizable(const Tensor& out, IntSpan sizes);

// How torch says that a result, by its name, does not fit `out`'s dtype; programs and tests match each
// half of it.
std::string CannotHold(DType result, DType out, const char* name = "result");

// A given output against what the meta function says: resized (out=) or refused. With `keeps_shape` its
// shape is its own business.
void FitOutput(const OperatorSpec& spec, const Tensor& out, const OutputSpec& want, const char* name,
               bool keeps_shape = false);

// What is said of an out= form, or of a resize, in which a tensor's gradient would have to be recorded.
[[noreturn]] void RefuseRecordedOut(const OperatorSpec& spec);
[[noreturn]] void RefuseRecordedResize(const OperatorSpec& spec);

// Warns, where `out` has elements, that it is being resized to the result's sizes.
void WarnOfResize(const Tensor& out, IntSpan sizes);

}  // namespace mica
