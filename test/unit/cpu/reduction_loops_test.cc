// The loops behind hints: positions, counts, extremes, variance, running
// extremes; ties, NaN and dtypes whose lanes could not hold a position.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "plugins/cpu/reduce/reduction.h"
#include "test/support/mica_test.h"
#include "test/unit/cpu/engine_fixture.h"

namespace mica::cpu::test {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

void Set(HostTensor& tensor, int64_t i, double value) {
  switch (tensor.dtype()) {
    case MICA_F64:
      tensor.At<double>(i) = value;
      break;
    case MICA_F32:
      tensor.At<float>(i) = static_cast<float>(value);
      break;
    case MICA_I16:
      tensor.At<int16_t>(i) = static_cast<int16_t>(value);
      break;
    case MICA_BF16: {
      const float f = static_cast<float>(value);
      DirectCast(MICA_F32, MICA_BF16)(tensor.At(i), &f, nullptr, nullptr, 1);
      break;
    }
    default:
      tensor.At<uint8_t>(i) = static_cast<uint8_t>(value);
  }
}

// A program that only its hint can run: it stores what it reads.
MicaProgram* Hinted(StageBuilder& b, const char* class_name, const char* hint) {
  b.Simple(0, MICA_OP_ADD);
  b.Store(&b.finish, b.State(&b.finish, 0));
  return b.Program(class_name, 1, 1, hint);
}

void RunOn(void (*run)(const MicaCall*, const MicaValue*, int64_t, MicaTensor* const*, int64_t),
           const char* class_name, const char* hint, HostTensor& x, const std::vector<int64_t>& dims,
           std::vector<HostTensor*> outputs) {
  StageBuilder b;
  const MicaCall call = MakeCall(Hinted(b, class_name, hint), x.dtype(), 2);
  const MicaValue args[] = {Value(x), Dims(dims)};
  std::vector<MicaTensor*> faces;
  for (HostTensor* output : outputs) faces.push_back(output->get());
  run(&call, args, 2, faces.data(), static_cast<int64_t>(faces.size()));
}

TEST_CASE("argmax and argmin find the first of equals in every dtype and layout") {
  for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_I16, MICA_U8, MICA_BF16}) {
    for (const int64_t n : {1, 5, 31, 64, 700, 3000}) {
      for (const bool strided : {false, true}) {
        HostTensor x(dtype, {3, n}, strided ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{n, 1});
        for (int64_t i = 0; i < 3 * n; ++i) Set(x, i, static_cast<double>(10 + i * 7 % 50));
        for (int64_t row = 0; row < 3; ++row) {
          Set(x, row * n + n / 2, 99);
          Set(x, row * n + n - 1, 99);
          if (n > 5) Set(x, row * n + n / 3, 1);
          if (n > 5) Set(x, row * n + n / 3 + 1, 1);
        }
        HostTensor y(MICA_I64, {3});
        RunOn(RunReduction, "reduction", "argmax", x, {1}, {&y});
        INFO("dtype " << dtype << ", n " << n << ", strided " << strided);
        for (int64_t row = 0; row < 3; ++row) CHECK(y.data<int64_t>()[row] == n / 2);
        if (n <= 5) continue;
        RunOn(RunReduction, "reduction", "argmin", x, {-1}, {&y});
        for (int64_t row = 0; row < 3; ++row) CHECK(y.data<int64_t>()[row] == n / 3);
      }
    }
  }
}

TEST_CASE("NaN wins over every value, the first one") {
  HostTensor x(MICA_F32, {40, 100}, {1, 40});
  for (int64_t i = 0; i < 4000; ++i) Set(x, i, static_cast<double>(i));
  Set(x, 250, kNan);
  Set(x, 270, kNan);
  HostTensor y(MICA_I64, {40}), values(MICA_F32, {40});
  RunOn(RunReduction, "reduction", "max_dim", x, {1}, {&values, &y});
  CHECK(y.data<int64_t>()[2] == 50);
  CHECK(std::isnan(values.data<float>()[2]));
  CHECK(y.data<int64_t>()[3] == 99);
  CHECK(values.data<float>()[3] == 399);
  HostTensor flat(MICA_F32, {4000}), one(MICA_I64, {}), largest(MICA_F32, {});
  for (int64_t i = 0; i < 4000; ++i) Set(flat, i, static_cast<double>(i));
  Set(flat, 3000, kNan);
  RunOn(RunReduction, "reduction", "argmin", flat, {}, {&one});
  CHECK(one.data<int64_t>()[0] == 3000);
  RunOn(RunReduction, "reduction", "amax", flat, {}, {&largest});
  CHECK(std::isnan(largest.data<float>()[0]));
  Set(flat, 3000, -std::numeric_limits<double>::infinity());
  RunOn(RunReduction, "reduction", "amax", flat, {}, {&largest});
  CHECK(largest.data<float>()[0] == 3999);
  RunOn(RunReduction, "reduction", "amin", flat, {}, {&largest});
  CHECK(largest.data<float>()[0] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("count_nonzero counts beyond what the dtype holds") {
  HostTensor x(MICA_U8, {2, 1000});
  for (int64_t i = 0; i < 2000; ++i) Set(x, i, i % 4 == 0 ? 0 : 1);
  HostTensor y(MICA_I64, {2});
  RunOn(RunReduction, "reduction", "count_nonzero", x, {1}, {&y});
  CHECK(y.data<int64_t>()[0] == 750);
  CHECK(y.data<int64_t>()[1] == 750);
  HostTensor half(MICA_F32, {3}), one(MICA_I64, {});
  Set(half, 0, 0.5);
  Set(half, 2, kNan);
  RunOn(RunReduction, "reduction", "count_nonzero", half, {0}, {&one});
  CHECK(one.data<int64_t>()[0] == 2);
}

TEST_CASE("variance far from zero keeps its digits") {
  HostTensor x(MICA_F64, {2, 1000}), y(MICA_F64, {2}), mean(MICA_F64, {2});
  for (int64_t i = 0; i < 2000; ++i) Set(x, i, 1e8 + static_cast<double>(i % 5));
  RunOn(RunReduction, "reduction", "var_mean", x, {1}, {&y, &mean});
  for (int64_t row = 0; row < 2; ++row) {
    CHECK(y.data<double>()[row] == Approx(2.0).epsilon(1e-9));  // correction 0: the program has no number
    CHECK(mean.data<double>()[row] == 1e8 + 2);
  }
}

TEST_CASE("cummax keeps the last of equals and the first NaN on") {
  for (const int32_t dtype : {MICA_F32, MICA_U8}) {
    HostTensor x(dtype, {2, 600}, {1, 2});
    for (int64_t i = 0; i < 1200; ++i) Set(x, i, i % 600 < 300 ? 3 : 2);
    Set(x, 400, 3);
    HostTensor values(dtype, {2, 600}), indices(MICA_I64, {2, 600});
    RunOn(RunScan, "scan", "cummax", x, {1}, {&values, &indices});
    CHECK(indices.At<int64_t>(299) == 299);
    CHECK(indices.At<int64_t>(399) == 299);
    CHECK(indices.At<int64_t>(599) == 400);
    CHECK(indices.At<int64_t>(1199) == 299);
    if (dtype != MICA_F32) continue;
    Set(x, 500, kNan);
    RunOn(RunScan, "scan", "cummin", x, {1}, {&values, &indices});
    CHECK(indices.At<int64_t>(499) == 499);
    CHECK(indices.At<int64_t>(599) == 500);
    CHECK(std::isnan(values.At<float>(599)));
  }
}

TEST_CASE("a float32 running sum of many elements does not drift") {
  HostTensor x(MICA_F32, {1000000}), y(MICA_F32, {1000000});
  for (int64_t i = 0; i < 1000000; ++i) Set(x, i, 0.1);
  RunOn(RunScan, "scan", "cumsum", x, {0}, {&y});
  CHECK(y.data<float>()[999999] == Approx(1e6 * static_cast<double>(0.1f)).epsilon(1e-7));
}

TEST_CASE("a float32 running sum across rows does not drift") {
  const int64_t rows = 100000, columns = 40;
  HostTensor x(MICA_F32, {rows, columns}), y(MICA_F32, {rows, columns});
  for (int64_t i = 0; i < rows * columns; ++i) x.data<float>()[i] = 0.1f;
  RunOn(RunScan, "scan", "cumsum", x, {0}, {&y});
  CHECK(y.data<float>()[rows * columns - 1] == Approx(1e5 * static_cast<double>(0.1f)).epsilon(1e-7));
}

TEST_CASE("softmax backward is its formula") {
  HostTensor grad(MICA_F32, {3, 300}), output(MICA_F32, {3, 300}), out(MICA_F32, {3, 300});
  for (int64_t i = 0; i < 900; ++i) {
    Set(grad, i, static_cast<double>(i % 7) - 3);
    Set(output, i, static_cast<double>(i % 5) / 600);
  }
  for (const char* hint : {"softmax_backward", "log_softmax_backward"}) {
    StageBuilder b;
    MicaProgram* program = Hinted(b, "row", hint);
    program->dims_arg = 2;
    const MicaCall call = MakeCall(program, MICA_F32);
    MicaValue dim = {};
    dim.tag = MICA_VALUE_INT;
    dim.u.i = -1;
    const MicaValue args[] = {Value(grad), Value(output), dim};
    MicaTensor* face = out.get();
    RunRow(&call, args, 3, &face, 1);
    double worst = 0;
    for (int64_t row = 0; row < 3; ++row) {
      double sum = 0;
      const bool log = hint[0] == 'l';
      for (int64_t i = row * 300; i < row * 300 + 300; ++i) {
        sum += static_cast<double>(grad.data<float>()[i]) *
               (log ? 1 : static_cast<double>(output.data<float>()[i]));
      }
      for (int64_t i = row * 300; i < row * 300 + 300; ++i) {
        const double g = static_cast<double>(grad.data<float>()[i]),
                     y = static_cast<double>(output.data<float>()[i]);
        const double want = log ? g - std::exp(y) * sum : y * (g - sum);
        worst = std::max(worst, std::fabs(static_cast<double>(out.data<float>()[i]) - want));
      }
    }
    CHECK(worst < 1e-5);
  }
}

// The float32 tensor of the same values, and its rounding to a half type.
void Widen(HostTensor& to, const HostTensor& from) {
  DirectCast(from.dtype(), MICA_F32)(to.data<float>(), from.data<void>(), nullptr, nullptr, from.numel());
}
int64_t Differing(const HostTensor& half, const HostTensor& wide) {
  std::vector<uint16_t> want(static_cast<size_t>(wide.numel()));
  DirectCast(MICA_F32, half.dtype())(want.data(), wide.data<float>(), nullptr, nullptr, wide.numel());
  int64_t differ = 0;
  for (int64_t i = 0; i < wide.numel(); ++i)
    differ += half.data<uint16_t>()[i] != want[static_cast<size_t>(i)];
  return differ;
}

TEST_CASE("loops over half types are those of float32, rounded once") {
  for (const int32_t dtype : {MICA_F16, MICA_BF16}) {
    for (const int64_t n : {8, 13, 31, 64, 300, 1029}) {
      HostTensor x(dtype, {3, n}), y(dtype, {3, n}), out(dtype, {3, n}), one(dtype, {3});
      HostTensor wide_x(MICA_F32, {3, n}), wide_y(MICA_F32, {3, n}), wide_out(MICA_F32, {3, n}),
          wide_one(MICA_F32, {3});
      for (int64_t i = 0; i < 3 * n; ++i) {
        wide_x.data<float>()[i] = std::sin(static_cast<float>(i) * 3.7f) * 4;
        wide_y.data<float>()[i] = std::cos(static_cast<float>(i) * 2.3f);
      }
      if (n > 100) wide_x.data<float>()[2 * n + 77] = std::numeric_limits<float>::infinity();
      if (n > 1000) wide_x.data<float>()[2 * n + 78] = std::numeric_limits<float>::quiet_NaN();
      DirectCast(MICA_F32, dtype)(x.data<void>(), wide_x.data<float>(), nullptr, nullptr, 3 * n);
      DirectCast(MICA_F32, dtype)(y.data<void>(), wide_y.data<float>(), nullptr, nullptr, 3 * n);
      Widen(wide_x, x);
      Widen(wide_y, y);
      INFO("dtype " << dtype << ", n " << n);
      for (const char* hint : {"sum", "mean", "amax", "amin", "var", "std"}) {
        INFO(hint);
        RunOn(RunReduction, "reduction", hint, x, {1}, {&one});
        RunOn(RunReduction, "reduction", hint, wide_x, {1}, {&wide_one});
        CHECK(Differing(one, wide_one) == 0);
      }
      for (const char* hint : {"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"}) {
        const auto run = [hint](HostTensor& a, HostTensor& b, HostTensor& result) {
          StageBuilder builder;
          MicaProgram* program = Hinted(builder, "row", hint);
          program->dims_arg = 2;
          const MicaCall call = MakeCall(program, a.dtype(), 2);
          MicaValue dim = {};
          dim.tag = MICA_VALUE_INT;
          dim.u.i = -1;
          const MicaValue args[] = {Value(a), Value(b), dim};
          MicaTensor* face = result.get();
          RunRow(&call, args, 3, &face, 1);
        };
        run(x, y, out);
        run(wide_x, wide_y, wide_out);
        INFO(hint);
        CHECK(Differing(out, wide_out) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace mica::cpu::test
