// The portable kernels that move a window over planes: convolution and pooling.
#include <cmath>
#include <limits>

#include "mica/ops/_adaptive_avg_pool2d.h"
#include "mica/ops/adaptive_max_pool2d.h"
#include "mica/ops/avg_pool2d.h"
#include "mica/ops/im2col.h"
#include "mica/ops/max_pool2d_with_indices.h"
#include "test/unit/kernels/portable_fixture.h"

namespace mica::testing {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const Tensor kNoBias;

TEST_CASE("a convolution correlates, strides, pads and dilates", "[kernels]") {
  const Tensor x = Of({1, 1, 5}, {1, 2, 3, 4, 5}), w = Of({1, 1, 2}, {1, 10});
  const Tensor out = Empty({1, 1, 4});
  portable::convolution(x, w, kNoBias, {1}, {0}, {1}, false, {0}, 1, out);
  CHECK(Values(out) == Numbers{21, 32, 43, 54});
  const Tensor strided = Empty({1, 1, 3});
  portable::convolution(x, w, Vector({100}), {2}, {1}, {2}, false, {0}, 1, strided);
  CHECK(Values(strided) == Numbers{120, 142, 104});
}

TEST_CASE("groups see their own channels", "[kernels]") {
  const Tensor x = Of({1, 2, 1, 2}, {1, 2, 3, 4}), w = Of({4, 1, 1, 1}, {1, 10, 100, 1000}),
               out = Empty({1, 4, 1, 2});
  portable::convolution(x, w, kNoBias, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 2, out);
  CHECK(Values(out) == Numbers{1, 2, 10, 20, 300, 400, 3000, 4000});
}

TEST_CASE("a transposed convolution spreads each element over its window", "[kernels]") {
  const Tensor x = Of({1, 1, 2}, {1, 2}), w = Of({1, 1, 3}, {1, 10, 100}), out = Empty({1, 1, 6});
  portable::convolution(x, w, kNoBias, {2}, {0}, {1}, true, {1}, 1, out);
  CHECK(Values(out) == Numbers{1, 10, 102, 20, 200, 0});
}

TEST_CASE("a convolution has two and three spatial dimensions and any layout", "[kernels]") {
  const Tensor x = Of({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), w = Of({1, 1, 2, 2}, {1, 10, 100, 1000}),
               out = Empty({1, 1, 1, 2});
  portable::convolution(x, w, kNoBias, {1}, {0}, {1}, false, {0}, 1, out);
  CHECK(Values(out) == Numbers{5421, 6532});
  const Tensor t = Empty({1, 1, 2, 1});
  portable::convolution(Transposed(x), Transposed(w), kNoBias, {1}, {0}, {1}, false, {0}, 1, t);
  CHECK(Values(t) == Numbers{5421, 6532});
  const Tensor cube = Of({1, 1, 2, 1, 2}, {1, 2, 3, 4}), box = Of({1, 1, 2, 1, 1}, {1, 10}),
               sum = Empty({1, 1, 1, 1, 2});
  portable::convolution(cube, box, kNoBias, {1}, {0}, {1}, false, {0}, 1, sum);
  CHECK(Values(sum) == Numbers{31, 42});
}

// <grad, conv(x, w)> is bilinear, so that its gradients contracted with x and w
// both give it back.
TEST_CASE("the gradients of a convolution are its adjoints", "[kernels]") {
  const bool transposed = GENERATE(false, true);
  const Tensor x = Of({2, 2, 3}, {1, -2, 3, .5, 5, -6, 7, 8, -9, 1, 2, .25}),
               w = Of({2, 1, 2}, {2, -1, .5, 3});
  const int64_t length = transposed ? 6 : 2;
  const Tensor out = Empty({2, 2, length}), dx = Empty({2, 2, 3}), dw = Empty({2, 1, 2});
  const Dims stride = {2}, padding = {1}, dilation = {2}, extra = {1};
  portable::convolution(x, w, kNoBias, stride, padding, dilation, transposed, extra, 2, out);
  Numbers g;
  for (int64_t i = 0; i < out.numel(); ++i) g.push_back(static_cast<double>(i * i % 7) - 2);
  const Tensor grad = Of(out.sizes(), g);
  portable::_convolution_backward_input(grad, w, x.sizes(), stride, padding, dilation, transposed, extra, 2,
                                        dx);
  portable::_convolution_backward_weight(grad, x, w.sizes(), stride, padding, dilation, transposed, extra, 2,
                                         dw);
  const auto dot = [](const Tensor& a, const Tensor& b) {
    const Numbers p = Values(a), q = Values(b);
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i) sum += p[i] * q[i];
    return sum;
  };
  REQUIRE(dot(grad, out) != 0);
  CHECK(dot(dx, x) == Approx(dot(grad, out)));
  CHECK(dot(dw, w) == Approx(dot(grad, out)));
}

TEST_CASE("windows become columns and add up again", "[kernels]") {
  const Tensor x = Of({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor columns = ops::im2col(x, {2, 2}, {1, 1}, {0, 0}, {1, 1});
  CHECK(Values(columns) == Numbers{1, 2, 2, 3, 4, 5, 5, 6});
  const Tensor back = Empty({1, 2, 3});
  portable::col2im(columns, {2, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, back);
  CHECK(Values(back) == Numbers{1, 4, 3, 4, 10, 6});
  CHECK(Values(ops::im2col(x, {1, 1}, {1, 1}, {1, 0}, {1, 1})) ==
        Numbers{0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0});
}

TEST_CASE("max pooling gives values and places, and NaN wins", "[kernels]") {
  const Tensor x = Of({1, 3, 3}, {1, kNan, 3, 4, 5, kNan, 1, 2, 3});
  Tensor values, where;
  std::tie(values, where) = ops::max_pool2d_with_indices(x, {2}, {1}, {0}, {1}, false);
  CHECK(Ints(where) == Integers{1, 5, 4, 5});  // torch 2.13 gives the last NaN too
  CHECK(std::isnan(Values(values)[0]));
  CHECK(Values(values)[2] == 5);
  std::tie(values, where) = ops::adaptive_max_pool2d(x, {2});
  CHECK(Ints(where) == Integers{1, 5, 4, 5});
}

TEST_CASE("max pooling strides by the kernel, pads and dilates", "[kernels]") {
  const Tensor x = Of({1, 1, 1, 5}, {-1, -2, -3, -4, -5}, DType::kI32);
  Tensor values, where;
  std::tie(values, where) = ops::max_pool2d_with_indices(x, {1, 2}, {}, {0, 1}, {1, 1}, false);
  CHECK(Values(values) == Numbers{-1, -2, -4});
  std::tie(values, where) = ops::max_pool2d_with_indices(x, {1, 2}, {1, 1}, {0, 0}, {1, 2}, false);
  CHECK(Values(values) == Numbers{-1, -2, -3});
  const Tensor grad = Of({1, 1, 1, 3}, {1, 2, 4}, DType::kI32), dx = Empty({1, 1, 1, 5}, DType::kI32);
  portable::max_pool2d_with_indices_backward(grad, x, {1, 2}, {}, {0, 1}, {1, 1}, false,
                                             Indices({1, 1, 1, 3}, {0, 0, 3}), dx);
  CHECK(Values(dx) == Numbers{3, 0, 0, 4, 0});
  MICA_REQUIRE_ERROR((portable::max_pool2d_with_indices_backward(grad, x, {1, 2}, {}, {0, 1}, {1, 1}, false,
                                                                 Indices({1, 1, 1, 3}, {0, 0, 5}), dx),
                      0),
                     "The index 5 is out of bounds");
}

TEST_CASE("average pooling counts the padding or not, or divides as told", "[kernels]") {
  const Tensor x = Of({1, 1, 4}, {1, 2, 3, 4});
  Tensor out, ceiled;
  out = ops::avg_pool2d(x, {1, 2}, {1, 2}, {0, 1}, false, true);
  CHECK(Values(out) == Numbers{.5, 2.5, 2});
  out = ops::avg_pool2d(x, {1, 2}, {1, 2}, {0, 1}, false, false);
  CHECK(Values(out) == Numbers{1, 2.5, 4});
  out = ops::avg_pool2d(x, {1, 2}, {1, 2}, {0, 1}, false, true, 4);
  CHECK(Values(out) == Numbers{.25, 1.25, 1});
  ceiled = ops::avg_pool2d(x, {1, 3}, {1, 3}, {0, 0}, true, true);
  CHECK(Values(ceiled) == Numbers{2, 4});
  const Tensor dx = Empty({1, 1, 4});
  portable::avg_pool2d_backward(Of({1, 1, 3}, {1, 2, 4}), x, {1, 2}, {1, 2}, {0, 1}, false, true,
                                std::nullopt, dx);
  CHECK(Values(dx) == Numbers{.5, 1, 1, 2});
}

TEST_CASE("adaptive windows overlap where sizes do not divide", "[kernels]") {
  const Tensor x = Of({1, 1, 3}, {2, 4, 8}), dx = Empty({1, 1, 3});
  Tensor out;
  out = ops::_adaptive_avg_pool2d(x, {1, 2});
  CHECK(Values(out) == Numbers{3, 6});
  portable::_adaptive_avg_pool2d_backward(Of({1, 1, 2}, {2, 4}), x, dx);
  CHECK(Values(dx) == Numbers{1, 3, 2});
}

}  // namespace
}  // namespace mica::testing
