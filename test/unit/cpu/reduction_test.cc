// Reductions, scans and rows from programs against plain loops in double, over
// layouts, sizes and threads.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "plugins/cpu/reduce/reduction.h"
#include "test/support/mica_test.h"
#include "test/unit/cpu/engine_fixture.h"

namespace mica::cpu::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void FillRandom(HostTensor& tensor, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const double value = static_cast<double>(static_cast<int64_t>(random() % 2001) - 1000) / 500;
    switch (tensor.dtype()) {
      case MICA_F32:
        tensor.At<float>(i) = static_cast<float>(value);
        break;
      case MICA_F64:
        tensor.At<double>(i) = value;
        break;
      case MICA_I32:
        tensor.At<int32_t>(i) = static_cast<int32_t>(value * 50);
        break;
      default:
        tensor.At<uint8_t>(i) = static_cast<uint8_t>(random() % 2);
    }
  }
}

double Get(const HostTensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case MICA_F32:
      return static_cast<double>(tensor.At<float>(i));
    case MICA_F64:
      return tensor.At<double>(i);
    case MICA_I32:
      return tensor.At<int32_t>(i);
    case MICA_I64:
      return static_cast<double>(tensor.At<int64_t>(i));
    default:
      return tensor.At<uint8_t>(i);
  }
}

// The logical index of the output for element i of the input, dims dropped.
int64_t OutputIndex(const std::vector<int64_t>& sizes, const std::vector<bool>& reduced, int64_t i) {
  int64_t out = 0, scale = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    const int64_t coordinate = i % sizes[d];
    i /= sizes[d];
    if (reduced[d]) continue;
    out += coordinate * scale;
    scale *= sizes[d];
  }
  return out;
}

struct Layout {
  std::vector<int64_t> sizes, strides;
};
// Dense, transposed, with gaps, with a broadcast dimension.
std::vector<Layout> Layouts() {
  return {{{7}, {1}},
          {{5000}, {1}},
          {{70000}, {2}},
          {{3, 50}, {50, 1}},
          {{50, 3}, {1, 50}},
          {{40, 33}, {66, 2}},
          {{4, 5, 600}, {3000, 600, 1}},
          {{600, 4, 5}, {1, 600, 2400}},
          {{6, 700, 3}, {2100, 3, 1}},
          {{9, 40, 2}, {0, 1, 40}},
          {{2, 3, 4, 5}, {60, 20, 5, 1}},
          {{1, 1}, {1, 1}}};
}

void CheckReduction(StageBuilder& builder, int states, int32_t in, int32_t compute, int32_t out, double start,
                    const std::function<double(double, double)>& step,
                    const std::function<double(double)>& finish, double tolerance) {
  for (const Layout& layout : Layouts()) {
    HostTensor x(in, layout.sizes, layout.strides);
    FillRandom(x, 5);
    const size_t ndim = layout.sizes.size();
    for (unsigned mask = 1; mask < 1u << ndim; ++mask) {
      std::vector<int64_t> dims, kept;
      std::vector<bool> reduced(ndim);
      for (size_t d = 0; d < ndim; ++d) {
        reduced[d] = mask >> d & 1;
        if (reduced[d])
          dims.push_back(static_cast<int64_t>(d) - (d % 2 ? static_cast<int64_t>(ndim) : 0));
        else
          kept.push_back(layout.sizes[d]);
      }
      for (const int32_t threads : {1, 2}) {
        HostTensor y(out, kept);
        const MicaCall call = MakeCall(builder.Program("reduction", states), compute, threads);
        const MicaValue args[] = {Value(x), Dims(dims)};
        MicaTensor* output = y.get();
        RunReduction(&call, args, 2, &output, 1);
        std::vector<double> want(static_cast<size_t>(y.numel()), start);
        for (int64_t i = 0; i < x.numel(); ++i) {
          double& w = want[static_cast<size_t>(OutputIndex(layout.sizes, reduced, i))];
          w = step(w, Get(x, i));
        }
        INFO("sizes of " << ndim << " dims from " << layout.sizes[0] << ", mask " << mask << ", threads "
                         << threads);
        double worst = 0;
        for (int64_t i = 0; i < y.numel(); ++i) {
          const double expected = finish(want[static_cast<size_t>(i)]);
          worst = std::max(worst, std::fabs(Get(y, i) - expected) / (1 + std::fabs(expected)));
        }
        CHECK(worst <= tolerance);
      }
    }
  }
}

double Same(double x) { return x; }

TEST_CASE("sums and products by program, every layout and set of dims") {
  StageBuilder sum;
  sum.Simple(0, MICA_OP_ADD);
  sum.Store(&sum.finish, sum.State(&sum.finish, 0));
  const auto add = [](double a, double x) { return a + x; };
  CheckReduction(sum, 1, MICA_F32, MICA_F32, MICA_F32, 0, add, Same, 1e-5);
  CheckReduction(sum, 1, MICA_F64, MICA_F64, MICA_F64, 0, add, Same, 1e-13);
  CheckReduction(sum, 1, MICA_I32, MICA_I64, MICA_I64, 0, add, Same, 0);
  CheckReduction(sum, 1, MICA_BOOL, MICA_I64, MICA_I64, 0, add, Same, 0);
}

TEST_CASE("maxima by program, with a prologue and an epilogue") {
  StageBuilder b;
  b.StoreState(&b.init, b.Const(&b.init, -kInf), 0);
  const int state = b.State(&b.main, 0);
  b.StoreState(&b.main, b.Op(&b.main, MICA_OP_MAX, state, b.Op(&b.main, MICA_OP_NEG, b.Element(&b.main))), 0);
  const int left = b.State(&b.combine, 0);
  b.StoreState(&b.combine, b.Op(&b.combine, MICA_OP_MAX, left, b.State(&b.combine, 1)), 0);
  b.Store(&b.finish, b.Op(&b.finish, MICA_OP_NEG, b.State(&b.finish, 0)));
  const auto step = [](double a, double x) { return std::max(a, -x); };
  const auto finish = [](double a) { return -a; };
  CheckReduction(b, 1, MICA_F32, MICA_F32, MICA_F32, -kInf, step, finish, 0);
  CheckReduction(b, 1, MICA_I32, MICA_I32, MICA_I32, -kInf, step, finish, 0);
}

// Two states: the running maximum and the scaled sum.
void BuildLogSumExp(StageBuilder& b) {
  b.StoreState(&b.init, b.Const(&b.init, -kInf), 0);
  b.StoreState(&b.init, b.Const(&b.init, 0), 1);
  const auto merge = [&b](StageBuilder::Code* code, int m, int s, int x, int sx) {
    const int larger = b.Op(code, MICA_OP_MAX, m, x);
    const auto scaled = [&](int value, int sum) {
      const int factor = b.Op(code, MICA_OP_EXP, b.Op(code, MICA_OP_SUB, value, larger));
      const int product = b.Op(code, MICA_OP_MUL, sum, factor);
      return b.Op(code, MICA_OP_SELECT, b.Op(code, MICA_OP_EQ, value, larger), sum, product);
    };
    const int total = b.Op(code, MICA_OP_ADD, scaled(m, s), scaled(x, sx));
    b.StoreState(code, larger, 0);
    b.StoreState(code, total, 1);
  };
  const int m = b.State(&b.main, 0), s = b.State(&b.main, 1), x = b.Element(&b.main);
  merge(&b.main, m, s, x, b.Const(&b.main, 1));
  const int lm = b.State(&b.combine, 0), ls = b.State(&b.combine, 1);
  const int rm = b.State(&b.combine, 2), rs = b.State(&b.combine, 3);
  merge(&b.combine, lm, ls, rm, rs);
  const int fm = b.State(&b.finish, 0), fs = b.State(&b.finish, 1);
  b.Store(&b.finish, b.Op(&b.finish, MICA_OP_ADD, fm, b.Op(&b.finish, MICA_OP_LOG, fs)));
}

TEST_CASE("a reduction of two states") {
  StageBuilder b;
  BuildLogSumExp(b);
  const auto step = [](double a, double x) { return a + std::exp(x); };
  const auto finish = [](double a) { return std::log(a); };
  CheckReduction(b, 2, MICA_F32, MICA_F32, MICA_F32, 0, step, finish, 1e-5);
  CheckReduction(b, 2, MICA_F64, MICA_F64, MICA_F64, 0, step, finish, 1e-13);
}

TEST_CASE("a float32 sum of 2^24 elements keeps six digits") {
  const int64_t n = int64_t{1} << 24;
  HostTensor x(MICA_F32, {n});
  std::mt19937_64 random(1);
  double exact = 0;
  for (int64_t i = 0; i < n; ++i) {
    x.data<float>()[i] = 0.9f + static_cast<float>(random() % 1000) * 2e-4f;
    exact += static_cast<double>(x.data<float>()[i]);
  }
  StageBuilder sum;
  sum.Simple(0, MICA_OP_ADD);
  sum.Store(&sum.finish, sum.State(&sum.finish, 0));
  const std::vector<int64_t> no_dims;
  for (const char* hint : {"", "sum"}) {
    for (const int32_t threads : {1, 2}) {
      HostTensor y(MICA_F32, {});
      const MicaCall call = MakeCall(sum.Program("reduction", 1, 1, hint), MICA_F32, threads);
      const MicaValue args[] = {Value(x), Dims(no_dims)};
      MicaTensor* output = y.get();
      RunReduction(&call, args, 2, &output, 1);
      CHECK(std::fabs(static_cast<double>(y.data<float>()[0]) / exact - 1) < 1e-6);
    }
  }
}

TEST_CASE("an empty reduction gives the initial state, no outputs are left alone") {
  StageBuilder sum;
  sum.Simple(7, MICA_OP_ADD);
  sum.Store(&sum.finish, sum.State(&sum.finish, 0));
  const MicaCall call = MakeCall(sum.Program("reduction", 1), MICA_F32);
  const std::vector<int64_t> first = {0}, last = {1};
  HostTensor x(MICA_F32, {3, 0});
  HostTensor y(MICA_F32, {3});
  MicaTensor* output = y.get();
  const MicaValue args[] = {Value(x), Dims(last)};
  RunReduction(&call, args, 2, &output, 1);
  for (int64_t i = 0; i < 3; ++i) CHECK(y.data<float>()[i] == 7);
  HostTensor none(MICA_F32, {0});
  MicaTensor* nothing = none.get();
  const MicaValue other[] = {Value(x), Dims(first)};
  RunReduction(&call, other, 2, &nothing, 1);
}

TEST_CASE("scans along any dimension") {
  StageBuilder sum;
  sum.Simple(0, MICA_OP_ADD);
  sum.Store(&sum.finish, sum.State(&sum.finish, 0));
  for (const char* hint : {"", "cumsum"}) {
    for (const Layout& layout : Layouts()) {
      HostTensor x(MICA_F64, layout.sizes, layout.strides);
      FillRandom(x, 6);
      for (size_t dim = 0; dim < layout.sizes.size(); ++dim) {
        HostTensor y(MICA_F64, layout.sizes);
        const std::vector<int64_t> one_dim = {static_cast<int64_t>(dim)};
        const MicaCall call = MakeCall(sum.Program("scan", 1, 1, hint), MICA_F64, 2);
        const MicaValue args[] = {Value(x), Dims(one_dim)};
        MicaTensor* output = y.get();
        RunScan(&call, args, 2, &output, 1);
        int64_t step = 1;
        for (size_t d = dim + 1; d < layout.sizes.size(); ++d) step *= layout.sizes[d];
        double worst = 0;
        for (int64_t i = 0; i < x.numel(); ++i) {
          const bool first = i / step % layout.sizes[dim] == 0;
          const double before = first ? 0 : y.At<double>(i - step);
          worst = std::max(worst, std::fabs(y.At<double>(i) - before - x.At<double>(i)));
        }
        CHECK(worst < 1e-9);
      }
    }
  }
}

// Softmax in two stages and a map.
struct Softmax {
  StageBuilder largest, total;
  MicaProgram* Program(const char* hint) {
    if (largest.init.empty()) {
      largest.Simple(-kInf, MICA_OP_MAX);
      StageBuilder& b = total;
      const auto shifted = [&b](StageBuilder::Code* code) {
        return b.Op(code, MICA_OP_EXP, b.Op(code, MICA_OP_SUB, b.Element(code), b.State(code, 0)));
      };
      b.StoreState(&b.init, b.Const(&b.init, 0), 1);
      b.StoreState(&b.main, b.Op(&b.main, MICA_OP_ADD, b.State(&b.main, 1), shifted(&b.main)), 1);
      b.StoreState(&b.combine, b.Op(&b.combine, MICA_OP_ADD, b.State(&b.combine, 1), b.State(&b.combine, 3)),
                   1);
      b.Store(&b.map, b.Op(&b.map, MICA_OP_DIV, shifted(&b.map), b.State(&b.map, 1)));
    }
    MicaProgram* first = largest.Program("row", 1, 1, hint);
    MicaProgram* second = total.Program("row", 2, 1, hint);
    second->first_state = 1;
    first->next = second;
    return first;
  }
};

TEST_CASE("softmax rows along any dimension") {
  Softmax softmax;
  for (const char* hint : {"", "softmax"}) {
    for (const int32_t dtype : {MICA_F32, MICA_F64}) {
      for (const Layout& layout : Layouts()) {
        HostTensor x(dtype, layout.sizes, layout.strides);
        FillRandom(x, 7);
        for (size_t dim = 0; dim < layout.sizes.size(); ++dim) {
          HostTensor y(dtype, layout.sizes);
          const std::vector<int64_t> one_dim = {static_cast<int64_t>(dim)};
          const MicaCall call = MakeCall(softmax.Program(hint), dtype, 2);
          const MicaValue args[] = {Value(x), Dims(one_dim)};
          MicaTensor* output = y.get();
          RunRow(&call, args, 2, &output, 1);
          std::vector<bool> reduced(layout.sizes.size());
          reduced[dim] = true;
          std::vector<double> sums(static_cast<size_t>(x.numel() / layout.sizes[dim]));
          for (int64_t i = 0; i < x.numel(); ++i) {
            sums[static_cast<size_t>(OutputIndex(layout.sizes, reduced, i))] += std::exp(Get(x, i));
          }
          double worst = 0;
          for (int64_t i = 0; i < x.numel(); ++i) {
            const double want =
                std::exp(Get(x, i)) / sums[static_cast<size_t>(OutputIndex(layout.sizes, reduced, i))];
            worst = std::max(worst, std::fabs(Get(y, i) / want - 1));
          }
          INFO("hint " << hint << ", dim " << dim << " of " << layout.sizes.size());
          CHECK(worst < (dtype == MICA_F32 ? 1e-5 : 1e-13));
        }
      }
    }
  }
}

}  // namespace
}  // namespace mica::cpu::test
