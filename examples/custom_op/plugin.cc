// The plugin: defines acme's operators (generated from operators.yaml) and brings
// the kernel of fused_attention for the CPU.
//
// Built against the installed Mica::sdk alone; Python finds it through the entry
// point of the package acme_ops.
#include <cmath>
#include <limits>
#include <vector>

#include <mica/object.h>
#include <mica/plugin.h>

#include "operators.h"

using namespace mica::plugin;

namespace {

// One row of `query` against all rows of `key`: the softmax is renormalised as it
// goes, so that no row of scores is kept.
template <typename T>
void Row(const T* query, const T* keys, const T* values, T* out, int64_t rows, int64_t depth, int64_t width,
         double scale) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  std::vector<double> acc(static_cast<size_t>(width), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    double score = 0;
    for (int64_t d = 0; d < depth; ++d) score += static_cast<double>(query[d]) * keys[r * depth + d];
    score *= scale;
    const double most = std::fmax(largest, score), keep = std::exp(largest - most),
                 weight = std::exp(score - most);
    sum = sum * keep + weight;
    for (int64_t w = 0; w < width; ++w)
      acc[static_cast<size_t>(w)] = acc[static_cast<size_t>(w)] * keep + weight * values[r * width + w];
    largest = most;
  }
  for (int64_t w = 0; w < width; ++w) out[w] = static_cast<T>(acc[static_cast<size_t>(w)] / sum);
}

template <typename T>
void Attention(TensorRef q, TensorRef k, TensorRef v, TensorRef out, double scale) {
  const int64_t batch = q.size(0), rows = q.size(1), depth = q.size(2), keys = k.size(1), width = v.size(2);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t r = 0; r < rows; ++r)
      Row(q.data<T>() + (b * rows + r) * depth, k.data<T>() + b * keys * depth,
          v.data<T>() + b * keys * width, out.data<T>() + (b * rows + r) * width, keys, depth, width, scale);
}

// A contiguous copy where the tensor is not.
OwnedTensor Contiguous(MicaTensor* t) {
  static void* handle = nullptr;
  if (!handle) Check(Host()->op_find(Str("mica::contiguous"), &handle));
  MicaValue args[2] = {}, result{};
  args[0].tag = MICA_VALUE_TENSOR;
  args[0].u.tensor = t;
  args[1].tag = MICA_VALUE_MEMORY_FORMAT;
  args[1].u.i = MICA_CONTIGUOUS;
  Check(Host()->op_call_boxed(handle, args, 2, &result, 1));
  return OwnedTensor(result.u.tensor);
}

void FusedAttention(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const OwnedTensor query = Contiguous(args[0].u.tensor), key = Contiguous(args[1].u.tensor),
                    value = Contiguous(args[2].u.tensor);
  const TensorRef q(query.get()), k(key.get()), v(value.get());
  MICA_PLUGIN_CHECK(q.ndim() == 3 && k.ndim() == 3 && v.ndim() == 3 && q.size(2) == k.size(2) &&
                        k.size(1) == v.size(1) && q.size(0) == k.size(0) && q.size(0) == v.size(0),
                    MICA_ERROR_RUNTIME, "acme::fused_attention needs batches of rows that fit each other.");
  MICA_PLUGIN_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(), MICA_ERROR_TYPE,
                    "acme::fused_attention needs tensors of one dtype.");
  const double scale =
      args[3].tag == MICA_VALUE_NONE ? 1 / std::sqrt(static_cast<double>(q.size(2))) : args[3].u.f;
  const int64_t sizes[] = {q.size(0), q.size(1), v.size(2)};
  OwnedTensor out = OwnedTensor::Empty(sizes, 3, q.dtype(), MicaDevice{0, 0});
  if (q.dtype() == MICA_F32)
    Attention<float>(q, k, v, out.get(), scale);
  else if (q.dtype() == MICA_F64)
    Attention<double>(q, k, v, out.get(), scale);
  else
    MICA_PLUGIN_THROW(MICA_ERROR_NOT_IMPLEMENTED,
                      "acme::fused_attention supports float32 and float64; convert with x.float() first.");
  results[0].tag = MICA_VALUE_TENSOR;
  results[0].u.tensor = out.release();
}

// The elements of `t` as multiples of `step`.
OwnedTensor Rounded(MicaTensor* t, double step) {
  const OwnedTensor input = Contiguous(t);
  const TensorRef in(input.get());
  MICA_PLUGIN_CHECK(in.dtype() == MICA_F32 || in.dtype() == MICA_F64, MICA_ERROR_NOT_IMPLEMENTED,
                    "acme::quantize supports float32 and float64; convert with x.float() first.");
  OwnedTensor out = OwnedTensor::Empty(in.sizes(), in.ndim(), in.dtype(), MicaDevice{0, 0});
  const TensorRef rounded(out.get());
  for (int64_t i = 0; i < in.numel(); ++i) {
    if (in.dtype() == MICA_F32)
      rounded.data<float>()[i] = static_cast<float>(std::nearbyint(in.data<float>()[i] / step) * step);
    else
      rounded.data<double>()[i] = std::nearbyint(in.data<double>()[i] / step) * step;
  }
  return out;
}

// snippet: object
struct Quantizer {
  static constexpr const char* kTypeName = "acme.Quantizer";  // as the schemas write it
  double step;
};

void MakeQuantizer(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const double step = args[0].u.f;
  MICA_PLUGIN_CHECK(step > 0, MICA_ERROR_VALUE, "The step (" + std::to_string(step) + ") is not positive.");
  Object<Quantizer>::Make(step).Give(&results[0]);
}

void Quantize(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const Quantizer& quantizer = Object<Quantizer>::In(args[1]);
  results[0].tag = MICA_VALUE_TENSOR;
  results[0].u.tensor = Rounded(args[0].u.tensor, quantizer.step).release();
}
// end snippet

// snippet: init
void Init(const MicaHost*, const MicaRegistrar* r) {
  acme::RegisterOperators(r);
  Registrar cpu(r, "cpu");
  cpu.Boxed<&FusedAttention>("acme::fused_attention");
  cpu.Boxed<&MakeQuantizer>("acme::quantizer");
  cpu.Boxed<&Quantize>("acme::quantize");
}

}  // namespace

MICA_PLUGIN("acme", "Mica examples", "1.0", "", "", "operators:acme", Init)
// end snippet
