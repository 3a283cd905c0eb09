#include "keys/functionalize/arithmetic.h"

#include <algorithm>

namespace mica::functionalize {

bool IsNonOverlappingAndDense(IntSpan sizes, IntSpan strides) {
  Dims order;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  uint64_t expected = 1;
  for (const int64_t i : order) {
    if (strides[i] != static_cast<int64_t>(expected)) return false;
    expected *= static_cast<uint64_t>(sizes[i]);
  }
  return true;
}

Dims ContiguousStrides(IntSpan sizes) {
  Dims strides(static_cast<size_t>(sizes.size()));
  uint64_t step = 1;  // wraps for sizes that whoever allocates them refuses
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(sizes[static_cast<int64_t>(i)], 1));
  }
  return strides;
}

Dims StridesIn(MemoryFormat format, IntSpan sizes) {
  if (format < MemoryFormat::kChannelsLast) return ContiguousStrides(sizes);
  constexpr MicaDevice kMeta = {1, 0};
  const Tensor made = layer::Taken(plugin::Host()->tensor_empty({sizes.data(), sizes.size()}, MICA_U8, kMeta,
                                                                static_cast<int32_t>(format)));
  return formula::Own(made.strides());
}

namespace {
// bool, integer, floating, complex.
int CategoryOf(DType d) {
  if (d == DType::kBool) return 0;
  return formula::IsComplex(d) ? 3 : formula::IsFloating(d) ? 2 : 1;
}
}  // namespace

bool CanCast(DType from, DType to) { return CategoryOf(from) <= CategoryOf(to); }

DType RealOf(DType d) { return d == DType::kC64 ? DType::kF32 : d == DType::kC128 ? DType::kF64 : d; }

const char* Name(DType d) {
  static constexpr const char* kNames[] = {
      "bool",    "uint8",     "int8",       "uint16",        "int16",      "uint32",
      "int32",   "uint64",    "int64",      "float16",       "bfloat16",   "float32",
      "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"};
  return kNames[static_cast<size_t>(d)];
}

}  // namespace mica::functionalize
