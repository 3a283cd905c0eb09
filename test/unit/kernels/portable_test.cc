// The portable kernels that are written by hand, on values that one can check
// with a pencil: sorting, linear algebra, convolution and losses.
#include <cmath>
#include <limits>

#include "mica/ops/_unique2.h"
#include "test/unit/kernels/portable_fixture.h"

namespace mica::testing {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("sort is stable and NaN is the largest", "[kernels]") {
  const Tensor x = Vector({2, kNan, 1, 2, -1}), values = Empty({5}), indices = Empty({5}, DType::kI64);
  portable::sort_stable(x, true, -1, false, values, indices);
  CHECK(Ints(indices) == Integers{4, 2, 0, 3, 1});
  CHECK(Values(values)[0] == -1);
  CHECK(std::isnan(Values(values)[4]));
  portable::sort_stable(x, true, 0, true, values, indices);
  CHECK(Ints(indices) == Integers{1, 0, 3, 2, 4});
}

TEST_CASE("sort follows any dimension, layout and dtype", "[kernels]") {
  const Tensor x = Of({2, 3}, {3, 1, 2, 0, 5, 4}, DType::kI32);
  const Tensor values = Empty({3, 2}, DType::kI32), indices = Empty({3, 2}, DType::kI64);
  portable::sort_stable(Transposed(x), std::nullopt, 0, false, values, indices);
  CHECK(Values(values) == Numbers{1, 0, 2, 4, 3, 5});
  CHECK(Ints(indices) == Integers{1, 0, 2, 2, 0, 1});
  const Tensor one = Of({}, {7}), value = Empty({}), index = Empty({}, DType::kI64);
  portable::sort_stable(one, true, -1, false, value, index);
  CHECK(Values(value) == Numbers{7});
  CHECK(Ints(index) == Integers{0});
  const Tensor large = Empty({2}, DType::kU64), sorted = Empty({2}, DType::kU64),
               place = Empty({2}, DType::kI64);
  portable::FromLanes(std::vector<uint64_t>{UINT64_MAX, 1}, large);
  portable::sort_stable(large, true, 0, false, sorted, place);
  CHECK(portable::ToLanes<uint64_t>(sorted) == std::vector<uint64_t>{1, UINT64_MAX});
}

TEST_CASE("topk gives the k largest or smallest in order", "[kernels]") {
  const Tensor x = Of({2, 4}, {4, 1, 3, 2, 5, 8, 8, 6}), values = Empty({2, 2}),
               indices = Empty({2, 2}, DType::kI64);
  portable::topk(x, 2, -1, true, true, values, indices);
  CHECK(Values(values) == Numbers{4, 3, 8, 8});
  CHECK(Ints(indices) == Integers{0, 2, 1, 2});
  portable::topk(x, 2, 1, false, true, values, indices);
  CHECK(Values(values) == Numbers{1, 2, 5, 6});
}

TEST_CASE("searchsorted inserts left or right, by line and through a sorter", "[kernels]") {
  const Tensor line = Vector({1, 3, 3, 5}), x = Vector({0, 3, 6, kNan}), out = Empty({4}, DType::kI64);
  portable::searchsorted(line, x, false, false, std::nullopt, Tensor(), out);
  CHECK(Ints(out) == Integers{0, 1, 4, 4});
  portable::searchsorted(line, x, false, false, "right", Tensor(), out);
  CHECK(Ints(out) == Integers{0, 3, 4, 4});
  const Tensor lines = Of({2, 2}, {1, 2, 5, 6}), values = Of({2, 1}, {2, 2}),
               places = Empty({2, 1}, DType::kI32);
  portable::searchsorted(lines, values, true, false, std::nullopt, Tensor(), places);
  CHECK(Ints(places) == Integers{1, 0});
  portable::searchsorted(Vector({5, 1, 3, 3}), x, false, false, std::nullopt, Indices({4}, {1, 2, 3, 0}),
                         out);
  CHECK(Ints(out) == Integers{0, 1, 4, 4});
}

TEST_CASE("bincount counts, sums weights and refuses negative bins", "[kernels]") {
  const Tensor bins = Indices({4}, {1, 3, 1, 0});
  CHECK(Ints(portable::bincount(bins, Tensor(), 0)) == Integers{1, 2, 0, 1});
  CHECK(Ints(portable::bincount(bins, Tensor(), 6)) == Integers{1, 2, 0, 1, 0, 0});
  const Tensor sums = portable::bincount(bins, Vector({.5, 1, 2, 4}, DType::kF32), 0);
  CHECK(sums.dtype() == DType::kF32);
  CHECK(Values(sums) == Numbers{4, 2.5, 0, 1});
  CHECK(portable::bincount(bins, Vector({1, 1, 1, 1}, DType::kI32), 0).dtype() == DType::kF64);
  CHECK(portable::bincount(Indices({0}, {}), Tensor(), 2).sizes() == IntSpan({2}));
  MICA_REQUIRE_ERROR(portable::bincount(Indices({1}, {-4}), Tensor(), 0), "an element of `self` is (-4)");
  MICA_REQUIRE_ERROR(portable::bincount(Vector({1}), Tensor(), 0), "does not support the dtype (float64)");
}

TEST_CASE("_unique2 gives distinct elements, their places and counts", "[kernels]") {
  const auto [values, inverse, counts] = ops::_unique2(Of({2, 2}, {3, 1, 3, kNan}), true, true, true);
  REQUIRE(values.numel() == 3);
  CHECK(Values(values)[1] == 3);
  CHECK(inverse.sizes() == IntSpan({2, 2}));
  CHECK(Ints(inverse) == Integers{1, 0, 1, 2});
  CHECK(Ints(counts) == Integers{1, 2, 1});
  CHECK(std::get<0>(ops::_unique2(Vector({kNan, kNan}), true, false, false)).numel() == 2);
  CHECK(std::get<1>(ops::_unique2(Vector({1}), true, false, true)).numel() == 0);
}

TEST_CASE("inverses exchange rows where they must and say what is singular", "[kernels]") {
  const Tensor a = Of({3, 2, 2}, {0, 2, 1, 0, 4, 7, 2, 6, 1, 2, 2, 4}), inverse = Empty({3, 2, 2});
  const Tensor info = Empty({3}, DType::kI32);
  portable::_linalg_inv(a, inverse, info);
  CHECK(Ints(info) == Integers{0, 0, 2});
  Numbers values = Values(inverse);
  values.resize(8);
  RequireNear(Vector(values), {0, 1, .5, 0, .6, -.7, -.2, .4});
  MICA_REQUIRE_ERROR(portable::_linalg_inv(Indices({1, 1}, {1}), Indices({1, 1}, {1}), info),
                     "does not support the dtype (int64)");
}

TEST_CASE("LU factors come with pivots that make a permutation", "[kernels]") {
  const Tensor lu = Empty({3, 2}), pivots = Empty({2}, DType::kI32), info = Empty({}, DType::kI32);
  portable::_linalg_lu(Of({3, 2}, {1, 2, 2, 8, 4, 4}), lu, pivots, info);
  RequireNear(lu, {4, 4, .5, 6, .25, 1. / 6});
  CHECK(Ints(pivots) == Integers{3, 2});
  CHECK(Ints(info) == Integers{0});
  const Tensor permutation = EmptyTensor({3}, DType::kI64, Device{});
  portable::_pivots_to_permutation(pivots, 3, permutation);
  CHECK(Ints(permutation) == Integers{2, 1, 0});
  MICA_REQUIRE_ERROR(portable::_pivots_to_permutation(Of({2}, {0, 9}, DType::kI32), 3, permutation),
                     "A pivot is (0) for (3) rows");
}

TEST_CASE("the inverse of a complex matrix is complex", "[kernels]") {
  const Tensor a = Empty({1, 1}, DType::kC128), inverse = Empty({1, 1}, DType::kC128);
  portable::FromLanes(std::vector<portable::Complex>{{0, 2}}, a);
  portable::_linalg_inv(a, inverse, Empty({}, DType::kI32));
  CHECK(portable::ToLanes<portable::Complex>(inverse)[0] == portable::Complex(0, -.5));
}

TEST_CASE("triangular systems are solved from both sides and broadcast", "[kernels]") {
  const Tensor upper = Of({2, 2}, {2, 1, 99, 4}), lower = Of({2, 2}, {2, 99, 1, 4}), out = Empty({2, 1});
  portable::linalg_solve_triangular(upper, Of({2, 1}, {5, 8}), true, true, false, out);
  RequireNear(out, {1.5, 2});
  portable::linalg_solve_triangular(lower, Of({2, 1}, {4, 10}), false, true, false, out);
  RequireNear(out, {2, 2});
  portable::linalg_solve_triangular(upper, Of({2, 1}, {5, 8}), true, true, true, out);
  RequireNear(out, {-3, 8});
  const Tensor row = Empty({1, 2});
  portable::linalg_solve_triangular(upper, Of({1, 2}, {4, 10}), true, false, false, row);
  RequireNear(row, {2, 2});
  const Tensor batch = Empty({2, 2, 1});
  portable::linalg_solve_triangular(upper, Of({2, 2, 1}, {5, 8, 2, 0}), true, true, false, batch);
  RequireNear(batch, {1.5, 2, 1, 0});
}

TEST_CASE("nll_loss weighs, ignores and reduces", "[kernels]") {
  const Tensor x = Of({3, 2}, {-1, -2, -3, -4, -5, -6}), target = Indices({3}, {0, 1, -100}),
               weight = Vector({1, 3});
  const Tensor each = Empty({3}), loss = Empty({}), total = Empty({});
  portable::nll_loss_forward(x, target, weight, 0, -100, each, total);
  CHECK(Values(each) == Numbers{1, 12, 0});
  CHECK(Values(total) == Numbers{0});
  portable::nll_loss_forward(x, target, weight, 1, -100, loss, total);
  CHECK(Values(loss) == Numbers{13.0 / 4});
  CHECK(Values(total) == Numbers{4});
  portable::nll_loss_forward(x, target, Tensor(), 2, -100, loss, total);
  CHECK(Values(loss) == Numbers{5});
  const Tensor grad = Empty({3, 2});
  portable::nll_loss_backward(Of({}, {8}), x, target, weight, 1, -100, Of({}, {4}), grad);
  CHECK(Values(grad) == Numbers{-2, 0, 0, -6, 0, 0});
  portable::nll_loss_backward(Vector({1, 2, 3}), x, target, weight, 0, -100, Of({}, {0}), grad);
  CHECK(Values(grad) == Numbers{-1, 0, 0, -6, 0, 0});
  MICA_REQUIRE_ERROR(portable::nll_loss_forward(x, Indices({3}, {0, 2, 0}), Tensor(), 1, -100, loss, total),
                     "Target 2 is out of bounds: element (1) of `target`");
  portable::nll_loss_forward(Vector({-7, -1}), Indices({}, {0}), Tensor(), 1, -100, loss, total);
  CHECK(Values(loss) == Numbers{7});
}

TEST_CASE("the mean of no rows that count is NaN", "[kernels]") {
  const Tensor loss = Empty({}), total = Empty({});
  portable::nll_loss_forward(Of({1, 2}, {1, 2}), Indices({1}, {5}), Tensor(), 1, 5, loss, total);
  CHECK(std::isnan(Values(loss)[0]));
}

}  // namespace
}  // namespace mica::testing
