// sort and topk against std::stable_sort under torch's order.
#include "plugins/cpu/sorting/sorting.h"

#include <numeric>

#include "test/support/mica_test.h"
#include "test/unit/cpu/library_fixture.h"

namespace mica::cpu::test {
namespace {

bool Less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

// Elements that repeat, with zeros of both signs, infinities and NaN where there are such.
void FillMixed(HostTensor& t, uint32_t seed) {
  std::mt19937 random(seed);
  const bool floating = t.dtype() == MICA_F32 || t.dtype() == MICA_F64;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const uint32_t r = random() % 40;
    double value = t.dtype() == MICA_U8 ? static_cast<double>(r) : static_cast<double>(r) - 20;
    if (floating && r == 0) value = NAN;
    if (floating && r == 1) value = INFINITY;
    if (floating && r == 2) value = -INFINITY;
    if (floating && r == 3) value = -0.0;
    if (floating && r > 30) value = static_cast<double>(random()) / 1e9 - 2;
    Put(t, i, value);
  }
}

TEST_CASE("sort.stable and topk", "[sorting]") {
  for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_BF16, MICA_I64, MICA_I32, MICA_U8})
    for (const auto& sizes : {std::vector<int64_t>{3, 7, 5}, {2, 700}, {1000, 3}, {1}})
      for (const int64_t dim : {0, -1})
        for (const bool descending : {false, true})
          for (const Layout layout : {Layout::kDense, Layout::kTransposed}) {
            HostTensor x(dtype, sizes, Strides(sizes, layout));
            FillMixed(x, 1);
            const size_t d = dim < 0 ? sizes.size() - 1 : 0;
            const int64_t size = sizes[d];
            const int64_t step = d == 0 ? x.numel() / size : 1;
            for (const int64_t k : {size, std::max<int64_t>(1, size / 10), std::min<int64_t>(size, 5)}) {
              std::vector<int64_t> out = sizes;
              out[d] = k;
              HostTensor values(dtype, out, Strides(out, layout)), at(MICA_I64, out, Strides(out, layout));
              const MicaCall call = Call(2);
              if (k == size)
                SortStable(&call, x.get(), {1, 1}, dim, descending, values.get(), at.get());
              else
                TopK(&call, x.get(), k, dim, descending, 1, values.get(), at.get());
              CAPTURE(dtype, sizes, dim, descending, k);
              const int64_t lines = x.numel() / size;
              for (int64_t line = 0; line < lines; ++line) {
                const int64_t first = d == 0 ? line : line * size, to = d == 0 ? line : line * k;
                std::vector<int64_t> order(static_cast<size_t>(size));
                std::iota(order.begin(), order.end(), 0);
                std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
                  const double left = Get(x, first + a * step), right = Get(x, first + b * step);
                  return descending ? Less(right, left) : Less(left, right);
                });
                for (int64_t j = 0; j < k; ++j) {
                  REQUIRE(at.At<int64_t>(to + j * step) == order[static_cast<size_t>(j)]);
                  const double got = Get(values, to + j * step),
                               want = Get(x, first + order[static_cast<size_t>(j)] * step);
                  REQUIRE((got == want || (std::isnan(got) && std::isnan(want))));
                }
              }
            }
          }
}

}  // namespace
}  // namespace mica::cpu::test
