// Batch normalisation and its gradient against formulas in double.
#include "plugins/cpu/normalization/normalization.h"
#include "test/support/mica_test.h"
#include "test/unit/cpu/fake_host.h"

namespace mica::cpu::test {
namespace {

constexpr double kEps = 1e-5, kMomentum = 0.1;

struct Batch {
  std::vector<int64_t> sizes;
  int64_t channels, inner, count;
  explicit Batch(std::vector<int64_t> s)
      : sizes(std::move(s)), channels(sizes[1]), inner(1), count(sizes[0]) {
    for (size_t d = 2; d < sizes.size(); ++d) inner *= sizes[d];
    count *= inner;
  }
  size_t Channel(size_t i) const { return i / static_cast<size_t>(inner) % static_cast<size_t>(channels); }
};

std::vector<double> Sums(const Batch& b, const std::vector<double>& x) {
  std::vector<double> sums(static_cast<size_t>(b.channels));
  for (size_t i = 0; i < x.size(); ++i) sums[b.Channel(i)] += x[i];
  return sums;
}

TEST_CASE("native_batch_norm and its gradient", "[normalization]") {
  for (const Batch& b : {Batch({6, 5, 4, 3}), Batch({64, 70, 3, 3}), Batch({9, 130}), Batch({4, 3, 50}),
                         Batch({2, 2, 40, 40})})
    for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_BF16})
      for (const bool training : {true, false})
        for (const bool affine : {true, false})
          for (const bool last : {false, true}) {
            if (last && b.sizes.size() != 4) continue;
            const FakeHost host;
            const Layout layout = last ? Layout::kChannelsLast : Layout::kDense;
            HostTensor x(dtype, b.sizes, Strides(b.sizes, layout)),
                grad(dtype, b.sizes, Strides(b.sizes, layout)), weight(MICA_F32, {b.channels}),
                bias(MICA_F32, {b.channels}), mean(MICA_F32, {b.channels}), var(MICA_F32, {b.channels});
            if (last)
              for (HostTensor* t : {&x, &grad}) t->get()->flags |= MICA_TENSOR_CHANNELS_LAST;
            Randomize(x, 1);
            Randomize(grad, 2);
            Randomize(weight, 3);
            Randomize(bias, 4);
            Randomize(mean, 5);
            for (int64_t c = 0; c < b.channels; ++c) Put(var, c, 0.5 + 0.1 * static_cast<double>(c % 7));
            const auto xs = Elements(x), gs = Elements(grad), old_mean = Elements(mean),
                       old_var = Elements(var);
            const MicaCall call = Call(2);
            MicaValue forward[3], backward[3];
            NativeBatchNorm(&call, x.get(), affine ? weight.get() : nullptr, affine ? bias.get() : nullptr,
                            mean.get(), var.get(), training, kMomentum, kEps, forward);
            const uint8_t mask[3] = {1, 1, 1};
            NativeBatchNormBackward(&call, grad.get(), x.get(), affine ? weight.get() : nullptr, mean.get(),
                                    var.get(), training ? forward[1].u.tensor : nullptr,
                                    training ? forward[2].u.tensor : nullptr, training, kEps, {mask, 3},
                                    backward);

            const auto n = static_cast<double>(b.count);
            std::vector<double> m = Sums(b, xs), v(m.size()), y(xs.size()), dx(xs.size()), dw(m.size()),
                                db = Sums(b, gs);
            for (double& value : m) value /= n;
            for (size_t i = 0; i < xs.size(); ++i)
              v[b.Channel(i)] += std::pow(xs[i] - m[b.Channel(i)], 2) / n;
            if (training) {
              std::vector<double> new_mean(m.size()), new_var(m.size());
              for (size_t c = 0; c < m.size(); ++c) {
                new_mean[c] = (1 - kMomentum) * old_mean[c] + kMomentum * m[c];
                new_var[c] = (1 - kMomentum) * old_var[c] + kMomentum * v[c] * n / (n - 1);
              }
              REQUIRE(Distance(Elements(mean), new_mean) < 1e-6);
              REQUIRE(Distance(Elements(var), new_var) < 1e-6);
              REQUIRE(Distance(Elements(FakeHost::Of(forward[1])), m) < 1e-6);
            } else {
              m = old_mean;
              v = old_var;
              REQUIRE(FakeHost::Of(forward[1]).numel() == 0);
            }
            const auto factor = [&](size_t c) { return affine ? Get(weight, static_cast<int64_t>(c)) : 1; };
            const auto unit = [&](size_t i) {
              return (xs[i] - m[b.Channel(i)]) / std::sqrt(v[b.Channel(i)] + kEps);
            };
            for (size_t i = 0; i < xs.size(); ++i) {
              const size_t c = b.Channel(i);
              y[i] = unit(i) * factor(c) + (affine ? Get(bias, static_cast<int64_t>(c)) : 0);
              dw[c] += gs[i] * unit(i);
            }
            for (size_t i = 0; i < xs.size(); ++i) {
              const size_t c = b.Channel(i);
              const double centered = training ? gs[i] - db[c] / n - unit(i) * dw[c] / n : gs[i];
              dx[i] = factor(c) / std::sqrt(v[c] + kEps) * centered;
            }
            const double tolerance = dtype == MICA_BF16 ? 8e-3 : dtype == MICA_F32 ? 2e-5 : 1e-6;
            CAPTURE(b.sizes, dtype, training, affine, last);
            REQUIRE(Distance(Elements(FakeHost::Of(forward[0])), y) < tolerance);
            REQUIRE(Distance(Elements(FakeHost::Of(backward[0])), dx) < tolerance);
            REQUIRE(Distance(Elements(FakeHost::Of(backward[1])), dw) < 2e-5);
            REQUIRE(Distance(Elements(FakeHost::Of(backward[2])), db) < 2e-5);
          }
}

TEST_CASE("native_batch_norm_backward leaves out what the mask leaves out", "[normalization]") {
  const FakeHost host;
  HostTensor x(MICA_F32, {3, 2, 4}), grad(MICA_F32, {3, 2, 4}), mean(MICA_F32, {2}), deviation(MICA_F32, {2});
  Randomize(x, 1);
  const MicaCall call = Call(1);
  const uint8_t mask[3] = {0, 0, 1};
  MicaValue results[3];
  NativeBatchNormBackward(&call, grad.get(), x.get(), nullptr, nullptr, nullptr, mean.get(), deviation.get(),
                          1, kEps, {mask, 3}, results);
  REQUIRE(results[0].tag == MICA_VALUE_NONE);
  REQUIRE(results[1].tag == MICA_VALUE_NONE);
  REQUIRE(results[2].tag == MICA_VALUE_TENSOR);
}

TEST_CASE("a weight of another length is an error", "[normalization]") {
  const FakeHost host;
  HostTensor x(MICA_F32, {3, 2, 4}), weight(MICA_F32, {3});
  const MicaCall call = Call(1);
  MicaValue results[3];
  REQUIRE_THROWS_AS(
      NativeBatchNorm(&call, x.get(), weight.get(), nullptr, nullptr, nullptr, 1, kMomentum, kEps, results),
      plugin::Error);
}

}  // namespace
}  // namespace mica::cpu::test
