// The transcendental primitives against the C library in the next wider type:
// at most 2 ULP over all exponents, and exact on NaN, the infinities, signed
// zeros and denormals (where the true value is representable).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "plugins/cpu/engine/lanes/lanes.h"
#include "test/support/mica_test.h"

namespace mica::cpu {
namespace {

using Wide = long double;
using Reference1 = Wide (*)(Wide);
using Reference2 = Wide (*)(Wide, Wide);

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
T FromBits(Bits<T> bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// The distance of `got` from `exact` in units of the last place of T at `exact`.
template <class T>
double UlpsApart(T got, Wide exact) {
  const T rounded = static_cast<T>(exact);
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : 1e30;
  if (std::isinf(rounded))
    return got == rounded || std::fabs(got) == std::numeric_limits<T>::max() ? 0 : 1e30;
  if (std::isnan(got) || std::isinf(got)) {
    // Rounding up to infinity is one step past the largest value.
    return std::isinf(got) && std::fabs(rounded) == std::numeric_limits<T>::max() ? 1 : 1e30;
  }
  int exponent = 0;
  std::frexp(rounded, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - exact) /
                             std::ldexp(Wide{1}, exponent - std::numeric_limits<T>::digits));
}

template <class T>
std::vector<T> Arguments() {
  std::vector<T> values = {T{0},
                           -T{0},
                           T{1},
                           T{-1},
                           T{0.5},
                           std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::lowest(),
                           std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::denorm_min(),
                           -std::numeric_limits<T>::denorm_min()};
  std::mt19937_64 random(7);
  // Every exponent and sign alike, then the range where most functions live.
  for (int i = 0; i < 60000; ++i) values.push_back(FromBits<T>(static_cast<Bits<T>>(random())));
  for (const double scale : {1.0, 3.0, 12.0, 100.0, 800.0}) {
    std::uniform_real_distribution<double> uniform(-scale, scale);
    for (int i = 0; i < 12000; ++i) values.push_back(static_cast<T>(uniform(random)));
  }
  return values;
}

template <class T>
struct Worst {
  double ulps = 0;
  T x = 0, y = 0, got = 0;
};

template <class T>
Worst<T> Measure(int opcode, Reference1 reference) {
  const std::vector<T> x = Arguments<T>();
  std::vector<T> got(x.size());
  const Primitive run = LaneTable(sizeof(T) == 4 ? MICA_F32 : MICA_F64)->at[opcode];
  REQUIRE(run != nullptr);
  run(got.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
  Worst<T> worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const Wide exact = reference(x[i]);
    double ulps = UlpsApart(got[i], exact);
    // A zero result has a sign, too.
    if (exact == 0 && (got[i] != 0 || std::signbit(got[i]) != std::signbit(exact))) ulps = 1e20;
    if (ulps > worst.ulps) worst = {ulps, x[i], 0, got[i]};
  }
  return worst;
}

template <class T>
Worst<T> Measure(int opcode, Reference2 reference) {
  std::vector<T> x = Arguments<T>();
  std::vector<T> y = x;
  std::shuffle(y.begin(), y.end(), std::mt19937_64(3));
  // All pairs of the special values.
  for (int i = 0; i < 13; ++i) {
    for (int k = 0; k < 13; ++k) {
      x.push_back(x[static_cast<size_t>(i)]);
      y.push_back(x[static_cast<size_t>(k)]);
    }
  }
  std::vector<T> got(x.size());
  const Primitive run = LaneTable(sizeof(T) == 4 ? MICA_F32 : MICA_F64)->at[opcode];
  REQUIRE(run != nullptr);
  run(got.data(), x.data(), y.data(), nullptr, static_cast<int64_t>(x.size()));
  Worst<T> worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double ulps = UlpsApart(got[i], reference(x[i], y[i]));
    if (ulps > worst.ulps) worst = {ulps, x[i], y[i], got[i]};
  }
  return worst;
}

Wide Sigmoid(Wide x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
Wide Rsqrt(Wide x) { return 1 / std::sqrt(x); }
Wide LogGamma(Wide x) {
  int sign = 0;
  return ::lgammal_r(x, &sign);
}
Wide Fmod(Wide x, Wide y) { return std::fmod(x, y); }

#define MICA_LIBM(name) static_cast<Reference1>([](Wide x) -> Wide { return std::name(x); })
struct Case1 {
  int opcode;
  const char* name;
  Reference1 reference;
  double limit;
};
const Case1 kUnary[] = {
    {MICA_OP_EXP, "exp", MICA_LIBM(exp), 2},       {MICA_OP_EXP2, "exp2", MICA_LIBM(exp2), 2},
    {MICA_OP_EXPM1, "expm1", MICA_LIBM(expm1), 2}, {MICA_OP_LOG, "log", MICA_LIBM(log), 2},
    {MICA_OP_LOG2, "log2", MICA_LIBM(log2), 2},    {MICA_OP_LOG10, "log10", MICA_LIBM(log10), 2},
    {MICA_OP_LOG1P, "log1p", MICA_LIBM(log1p), 2}, {MICA_OP_SIN, "sin", MICA_LIBM(sin), 2},
    {MICA_OP_COS, "cos", MICA_LIBM(cos), 2},       {MICA_OP_TAN, "tan", MICA_LIBM(tan), 2},
    {MICA_OP_ASIN, "asin", MICA_LIBM(asin), 2},    {MICA_OP_ACOS, "acos", MICA_LIBM(acos), 2},
    {MICA_OP_ATAN, "atan", MICA_LIBM(atan), 2},    {MICA_OP_SINH, "sinh", MICA_LIBM(sinh), 2},
    {MICA_OP_COSH, "cosh", MICA_LIBM(cosh), 2},    {MICA_OP_TANH, "tanh", MICA_LIBM(tanh), 2},
    {MICA_OP_ASINH, "asinh", MICA_LIBM(asinh), 2}, {MICA_OP_ACOSH, "acosh", MICA_LIBM(acosh), 2},
    {MICA_OP_ATANH, "atanh", MICA_LIBM(atanh), 2}, {MICA_OP_ERF, "erf", MICA_LIBM(erf), 2},
    {MICA_OP_ERFC, "erfc", MICA_LIBM(erfc), 2},    {MICA_OP_CBRT, "cbrt", MICA_LIBM(cbrt), 2},
    {MICA_OP_SIGMOID, "sigmoid", Sigmoid, 2},      {MICA_OP_SQRT, "sqrt", MICA_LIBM(sqrt), 0.5},
    {MICA_OP_RSQRT, "rsqrt", Rsqrt, 1.5},          {MICA_OP_LGAMMA, "lgamma", LogGamma, 2},
};
#undef MICA_LIBM

TEST_CASE("unary maths is within 2 ULP of the true value") {
  for (const Case1& c : kUnary) {
    const Worst<float> f = Measure<float>(c.opcode, c.reference);
    INFO(c.name << " float32 of " << f.x << " is " << f.got << ", off by " << f.ulps << " ULP");
    CHECK(f.ulps <= c.limit);
    const Worst<double> d = Measure<double>(c.opcode, c.reference);
    INFO(c.name << " float64 of " << d.x << " is " << d.got << ", off by " << d.ulps << " ULP");
    CHECK(d.ulps <= c.limit);
  }
}

TEST_CASE("binary maths is within 2 ULP of the true value") {
  struct Case {
    int opcode;
    const char* name;
    Reference2 reference;
    double limit;
  };
  const Case cases[] = {
      {MICA_OP_POW, "pow", [](Wide x, Wide y) -> Wide { return std::pow(x, y); }, 2},
      {MICA_OP_ATAN2, "atan2", [](Wide x, Wide y) -> Wide { return std::atan2(x, y); }, 2},
      {MICA_OP_HYPOT, "hypot", [](Wide x, Wide y) -> Wide { return std::hypot(x, y); }, 2},
      {MICA_OP_FMOD, "fmod", Fmod, 0},
  };
  for (const Case& c : cases) {
    const Worst<float> f = Measure<float>(c.opcode, c.reference);
    INFO(c.name << " float32 of " << f.x << ", " << f.y << " is " << f.got << ", off by " << f.ulps
                << " ULP");
    CHECK(f.ulps <= c.limit);
    const Worst<double> d = Measure<double>(c.opcode, c.reference);
    INFO(c.name << " float64 of " << d.x << ", " << d.y << " is " << d.got << ", off by " << d.ulps
                << " ULP");
    CHECK(d.ulps <= c.limit);
  }
}

template <class T>
void CheckRoundTrips(int32_t dtype) {
  // erf undoes erfinv; digamma(x + 1) - digamma(x) is 1 / x.
  std::vector<T> x;
  for (int i = -99; i <= 99; ++i) x.push_back(static_cast<T>(i) / 100);
  std::vector<T> y(x.size());
  LaneTable(dtype)->at[MICA_OP_ERFINV](y.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(static_cast<double>(std::erf(static_cast<Wide>(y[i]))) ==
          Approx(x[i]).epsilon(sizeof(T) == 4 ? 1e-6 : 1e-14));
  }
  std::vector<T> one = {T{1}, T{-1}, T{2}, T{0.5}};
  std::vector<T> inverse(4);
  LaneTable(dtype)->at[MICA_OP_ERFINV](inverse.data(), one.data(), nullptr, nullptr, 4);
  CHECK(inverse[0] == std::numeric_limits<T>::infinity());
  CHECK(inverse[1] == -std::numeric_limits<T>::infinity());
  CHECK(std::isnan(inverse[2]));
  CHECK(inverse[3] == Approx(0.476936276204469873).epsilon(1e-7));
  std::vector<T> p = {T{1}, T{0.5}, T{10}, T{-0.5}, T{0}};
  std::vector<T> psi(5);
  LaneTable(dtype)->at[MICA_OP_DIGAMMA](psi.data(), p.data(), nullptr, nullptr, 5);
  CHECK(psi[0] == Approx(-0.57721566490153286).epsilon(1e-7));
  CHECK(psi[1] == Approx(-1.96351002602142348).epsilon(1e-7));
  CHECK(psi[2] == Approx(2.25175258906672111).epsilon(1e-7));
  CHECK(psi[3] == Approx(0.03648997397857652).epsilon(1e-6));
  CHECK(psi[4] == -std::numeric_limits<T>::infinity());
}

TEST_CASE("erfinv and digamma at known points") {
  CheckRoundTrips<float>(MICA_F32);
  CheckRoundTrips<double>(MICA_F64);
}

// A vector takes a branch when one lane needs it; the other lanes' results do not change.
template <class T>
void CheckLanesAlone(int opcode, const std::vector<T>& first, const std::vector<T>& second) {
  const Primitive run = LaneTable(sizeof(T) == 4 ? MICA_F32 : MICA_F64)->at[opcode];
  const size_t n = first.size();
  std::vector<T> together(n);
  run(together.data(), first.data(), second.data(), nullptr, static_cast<int64_t>(n));
  size_t differing = 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t count = std::min<size_t>(i % 5 + 1, n - i);  // tails of a vector, too
    const std::vector<T> x(count, first[i]), y(count, second[i]);
    std::vector<T> alone(count);
    run(alone.data(), x.data(), y.data(), nullptr, static_cast<int64_t>(count));
    differing += std::memcmp(&alone[count - 1], &together[i], sizeof(T)) != 0 &&
                 !(std::isnan(alone[count - 1]) && std::isnan(together[i]));
  }
  INFO("opcode " << opcode << " of " << sizeof(T) << " bytes");
  CHECK(differing == 0);
}

template <class T>
void CheckEveryTextAlone() {
  std::vector<T> x = Arguments<T>();
  std::shuffle(x.begin(), x.end(), std::mt19937_64(3));
  x.resize(20000);
  std::vector<T> orders(x.size());
  for (size_t i = 0; i < orders.size(); ++i)
    orders[i] = static_cast<T>(i % 23) + (i % 3 == 0 ? T{0.5} : T{0});
  CheckLanesAlone<T>(MICA_OP_LGAMMA, x, x);
  CheckLanesAlone<T>(MICA_OP_DIGAMMA, x, x);
  CheckLanesAlone<T>(MICA_OP_ZETA, orders, x);
  for (T& order : orders) order = std::floor(order) + 1;
  CheckLanesAlone<T>(MICA_OP_POLYGAMMA, orders, x);
  for (const int opcode : {MICA_OP_I0, MICA_OP_I0E, MICA_OP_I1, MICA_OP_I1E, MICA_OP_K0, MICA_OP_K0E,
                           MICA_OP_K1, MICA_OP_K1E, MICA_OP_ERFCX, MICA_OP_NDTR, MICA_OP_LOG_NDTR})
    CheckLanesAlone<T>(opcode, x, x);
}

// Of all its series, and the ends of the domain.
template <class T>
void CheckIncompleteGammaAlone() {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponents(-2, 3), ratios(-0.5, 0.5);
  const T ends[] = {0, 1, 30, std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(), -1};
  std::vector<T> a, x;
  for (int i = 0; i < 4000; ++i) {
    const double one = std::pow(10, exponents(random));
    a.push_back(i % 50 == 0 ? ends[i / 50 % 6] : static_cast<T>(one));
    x.push_back(i % 70 == 0 ? ends[i / 70 % 6] : static_cast<T>(one * std::pow(10, ratios(random))));
  }
  CheckLanesAlone<T>(MICA_OP_IGAMMA, a, x);
  CheckLanesAlone<T>(MICA_OP_IGAMMAC, a, x);
}

TEST_CASE("a lane's value does not depend on its neighbours") {
  CheckEveryTextAlone<float>();
  CheckEveryTextAlone<double>();
  CheckIncompleteGammaAlone<float>();
  CheckIncompleteGammaAlone<double>();
}

TEST_CASE("logaddexp neither overflows nor loses infinities") {
  const double inf = std::numeric_limits<double>::infinity();
  const double a[] = {1000, -inf, inf, -inf, 0, -1000};
  const double b[] = {1000, -inf, inf, 3, 0, -1001};
  double got[6];
  LaneTable(MICA_F64)->at[MICA_OP_LOGADDEXP](got, a, b, nullptr, 6);
  CHECK(got[0] == Approx(1000 + std::log(2.0)).epsilon(1e-15));
  CHECK(got[1] == -inf);
  CHECK(got[2] == inf);
  CHECK(got[3] == 3);
  CHECK(got[4] == Approx(std::log(2.0)).epsilon(1e-15));
  CHECK(got[5] == Approx(-1000 + std::log1p(std::exp(-1.0))).epsilon(1e-15));
}

}  // namespace
}  // namespace mica::cpu
