// unique_consecutive of whole tensors and vectors: one pass counts the runs, so that results
// are made as large as they are, and one writes them, without branches. Slices along a
// dimension are the composition's.
#include <cstring>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/sorting/sorting.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

template <class T>
int64_t CountRuns(const T* x, int64_t n) {
  int64_t runs = 1;
  for (int64_t i = 1; i < n; ++i) runs += x[i] != x[i - 1];
  return runs;
}

// NULL: not asked for. A NaN is a run of its own.
template <class T>
void WriteRuns(const T* x, int64_t n, T* values, int64_t* inverse, int64_t* counts) {
  int64_t run = 0, first = 0;
  T value = values[0] = x[0];
  if (inverse != nullptr) inverse[0] = 0;
  if (counts != nullptr) counts[0] = 1;
  for (int64_t i = 1; i < n; ++i) {
    const bool begins = x[i] != x[i - 1];
    run += begins;
    first = begins ? i : first;
    value = begins ? x[i] : value;
    values[run] = value;
    if (inverse != nullptr) inverse[i] = run;
    if (counts != nullptr) counts[run] = i - first + 1;
  }
}

template <class F>
void VisitNumbers(int32_t dtype, F f) {
  switch (dtype) {
    case MICA_U8:
      return f(uint8_t());
    case MICA_I32:
      return f(int32_t());
    case MICA_I64:
      return f(int64_t());
    case MICA_F32:
      return f(float());
    case MICA_F64:
      return f(double());
    default:
      throw plugin::NotImplemented();
  }
}

void Give(MicaValue* result, OwnedTensor tensor) {
  *result = {};
  result->tag = MICA_VALUE_TENSOR;
  result->u.tensor = tensor.release();
}

}  // namespace

void UniqueConsecutive(const MicaCall*, MicaTensor* self, int32_t return_inverse, int32_t return_counts,
                       MicaOptInt dim, MicaValue* results) {
  const TensorRef in(self);
  const int64_t n = in.numel();
  if (n == 0 || (dim.has && (in.ndim() != 1 || dim.value < -1 || dim.value > 0)))
    throw plugin::NotImplemented();
  const auto made = [&](int64_t size, int32_t dtype) {
    return OwnedTensor::Empty(&size, 1, dtype, MicaDevice{0, 0});
  };
  VisitNumbers(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const DenseInput dense(self, in.dtype(), 1);
    const T* x = dense.data<T>();
    const int64_t runs = CountRuns(x, n);
    OwnedTensor values = made(runs, in.dtype()), counts = made(return_counts ? runs : 0, MICA_I64);
    OwnedTensor inverse = return_inverse && !dim.has
                              ? OwnedTensor::Empty(in.sizes(), in.ndim(), MICA_I64, MicaDevice{0, 0})
                              : made(return_inverse ? n : 0, MICA_I64);
    const auto numbers = [](const OwnedTensor& t, bool asked) {
      return asked ? TensorRef(t.get()).data<int64_t>() : nullptr;
    };
    WriteRuns(x, n, TensorRef(values.get()).data<T>(), numbers(inverse, return_inverse != 0),
              numbers(counts, return_counts != 0));
    Give(&results[0], std::move(values));
    Give(&results[1], std::move(inverse));
    Give(&results[2], std::move(counts));
  });
}

void RegisterConsecutive(plugin::Registrar& r) { r.Kernel<&UniqueConsecutive>("unique_consecutive"); }

}  // namespace mica::cpu
