// The softmax of attention: the exponential against double, masked rows, and sums that
// go on from one block of keys to the next.
#include <cmath>
#include <limits>
#include <vector>

#include "plugins/cpu/attention/attention.h"
#include "test/support/mica_test.h"

namespace mica::cpu::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("the exponential of scores is within 2 ULP", "[attention]") {
  std::vector<float> x;
  for (float v = 0; v > -87.3F; v -= 0.00137F) x.push_back(v);
  std::vector<float> y = x;
  RowsOf(0.0F).probabilities(y.data(), static_cast<int64_t>(y.size()), 0.0F);
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    const float rounded = static_cast<float>(exact);
    const double ulp = static_cast<double>(std::nextafter(rounded, kInfinity)) - static_cast<double>(rounded);
    INFO(x[i]);
    REQUIRE(std::fabs(static_cast<double>(y[i]) - exact) <= 2 * ulp);
  }
}

TEST_CASE("scores beyond the range of floats", "[attention]") {
  std::vector<float> x = {0, -kInfinity, -200, std::nanf(""), -104, 0, 0, 0, -kInfinity};
  RowsOf(0.0F).probabilities(x.data(), 9, 0.0F);
  REQUIRE(x[0] == 1);
  REQUIRE((x[1] == 0 && x[2] == 0 && x[4] == 0 && x[8] == 0));
  REQUIRE(std::isnan(x[3]));
  std::vector<float> unseen = {-kInfinity, -kInfinity};
  RowsOf(0.0F).probabilities(unseen.data(), 2, kInfinity);
  REQUIRE((unseen[0] == 0 && unseen[1] == 0));
}

TEST_CASE("a row's maximum and sum go on from block to block", "[attention]") {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    const AttentionRows<T>& rows = RowsOf(T());
    std::vector<T> scores(37);
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<T>(i * 7 % 11) - T(3);
    double sum = 0;
    for (const T s : scores) sum += std::exp(static_cast<double>(s));
    T maximum = -std::numeric_limits<T>::infinity(), total = 0;
    std::vector<T> hidden(5, maximum);
    REQUIRE(rows.accumulate(hidden.data(), 5, &maximum, &total) == T(1));
    REQUIRE((total == 0 && hidden[0] == 0));
    rows.accumulate(scores.data(), 10, &maximum, &total);
    rows.accumulate(scores.data() + 10, 27, &maximum, &total);
    REQUIRE(std::fabs(std::log(static_cast<double>(total)) + static_cast<double>(maximum) - std::log(sum)) <
            1e-5);
  };
  check(float());
  check(double());
}

}  // namespace
}  // namespace mica::cpu::test
