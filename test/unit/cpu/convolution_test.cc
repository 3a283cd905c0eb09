// Convolutions, their gradients and transposed ones against plain loops in double.
#include "plugins/cpu/convolution/convolution.h"
#include "test/support/mica_test.h"
#include "test/unit/cpu/library_fixture.h"

namespace mica::cpu::test {
namespace {

struct Case {
  int64_t batch, in_channels, out_channels, groups, spatial;
  int64_t in, kernel, stride, padding, dilation;
  int64_t out() const { return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
};

int64_t Power(int64_t side, int64_t spatial) {
  return spatial == 1 ? side : spatial == 2 ? side * side : side * side * side;
}

std::vector<int64_t> Cube(int64_t a, int64_t b, int64_t side, int64_t spatial) {
  std::vector<int64_t> sizes{a, b};
  for (int64_t d = 0; d < spatial; ++d) sizes.push_back(side);
  return sizes;
}

// A product within one plane of input, kernel and output, by its flat places there.
struct Term {
  int64_t in, kernel, out;
};

std::vector<Term> PlaneTerms(const Case& c) {
  std::vector<Term> terms;
  for (int64_t p = 0; p < Power(c.out(), c.spatial); ++p)
    for (int64_t q = 0; q < Power(c.kernel, c.spatial); ++q) {
      int64_t at = 0, step = 1, rp = p, rq = q;
      bool inside = true;
      for (int64_t d = 0; d < c.spatial; ++d) {
        const int64_t x = rp % c.out() * c.stride - c.padding + rq % c.kernel * c.dilation;
        rp /= c.out();
        rq /= c.kernel;
        inside = inside && x >= 0 && x < c.in;
        at += x * step;
        step *= c.in;
      }
      if (inside) terms.push_back({at, q, p});
    }
  return terms;
}

// Calls f(input, weight, output) with the flat places of each product of the ordinary
// convolution.
template <class F>
void EachTerm(const Case& c, F f) {
  const int64_t ig = c.in_channels / c.groups, og = c.out_channels / c.groups;
  const std::vector<Term> terms = PlaneTerms(c);
  const int64_t in = Power(c.in, c.spatial), kernel = Power(c.kernel, c.spatial),
                out = Power(c.out(), c.spatial);
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.out_channels; ++o)
      for (int64_t i = 0; i < ig; ++i) {
        const int64_t x = (n * c.in_channels + o / og * ig + i) * in, w = (o * ig + i) * kernel,
                      y = (n * c.out_channels + o) * out;
        for (const Term& t : terms)
          f(static_cast<size_t>(x + t.in), static_cast<size_t>(w + t.kernel), static_cast<size_t>(y + t.out));
      }
}

const Case kCases[] = {
    {2, 3, 5, 1, 2, 7, 3, 1, 1, 1},   {1, 8, 16, 1, 2, 9, 3, 2, 0, 1},   {3, 1, 32, 1, 2, 8, 3, 1, 1, 1},
    {2, 16, 16, 1, 2, 8, 1, 1, 0, 1}, {2, 6, 4, 2, 2, 10, 3, 1, 2, 2},   {2, 8, 8, 8, 2, 11, 3, 2, 1, 1},
    {2, 4, 6, 1, 1, 20, 5, 3, 2, 1},  {1, 3, 4, 1, 3, 6, 3, 1, 1, 1},    {2, 32, 64, 1, 2, 8, 3, 1, 1, 1},
    {1, 5, 7, 1, 2, 12, 4, 3, 1, 1},  {64, 32, 64, 1, 2, 8, 3, 1, 1, 1}, {2, 64, 32, 1, 2, 13, 3, 1, 1, 1},
};

// The reference's loop takes seconds; such sizes are there for float32's choice of a path.
bool IsLong(const Case& c) { return c.batch >= 64; }

double Tolerance(int32_t dtype) {
  return dtype == MICA_F32 ? 1e-5 : dtype == MICA_F64 || IsInteger(dtype) ? 1e-13 : 1e-2;
}

TEST_CASE("convolution and its gradients", "[convolution]") {
  for (const Case& c : kCases)
    for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_I32, MICA_BF16})
      for (const Layout layout : {Layout::kDense, Layout::kChannelsLast, Layout::kSpread}) {
        if (dtype == MICA_BF16 && layout == Layout::kChannelsLast) continue;
        if (IsLong(c) && dtype != MICA_F32) continue;
        const auto in = Cube(c.batch, c.in_channels, c.in, c.spatial),
                   out = Cube(c.batch, c.out_channels, c.out(), c.spatial),
                   w = Cube(c.out_channels, c.in_channels / c.groups, c.kernel, c.spatial);
        HostTensor x(dtype, in, Strides(in, layout)), weight(dtype, w), bias(dtype, {c.out_channels}),
            y(dtype, out, Strides(out, layout)), grad(dtype, out, Strides(out, layout)),
            dx(dtype, in, Strides(in, layout)), dw(dtype, w);
        Randomize(x, 1);
        Randomize(weight, 2);
        Randomize(bias, 3);
        Randomize(grad, 4);
        const std::vector<int64_t> stride{c.stride}, padding{c.padding}, dilation{c.dilation}, none{0};
        const MicaCall call = Call(2);
        CAPTURE(dtype, static_cast<int>(layout), c.batch, c.in_channels, c.out_channels, c.groups, c.spatial,
                c.in, c.kernel);
        const auto run = [&] {
          Convolution(&call, x.get(), weight.get(), bias.get(), Span(stride), Span(padding), Span(dilation),
                      0, Span(none), c.groups, y.get());
          ConvolutionBackwardInput(&call, grad.get(), weight.get(), Span(in), Span(stride), Span(padding),
                                   Span(dilation), 0, Span(none), c.groups, dx.get());
          ConvolutionBackwardWeight(&call, grad.get(), x.get(), Span(w), Span(stride), Span(padding),
                                    Span(dilation), 0, Span(none), c.groups, dw.get());
        };
        run();
        run();  // from the cache
        const auto xs = Elements(x), ws = Elements(weight), gs = Elements(grad);
        std::vector<double> ys(gs.size()), dxs(xs.size()), dws(ws.size());
        const size_t area = gs.size() / static_cast<size_t>(c.batch * c.out_channels);
        for (size_t i = 0; i < ys.size(); ++i)
          ys[i] = Get(bias, static_cast<int64_t>(i / area) % c.out_channels);
        EachTerm(c, [&](size_t i, size_t k, size_t o) {
          ys[o] += xs[i] * ws[k];
          dxs[i] += gs[o] * ws[k];
          dws[k] += gs[o] * xs[i];
        });
        REQUIRE(Distance(Elements(y), ys) < Tolerance(dtype));
        REQUIRE(Distance(Elements(dx), dxs) < Tolerance(dtype));
        REQUIRE(Distance(Elements(dw), dws) < Tolerance(dtype));
      }
}

struct TransposedCase {
  Case c;
  int32_t dtype;
  Layout layout;  // of the result
};
std::vector<TransposedCase> TransposedCases() {
  std::vector<TransposedCase> cases;
  for (const Case& c : kCases)
    for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_I32, MICA_BF16})
      for (const Layout layout : {Layout::kDense, Layout::kSpread})
        if (!IsLong(c) || (dtype == MICA_F32 && layout == Layout::kDense))
          cases.push_back({c, dtype, layout});
  return cases;
}

TEST_CASE("transposed convolution and its gradients", "[convolution]") {
  for (const auto& [c, dtype, layout] : TransposedCases()) {
    // The transposed convolution maps what the ordinary one calls its output.
    const auto in = Cube(c.batch, c.out_channels, c.out(), c.spatial),
               out = Cube(c.batch, c.in_channels, c.in, c.spatial),
               w = Cube(c.out_channels, c.in_channels / c.groups, c.kernel, c.spatial);
    HostTensor x(dtype, in), weight(dtype, w), bias(dtype, {c.in_channels}),
        y(dtype, out, Strides(out, layout)), grad(dtype, out), dx(dtype, in), dw(dtype, w);
    Randomize(x, 5);
    Randomize(weight, 6);
    Randomize(bias, 7);
    Randomize(grad, 8);
    const std::vector<int64_t> stride{c.stride}, padding{c.padding}, dilation{c.dilation}, extra{0};
    const MicaCall call = Call(1);
    Convolution(&call, x.get(), weight.get(), bias.get(), Span(stride), Span(padding), Span(dilation), 1,
                Span(extra), c.groups, y.get());
    ConvolutionBackwardInput(&call, grad.get(), weight.get(), Span(in), Span(stride), Span(padding),
                             Span(dilation), 1, Span(extra), c.groups, dx.get());
    ConvolutionBackwardWeight(&call, grad.get(), x.get(), Span(w), Span(stride), Span(padding),
                              Span(dilation), 1, Span(extra), c.groups, dw.get());
    const auto xs = Elements(x), ws = Elements(weight), gs = Elements(grad);
    std::vector<double> ys(gs.size()), dxs(xs.size()), dws(ws.size());
    const size_t area = gs.size() / static_cast<size_t>(c.batch * c.in_channels);
    for (size_t i = 0; i < ys.size(); ++i) ys[i] = Get(bias, static_cast<int64_t>(i / area) % c.in_channels);
    EachTerm(c, [&](size_t o, size_t k, size_t i) {
      ys[o] += xs[i] * ws[k];
      dxs[i] += gs[o] * ws[k];
      dws[k] += gs[o] * xs[i];
    });
    CAPTURE(dtype, static_cast<int>(layout), c.batch, c.in_channels, c.out_channels, c.groups, c.spatial,
            c.in, c.kernel);
    REQUIRE(Distance(Elements(y), ys) < Tolerance(dtype));
    REQUIRE(Distance(Elements(dx), dxs) < Tolerance(dtype));
    REQUIRE(Distance(Elements(dw), dws) < Tolerance(dtype));
  }
}

}  // namespace
}  // namespace mica::cpu::test
