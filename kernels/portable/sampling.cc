// Draws by rejection: gamma, Poisson and binomial numbers, element by element in row-major
// order from the generator's float64 uniform and normal numbers, as torch's CPU kernels draw
// them: the same seed gives the same numbers and leaves the generator in the same state.
//
// A rounding may decide whether a draw is taken, so T is the dtype that torch computes in:
// the parameters' own, float for the half types, and constants are of the precision they have
// there. What is not a number is drawn as NaN and what is infinite as itself, where torch
// would not come back.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "dispatcher/plugins/host.h"
#include "kernels/formula.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/random.h"

namespace mica::portable {
namespace {

// Marsaglia and Tsang (2000); a shape under 1 is lifted by one and scaled back.
template <typename T>
double DrawGamma(Generator& g, T shape) {
  double scale = 1;
  if (shape < 1) {
    if (shape == 0) return 0;
    scale = std::pow(1 - DrawUniform53(g), static_cast<double>(1 / shape));
    shape += 1;
  }
  const double d = shape - 1.0f / 3.0f, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x, y;
    do {
      x = DrawNormal(g, 0, 1);
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - DrawUniform53(g), xx = x * x;
    if (u < 1 - 0.0331f * xx * xx || std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

// Transformed rejection with squeeze (Hormann, 1993), for rates of at least 10.
double DrawLargePoisson(Generator& g, double rate) {
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), box = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = DrawUniform53(g) - 0.5, v = DrawUniform53(g), us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= box) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

// Below a rate of 10, the factors that keep a product of uniforms above exp(-rate) (Knuth).
double DrawPoisson(Generator& g, double rate) {
  MICA_CHECK(rate >= 0, "Rate (", rate, ") of poisson is not at least 0.");
  if (rate == 0 || std::isinf(rate)) return rate;
  if (rate >= 10) return DrawLargePoisson(g, rate);
  const double least = std::exp(-rate);
  double k = 0;
  for (double product = DrawUniform53(g); product > least; product *= DrawUniform53(g)) ++k;
  return k;
}

// What Stirling's formula leaves of log(k!).
double StirlingRest(double k) {
  constexpr double kFirst[] = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k < 10) return kFirst[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Sums of geometric numbers until they pass the count, for an expectation under 10.
template <typename T>
T DrawFewSuccesses(Generator& g, T count, T prob) {
  const double log_rest = std::log1p(-prob);
  T k = 0;
  for (double sum = 0;; k += 1) {
    sum += std::ceil(std::log(DrawUniform53(g)) / log_rest);
    if (sum > count) return k;
  }
}

// Transformed rejection (BTRS of Hormann, 1993), for an expectation of at least 10.
template <typename T>
T DrawManySuccesses(Generator& g, T count, T prob) {
  const double deviation = std::sqrt(count * prob * (1 - prob)), b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * prob, c = count * prob + 0.5, box = 0.92 - 4.2 / b;
  const double odds = prob / (1 - prob), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * prob);
  for (;;) {
    const double u = DrawUniform53(g) - 0.5, v = DrawUniform53(g), us = 0.5 - std::fabs(u);
    const T k = static_cast<T>(std::floor((2 * a / us + b) * u + c));
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= box) return k;
    const double most = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                        (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                        (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + StirlingRest(mode) +
                        StirlingRest(count - mode) - StirlingRest(k) - StirlingRest(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= most) return k;
  }
}

template <typename T>
T DrawBinomial(Generator& g, T count, T prob) {
  if (std::isnan(count) || std::isnan(prob)) return std::numeric_limits<T>::quiet_NaN();
  if (count <= 0 || prob <= 0) return 0;
  if (prob >= 1 || std::isinf(count)) return count;
  const T rarer = prob <= T(0.5) ? prob : 1 - prob;
  const T drawn =
      count * rarer >= 10 ? DrawManySuccesses(g, count, rarer) : DrawFewSuccesses(g, count, rarer);
  return prob <= T(0.5) ? drawn : count - drawn;
}

// `t` itself if it is a contiguous tensor of this dtype and shape, otherwise a copy that is.
Tensor Laid(const Tensor& t, IntSpan sizes, DType dtype) {
  if (t.dtype() == dtype && t.is_contiguous() && t.sizes() == sizes) return t;
  const Tensor copy = EmptyTensor(sizes, dtype, t.device());
  copy_(copy, t, false);
  return copy;
}

// out[i] = draw(generator, parameters of element i) in row-major order. A Ctrl-C ends the call.
template <typename... P, typename Draw>
void FillDrawn(const Tensor& out, Generator* generator, Draw&& draw, const P&... parameters) {
  const auto in = [&]<typename T>(T) {
    const DType dtype = std::is_same_v<T, double> ? DType::kF64 : DType::kF32;
    const Tensor drawn =
        out.dtype() == dtype && out.is_contiguous() ? out : EmptyTensor(out.sizes(), dtype, out.device());
    const Tensor laid[] = {Laid(parameters, out.sizes(), dtype)...};
    const T* data[sizeof...(P)];
    for (size_t p = 0; p < sizeof...(P); ++p) data[p] = static_cast<const T*>(laid[p].data());
    T* to = static_cast<T*>(drawn.data());
    Generator& g = generator ? *generator : DefaultGenerator(Device{});
    {
      std::unique_lock lock(g.mutex());
      for (int64_t i = 0; i < out.numel(); ++i) {
        if (i % 65536 == 65535) CheckInterrupted(lock);
        to[i] = [&]<size_t... K>(std::index_sequence<K...>) { return static_cast<T>(draw(g, data[K][i]...)); }
        (std::make_index_sequence<sizeof...(P)>());
      }
    }
    if (drawn.impl() != out.impl()) copy_(out, drawn, false);
  };
  if (out.dtype() == DType::kF64)
    in(double{});
  else
    in(float{});
}

}  // namespace

void _standard_gamma(const Tensor& self, Generator* generator, const Tensor& out) {
  const double least = formula::Tiny(out.dtype());
  const auto draw = [least](Generator& g, auto shape) {
    const double drawn = DrawGamma(g, shape);
    return drawn < least ? least : drawn;  // NaN stays
  };
  FillDrawn(out, generator, draw, self);
}

void poisson(const Tensor& self, Generator* generator, const Tensor& out) {
  FillDrawn(
      out, generator, [](Generator& g, auto rate) { return DrawPoisson(g, rate); }, self);
}

void binomial(const Tensor& count, const Tensor& prob, Generator* generator, const Tensor& out) {
  FillDrawn(
      out, generator, [](Generator& g, auto n, auto p) { return DrawBinomial(g, n, p); }, count, prob);
}

}  // namespace mica::portable
