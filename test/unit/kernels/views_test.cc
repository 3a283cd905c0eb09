// View functions: sizes, strides and offsets against values worked out by hand,
// and the errors of bad arguments.
#include "mica/kernels/view_declarations.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

Tensor Meta(IntSpan sizes, DType dtype = DType::kF32) { return EmptyTensor(sizes, dtype, Device{1, 0}); }
bool Is(const ViewSpec& v, const Dims& sizes, const Dims& strides, int64_t offset) {
  return v.sizes == sizes && v.strides == strides && v.byte_offset == offset;
}

TEST_CASE("view computes strides or refuses") {
  const Tensor t = Meta({2, 3, 4});
  CHECK(Is(views::view(t, {6, 4}), {6, 4}, {4, 1}, 0));
  CHECK(Is(views::view(t, {-1, 2}), {12, 2}, {2, 1}, 0));
  const Tensor swapped = MakeView(t, {3, 2, 4}, {4, 12, 1}, 0);
  CHECK(Is(views::view(swapped, {3, 2, 2, 2}), {3, 2, 2, 2}, {4, 12, 2, 1}, 0));
  CHECK_THROWS_AS(views::view(swapped, {6, 4}), Error);
  CHECK_THROWS_AS(views::view(t, {5, 5}), Error);
}

TEST_CASE("reordering views") {
  const Tensor t = Meta({2, 3, 4});
  CHECK(Is(views::transpose(t, 0, -1), {4, 3, 2}, {1, 4, 12}, 0));
  CHECK(Is(views::permute(t, {2, 0, 1}), {4, 2, 3}, {1, 12, 4}, 0));
  CHECK(Is(views::t(Meta({2, 3})), {3, 2}, {1, 3}, 0));
  CHECK(Is(views::unsqueeze(t, 1), {2, 1, 3, 4}, {12, 12, 4, 1}, 0));
  CHECK(Is(views::unsqueeze(t, -1), {2, 3, 4, 1}, {12, 4, 1, 1}, 0));
  CHECK(Is(views::squeeze(Meta({1, 3, 1})), {3}, {1}, 0));
  CHECK(Is(views::squeeze_dim(Meta({1, 3, 1}), 1), {1, 3, 1}, {3, 1, 1}, 0));
  CHECK(Is(views::expand(Meta({3, 1}), {2, 3, 4}, false), {2, 3, 4}, {0, 1, 0}, 0));
  CHECK_THROWS_AS(views::permute(t, {0, 0, 1}), Error);
  CHECK_THROWS_AS(views::permute(t, {0, 1}), Error);
  CHECK_THROWS_AS(views::transpose(t, 0, 3), Error);
  CHECK_THROWS_AS(views::t(t), Error);
}

TEST_CASE("views of a part") {
  const Tensor t = Meta({2, 3, 4});
  CHECK(Is(views::select(t, 1, -1), {2, 4}, {12, 1}, 32));
  CHECK(Is(views::slice(t, 2, 1, std::nullopt, 2), {2, 3, 2}, {12, 4, 2}, 4));
  CHECK(Is(views::slice(t, 2, -2, 100, 1), {2, 3, 2}, {12, 4, 1}, 8));
  CHECK(Is(views::slice(t, 0, 2, 1, 1), {0, 3, 4}, {12, 4, 1}, 96));
  CHECK(Is(views::unfold(Meta({7}), 0, 3, 2), {3, 3}, {2, 1}, 0));
  CHECK(Is(views::diagonal(Meta({3, 4}), 1, 0, 1), {3}, {5}, 4));
  CHECK(Is(views::diagonal(Meta({3, 4}), -1, 0, 1), {2}, {5}, 16));
  CHECK(views::diagonal(Meta({3, 4}), 9, 0, 1).sizes == Dims{0});
  CHECK(Is(views::as_strided(t, {2, 2}, {1, 2}, 3), {2, 2}, {1, 2}, 12));
  CHECK_THROWS_AS(views::select(t, 1, 3), Error);
  CHECK_THROWS_AS(views::select(Meta({}), 0, 0), Error);
  CHECK_THROWS_AS(views::slice(t, 0, 0, 2, -1), Error);
  CHECK_THROWS_AS(views::as_strided(t, {2}, {-1}, 0), Error);
  CHECK_THROWS_AS(views::unfold(t, 0, 5, 1), Error);
}

TEST_CASE("views as another dtype") {
  const ViewSpec real = views::view_as_real(Meta({2, 3}, DType::kC64));
  CHECK(Is(real, {2, 3, 2}, {6, 2, 1}, 0));
  CHECK(real.dtype == static_cast<int8_t>(DType::kF32));
  CHECK(Is(views::view_as_complex(Meta({3, 2})), {3}, {1}, 0));
  CHECK(Is(views::view_dtype(Meta({2, 3}), DType::kF16), {2, 6}, {6, 1}, 0));
  CHECK(Is(views::view_dtype(Meta({2, 4}), DType::kF64), {2, 2}, {2, 1}, 0));
  CHECK_THROWS_AS(views::view_dtype(Meta({2, 3}), DType::kF64), Error);
  CHECK_THROWS_AS(views::view_as_complex(Meta({3})), Error);
  CHECK_THROWS_AS(views::view_as_real(Meta({3})), Error);
}

}  // namespace
}  // namespace mica
