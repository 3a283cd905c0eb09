// Pooling against plain loops: windows with padding, dilation and ceil_mode, ties and
// NaN, both layouts, float64 and half types.
#include <array>
#include <tuple>

#include "plugins/cpu/pooling/pooling.h"
#include "test/support/mica_test.h"
#include "test/unit/cpu/library_fixture.h"

namespace mica::cpu::test {
namespace {

struct Case {
  int64_t height, width, kernel, stride, padding, dilation;
  bool ceil;
  int64_t Out(int64_t in) const {
    const int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1 + (ceil ? stride - 1 : 0);
    int64_t out = room / stride + 1;
    if (ceil && (out - 1) * stride >= in + padding) --out;
    return out;
  }
};

const Case kCases[] = {
    {8, 8, 2, 2, 0, 1, false},   {9, 7, 2, 2, 0, 1, true},   {11, 22, 2, 2, 0, 1, false},
    {10, 13, 3, 2, 1, 1, false}, {10, 13, 3, 2, 1, 1, true}, {12, 9, 3, 1, 1, 2, false},
    {4, 4, 4, 4, 2, 1, true},    {1, 1, 2, 2, 1, 1, false},
};
constexpr int64_t kBatch = 2, kChannels = 43;

struct Reference {
  std::vector<double> most, mean, mean_inside;
  std::vector<int64_t> index;
};

Reference Pool(const Case& c, const std::vector<double>& x) {
  Reference r;
  for (int64_t p = 0; p < kBatch * kChannels; ++p)
    for (int64_t oy = 0; oy < c.Out(c.height); ++oy)
      for (int64_t ox = 0; ox < c.Out(c.width); ++ox) {
        double most = -INFINITY, sum = 0;
        int64_t at = -1, count = 0, padded = 0;
        for (int64_t ky = 0; ky < c.kernel; ++ky)
          for (int64_t kx = 0; kx < c.kernel; ++kx) {
            const int64_t y = oy * c.stride - c.padding + ky * c.dilation,
                          z = ox * c.stride - c.padding + kx * c.dilation;
            padded += y < c.height + c.padding && z < c.width + c.padding;
            if (y < 0 || y >= c.height || z < 0 || z >= c.width) continue;
            const double value = x[static_cast<size_t>((p * c.height + y) * c.width + z)];
            sum += value;
            ++count;
            if (at < 0 || value > most || std::isnan(value)) {
              most = value;
              at = y * c.width + z;
            }
          }
        r.most.push_back(most);
        r.index.push_back(at);
        r.mean.push_back(sum / static_cast<double>(padded));
        r.mean_inside.push_back(sum / static_cast<double>(count));
      }
  return r;
}

TEST_CASE("max_pool2d_with_indices and its gradient", "[pooling]") {
  for (const Case& c : kCases)
    for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_BF16})
      for (const Layout layout : {Layout::kDense, Layout::kChannelsLast}) {
        const std::vector<int64_t> in{kBatch, kChannels, c.height, c.width},
            out{kBatch, kChannels, c.Out(c.height), c.Out(c.width)};
        HostTensor x(dtype, in, Strides(in, layout)), y(dtype, out, Strides(out, layout)),
            at(MICA_I64, out, Strides(out, layout)), grad(dtype, out, Strides(out, layout)),
            dx(dtype, in, Strides(in, layout));
        Randomize(x, 1);
        for (int64_t i = 0; i + 3 < x.numel(); i += 3) Put(x, i + 1, Get(x, i));  // ties
        if (dtype != MICA_BF16)
          for (int64_t i = 0; i < x.numel(); i += 17) Put(x, i, NAN);
        Randomize(grad, 2);
        const std::vector<int64_t> kernel{c.kernel, c.kernel}, stride{c.stride, c.stride}, padding{c.padding},
            dilation{c.dilation};
        const MicaCall call = Call(2);
        MaxPool<2>(&call, x.get(), Span(kernel), Span(stride), Span(padding), Span(dilation), c.ceil, y.get(),
                   at.get());
        MaxPoolBackward<2>(&call, grad.get(), x.get(), Span(kernel), Span(stride), Span(padding),
                           Span(dilation), c.ceil, at.get(), dx.get());
        const Reference want = Pool(c, Elements(x));
        CAPTURE(c.height, c.width, c.kernel, c.stride, c.padding, c.dilation, c.ceil, dtype);
        std::vector<double> spread(static_cast<size_t>(x.numel()));
        for (int64_t i = 0; i < y.numel(); ++i) {
          const auto s = static_cast<size_t>(i);
          REQUIRE(at.At<int64_t>(i) == want.index[s]);
          REQUIRE((Get(y, i) == want.most[s] || (std::isnan(Get(y, i)) && std::isnan(want.most[s]))));
          spread[static_cast<size_t>(i / (out[2] * out[3]) * c.height * c.width + want.index[s])] +=
              Get(grad, i);
        }
        REQUIRE(Distance(Elements(dx), spread) < (dtype == MICA_BF16 ? 1e-2 : 1e-6));
      }
}

TEST_CASE("indices outside the plane are refused", "[pooling]") {
  HostTensor grad(MICA_F32, {1, 1, 1, 1}), x(MICA_F32, {1, 1, 2, 2}), at(MICA_I64, {1, 1, 1, 1}),
      dx(MICA_F32, {1, 1, 2, 2});
  at.At<int64_t>(0) = 4;
  const std::vector<int64_t> two{2, 2}, zero{0}, one{1};
  const MicaCall call = Call(1);
  REQUIRE_THROWS_AS(MaxPoolBackward<2>(&call, grad.get(), x.get(), Span(two), Span(two), Span(zero),
                                       Span(one), 0, at.get(), dx.get()),
                    plugin::Error);
}

TEST_CASE("avg_pool2d and its gradient", "[pooling]") {
  for (const Case& c : kCases) {
    if (c.dilation != 1) continue;
    for (const auto& [include, divisor, layout] : {std::tuple(false, 0, Layout::kDense),
                                                   {true, 0, Layout::kChannelsLast},
                                                   {true, 5, Layout::kDense},
                                                   {false, 5, Layout::kChannelsLast},
                                                   {false, 0, Layout::kChannelsLast}}) {
      const std::vector<int64_t> in{kBatch, kChannels, c.height, c.width},
          out{kBatch, kChannels, c.Out(c.height), c.Out(c.width)};
      HostTensor x(MICA_F32, in, Strides(in, layout)), y(MICA_F32, out, Strides(out, layout)),
          grad(MICA_F32, out, Strides(out, layout)), dx(MICA_F32, in, Strides(in, layout));
      Randomize(x, 3);
      Randomize(grad, 4);
      const std::vector<int64_t> kernel{c.kernel}, stride{c.stride}, padding{c.padding};
      const MicaCall call = Call(2);
      const MicaOptInt given{divisor, divisor != 0};
      AvgPool<2>(&call, x.get(), Span(kernel), Span(stride), Span(padding), c.ceil, include, given, y.get());
      AvgPoolBackward<2>(&call, grad.get(), x.get(), Span(kernel), Span(stride), Span(padding), c.ceil,
                         include, given, dx.get());
      const auto xs = Elements(x), gs = Elements(grad), ys = Elements(y), dxs = Elements(dx);
      const Reference r = Pool(c, xs);
      if (divisor == 0) REQUIRE(Distance(ys, include ? r.mean : r.mean_inside) < 1e-6);
      // The gradient is the transpose of the forward map: <grad, y> == <dx, x>.
      double left = 0, right = 0;
      for (size_t i = 0; i < ys.size(); ++i) left += gs[i] * ys[i];
      for (size_t i = 0; i < xs.size(); ++i) right += dxs[i] * xs[i];
      CAPTURE(c.height, c.width, c.kernel, include, divisor);
      REQUIRE(std::fabs(left - right) < 1e-4);
      if (divisor)
        REQUIRE(
            std::fabs(ys[0] * 5 -
                      Pool({c.height, c.width, c.kernel, c.stride, c.padding, 1, c.ceil}, xs).mean_inside[0] *
                          static_cast<double>(std::min(c.kernel - c.padding, c.height) *
                                              std::min(c.kernel - c.padding, c.width))) < 1e-4);
    }
  }
}

TEST_CASE("adaptive pooling", "[pooling]") {
  for (const auto& [h, w, oh, ow] :
       {std::array<int64_t, 4>{8, 8, 1, 1}, {7, 10, 3, 4}, {4, 4, 4, 4}, {3, 5, 6, 7}})
    for (const Layout layout : {Layout::kDense, Layout::kChannelsLast}) {
      const std::vector<int64_t> in{2, 3, h, w}, out{2, 3, oh, ow}, from = Strides(in, layout),
                                                                    to = Strides(out, layout);
      HostTensor x(MICA_F32, in, from), y(MICA_F32, out, to), m(MICA_F32, out, to), at(MICA_I64, out, to),
          grad(MICA_F32, out, to), dx(MICA_F32, in, from);
      Randomize(x, 5);
      Randomize(grad, 6);
      const std::vector<int64_t> size{oh, ow};
      const MicaCall call = Call(1);
      AdaptiveAvgPool<2>(&call, x.get(), Span(size), y.get());
      AdaptiveMaxPool<2>(&call, x.get(), Span(size), m.get(), at.get());
      AdaptiveAvgPoolBackward<2>(&call, grad.get(), x.get(), dx.get());
      double left = 0, right = 0;
      for (int64_t p = 0; p < 6; ++p)
        for (int64_t i = 0; i < oh; ++i)
          for (int64_t j = 0; j < ow; ++j) {
            double sum = 0, most = -INFINITY;
            int64_t count = 0, best = 0;
            for (int64_t a = i * h / oh; a < ((i + 1) * h + oh - 1) / oh; ++a)
              for (int64_t b = j * w / ow; b < ((j + 1) * w + ow - 1) / ow; ++b) {
                const double v = Get(x, (p * h + a) * w + b);
                sum += v;
                ++count;
                if (v > most) {
                  most = v;
                  best = a * w + b;
                }
              }
            const int64_t o = (p * oh + i) * ow + j;
            REQUIRE(Get(y, o) == Approx(sum / static_cast<double>(count)).margin(1e-6));
            REQUIRE(Get(m, o) == most);
            REQUIRE(at.At<int64_t>(o) == best);
            left += Get(y, o) * Get(grad, o);
          }
      for (int64_t i = 0; i < x.numel(); ++i) right += Get(x, i) * Get(dx, i);
      REQUIRE(left == Approx(right).margin(1e-4));
    }
}

}  // namespace
}  // namespace mica::cpu::test
