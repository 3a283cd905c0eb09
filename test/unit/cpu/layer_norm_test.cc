// native_layer_norm and its gradient against their formulas in double.
#include "plugins/cpu/reduce/layer_norm.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <mica/plugin.h>
#include "test/support/mica_test.h"
#include "test/unit/cpu/fake_host.h"

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

TEST_CASE("layer normalisation of half types is that of float32, rounded once") {
  for (const int32_t dtype : {MICA_F16, MICA_BF16}) {
    for (const int64_t n : {1, 7, 64, 1029}) {
      FakeHost host;
      const int64_t rows = 4;
      HostTensor x(dtype, {rows, n}), g(dtype, {rows, n}), w(dtype, {n}), b(dtype, {n});
      HostTensor wide_x(MICA_F32, {rows, n}), wide_g(MICA_F32, {rows, n}), wide_w(MICA_F32, {n}),
          wide_b(MICA_F32, {n});
      const auto fill = [dtype](HostTensor& half, HostTensor& wide, float step) {
        for (int64_t i = 0; i < wide.numel(); ++i)
          wide.data<float>()[i] = std::sin(static_cast<float>(i) * step) * 3 + 1;
        DirectCast(MICA_F32, dtype)(half.data<void>(), wide.data<float>(), nullptr, nullptr, wide.numel());
        DirectCast(dtype, MICA_F32)(wide.data<float>(), half.data<void>(), nullptr, nullptr, wide.numel());
      };
      fill(x, wide_x, 3.7f);
      fill(g, wide_g, 2.9f);
      fill(w, wide_w, 1.3f);
      fill(b, wide_b, 0.7f);
      const auto differ = [](const HostTensor& half, const HostTensor& wide) {
        std::vector<uint16_t> want(static_cast<size_t>(wide.numel()));
        DirectCast(MICA_F32, half.dtype())(want.data(), wide.data<float>(), nullptr, nullptr, wide.numel());
        return std::memcmp(half.data<void>(), want.data(), want.size() * 2) != 0;
      };
      const MicaCall call = MakeCall(nullptr, dtype, 2);
      const uint8_t mask[] = {1, 1, 1};
      for (const bool mixed : {false, true}) {
        MicaTensor *weight = mixed ? wide_w.get() : w.get(), *bias = mixed ? wide_b.get() : b.get();
        MicaValue narrow[3], wide[3], narrow_back[3], wide_back[3];
        NativeLayerNorm(&call, x.get(), {&n, 1}, weight, bias, kEps, narrow);
        NativeLayerNorm(&call, wide_x.get(), {&n, 1}, wide_w.get(), wide_b.get(), kEps, wide);
        INFO("dtype " << dtype << ", n " << n << ", mixed " << mixed);
        CHECK_FALSE(differ(FakeHost::Of(narrow[0]), FakeHost::Of(wide[0])));
        for (const int i : {1, 2}) {
          CHECK(FakeHost::Of(narrow[i]).dtype() == MICA_F32);
          CHECK(std::memcmp(FakeHost::Of(narrow[i]).data<void>(), FakeHost::Of(wide[i]).data<void>(),
                            static_cast<size_t>(rows) * 4) == 0);
        }
        const auto statistic = [](MicaValue& v) { return const_cast<HostTensor&>(FakeHost::Of(v)).get(); };
        NativeLayerNormBackward(&call, g.get(), x.get(), {&n, 1}, statistic(narrow[1]), statistic(narrow[2]),
                                weight, bias, {mask, 3}, narrow_back);
        NativeLayerNormBackward(&call, wide_g.get(), wide_x.get(), {&n, 1}, statistic(wide[1]),
                                statistic(wide[2]), wide_w.get(), wide_b.get(), {mask, 3}, wide_back);
        CHECK_FALSE(differ(FakeHost::Of(narrow_back[0]), FakeHost::Of(wide_back[0])));
        for (const int i : {1, 2}) {
          const HostTensor& made = FakeHost::Of(narrow_back[i]);
          CHECK(made.dtype() == (mixed ? MICA_F32 : dtype));
          if (!mixed) CHECK_FALSE(differ(made, FakeHost::Of(wide_back[i])));
        }
      }
    }
  }
}

TEST_CASE("layer normalisation copies rows that do not lie together, and declines weights of another dtype") {
  FakeHost host;
  HostTensor x(MICA_F32, {4, 6}, {1, 4}), dense(MICA_F32, {4, 6}), half(MICA_F16, {6});
  for (int64_t i = 0; i < 24; ++i)
    dense.data<float>()[i] = x.data<float>()[i / 6 + i % 6 * 4] = static_cast<float>(i * i % 17);
  const int64_t n = 6;
  const MicaCall call = MakeCall(nullptr, MICA_F32);
  MicaValue results[3], expected[3];
  NativeLayerNorm(&call, x.get(), {&n, 1}, nullptr, nullptr, kEps, results);
  NativeLayerNorm(&call, dense.get(), {&n, 1}, nullptr, nullptr, kEps, expected);
  for (int i = 0; i < 3; ++i)
    CHECK(std::memcmp(FakeHost::Of(results[i]).data<void>(), FakeHost::Of(expected[i]).data<void>(),
                      i == 0 ? 24 * 4 : 4 * 4) == 0);
  CHECK_THROWS_AS(NativeLayerNorm(&call, dense.get(), {&n, 1}, half.get(), nullptr, kEps, results),
                  plugin::NotImplemented);
}

}  // namespace
}  // namespace mica::cpu::test
