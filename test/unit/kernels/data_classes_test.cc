// Operators that have no kernel of their own but run from their entry's data:
// gather, scatter, window and contraction, on the portable class kernels.
#include <cmath>

#include "dispatcher/tables/dispatcher.h"
#include "mica/ops/_adaptive_avg_pool2d.h"
#include "mica/ops/adaptive_max_pool2d.h"
#include "mica/ops/avg_pool2d.h"
#include "mica/ops/block_diag.h"
#include "mica/ops/bmm.h"
#include "mica/ops/cat.h"
#include "mica/ops/constant_pad_nd.h"
#include "mica/ops/dot.h"
#include "mica/ops/embedding.h"
#include "mica/ops/flip.h"
#include "mica/ops/gather.h"
#include "mica/ops/index_add.h"
#include "mica/ops/index_copy.h"
#include "mica/ops/index_select.h"
#include "mica/ops/max_pool2d_with_indices.h"
#include "mica/ops/mm.h"
#include "mica/ops/mv.h"
#include "mica/ops/roll.h"
#include "mica/ops/scatter.h"
#include "mica/ops/scatter_add.h"
#include "mica/ops/stack.h"
#include "mica/ops/tril.h"
#include "mica/ops/triu.h"
#include "test/unit/kernels/portable_fixture.h"

namespace mica {
namespace {

using namespace testing;

Tensor Rows() { return Of({2, 3}, {1, 2, 3, 4, 5, 6}); }

TEST_CASE("none of these has a kernel of its own", "[kernels]") {
  for (const char* name : {"flip",
                           "roll",
                           "tril",
                           "constant_pad_nd",
                           "gather",
                           "index_select",
                           "embedding",
                           "scatter.src",
                           "scatter.value",
                           "scatter_add",
                           "index_add",
                           "index_copy",
                           "max_pool2d_with_indices",
                           "avg_pool2d",
                           "adaptive_max_pool2d",
                           "_adaptive_avg_pool2d",
                           "mm",
                           "bmm",
                           "mv",
                           "dot"}) {
    const OperatorSpec& spec = GetOperator(std::string("mica::") + name).spec();
    INFO(name);
    CHECK(spec.portable == nullptr);
    CHECK(PortableClass(spec.op_class) != nullptr);
    CHECK((spec.programs[static_cast<int>(DTypeKind::kFloating)] != nullptr));
  }
}

TEST_CASE("gather from computed coordinates", "[kernels]") {
  RequireNear(ops::flip(Rows(), {1}), {3, 2, 1, 6, 5, 4});
  RequireNear(ops::flip(Transposed(Rows()), {0, 1}), {6, 3, 5, 2, 4, 1});
  RequireNear(ops::flip(Rows(), IntSpan()), {1, 2, 3, 4, 5, 6});
  RequireNear(ops::roll(Rows(), {1}, {1}), {3, 1, 2, 6, 4, 5});
  RequireNear(ops::roll(Rows(), {1, -1, 1}, {1, 0, 1}), {5, 6, 4, 2, 3, 1});
  RequireNear(ops::roll(Rows(), {INT64_MAX, INT64_MAX}, {1, 1}), {2, 3, 1, 5, 6, 4});
  RequireNear(ops::roll(Rows(), {2}, IntSpan()), {5, 6, 1, 2, 3, 4});
  RequireNear(ops::roll(Transposed(Rows()), {-1}, IntSpan()), {4, 2, 5, 3, 6, 1});
  RequireNear(ops::tril(Rows()), {1, 0, 0, 4, 5, 0});
  RequireNear(ops::triu(Rows(), 1), {0, 2, 3, 0, 0, 6});
  RequireNear(ops::constant_pad_nd(Rows(), {1, 0, -1, 1}, Scalar(9)), {9, 4, 5, 6, 9, 9, 9, 9});
  CHECK(ops::flip(Of({}, {7}), IntSpan()).ndim() == 0);
  CHECK(ops::roll(Empty({0, 3}), {1}, {0}).sizes() == IntSpan({0, 3}));
}

TEST_CASE("gather by a tensor of indices", "[kernels]") {
  RequireNear(ops::gather(Rows(), 1, Indices({2, 2}, {2, 0, 1, 1})), {3, 1, 5, 5});
  RequireNear(ops::gather(Rows(), 0, Indices({1, 3}, {1, 0, 1})), {4, 2, 6});
  RequireNear(ops::gather(Of({}, {7}), 0, Indices({2}, {0, 0})), {7, 7});
  RequireNear(ops::index_select(Rows(), 1, Indices({2}, {2, 2})), {3, 3, 6, 6});
  RequireNear(ops::index_select(Rows(), -2, Indices({1}, {1})), {4, 5, 6});
  const Tensor rows = ops::embedding(Rows(), Indices({2, 2}, {1, 0, 0, 1}));
  CHECK(rows.sizes() == IntSpan({2, 2, 3}));
  RequireNear(rows, {4, 5, 6, 1, 2, 3, 1, 2, 3, 4, 5, 6});
  MICA_REQUIRE_ERROR(ops::index_select(Rows(), 1, Indices({1}, {3})), "out of");
  MICA_REQUIRE_ERROR(ops::gather(Rows(), 1, Indices({1, 1}, {-1})), "out of");
}

TEST_CASE("scatter writes in order and combines", "[kernels]") {
  const Tensor index = Indices({1, 3}, {1, 1, 0});
  RequireNear(ops::scatter(Rows(), 0, index, Of({1, 3}, {7, 8, 9})), {1, 2, 9, 7, 8, 6});
  RequireNear(ops::scatter(Rows(), 1, Indices({2, 2}, {0, 0, 2, 2}), Of({2, 3}, {7, 8, 0, 9, 10, 0})),
              {8, 2, 3, 4, 5, 10});
  RequireNear(ops::scatter(Rows(), 0, index, Scalar(0)), {1, 2, 0, 0, 0, 6});
  RequireNear(ops::scatter_add(Rows(), 1, Indices({2, 2}, {0, 0, 2, 2}), Of({2, 2}, {1, 1, 1, 1})),
              {3, 2, 3, 4, 5, 8});
  RequireNear(ops::index_add(Rows(), 1, Indices({2}, {0, 0}), Of({2, 2}, {1, 2, 3, 4}), Scalar(2)),
              {7, 2, 3, 18, 5, 6});
  RequireNear(ops::index_copy(Rows(), 0, Indices({1}, {1}), Of({1, 3}, {7, 8, 9})), {1, 2, 3, 7, 8, 9});
  const Tensor bytes = Of({2}, {250, 1}, DType::kU8);
  RequireNear(ops::scatter_add(bytes, 0, Indices({2}, {0, 0}), Of({2}, {3, 4}, DType::kU8)), {1, 1});
  MICA_REQUIRE_ERROR(ops::scatter(Rows(), 0, Indices({1, 1}, {2}), Scalar(0)), "out of");
}

TEST_CASE("windows are reduced", "[kernels]") {
  const Tensor x = Of({1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto [most, where] = ops::max_pool2d_with_indices(x, {2}, {1}, {1}, {2}, false);
  CHECK(most.sizes() == IntSpan({1, 3, 3}));
  RequireNear(most, {5, 6, 5, 8, 9, 8, 5, 6, 5});
  CHECK(Ints(where) == Integers{4, 5, 4, 7, 8, 7, 4, 5, 4});
  const Tensor holes = Of({1, 1, 3}, {-INFINITY, NAN, 2});
  const auto [top, place] = ops::max_pool2d_with_indices(holes, {1, 2}, {1, 1}, {0, 0}, {1, 1}, false);
  CHECK(std::isnan(Values(top)[0]));
  CHECK(Ints(place) == Integers{1, 1});
  const auto [low, zero] =
      ops::max_pool2d_with_indices(Of({1, 1, 2}, {0, 0}, DType::kU8), {1, 1}, IntSpan(), {0}, {1}, false);
  CHECK(Ints(zero) == Integers{0, 1});
  RequireNear(ops::avg_pool2d(x, {2}, {2}, {1}, false, true), {0.25, 1.25, 2.75, 7});
  RequireNear(ops::avg_pool2d(x, {2}, {2}, {1}, false, false), {1, 2.5, 5.5, 7});
  RequireNear(ops::avg_pool2d(x, {2}, {2}, {0}, true, true), {3, 4.5, 7.5, 9});
  RequireNear(ops::avg_pool2d(x, {2}, {2}, {0}, false, true, 2), {6});
  RequireNear(ops::avg_pool2d(Of({1, 1, 2}, {-3, 0}, DType::kI64), {1, 2}), {-1});
  RequireNear(ops::_adaptive_avg_pool2d(x, {2, 1}), {3.5, 6.5});
  RequireNear(std::get<0>(ops::adaptive_max_pool2d(x, {2, 2})), {5, 6, 8, 9});
}

TEST_CASE("lists fold into one tensor", "[kernels]") {
  const std::vector<Tensor> rows = {Vector({1, 2}), Vector({3, 4})};
  RequireNear(ops::cat(rows, 0), {1, 2, 3, 4});
  RequireNear(ops::cat(std::vector<Tensor>{Rows(), Empty({0}), Transposed(Of({3, 1}, {7, 8, 9}))}, -2),
              {1, 2, 3, 4, 5, 6, 7, 8, 9});
  RequireNear(ops::stack(rows, 1), {1, 3, 2, 4});
  RequireNear(ops::block_diag(std::vector<Tensor>{Of({1, 1}, {5}), Rows()}),
              {5, 0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6});
}

TEST_CASE("contractions follow their equation", "[kernels]") {
  const Tensor columns = Of({3, 2}, {1, 0, 2, 1, 0, 3});
  RequireNear(ops::mm(Rows(), columns), {5, 11, 14, 23});
  RequireNear(ops::mm(Transposed(columns), Transposed(Rows())), {5, 14, 11, 23});
  RequireNear(ops::mv(Rows(), Vector({1, 0, 2})), {7, 16});
  RequireNear(ops::dot(Vector({1, 2, 3}), Vector({4, 5, 6})), {32});
  RequireNear(ops::bmm(Of({2, 1, 2}, {1, 2, 3, 4}), Of({2, 2, 1}, {5, 6, 7, 8})), {17, 53});
  CHECK(ops::mm(Empty({2, 0}), Empty({0, 3})).sizes() == IntSpan({2, 3}));
}

}  // namespace
}  // namespace mica
