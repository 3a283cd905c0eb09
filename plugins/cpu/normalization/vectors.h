// One number a channel: weights, biases and statistics, whatever their dtype.
#ifndef MICA_PLUGINS_CPU_NORMALIZATION_VECTORS_H_
#define MICA_PLUGINS_CPU_NORMALIZATION_VECTORS_H_

#include <string>
#include <vector>

#include "plugins/cpu/contraction/dense.h"

namespace mica::cpu {

// The dtype that normalisations compute in: float32, or float64 for its own.
inline int32_t NormalizationDtype(const plugin::TensorRef& t) {
  const bool floating = t.dtype() >= MICA_F16 && t.dtype() <= MICA_F64;
  MICA_PLUGIN_CHECK(floating, MICA_ERROR_NOT_IMPLEMENTED,
                    "Normalisation of the dtype number (" + std::to_string(t.dtype()) +
                        ") is not supported; use a floating dtype.");
  return t.dtype() == MICA_F64 ? MICA_F64 : MICA_F32;
}

// All elements as doubles; `otherwise` n times where the tensor is None.
inline std::vector<double> LoadVector(const MicaTensor* tensor, int64_t n, double otherwise,
                                      const char* name) {
  if (!tensor) return std::vector<double>(static_cast<size_t>(n), otherwise);
  const plugin::TensorRef t(tensor);
  MICA_PLUGIN_CHECK(t.numel() == n, MICA_ERROR_RUNTIME,
                    "Number of elements (" + std::to_string(t.numel()) + ") of `" + name +
                        "` differs from the (" + std::to_string(n) + ") that `input` needs.");
  const int32_t dtype = NormalizationDtype(t);
  const DenseInput dense(tensor, dtype, 1);
  if (dtype == MICA_F64) return {dense.data<double>(), dense.data<double>() + n};
  return {dense.data<float>(), dense.data<float>() + n};
}

inline void StoreVector(const std::vector<double>& values, MicaTensor* tensor) {
  const int32_t dtype = NormalizationDtype(tensor);
  DenseOutput dense(tensor, dtype, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == MICA_F64)
      dense.data<double>()[i] = values[i];
    else
      dense.data<float>()[i] = static_cast<float>(values[i]);
  }
  dense.Finish();
}

inline plugin::OwnedTensor NewVector(const std::vector<double>& values, int32_t dtype) {
  const auto n = static_cast<int64_t>(values.size());
  plugin::OwnedTensor t = plugin::OwnedTensor::Empty(&n, 1, dtype, MicaDevice{0, 0});
  StoreVector(values, t.get());
  return t;
}

inline void GiveResult(MicaValue* result, plugin::OwnedTensor tensor) {
  *result = {};
  result->tag = tensor.get() ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
  result->u.tensor = tensor.release();
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_NORMALIZATION_VECTORS_H_
