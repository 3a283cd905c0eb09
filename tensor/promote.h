// Type promotion as torch 2.13 defines it: of two dtypes, and of the operands of
// an operator by category (tensors with dimensions, 0-d tensors, numbers).
//
// A category matters only through its kind: a number or a 0-d tensor changes the
// dtype only when its kind (bool < integer < floating < complex) is higher.
#pragma once

#include "tensor/dtype.h"
#include "tensor/scalar.h"
#include "tensor/tensor.h"

namespace mica {

// The dtype that holds both. Throws kType for the pairs that torch refuses:
// uint16/32/64 with another integer, bool or complex; float8 with anything else.
DType PromoteTypes(DType a, DType b);
// Whether a result computed in `from` may be written to `to`.
bool CanCast(DType from, DType to);

// Of a tensor made from Python floats: kF16, kBF16, kF32 (at first) or kF64;
// for the process.
DType DefaultDType();
DType DefaultComplexDType();
void SetDefaultDType(DType dtype);  // throws kType for others

// Adds up operands; `dtype()` is their common dtype.
class ResultType {
 public:
  ResultType& Add(const Tensor& tensor);
  ResultType& Add(const Scalar& number);
  ResultType& AddDim(DType d) { return Into(dim_, d); }
  ResultType& AddZeroDim(DType d) { return Into(zero_, d); }
  ResultType& AddNumber(DType d) { return Into(number_, d); }
  bool empty() const { return dim_ < 0 && zero_ < 0 && number_ < 0; }
  // Throws kInternal when nothing was added.
  DType dtype() const;

 private:
  ResultType& Into(int& slot, DType d);
  int dim_ = -1;  // dtypes, -1: none yet
  int zero_ = -1;
  int number_ = -1;
};

}  // namespace mica
