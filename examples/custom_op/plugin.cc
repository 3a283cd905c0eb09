// The plugin: defines acme's operators (generated from operators.yaml) and brings
// the kernel of fused_attention for the CPU.
//
// Built against the installed Mica::sdk alone; Python finds it through the entry
// point of the package acme_ops.
#include <cmath>
#include <limits>
#include <string>
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

void CheckDtype(TensorRef t, const std::string& name) {
  MICA_PLUGIN_CHECK(t.dtype() == MICA_F32 || t.dtype() == MICA_F64, MICA_ERROR_NOT_IMPLEMENTED,
                    name + " supports float32 and float64; convert with x.float() first.");
}

// snippet: kernel
// fused_attention.out(query, key, value, scale, out): shapes were checked by the entry's `shape:`, and the
// output made.
void FusedAttention(const MicaCall*, const MicaValue* args, int64_t, MicaValue*, int64_t) {
  const OwnedTensor query = Contiguous(args[0].u.tensor), key = Contiguous(args[1].u.tensor),
                    value = Contiguous(args[2].u.tensor);
  const TensorRef q(query.get()), k(key.get()), v(value.get()), out(args[4].u.tensor);
  CheckDtype(out, "acme::fused_attention");
  const double scale =
      args[3].tag == MICA_VALUE_NONE ? 1 / std::sqrt(static_cast<double>(q.size(2))) : args[3].u.f;
  if (q.dtype() == MICA_F32)
    Attention<float>(q, k, v, out, scale);
  else
    Attention<double>(q, k, v, out, scale);
}
// end snippet

template <typename T>
void AddScaled(TensorRef out, TensorRef t, double weight) {
  for (int64_t i = 0; i < out.numel(); ++i) out.data<T>()[i] += static_cast<T>(weight * t.data<T>()[i]);
}

// Random numbers of [0, noise), of the generator that the call names, or else of the device's.
template <typename T>
void SetNoise(TensorRef out, MicaGenerator* generator, double noise) {
  std::vector<uint32_t> words(noise == 0 ? 0 : static_cast<size_t>(out.numel()));
  if (!words.empty())
    Check(Host()->random_u32(generator, MicaDevice{0, 0}, words.data(), static_cast<int64_t>(words.size())));
  for (int64_t i = 0; i < out.numel(); ++i)
    out.data<T>()[i] = words.empty() ? T(0) : static_cast<T>(words[static_cast<size_t>(i)] * 0x1p-32 * noise);
}

// weighted_sum.out(tensors, weights, noise, generator, out)
void WeightedSum(const MicaCall*, const MicaValue* args, int64_t, MicaValue*, int64_t) {
  const TensorRef out(args[4].u.tensor);
  CheckDtype(out, "acme::weighted_sum");
  const bool is_float = out.dtype() == MICA_F32;
  MicaGenerator* const generator = args[3].tag == MICA_VALUE_NONE ? nullptr : args[3].u.generator;
  is_float ? SetNoise<float>(out, generator, args[2].u.f) : SetNoise<double>(out, generator, args[2].u.f);
  for (int64_t i = 0; i < args[0].u.tensors.size; ++i) {
    const OwnedTensor t = Contiguous(args[0].u.tensors.data[i]);
    const double weight = args[1].u.floats.data[i];
    is_float ? AddScaled<float>(out, t.get(), weight) : AddScaled<double>(out, t.get(), weight);
  }
}

// The elements of `t` as multiples of `step`.
OwnedTensor Rounded(MicaTensor* t, double step) {
  const OwnedTensor input = Contiguous(t);
  const TensorRef in(input.get());
  CheckDtype(in, "acme::quantize");
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
  cpu.Boxed<&FusedAttention>("acme::fused_attention.out");
  cpu.Boxed<&WeightedSum>("acme::weighted_sum.out");
  cpu.Boxed<&MakeQuantizer>("acme::quantizer");
  cpu.Boxed<&Quantize>("acme::quantize");
}

}  // namespace

MICA_PLUGIN("acme", "Mica examples", "1.0", "", "", "operators:acme", Init)
// end snippet
