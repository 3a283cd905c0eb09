// Meta functions, called through their operators on meta tensors: shapes, dtypes
// and memory order of results against torch's rules, and the errors of bad
// arguments.
#include "mica/ops/_softmax.h"
#include "mica/ops/abs.h"
#include "mica/ops/add.h"
#include "mica/ops/addcmul.h"
#include "mica/ops/amax.h"
#include "mica/ops/arange.h"
#include "mica/ops/argmax.h"
#include "mica/ops/avg_pool2d.h"
#include "mica/ops/bmm.h"
#include "mica/ops/cat.h"
#include "mica/ops/convolution.h"
#include "mica/ops/cumsum.h"
#include "mica/ops/div.h"
#include "mica/ops/eq.h"
#include "mica/ops/fill.h"
#include "mica/ops/gather.h"
#include "mica/ops/index.h"
#include "mica/ops/index_select.h"
#include "mica/ops/max_pool2d_with_indices.h"
#include "mica/ops/mean.h"
#include "mica/ops/mm.h"
#include "mica/ops/pow.h"
#include "mica/ops/stack.h"
#include "mica/ops/sum.h"
#include "mica/ops/topk.h"
#include "mica/ops/where.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

const Device kMeta{1, 0};
Tensor Meta(IntSpan sizes, DType dtype = DType::kF32) { return EmptyTensor(sizes, dtype, kMeta); }
bool Is(const Tensor& t, const Dims& sizes, DType dtype) {
  return t.sizes() == IntSpan(sizes) && t.dtype() == dtype && t.device() == kMeta;
}

TEST_CASE("pointwise results broadcast and promote") {
  CHECK(Is(ops::add(Meta({2, 3}), Meta({3})), {2, 3}, DType::kF32));
  CHECK(Is(ops::add(Meta({2, 1}, DType::kI32), Meta({3}, DType::kI64)), {2, 3}, DType::kI64));
  CHECK(Is(ops::add(Meta({2}, DType::kI32), Meta({}, DType::kI64)), {2}, DType::kI32));
  CHECK(Is(ops::add(Meta({2}, DType::kI32), Scalar(1.5)), {2}, DType::kF32));
  CHECK(Is(ops::add(Meta({2}, DType::kF16), Scalar(1.5)), {2}, DType::kF16));
  CHECK(Is(ops::div(Meta({2}, DType::kI32), Meta({2}, DType::kI32)), {2}, DType::kF32));
  CHECK(Is(ops::eq(Meta({2}), Meta({2})), {2}, DType::kBool));
  CHECK(Is(ops::abs(Meta({2}, DType::kC64)), {2}, DType::kF32));
  CHECK(Is(ops::where(Meta({2, 1}, DType::kBool), Meta({3}), Meta({}, DType::kF64)), {2, 3}, DType::kF32));
  CHECK(Is(ops::fill(Meta({2}, DType::kI32), Scalar(2.5)), {2}, DType::kI32));
  CHECK(Is(ops::add(Meta({0, 3}), Meta({1, 3})), {0, 3}, DType::kF32));
  CHECK_THROWS_AS(ops::add(Meta({2, 3}), Meta({4})), Error);
  CHECK_THROWS_AS(ops::add(Meta({2}, DType::kI32), Meta({2}, DType::kI32), Scalar(1.5)), Error);
  CHECK_THROWS_AS(
      ops::addcmul(Meta({2}, DType::kI64), Meta({2}, DType::kI64), Meta({2}, DType::kI64), Scalar(0.5)),
      Error);
  CHECK_THROWS_AS(ops::pow(Meta({2}, DType::kI64), Scalar(-1)), Error);
}

TEST_CASE("pointwise results keep the memory order of their inputs") {
  const Tensor t = MakeView(Meta({3, 2}), {2, 3}, {1, 2}, 0);
  CHECK(ops::add(t, t).strides() == IntSpan({1, 2}));
  CHECK(ops::add(t, Meta({2, 3})).strides() == IntSpan({1, 2}));
  const Tensor nhwc = EmptyTensor({2, 3, 4, 5}, DType::kF32, kMeta, MemoryFormat::kChannelsLast);
  CHECK(ops::add(nhwc, nhwc).is_contiguous(MemoryFormat::kChannelsLast));
}

TEST_CASE("reductions drop or keep dimensions") {
  const Tensor t = Meta({2, 3, 4});
  CHECK(Is(ops::sum(t), {}, DType::kF32));
  CHECK(Is(ops::sum(t, IntSpan({0, -1})), {3}, DType::kF32));
  CHECK(Is(ops::sum(t, IntSpan({1}), true), {2, 1, 4}, DType::kF32));
  CHECK(Is(ops::sum(t, IntSpan()), {}, DType::kF32));
  CHECK(Is(ops::sum(Meta({2}, DType::kBool)), {}, DType::kI64));
  CHECK(Is(ops::sum(Meta({2}, DType::kI32), DType::kF64), {}, DType::kF64));
  CHECK(Is(ops::argmax(t, 1), {2, 4}, DType::kI64));
  CHECK(Is(ops::cumsum(Meta({2, 3}, DType::kI32), 0), {2, 3}, DType::kI64));
  CHECK(Is(ops::_softmax(t, -1, false), {2, 3, 4}, DType::kF32));
  CHECK_THROWS_AS(ops::sum(t, IntSpan({1, 1})), Error);
  CHECK_THROWS_AS(ops::sum(t, IntSpan({3})), Error);
  CHECK_THROWS_AS(ops::amax(Meta({0, 3}), IntSpan({0})), Error);
  CHECK(Is(ops::amax(Meta({0, 3}), IntSpan({1})), {0}, DType::kF32));
}

TEST_CASE("products need equal inner sizes") {
  CHECK(Is(ops::mm(Meta({2, 3}), Meta({3, 4})), {2, 4}, DType::kF32));
  CHECK(Is(ops::bmm(Meta({5, 2, 3}), Meta({5, 3, 4})), {5, 2, 4}, DType::kF32));
  CHECK_THROWS_AS(ops::mm(Meta({2, 3}), Meta({4, 3})), Error);
  CHECK_THROWS_AS(ops::mm(Meta({2, 3}), Meta({3, 4}, DType::kF64)), Error);
  CHECK_THROWS_AS(ops::mm(Meta({2, 3}), Meta({3})), Error);
}

TEST_CASE("convolution and pooling sizes") {
  const Tensor x = Meta({2, 4, 9, 8}), w = Meta({6, 2, 3, 3});
  CHECK(Is(ops::convolution(x, w, Tensor(), {2, 2}, {1, 1}, {1, 1}, false, {0, 0}, 2), {2, 6, 5, 4},
           DType::kF32));
  CHECK(Is(ops::convolution(Meta({2, 6, 5, 4}), w, Tensor(), {2, 2}, {1, 1}, {1, 1}, true, {0, 1}, 2),
           {2, 4, 9, 8}, DType::kF32));
  CHECK_THROWS_AS(ops::convolution(x, w, Tensor(), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1), Error);
  CHECK_THROWS_AS(ops::convolution(x, w, Meta({5}), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 2), Error);
  CHECK_THROWS_AS(
      ops::convolution(x, Meta({6, 2, 30, 3}), Tensor(), {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 2), Error);
  const auto [values, indices] = ops::max_pool2d_with_indices(x, {2, 2});
  CHECK(Is(values, {2, 4, 4, 4}, DType::kF32));
  CHECK(Is(indices, {2, 4, 4, 4}, DType::kI64));
  CHECK(Is(ops::avg_pool2d(x, {2, 2}, {2, 2}, {0, 0}, true), {2, 4, 5, 4}, DType::kF32));
  CHECK_THROWS_AS(ops::max_pool2d_with_indices(x, {2, 2}, {2, 2}, {2, 2}), Error);
}

TEST_CASE("joining and indexing sizes") {
  CHECK(Is(ops::cat(std::vector<Tensor>{Meta({2, 3}), Meta({2, 1}, DType::kF64)}, 1), {2, 4}, DType::kF64));
  CHECK(Is(ops::cat(std::vector<Tensor>{Meta({0}), Meta({2, 1})}, 1), {2, 1}, DType::kF32));
  CHECK(Is(ops::stack(std::vector<Tensor>{Meta({2}), Meta({2})}, -1), {2, 2}, DType::kF32));
  CHECK(Is(ops::gather(Meta({3, 4}), 0, Meta({2, 4}, DType::kI64)), {2, 4}, DType::kF32));
  CHECK(Is(ops::index_select(Meta({3, 4}), 1, Meta({5}, DType::kI64)), {3, 5}, DType::kF32));
  CHECK(Is(std::get<1>(ops::topk(Meta({3, 4}), 2)), {3, 2}, DType::kI64));
  const Tensor i = Meta({5, 1}, DType::kI64), j = Meta({6}, DType::kI64);
  CHECK(Is(ops::index(Meta({2, 3, 4}), std::vector<Tensor>{Tensor(), i, j}), {2, 5, 6}, DType::kF32));
  CHECK(Is(ops::index(Meta({2, 3, 4}), std::vector<Tensor>{i, Tensor(), j}), {5, 6, 3}, DType::kF32));
  CHECK_THROWS_AS(ops::cat(std::vector<Tensor>{}, 0), Error);
  CHECK_THROWS_AS(ops::cat(std::vector<Tensor>{Meta({2, 3}), Meta({3, 3})}, 1), Error);
  CHECK_THROWS_AS(ops::gather(Meta({3, 4}), 0, Meta({2, 5}, DType::kI64)), Error);
  CHECK_THROWS_AS(ops::gather(Meta({3, 4}), 0, Meta({2, 4})), Error);
  CHECK_THROWS_AS(ops::topk(Meta({3, 4}), 5), Error);
}

TEST_CASE("arange counts as torch does") {
  const auto size = [](const Scalar& a, const Scalar& b, const Scalar& c) {
    return ops::op::arange_start_step::call(a, b, c, std::nullopt, std::nullopt, kMeta, std::nullopt).size(0);
  };
  CHECK(size(Scalar(0), Scalar(10), Scalar(3)) == 4);
  CHECK(size(Scalar(10), Scalar(0), Scalar(-3)) == 4);
  CHECK(size(Scalar(0.0), Scalar(1.0), Scalar(0.25)) == 4);
  CHECK(size(Scalar(5), Scalar(5), Scalar(1)) == 0);
  CHECK_THROWS_AS(size(Scalar(0), Scalar(1), Scalar(0)), Error);
  CHECK_THROWS_AS(size(Scalar(0), Scalar(1), Scalar(-1)), Error);
}

}  // namespace
}  // namespace mica
