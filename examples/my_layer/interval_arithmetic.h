// Interval arithmetic on tensors: a program of the host (a pointwise operator's `compute`),
// evaluated on bounds instead of numbers, one primitive at a time.
//
// Each primitive is made of operators of Mica, called in the frame's parent, so that the
// bounds themselves can be batched, differentiated and traced. Rounding is to nearest: bounds
// hold for real arithmetic, and up to the dtype's rounding for computed values. A bound that is
// NaN says that nothing is known: the logarithm of [-1, 1], infinity times 0.
#pragma once

#include <mica/formula.h>
#include <mica/program.h>

#include <optional>

namespace my_layer {

using mica::formula::Tensor;

// What lies between two tensors of one shape, or a number. A mask is a pair of bool tensors:
// surely true, possibly true.
struct Interval {
  Tensor lower, upper;           // the same tensor where it is a point
  std::optional<double> number;  // in their stead
  bool mask = false;
  const void* source = nullptr;  // what it was loaded from: two of one source are equal

  bool point() const { return number || lower.get() == upper.get(); }
};

// The result of the program of a pointwise operator; `inputs` by argument number. Throws
// NotImplemented's sentence where a primitive has no rule.
Interval Evaluate(const MicaProgram& program, const char* name, const MicaValue* args,
                  const std::vector<Interval>& inputs, int32_t compute_dtype);

// Whether a reduction's program only adds and compares, so that its result grows with each
// element: the bounds of the result are the results of the bounds.
bool IsIncreasing(const MicaProgram& program);

// Operators by name, for what the class rules are made of.
Tensor Call(const char* name, const Tensor& a);
Tensor Call(const char* name, const Tensor& a, const Tensor& b);
Tensor Filled(const Tensor& like, double value);

}  // namespace my_layer
