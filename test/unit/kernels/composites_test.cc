// Composites on the CPU against values worked out by hand (or by NumPy, where the
// comment says so), and the sentences of their errors.
#include "mica/ops/_cumprod_backward.h"
#include "mica/ops/_prod_backward.h"
#include "mica/ops/arange.h"
#include "mica/ops/batch_norm.h"
#include "mica/ops/chunk.h"
#include "mica/ops/clamp.h"
#include "mica/ops/cross_entropy_loss.h"
#include "mica/ops/einsum.h"
#include "mica/ops/index.h"
#include "mica/ops/item.h"
#include "mica/ops/kron.h"
#include "mica/ops/layer_norm.h"
#include "mica/ops/linalg_vector_norm.h"
#include "mica/ops/matmul.h"
#include "mica/ops/median.h"
#include "mica/ops/nan_to_num.h"
#include "mica/ops/one_hot.h"
#include "mica/ops/polygamma.h"
#include "mica/ops/repeat.h"
#include "mica/ops/reshape.h"
#include "mica/ops/std.h"
#include "mica/ops/take_along_dim.h"
#include "mica/ops/to.h"
#include "mica/ops/transpose.h"
#include "mica/ops/var.h"
#include "tensor/shape.h"
#include "test/unit/kernels/portable_fixture.h"

namespace mica {
namespace {

using namespace testing;

Tensor Range(IntSpan sizes) {
  return ops::to(ops::reshape(ops::arange(Scalar(CheckedNumel(sizes))), sizes), DType::kF64);
}

TEST_CASE("einsum contracts, sums, transposes and takes diagonals", "[kernels]") {
  const Tensor a = Range({2, 3}), b = Range({3, 2});
  RequireNear(ops::einsum("ij,jk->ik", std::vector<Tensor>{a, b}), {10, 13, 28, 40});
  RequireNear(ops::einsum("ij,jk->ki", std::vector<Tensor>{a, b}), {10, 28, 13, 40});
  RequireNear(ops::einsum("ij->j", std::vector<Tensor>{a}), {3, 5, 7});
  RequireNear(ops::einsum("ij->", std::vector<Tensor>{a}), {15});
  RequireNear(ops::einsum("ba", std::vector<Tensor>{a}), {0, 3, 1, 4, 2, 5});
  RequireNear(ops::einsum("ii->i", std::vector<Tensor>{Range({3, 3})}), {0, 4, 8});
  RequireNear(ops::einsum("i,j->ij", std::vector<Tensor>{Vector({1, 2}), Vector({3, 4})}), {3, 4, 6, 8});
  RequireNear(ops::einsum("...j,j->...", std::vector<Tensor>{a, Vector({1, 0, 2})}), {4, 13});
  RequireNear(ops::einsum("i,i,i->", std::vector<Tensor>{Vector({1, 2}), Vector({3, 4}), Vector({5, 6})}),
              {63});
  MICA_REQUIRE_ERROR(ops::einsum("ij,jk->iz", std::vector<Tensor>{a, b}),
                     "does not appear in the equation for any input operand");
  MICA_REQUIRE_ERROR(ops::einsum("ij,jk", std::vector<Tensor>{a}), "terms");
  MICA_REQUIRE_ERROR(ops::einsum("i?", std::vector<Tensor>{a}), "character");
  MICA_REQUIRE_ERROR(ops::einsum("ijk", std::vector<Tensor>{a}), "dimensions");
}

TEST_CASE("matmul follows NumPy's shapes", "[kernels]") {
  CHECK(ops::matmul(Range({3}), Range({3})).ndim() == 0);
  RequireNear(ops::matmul(Range({2, 3}), Vector({1, 2, 3})), {8, 26});
  RequireNear(ops::matmul(Vector({1, 2}), Range({2, 3})), {6, 9, 12});
  CHECK(ops::matmul(Range({4, 2, 3}), Range({3, 5})).sizes() == IntSpan({4, 2, 5}));
  CHECK(ops::matmul(Range({4, 1, 2, 3}), Range({6, 3, 5})).sizes() == IntSpan({4, 6, 2, 5}));
  CHECK(ops::matmul(Range({3}), Range({4, 3, 5})).sizes() == IntSpan({4, 5}));
  CHECK_THROWS_AS(ops::matmul(Range({2, 3}), Range({2, 3})), Error);
  CHECK_THROWS_AS(ops::matmul(Range({}), Range({2})), Error);
}

TEST_CASE("statistics", "[kernels]") {
  const Tensor x = Of({2, 2}, {1, 2, 3, 6});
  RequireNear(ops::op::var_correction::call(x, IntSpan({1}), std::nullopt, false), {0.5, 4.5});
  RequireNear(ops::op::std_correction::call(x, IntSpan({1}), std::optional<Scalar>(Scalar(0)), true),
              {0.5, 1.5});
  RequireNear(ops::linalg_vector_norm(Vector({3, -4})), {5});
  RequireNear(ops::linalg_vector_norm(Vector({3, -4}), Scalar(1)), {7});
  RequireNear(ops::linalg_vector_norm(Vector({3, 0, -4}), Scalar(0)), {2});
  RequireNear(ops::linalg_vector_norm(Vector({3, -4}), Scalar(INFINITY)), {4});
  RequireNear(ops::op::median::call(Vector({4, 1, 3, 2})), {2});
  CHECK(std::isnan(ops::item(ops::op::median::call(Vector({4, NAN, 3}))).ToDouble()));
}

TEST_CASE("choosing and filling", "[kernels]") {
  RequireNear(
      ops::clamp(Vector({-2, 0, 5}), std::optional<Scalar>(Scalar(-1)), std::optional<Scalar>(Scalar(3))),
      {-1, 0, 3});
  RequireNear(ops::nan_to_num(Vector({NAN, 1, 2}), 7.0), {7, 1, 2});
  CHECK(Ints(ops::one_hot(Indices({2}, {2, 0}), -1)) == Integers{0, 0, 1, 1, 0, 0});
  MICA_REQUIRE_ERROR(ops::one_hot(Indices({1}, {-1}), 3), "negative");
  MICA_REQUIRE_ERROR(ops::one_hot(Indices({1}, {3}), 3), "must be smaller than num_classes");
  RequireNear(ops::repeat(Vector({1, 2}), {2, 2}), {1, 2, 1, 2, 1, 2, 1, 2});
  RequireNear(ops::kron(Vector({1, 2}), Vector({1, 10})), {1, 10, 2, 20});
  CHECK(ops::chunk(Range({7}), 3).size() == 3);
  CHECK_THROWS_AS(ops::op::clamp::call(Vector({1}), std::nullopt, std::nullopt), Error);
}

TEST_CASE("indexing with masks, integers and None", "[kernels]") {
  const Tensor x = Range({2, 3});
  RequireNear(ops::index(x, std::vector<Tensor>{Indices({2}, {1, 0}), Indices({2}, {-1, 0})}), {5, 0});
  RequireNear(ops::index(x, std::vector<Tensor>{Tensor(), Indices({1}, {1})}), {1, 4});
  const Tensor mask = ops::to(Of({2, 3}, {1, 0, 0, 0, 1, 1}), DType::kBool);
  RequireNear(ops::index(x, std::vector<Tensor>{mask}), {0, 4, 5});
  RequireNear(ops::take_along_dim(x, Indices({2, 1}, {2, 0}), 1), {2, 3});
  CHECK_THROWS_AS(ops::index(x, std::vector<Tensor>{Indices({1}, {2})}), Error);
  MICA_REQUIRE_ERROR(ops::index(x, std::vector<Tensor>{ops::to(Vector({1, 0, 1}), DType::kBool)}),
                     "does not match the shape of the indexed tensor [2, 3]");
}

TEST_CASE("normalisation and losses", "[kernels]") {
  const Tensor x = Of({2, 2}, {1, 3, 2, 6});
  RequireNear(ops::layer_norm(x, {2}, Tensor(), Tensor(), 0.0), {-1, 1, -1, 1});
  const Tensor mean = Vector({0, 0}), var = Vector({1, 1});
  RequireNear(ops::batch_norm(x, Tensor(), Tensor(), mean, var, true, 0.5, 0.0, false), {-1, -1, 1, 1});
  RequireNear(mean, {0.75, 2.25});
  RequireNear(var, {0.75, 2.75});
  // log_softmax of [0, log 3] is [-log 4, log 3 - log 4]
  const Tensor logits = Of({2, 2}, {0, std::log(3.0), 0, std::log(3.0)});
  const double a = std::log(4.0), b = std::log(4.0) - std::log(3.0);
  RequireNear(ops::cross_entropy_loss(logits, Indices({2}, {0, 1})), {(a + b) / 2});
  RequireNear(ops::cross_entropy_loss(logits, Indices({2}, {0, -100})), {a});
  RequireNear(ops::cross_entropy_loss(logits, Indices({2}, {0, 1}), Vector({1, 3}), 1), {(a + 3 * b) / 4});
  RequireNear(ops::cross_entropy_loss(logits, Of({2, 2}, {1, 0, 0.5, 0.5})), {(a + (a + b) / 2) / 2});
  CHECK_THROWS_AS(ops::cross_entropy_loss(logits, Indices({2}, {0, 2})), Error);
}

TEST_CASE("parts of gradients are exact at zeros", "[kernels]") {
  const Tensor x = Vector({2, 0, 3}), one = Of({}, {1});
  RequireNear(ops::_prod_backward(one, x, std::nullopt, false), {0, 6, 0});
  // results [2, 0, 0]: d/dx0 = 1 + 0 + 0, d/dx1 = 2 + 6, d/dx2 = 0
  RequireNear(ops::_cumprod_backward(Vector({1, 1, 1}), x, 0), {1, 8, 0});
  // psi'(1) = pi^2 / 6, psi'(1/2) = pi^2 / 2, psi'(-0.5) = pi^2 / 2 + 4
  const double p = 9.869604401089358;
  RequireNear(ops::polygamma(1, Vector({1, 0.5, -0.5})), {p / 6, p / 2, p / 2 + 4});
}

}  // namespace
}  // namespace mica
