// Shape arithmetic; result layouts and views are held to torch's.
#include <utility>
#include <vector>

#include "tensor/shape.h"
#include "tensor/tensor.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

#include "test/unit/tensor/torch_golden.inc"

std::vector<int64_t> List(IntSpan s) { return {s.begin(), s.end()}; }

TEST_CASE("elementwise results take torch's layout", "[tensor]") {
  for (const StrideCase& c : kStrideCases) {
    std::vector<Layouted> inputs;
    for (size_t i = 0; i < c.sizes.size(); ++i) inputs.push_back({c.sizes[i], c.strides[i]});
    INFO("shape " << ShapeText(c.shape) << ", first input " << ShapeText(c.sizes[0]) << " with strides "
                  << ShapeText(c.strides[0]));
    CHECK(List(ElementwiseStrides(c.shape, inputs)) == c.expected);
  }
}

TEST_CASE("a view is possible exactly when torch says so", "[tensor]") {
  for (const ViewCase& c : kViewCases) {
    INFO("sizes " << ShapeText(c.sizes) << ", strides " << ShapeText(c.strides) << " as " << ShapeText(c.to));
    const std::optional<Dims> strides = ComputeStride(c.sizes, c.strides, c.to);
    REQUIRE(strides.has_value() == c.possible);
    if (strides) CHECK(List(*strides) == c.expected);
  }
}

TEST_CASE("dims wrap and errors name range and value", "[tensor]") {
  CHECK(WrapDim(-1, 3) == 2);
  CHECK(WrapDim(0, 0) == 0);
  CHECK(WrapDim(-1, 0) == 0);
  MICA_REQUIRE_ERROR(WrapDim(3, 3), "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
  MICA_REQUIRE_ERROR(WrapDim(1, 0), "in range of [-1, 0]");
  MICA_REQUIRE_ERROR(WrapDim(0, 0, false), "tensor has no dimensions");
  MICA_REQUIRE_ERROR(WrapDims({0, -3}, 3), "appears multiple times");
  try {
    WrapDim(9, 2);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kIndex);
  }
}

TEST_CASE("strides of the memory formats", "[tensor]") {
  CHECK(List(ContiguousStrides({2, 0, 3})) == std::vector<int64_t>{3, 3, 1});
  CHECK(List(ChannelsLastStrides({2, 3, 4, 5})) == std::vector<int64_t>{60, 1, 15, 3});
  CHECK(List(ChannelsLastStrides({2, 3, 4, 5, 6})) == std::vector<int64_t>{360, 1, 90, 18, 3});
  MICA_REQUIRE_ERROR(ChannelsLastStrides({2, 3}), "4 or 5 dimensions");
  CHECK(IsContiguous({2, 1, 3}, {3, 77, 1}));
  CHECK_FALSE(IsContiguous({2, 3}, {1, 2}));
  CHECK(IsContiguous({0, 3}, {1, 2}));
  CHECK(IsChannelsLast({2, 3, 4, 5}, {60, 1, 15, 3}));
  CHECK_FALSE(IsChannelsLast({2, 3, 4, 5}, {60, 20, 5, 1}));
  CHECK(IsNonOverlappingAndDense({2, 3}, {1, 2}));
  CHECK_FALSE(IsNonOverlappingAndDense({2, 3}, {1, 3}));
}

TEST_CASE("shapes broadcast, expand and are inferred", "[tensor]") {
  CHECK(List(BroadcastShapes({2, 1, 3}, {4, 1})) == std::vector<int64_t>{2, 4, 3});
  CHECK(List(BroadcastShapes({0}, {1})) == std::vector<int64_t>{0});
  MICA_REQUIRE_ERROR(
      BroadcastShapes({2, 4}, {2, 3}),
      "The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 1");
  CHECK(CanExpandTo({1, 3}, {2, 5, 3}));
  CHECK_FALSE(CanExpandTo({2, 3}, {3}));
  Dims sizes;
  CHECK(List(ExpandStrides({1, 3}, {3, 1}, {4, 2, -1}, &sizes)) == std::vector<int64_t>{0, 0, 1});
  CHECK(List(sizes) == std::vector<int64_t>{4, 2, 3});
  MICA_REQUIRE_ERROR(ExpandStrides({2}, {1}, {3}, &sizes), "must match the existing size (2)");
  MICA_REQUIRE_ERROR(ExpandStrides({2}, {1}, {-1, 2}, &sizes),
                     "isn't allowed in a leading, non-existing dimension 0");
  CHECK(List(InferSize({2, -1}, 6)) == std::vector<int64_t>{2, 3});
  MICA_REQUIRE_ERROR(InferSize({-1, -1}, 6), "only one dimension can be inferred");
  MICA_REQUIRE_ERROR(InferSize({4, -1}, 6), "is invalid for input of size 6");
  MICA_REQUIRE_ERROR(InferSize({0, -1}, 0), "another size is 0");
  MICA_REQUIRE_ERROR(InferSize({4}, 6), "is invalid for input of size 6");
}

TEST_CASE("element counts are checked for overflow", "[tensor]") {
  CHECK(CheckedNumel({3, 4}) == 12);
  CHECK(CheckedNumel({0, int64_t{1} << 40}) == 0);
  MICA_REQUIRE_ERROR(CheckedNumel({int64_t{1} << 40, int64_t{1} << 40}), "2^63 - 1");
  MICA_REQUIRE_ERROR(CheckedNumel({2, -1}), "negative dimension -1: [2, -1]");
}

// Every pair of small boxes, against the bytes that they name.
TEST_CASE("views share a byte where their bytes say so", "[tensor]") {
  const Tensor base = EmptyTensor({64}, DType::kI16, Device{});
  const auto bytes = [&base](const Tensor& t) {
    uint64_t set[2] = {};
    for (int64_t i = 0; i < t.sizes()[0]; ++i)
      for (int64_t j = 0; j < t.sizes()[1]; ++j)
        for (int64_t k = 0; k < t.itemsize(); ++k) {
          const auto at = static_cast<uint64_t>(t.data_as<char>() - static_cast<char*>(base.data()) +
                                                (i * t.strides()[0] + j * t.strides()[1]) * t.itemsize() + k);
          set[at / 64] |= uint64_t{1} << at % 64;
        }
    return std::pair(set[0], set[1]);
  };
  std::vector<Tensor> views;
  for (const auto& [sizes, strides] : std::vector<std::pair<Dims, Dims>>{{{3, 2}, {8, 1}},
                                                                         {{3, 2}, {8, 3}},
                                                                         {{2, 4}, {5, 5}},
                                                                         {{4, 3}, {1, 7}},
                                                                         {{3, 3}, {9, 2}},
                                                                         {{1, 5}, {3, 2}}})
    for (const int64_t offset : {0, 2, 4, 10, 16, 18, 30})
      views.push_back(MakeView(base, sizes, strides, offset));
  for (const int64_t offset : {1, 4, 7})
    views.push_back(MakeViewAs(base, {5, 3}, {9, 2}, offset, DType::kU8));
  for (const Tensor& a : views)
    for (const Tensor& b : views) {
      const auto [a0, a1] = bytes(a);
      const auto [b0, b1] = bytes(b);
      CHECK(((a0 & b0) != 0 || (a1 & b1) != 0) == (GetOverlap(a, b) != Overlap::kNo));
    }
}

TEST_CASE("overlap within one tensor and between two", "[tensor]") {
  CHECK(HasInternalOverlap({2, 3}, {0, 1}) == InternalOverlap::kYes);
  CHECK(HasInternalOverlap({2, 3}, {3, 1}) == InternalOverlap::kNo);
  CHECK(HasInternalOverlap({2, 3}, {8, 2}) == InternalOverlap::kNo);
  CHECK(HasInternalOverlap({3, 3}, {1, 1}) == InternalOverlap::kTooHard);
  const Tensor base = EmptyTensor({10}, DType::kF32, Device{});
  const Tensor head = MakeView(base, {6}, {1}, 0);
  const Tensor tail = MakeView(base, {6}, {1}, 16);
  const Tensor end = MakeView(base, {4}, {1}, 24);
  CHECK(GetOverlap(head, head) == Overlap::kFull);
  CHECK(GetOverlap(head, MakeView(base, {6}, {1}, 0)) == Overlap::kFull);
  CHECK(GetOverlap(head, tail) == Overlap::kPartial);
  CHECK(GetOverlap(head, end) == Overlap::kNo);
  CHECK(GetOverlap(base, EmptyTensor({10}, DType::kF32, Device{})) == Overlap::kNo);
  // The strides of what has no elements, and of one place, are no distances.
  constexpr int64_t kHuge = int64_t{1} << 62;
  CHECK(GetOverlap(base, MakeView(base, {0, 5}, {1, kHuge}, 0)) == Overlap::kNo);
  CHECK(GetOverlap(MakeView(base, {5}, {1}, 0), MakeView(base, {1, 3}, {kHuge, 1}, 16)) != Overlap::kNo);
  CHECK(GetOverlap(MakeView(base, {5}, {2}, 0), MakeView(base, {4}, {2}, 4)) == Overlap::kNo);
  CHECK(GetOverlap(MakeView(base, {5}, {2}, 0), MakeView(base, {3}, {2}, 8)) == Overlap::kTooHard);
  MICA_REQUIRE_ERROR((CheckNoPartialOverlap(head, tail, "out", "self"), 0),
                     "refer to a single memory location");
  MICA_REQUIRE_ERROR((CheckNoInternalOverlap(MakeView(base, {3, 4}, {0, 1}, 0), "self"), 0),
                     "Please clone() the tensor `self`");
}

}  // namespace
}  // namespace mica
