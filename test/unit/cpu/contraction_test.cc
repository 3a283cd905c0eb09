// Matrix products against plain loops in double: sizes around the choices of the
// kernels, layouts of all three matrices, every dtype that a product has.
#include <array>
#include <complex>

#include "plugins/cpu/contraction/products.h"
#include "test/support/mica_test.h"
#include "test/unit/cpu/library_fixture.h"

namespace mica::cpu::test {
namespace {

std::vector<double> Product(const std::vector<double>& a, const std::vector<double>& b, int64_t m, int64_t k,
                            int64_t n) {
  std::vector<double> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j)
        c[static_cast<size_t>(i * n + j)] +=
            a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(l * n + j)];
  return c;
}

double Tolerance(int32_t dtype) {
  return dtype == MICA_F64    ? 1e-13
         : dtype == MICA_F32  ? 1e-5
         : dtype == MICA_BF16 ? 8e-3
         : dtype == MICA_F16  ? 1e-3
                              : 0;
}

constexpr Layout kLayouts[] = {Layout::kDense, Layout::kTransposed, Layout::kSpread};

TEST_CASE("mm of every dtype, layout and size", "[contraction]") {
  for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_BF16, MICA_F16, MICA_I64, MICA_I32})
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                  {5, 3, 7},
                                  {1, 300, 40},
                                  {33, 17, 65},
                                  {64, 128, 1},
                                  {150, 90, 130},
                                  // gemm_rows.cc: tiles, strips and their remainders; rows as vectors
                                  {2, 40, 64},
                                  {9, 129, 97},
                                  {77, 128, 33},
                                  {61, 260, 150},
                                  {3, 70, 100},
                                  {7, 0, 5}})
      for (const Layout la : kLayouts)
        for (const Layout lb : kLayouts) {
          HostTensor a(dtype, {m, k}, Strides({m, k}, la)), b(dtype, {k, n}, Strides({k, n}, lb));
          Randomize(a, 1);
          Randomize(b, 2);
          const std::vector<double> want = Product(Elements(a), Elements(b), m, k, n);
          for (const Layout lc : kLayouts) {
            HostTensor c(dtype, {m, n}, Strides({m, n}, lc));
            Randomize(c, 3);
            const MicaCall call = Call(2);
            Mm(&call, a.get(), b.get(), c.get());
            CAPTURE(dtype, m, k, n, static_cast<int>(la), static_cast<int>(lb), static_cast<int>(lc));
            REQUIRE(Distance(Elements(c), want) <= Tolerance(dtype));
          }
        }
}

TEST_CASE("addmm scales, broadcasts and ignores what beta zero multiplies", "[contraction]") {
  for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_BF16, MICA_I64})
    for (const auto& shape : {std::vector<int64_t>{20, 30}, {30}, {1, 30}, {20, 1}, {}})
      for (const double beta : {0.0, 1.0, 2.0})
        for (const double alpha : {1.0, 3.0}) {
          const int64_t m = 20, k = 12, n = 30;
          HostTensor self(dtype, shape), a(dtype, {m, k}), b(dtype, {k, n}), c(dtype, {m, n});
          Randomize(self, 4);
          Randomize(a, 5);
          Randomize(b, 6);
          if (beta == 0 && dtype == MICA_F32) Put(self, 0, NAN);
          const MicaCall call = Call(1);
          Addmm(&call, self.get(), a.get(), b.get(), ScalarOf(beta), ScalarOf(alpha), c.get());
          std::vector<double> want = Product(Elements(a), Elements(b), m, k, n);
          const std::vector<double> add = Elements(self);
          for (int64_t i = 0; i < m * n; ++i) {
            const size_t at = shape.empty()                     ? 0
                              : shape[0] == 30 || shape[0] == 1 ? static_cast<size_t>(i % n)
                              : shape[1] == 1                   ? static_cast<size_t>(i / n)
                                                                : static_cast<size_t>(i);
            double& w = want[static_cast<size_t>(i)];
            w = alpha * w + (beta == 0 ? 0 : beta * add[at]);
          }
          CAPTURE(dtype, shape, beta, alpha);
          REQUIRE(Distance(Elements(c), want) <= Tolerance(dtype));
        }
}

TEST_CASE("half products of several tiles and blocks, and with long vectors", "[contraction]") {
  for (const int32_t dtype : {MICA_BF16, MICA_F16})
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{530, 40, 70},
                                  {70, 800, 530},
                                  {20, 385, 1030},
                                  {1, 1100, 530},
                                  {1030, 1100, 1}})
      for (const Layout la : kLayouts)
        for (const Layout lb : kLayouts) {
          HostTensor a(dtype, {m, k}, Strides({m, k}, la)), b(dtype, {k, n}, Strides({k, n}, lb));
          HostTensor c(dtype, {m, n}, Strides({m, n}, la)), self(dtype, {n});
          Randomize(a, 1);
          Randomize(b, 2);
          Randomize(self, 3);
          std::vector<double> want = Product(Elements(a), Elements(b), m, k, n);
          const MicaCall call = Call(la == lb ? 1 : 2);
          Addmm(&call, self.get(), a.get(), b.get(), ScalarOf(2), ScalarOf(0.5), c.get());
          for (size_t i = 0; i < want.size(); ++i)
            want[i] = 0.5 * want[i] + 2 * Get(self, static_cast<int64_t>(i) % n);
          CAPTURE(dtype, m, k, n, static_cast<int>(la), static_cast<int>(lb));
          REQUIRE(Distance(Elements(c), want) <= Tolerance(dtype));
        }
}

TEST_CASE("bmm and baddbmm of small and large batches", "[contraction]") {
  for (const auto& [batch, m, k, n] :
       {std::array<int64_t, 4>{1, 40, 30, 20}, {2, 9, 8, 7}, {33, 4, 5, 6}, {12, 64, 48, 32}})
    for (const Layout layout : kLayouts) {
      HostTensor a(MICA_F32, {batch, m, k}, Strides({batch, m, k}, layout)),
          b(MICA_F32, {batch, k, n}, Strides({batch, k, n}, layout)), c(MICA_F32, {batch, m, n}),
          d(MICA_F32, {batch, m, n}), self(MICA_F32, {n});
      Randomize(a, 7);
      Randomize(b, 8);
      Randomize(self, 9);
      const MicaCall call = Call(2);
      Bmm(&call, a.get(), b.get(), c.get());
      Baddbmm(&call, self.get(), a.get(), b.get(), ScalarOf(0.5), ScalarOf(2), d.get());
      std::vector<double> want, with_self;
      const std::vector<double> left = Elements(a), right = Elements(b);
      for (int64_t i = 0; i < batch; ++i) {
        const auto one = Product({left.begin() + i * m * k, left.begin() + (i + 1) * m * k},
                                 {right.begin() + i * k * n, right.begin() + (i + 1) * k * n}, m, k, n);
        for (size_t j = 0; j < one.size(); ++j) {
          want.push_back(one[j]);
          with_self.push_back(2 * one[j] + 0.5 * Get(self, static_cast<int64_t>(j) % n));
        }
      }
      CAPTURE(batch, static_cast<int>(layout));
      REQUIRE(Distance(Elements(c), want) < 1e-5);
      REQUIRE(Distance(Elements(d), with_self) < 1e-5);
    }
}

TEST_CASE("mv and dot follow strides, broadcasts too", "[contraction]") {
  for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_BF16, MICA_I32})
    for (const int64_t n : {1, 7, 500})
      for (const int64_t step : {0, 1, 3}) {
        HostTensor a(dtype, {40, n}), x(dtype, {n}, {step}), y(dtype, {40}, {2}), z(dtype, {n}), s(dtype, {});
        Randomize(a, 10);
        Randomize(x, 11);
        Randomize(z, 12);
        const MicaCall call = Call(2);
        Mv(&call, a.get(), x.get(), y.get());
        Dot(&call, x.get(), z.get(), s.get());
        CAPTURE(dtype, n, step);
        REQUIRE(Distance(Elements(y), Product(Elements(a), Elements(x), 40, n, 1)) <= Tolerance(dtype));
        REQUIRE(Distance(Elements(s), Product(Elements(x), Elements(z), 1, n, 1)) <= Tolerance(dtype));
      }
}

TEST_CASE("mm of complex matrices", "[contraction]") {
  const int64_t m = 12, k = 9, n = 21;
  for (const bool transposed : {false, true}) {
    HostTensor a(MICA_C128, {m, k}, Strides({m, k}, transposed ? Layout::kTransposed : Layout::kDense)),
        b(MICA_C128, {k, n}), c(MICA_C128, {m, n});
    std::mt19937 random(13);
    for (HostTensor* t : {&a, &b})
      for (int64_t i = 0; i < t->numel(); ++i)
        t->At<std::complex<double>>(i) = {static_cast<double>(random() % 100),
                                          static_cast<double>(random() % 100)};
    const MicaCall call = Call(2);
    Mm(&call, a.get(), b.get(), c.get());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        std::complex<double> want = 0;
        for (int64_t l = 0; l < k; ++l)
          want += a.At<std::complex<double>>(i * k + l) * b.At<std::complex<double>>(l * n + j);
        REQUIRE(std::abs(c.At<std::complex<double>>(i * n + j) - want) < 1e-9);
      }
  }
}

TEST_CASE("dtypes that differ are passed on", "[contraction]") {
  HostTensor a(MICA_F32, {2, 2}), b(MICA_F64, {2, 2}), c(MICA_F64, {2, 2});
  const MicaCall call = Call(1);
  REQUIRE_THROWS_AS(Mm(&call, a.get(), b.get(), c.get()), plugin::NotImplemented);
}

}  // namespace
}  // namespace mica::cpu::test
