// native_layer_norm and its gradient against their formulas in double.
#include "mica/plugins/cpu/reduce/layer_norm.h"

#include <cmath>
#include <vector>

#include "mica/plugin.h"
#include "mica/test/support/mica_test.h"
#include "mica/test/unit/cpu/fake_host.h"

namespace mica::cpu::test {
namespace {

constexpr double kEps = 1e-5;

template <class T>
void Check(int32_t dtype, int64_t rows, int64_t n, bool affine, double tolerance) {
  FakeHost host;
  HostTensor x(dtype, {rows, n}), g(dtype, {rows, n}), w(dtype, {n}), b(dtype, {n});
  for (int64_t i = 0; i < rows * n; ++i) {
    x.At<T>(i) = static_cast<T>((i * 37 % 101) / 25.0 + 3);
    g.At<T>(i) = static_cast<T>((i * 17 % 23) / 10.0 - 1);
  }
  for (int64_t i = 0; i < n; ++i) {
    w.At<T>(i) = static_cast<T>(1 + i % 3);
    b.At<T>(i) = static_cast<T>(i % 5);
  }
  const MicaCall call = MakeCall(nullptr, dtype, 2);
  MicaTensor* weight = affine ? w.get() : nullptr;
  MicaTensor* bias = affine ? b.get() : nullptr;
  MicaValue forward[3], backward[3];
  NativeLayerNorm(&call, x.get(), {&n, 1}, weight, bias, kEps, forward);
  const HostTensor &y = FakeHost::Of(forward[0]), &mean = FakeHost::Of(forward[1]),
                   &rstd = FakeHost::Of(forward[2]);
  CHECK(mean.sizes() == std::vector<int64_t>{rows, 1});
  const uint8_t all[] = {1, 1, 1};
  NativeLayerNormBackward(&call, g.get(), x.get(), {&n, 1}, const_cast<HostTensor&>(mean).get(),
                          const_cast<HostTensor&>(rstd).get(), weight, bias, {all, 3}, backward);
  const HostTensor& dx = FakeHost::Of(backward[0]);
  CHECK((backward[1].tag == MICA_VALUE_TENSOR) == affine);
  const HostTensor& db = FakeHost::Of(backward[2]);
  std::vector<double> want_w(static_cast<size_t>(n)), want_b(static_cast<size_t>(n));
  double worst = 0;
  const auto take = [&worst](T got, double want) {
    worst = std::max(worst, std::fabs(static_cast<double>(got) - want) / (1 + std::fabs(want)));
  };
  for (int64_t r = 0; r < rows; ++r) {
    double m = 0, v = 0, s1 = 0, s2 = 0;
    const auto at = [&](const HostTensor& t, int64_t i) { return static_cast<double>(t.At<T>(r * n + i)); };
    for (int64_t i = 0; i < n; ++i) m += at(x, i) / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) v += (at(x, i) - m) * (at(x, i) - m) / static_cast<double>(n);
    const double d = 1 / std::sqrt(v + kEps);
    const auto scale = [&](int64_t i) { return affine ? static_cast<double>(w.At<T>(i)) : 1.0; };
    for (int64_t i = 0; i < n; ++i) {
      const double h = (at(x, i) - m) * d;
      take(y.At<T>(r * n + i), h * scale(i) + (affine ? static_cast<double>(b.At<T>(i)) : 0));
      s1 += at(g, i) * scale(i) / static_cast<double>(n);
      s2 += at(g, i) * scale(i) * h / static_cast<double>(n);
      want_w[static_cast<size_t>(i)] += at(g, i) * h;
      want_b[static_cast<size_t>(i)] += at(g, i);
    }
    for (int64_t i = 0; i < n; ++i)
      take(dx.At<T>(r * n + i), (at(g, i) * scale(i) - s1 - (at(x, i) - m) * d * s2) * d);
    take(mean.At<T>(r), m);
    take(rstd.At<T>(r), d);
  }
  for (int64_t i = 0; i < n; ++i) {
    if (affine) take(FakeHost::Of(backward[1]).At<T>(i), want_w[static_cast<size_t>(i)]);
    take(db.At<T>(i), want_b[static_cast<size_t>(i)]);
  }
  INFO("rows " << rows << ", length " << n << ", affine " << affine);
  CHECK(worst < tolerance);
}

TEST_CASE("layer normalisation and its gradient are their formulas") {
  for (const bool affine : {false, true}) {
    for (const int64_t n : {1, 7, 64, 300, 1025}) {
      Check<float>(MICA_F32, 5, n, affine, 2e-4);
      Check<double>(MICA_F64, 200, n, affine, 1e-11);
    }
  }
}

TEST_CASE("layer normalisation declines what is not dense") {
  FakeHost host;
  HostTensor x(MICA_F32, {4, 6}, {1, 4}), half(MICA_F16, {4, 6});
  const int64_t n = 6;
  const MicaCall call = MakeCall(nullptr, MICA_F32);
  MicaValue results[3];
  CHECK_THROWS_AS(NativeLayerNorm(&call, x.get(), {&n, 1}, nullptr, nullptr, kEps, results),
                  plugin::NotImplemented);
  CHECK_THROWS_AS(NativeLayerNorm(&call, half.get(), {&n, 1}, nullptr, nullptr, kEps, results),
                  plugin::NotImplemented);
}

}  // namespace
}  // namespace mica::cpu::test
