// Products by cuBLAS, imitated (fake/cublas.cc): random layouts against a plain loop, exactly. Runs
// in the process of cuda_test.cc whose environment names the libraries.
#include <algorithm>
#include <complex>
#include <random>
#include <type_traits>
#include <vector>

#include <mica/plugin.h>

#include "plugins/cuda/products.h"
#include "test/support/mica_test.h"

namespace cuda::test {
namespace {

template <typename T>
T Value(double real, double imaginary) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(real);
  } else {
    return T(static_cast<typename T::value_type>(real), static_cast<typename T::value_type>(imaginary));
  }
}

// A product of random sizes with operands by rows, by columns, padded, strided, broadcast, and with strides
// that mean nothing where a dimension has one element.
template <typename T>
class RandomProduct {
 public:
  RandomProduct(int32_t dtype, std::mt19937& generator) : generator_(generator) {
    problem_.dtype = dtype;
    problem_.m = Size(), problem_.n = Size(), problem_.k = Size(), problem_.batch = 1 + Below(3);
    problem_.stream = static_cast<uint64_t>(Below(20));
    Fill(&problem_.a, &a_, problem_.m, problem_.k, false);
    Fill(&problem_.b, &b_, problem_.k, problem_.n, false);
    Fill(&problem_.c, &c_, problem_.m, problem_.n, true);
    problem_.alpha[0] = static_cast<double>(1 + Below(2));
    problem_.beta[0] = static_cast<double>(Below(3));
    if (std::is_floating_point_v<T>) return;
    problem_.alpha[1] = static_cast<double>(Below(2));
    problem_.beta[1] = static_cast<double>(Below(2));
  }

  // Whether cuBLAS takes it; requires that it is right then, and nothing else was written.
  bool Check() {
    const std::vector<T> expected = Expected();
    if (!GetCublas().Gemm(problem_)) return false;
    INFO("m " << problem_.m << ", n " << problem_.n << ", k " << problem_.k << ", batch " << problem_.batch);
    REQUIRE((c_ == expected));
    return true;
  }

 private:
  int64_t Below(uint32_t n) { return static_cast<int64_t>(generator_() % n); }
  int64_t Size() { return 1 + Below(5) * Below(2); }

  void Fill(gpu::GemmMatrix* matrix, std::vector<T>* values, int64_t rows, int64_t columns, bool is_result) {
    const int64_t padding = Below(3), kind = Below(8);
    matrix->row_stride = kind < 3 ? columns + padding : kind == 6 ? 2 : 1;
    matrix->column_stride = kind < 3 ? 1 : kind < 6 ? rows + padding : kind == 6 ? 2 * rows + 1 : 0;
    if (kind == 7 && is_result) matrix->row_stride = columns, matrix->column_stride = 1;
    const bool has_noise = Below(2) == 1;
    if (has_noise && rows == 1) matrix->row_stride = Below(3) * 1000003;
    if (has_noise && columns == 1) matrix->column_stride = Below(3) * 1000003;
    const int64_t extent = 1 + (rows - 1) * matrix->row_stride + (columns - 1) * matrix->column_stride;
    matrix->batch_stride = !is_result && Below(4) == 0 ? 0 : extent + padding;
    if (has_noise && problem_.batch == 1) matrix->batch_stride = -77777;
    values->resize(static_cast<size_t>(extent + (problem_.batch - 1) * matrix->batch_stride));
    for (T& value : *values) value = Value<T>(double(Below(9) - 4), double(Below(9) - 4));
    matrix->data = values->data();
  }

  static size_t At(const gpu::GemmMatrix& matrix, int64_t batch, int64_t row, int64_t column) {
    return static_cast<size_t>((batch == 0 ? 0 : batch * matrix.batch_stride) + row * matrix.row_stride +
                               column * matrix.column_stride);
  }

  std::vector<T> Expected() const {
    const gpu::GemmProblem& p = problem_;
    std::vector<T> result = c_;
    for (int64_t batch = 0; batch < p.batch; ++batch) {
      for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
          T sum{};
          for (int64_t l = 0; l < p.k; ++l) sum += a_[At(p.a, batch, i, l)] * b_[At(p.b, batch, l, j)];
          T& to = result[At(p.c, batch, i, j)];
          to = Value<T>(p.alpha[0], p.alpha[1]) * sum + Value<T>(p.beta[0], p.beta[1]) * to;
        }
      }
    }
    return result;
  }

  std::mt19937& generator_;
  gpu::GemmProblem problem_;
  std::vector<T> a_, b_, c_;
};

TEST_CASE("products of random layouts", "[.][fakes]") {
  REQUIRE(CublasMissing().empty());
  std::mt19937 generator(1);
  int taken = 0;
  constexpr int kEach = 500;
  for (int i = 0; i < kEach; ++i) {
    taken += RandomProduct<float>(MICA_F32, generator).Check();
    taken += RandomProduct<double>(MICA_F64, generator).Check();
    taken += RandomProduct<std::complex<float>>(MICA_C64, generator).Check();
    taken += RandomProduct<std::complex<double>>(MICA_C128, generator).Check();
  }
  REQUIRE(taken > 4 * kEach * 3 / 4);
  REQUIRE(taken < 4 * kEach);  // a matrix with strides in both dimensions is not its own
}

TEST_CASE("products that cuBLAS does not compute", "[.][fakes]") {
  float data[4] = {1, 2, 3, 4};
  gpu::GemmProblem problem;
  problem.a = problem.b = problem.c = {data, 2, 1, 4};
  problem.m = problem.n = problem.k = 2;
  problem.dtype = MICA_I64;
  REQUIRE(!GetCublas().Gemm(problem));
  problem.dtype = MICA_F32;
  problem.k = 0;
  REQUIRE(!GetCublas().Gemm(problem));
  problem.k = 2, problem.m = 0;
  REQUIRE(GetCublas().Gemm(problem));  // empty
  problem.m = 2, problem.dtype = MICA_F16;
  REQUIRE(!GetCublas().Gemm(problem));  // the imitation's CUBLAS_STATUS_NOT_SUPPORTED
  REQUIRE((data[0] == 1 && data[3] == 4));
}

}  // namespace
}  // namespace cuda::test
