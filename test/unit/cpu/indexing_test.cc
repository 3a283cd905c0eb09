// Reading and writing by index against plain loops, and what is passed on to the
// portable kernels.
#include "plugins/cpu/indexing/indexing.h"
#include "test/support/mica_test.h"
#include "test/unit/cpu/fake_host.h"

namespace mica::cpu::test {
namespace {

void FillIndices(HostTensor& t, int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.numel(); ++i)
    Put(t, i, static_cast<double>(random() % static_cast<uint32_t>(size)));
}

constexpr int32_t kDtypes[] = {MICA_F32, MICA_F64, MICA_I64, MICA_I32};
constexpr Layout kLayouts[] = {Layout::kDense, Layout::kTransposed, Layout::kSpread};

TEST_CASE("index_select, embedding and their gradients", "[indexing]") {
  for (const int32_t dtype : kDtypes)
    for (const Layout layout : kLayouts)
      for (const int64_t dim : {0, 1, -1})
        for (const int32_t index_dtype : {MICA_I64, MICA_I32}) {
          const std::vector<int64_t> in{5, 7, 6};
          const int64_t d = dim < 0 ? 2 : dim, size = in[static_cast<size_t>(d)];
          std::vector<int64_t> out = in;
          out[static_cast<size_t>(d)] = 9;
          HostTensor x(dtype, in, Strides(in, layout)), index(index_dtype, {9}, {2}),
              y(dtype, out, Strides(out, layout)), sum(dtype, in);
          Randomize(x, 1);
          FillIndices(index, size, 2);
          const MicaCall call = Call(2);
          IndexSelect(&call, x.get(), dim, index.get(), y.get());
          MicaScalar one = {};
          one.tag = MICA_SCALAR_INT;
          one.u.i = 1;
          IndexAdd(&call, x.get(), dim, index.get(), y.get(), one, sum.get());
          std::vector<double> want = Elements(x);
          const int64_t inner = d == 2 ? 1 : d == 1 ? 6 : 42;
          for (int64_t i = 0; i < y.numel(); ++i) {
            const int64_t o = i / inner / 9, r = i / inner % 9, k = i % inner;
            const auto from = (o * size + static_cast<int64_t>(Get(index, r))) * inner + k;
            REQUIRE(Get(y, i) == Get(x, from));
            want[static_cast<size_t>(from)] += Get(y, i);
          }
          REQUIRE(Distance(Elements(sum), want) < 1e-6);
        }
}

TEST_CASE("embedding and embedding_dense_backward", "[indexing]") {
  for (const int32_t dtype : {MICA_F32, MICA_BF16}) {
    HostTensor table(dtype, {11, 40}), index(MICA_I64, {3, 50}), y(dtype, {3, 50, 40}), grad(dtype, {11, 40});
    Randomize(table, 1);
    FillIndices(index, 11, 2);
    const MicaCall call = Call(2);
    Embedding(&call, table.get(), index.get(), -1, 0, 0, y.get());
    EmbeddingDenseBackward(&call, y.get(), index.get(), 11, 4, 0, grad.get());
    std::vector<double> want(11 * 40);
    for (int64_t i = 0; i < y.numel(); ++i) {
      const auto row = static_cast<int64_t>(Get(index, i / 40));
      REQUIRE(Get(y, i) == Get(table, row * 40 + i % 40));
      if (row != 4) want[static_cast<size_t>(row * 40 + i % 40)] += Get(y, i);
    }
    REQUIRE(Distance(Elements(grad), want) < (dtype == MICA_F32 ? 1e-6 : 8e-3));
  }
}

TEST_CASE("gather, scatter and scatter_add", "[indexing]") {
  for (const int32_t dtype : kDtypes)
    for (const Layout layout : kLayouts)
      for (const int64_t dim : {0, 1, -1}) {
        const std::vector<int64_t> in{4, 5, 6}, of_index{3, 4, 5};
        const int64_t d = dim < 0 ? 2 : dim;
        HostTensor x(dtype, in, Strides(in, layout)), index(MICA_I64, of_index, Strides(of_index, layout)),
            y(dtype, of_index), src(dtype, {4, 4, 6}), added(dtype, in), set(dtype, in);
        Randomize(x, 1);
        Randomize(src, 2);
        FillIndices(index, in[static_cast<size_t>(d)], 3);
        const MicaCall call = Call(2);
        Gather(&call, x.get(), dim, index.get(), 0, y.get());
        ScatterAdd(&call, x.get(), dim, index.get(), src.get(), added.get());
        ScatterSrc(&call, x.get(), dim, index.get(), src.get(), set.get());
        std::vector<double> sums = Elements(x), last = Elements(x);
        for (int64_t i = 0; i < index.numel(); ++i) {
          int64_t at[3] = {i / 20, i / 5 % 4, i % 5};
          const int64_t from_src = (at[0] * 4 + at[1]) * 6 + at[2];
          at[d] = static_cast<int64_t>(Get(index, i));
          const int64_t place = (at[0] * 5 + at[1]) * 6 + at[2];
          REQUIRE(Get(y, i) == Get(x, place));
          sums[static_cast<size_t>(place)] += Get(src, from_src);
          last[static_cast<size_t>(place)] = Get(src, from_src);
        }
        CAPTURE(dtype, static_cast<int>(layout), dim);
        REQUIRE(Distance(Elements(added), sums) < 1e-6);
        REQUIRE(Elements(set) == last);
      }
}

TEST_CASE("_index and _index_put with one or two broadcast indices", "[indexing]") {
  for (const bool two : {false, true})
    for (const bool accumulate : {false, true}) {
      // x[:, i] with i of 3x1, or x[:, i, j] with j of 4: result 4 x 3 x (6, or 4).
      HostTensor x(MICA_F32, {4, 5, 6}, {1, 4, 20}), i(MICA_I64, {3, 1}), j(MICA_I64, {4});
      FillIndices(i, 5, 4);
      FillIndices(j, 6, 5);
      Put(i, 0, -2);
      const std::vector<int64_t> shape =
          two ? std::vector<int64_t>{4, 3, 4} : std::vector<int64_t>{4, 3, 1, 6};
      HostTensor y(MICA_F32, shape), values(MICA_F32, {shape.back()}), put(MICA_F32, {4, 5, 6});
      Randomize(x, 6);
      Randomize(values, 7);
      MicaTensor* const indices[] = {nullptr, i.get(), j.get()};
      const MicaTensorSpan span{indices, two ? 3 : 2};
      const MicaCall call = Call(2);
      Index(&call, x.get(), span, y.get());
      IndexPut(&call, x.get(), span, values.get(), accumulate, put.get());
      std::vector<double> want = Elements(x);
      const int64_t last = shape.back();
      for (int64_t k = 0; k < y.numel(); ++k) {
        auto row = static_cast<int64_t>(Get(i, k / last % 3));
        if (row < 0) row += 5;
        const int64_t column = two ? static_cast<int64_t>(Get(j, k % 4)) : k % 6;
        const int64_t place = (k / last / 3 * 5 + row) * 6 + column;
        REQUIRE(Get(y, k) == Get(x, place));
        double& w = want[static_cast<size_t>(place)];
        w = (accumulate ? w : 0) + Get(values, k % last);
      }
      REQUIRE(Distance(Elements(put), want) < 1e-6);
    }
}

TEST_CASE("masked_select and nonzero", "[indexing]") {
  const FakeHost host;
  for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_BF16, MICA_I64, MICA_U8})
    for (const Layout layout : kLayouts) {
      HostTensor x(dtype, {6, 7}, Strides({6, 7}, layout)), mask(MICA_BOOL, {6, 7}, Strides({6, 7}, layout));
      Randomize(x, 1);
      for (int64_t i = 0; i < x.numel(); i += 3) Put(x, i, 0);
      if (dtype == MICA_F32) Put(x, 6, -0.0);
      std::vector<double> chosen;
      std::vector<int64_t> found;
      for (int64_t i = 0; i < x.numel(); ++i) {
        mask.At<uint8_t>(i) = i % 5 == 1;
        if (i % 5 == 1) chosen.push_back(Get(x, i));
        if (Get(x, i) != 0) found.push_back(i);
      }
      const MicaCall call = Call(1);
      MicaValue result = {};
      result.u.tensor = MaskedSelect(&call, x.get(), mask.get());
      REQUIRE(Elements(FakeHost::Of(result)) == chosen);
      result.u.tensor = Nonzero(&call, x.get());
      const HostTensor& at = FakeHost::Of(result);
      REQUIRE(at.sizes() == std::vector<int64_t>{static_cast<int64_t>(found.size()), 2});
      for (size_t i = 0; i < found.size(); ++i)
        REQUIRE(at.At<int64_t>(static_cast<int64_t>(2 * i)) * 7 +
                    at.At<int64_t>(static_cast<int64_t>(2 * i + 1)) ==
                found[i]);
    }
}

TEST_CASE("indices out of range are passed on", "[indexing]") {
  HostTensor x(MICA_F32, {4, 5}), index(MICA_I64, {2}), y(MICA_F32, {2, 5});
  const MicaCall call = Call(1);
  for (const double bad : {4.0, -1.0}) {
    Put(index, 1, bad);
    REQUIRE_THROWS_AS(IndexSelect(&call, x.get(), 0, index.get(), y.get()), plugin::NotImplemented);
    REQUIRE_THROWS_AS(Embedding(&call, x.get(), index.get(), -1, 0, 0, y.get()), plugin::NotImplemented);
  }
  MicaTensor* const far[] = {nullptr, index.get()};
  Put(index, 1, -6);
  REQUIRE_THROWS_AS(Index(&call, x.get(), {far, 2}, y.get()), plugin::NotImplemented);
}

}  // namespace
}  // namespace mica::cpu::test
