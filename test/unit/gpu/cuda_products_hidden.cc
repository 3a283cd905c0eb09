// Products by cuBLAS, imitated (fake/cublas.cc): random layouts against a plain loop, exactly; what the
// settings change, and what is done where there is no memory. Runs in processes of cuda_test.cc whose
// environment names the libraries.
#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include <mica/plugin.h>

#include "plugins/cuda/cublas.h"
#include "plugins/cuda/products.h"
#include "test/support/mica_test.h"
#include "test/unit/gpu/fake_host.h"

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
    if (problem_.batch == 1 && Below(3) == 0) {
      row_.resize(static_cast<size_t>(problem_.n));
      for (T& value : row_) value = Value<T>(double(Below(9) - 4), double(Below(9) - 4));
      problem_.row = row_.data();
    }
    problem_.alpha[0] = static_cast<double>(1 + Below(2));
    problem_.beta[0] = static_cast<double>(Below(3));
    if (std::is_floating_point_v<T>) return;
    problem_.alpha[1] = static_cast<double>(Below(2));
    problem_.beta[1] = static_cast<double>(Below(2));
  }

  bool has_row() const { return problem_.row != nullptr; }

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
          const T added = p.row ? row_[static_cast<size_t>(j)] : Value<T>(p.beta[0], p.beta[1]) * to;
          to = Value<T>(p.alpha[0], p.alpha[1]) * sum + added;
        }
      }
    }
    return result;
  }

  std::mt19937& generator_;
  gpu::GemmProblem problem_;
  std::vector<T> a_, b_, c_, row_;
};

// A function of the imitation that is for tests.
template <typename... A>
int Fake(const char* function, A... arguments) {
  static void* library = dlopen(MICA_BUILD_DIR "/test/fake_cuda/libcublas.so.13", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library);
  void* found = dlsym(library, function);
  REQUIRE(found);
  return reinterpret_cast<int (*)(A...)>(found)(arguments...);
}

// 2 x 2 matrices of ones, which are right where they are 2 (alpha 1), or 2 + the row.
struct Small {
  explicit Small(uint64_t stream = 0) {
    problem.dtype = MICA_F32;
    problem.stream = stream;
    problem.m = problem.n = problem.k = 2;
    problem.a = {a, 2, 1, 4}, problem.b = {b, 2, 1, 4}, problem.c = {c, 2, 1, 4};
  }
  bool Run() { return GetCublas().Gemm(problem); }
  bool IsRight() const { return c[0] == (problem.row ? 5 : 2) && c[3] == (problem.row ? 6 : 2); }
  float a[4] = {1, 1, 1, 1}, b[4] = {1, 1, 1, 1}, c[4] = {}, row[2] = {3, 4};
  gpu::GemmProblem problem;
};

TEST_CASE("products of random layouts", "[.][fakes]") {
  GetHost();
  REQUIRE(CublasMissing().empty());
  std::mt19937 generator(1);
  int taken = 0, with_row = 0;
  constexpr int kEach = 500;
  for (int i = 0; i < kEach; ++i) {
    RandomProduct<float> product(MICA_F32, generator);
    const bool is_taken = product.Check();
    taken += is_taken;
    with_row += is_taken && product.has_row();
    taken += RandomProduct<double>(MICA_F64, generator).Check();
    taken += RandomProduct<std::complex<float>>(MICA_C64, generator).Check();
    taken += RandomProduct<std::complex<double>>(MICA_C128, generator).Check();
  }
  REQUIRE(taken > 4 * kEach / 2);
  REQUIRE(with_row > kEach / 10);
  REQUIRE(GetHost().in_use == 0);
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

TEST_CASE("a series of products neither takes a handle nor sets one", "[.][fakes]") {
  GetHost().settings[MICA_SETTING_BFLOAT16_REDUCTION] = 1;
  Small product(5);
  REQUIRE(product.Run());
  const int sets = Fake("FakeSets"), handles = Fake("FakeHandles");
  for (int i = 0; i < 10; ++i) REQUIRE(product.Run());
  REQUIRE((Fake("FakeSets") == sets && Fake("FakeHandles") == handles && product.IsRight()));
  // A second thread has a handle of its own, and leaves it to the next.
  for (int i = 0; i < 3; ++i) std::thread([] { REQUIRE(Small(6).Run()); }).join();
  REQUIRE(Fake("FakeHandles") <= handles + 1);
  // A plan is made once for sizes and alignments.
  product.problem.row = product.row;
  REQUIRE(product.Run());
  const int made = Fake("FakeHeuristics");
  for (int i = 0; i < 10; ++i) REQUIRE(product.Run());
  REQUIRE((Fake("FakeHeuristics") == made && product.IsRight()));
}

TEST_CASE("settings say what products round", "[.][fakes]") {
  auto& settings = GetHost().settings;
  Small product;
  const auto compute = [&] { return product.Run() ? Fake("FakeCompute") : -1; };
  for (const void* row : {static_cast<const void*>(nullptr), static_cast<const void*>(product.row)}) {
    product.problem.row = row;
    REQUIRE(compute() == CUBLAS_COMPUTE_32F);
    settings[MICA_SETTING_FLOAT32_MATMUL_PRECISION] = 1;
    REQUIRE(compute() == CUBLAS_COMPUTE_32F_FAST_TF32);
    settings[MICA_SETTING_FLOAT32_MATMUL_PRECISION] = 0;
  }
  product.problem.row = nullptr;
  for (const auto& [dtype, name] : {std::pair(int32_t{MICA_F16}, MICA_SETTING_FLOAT16_REDUCTION),
                                    std::pair(int32_t{MICA_BF16}, MICA_SETTING_BFLOAT16_REDUCTION)}) {
    product.problem.dtype = dtype;  // which the imitation does not compute
    for (const int64_t allowed : {0, 1, 0}) {
      product.Run();
      settings[name] = allowed;
      REQUIRE(!product.Run());
      REQUIRE(Fake("FakeMode") ==
              (allowed ? CUBLAS_DEFAULT_MATH : CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    }
  }
}

TEST_CASE("what tensor cores multiply lies best at multiples of 16 bytes", "[.][fakes]") {
  auto& settings = GetHost().settings;
  for (const int32_t dtype : {MICA_F16, MICA_BF16}) REQUIRE(GetCublas().Alignment(dtype) == 16);
  for (const int32_t dtype : {MICA_F32, MICA_F64, MICA_C64, MICA_C128})
    REQUIRE(GetCublas().Alignment(dtype) == 1);
  REQUIRE(GetCublas().Alignment(MICA_I32) == 0);
  settings[MICA_SETTING_FLOAT32_MATMUL_PRECISION] = 1;
  REQUIRE((GetCublas().Alignment(MICA_F32) == 16 && GetCublas().Alignment(MICA_F64) == 1));
  settings[MICA_SETTING_FLOAT32_MATMUL_PRECISION] = 0;
}

TEST_CASE("products without memory are tried again, and then left to other kernels", "[.][fakes]") {
  FakeHost& host = GetHost();
  Small product;
  REQUIRE(product.Run());
  for (const void* row : {static_cast<const void*>(nullptr), static_cast<const void*>(product.row)}) {
    product.problem.row = row;
    product.c[0] = product.c[3] = 0;
    const int emptied = host.emptied;
    Fake("FakeFail", int{CUBLAS_STATUS_ALLOC_FAILED}, 1);
    REQUIRE((product.Run() && product.IsRight() && host.emptied == emptied + 1));
    Fake("FakeFail", int{CUBLAS_STATUS_ALLOC_FAILED}, 2);
    REQUIRE((!product.Run() && host.emptied == emptied + 2));
    REQUIRE((product.Run() && product.IsRight()));
  }
  host.refused = 1;  // the workspace
  REQUIRE((product.Run() && product.IsRight() && host.refused == 0));
  host.refused = 2;
  REQUIRE((!product.Run() && host.refused == 0 && host.in_use == 0));
  REQUIRE(host.warnings.size() == 1);
  REQUIRE_THAT(host.warnings[0], Catch::Matchers::Contains(
                                     "CUBLAS_STATUS_ALLOC_FAILED (3). Mica's own kernels, which are slower"));
  // Handles too.
  Fake("FakeFail", int{CUBLAS_STATUS_ALLOC_FAILED}, 1);
  REQUIRE(Small(77).Run());
  Fake("FakeFail", 13, 1);
  MICA_REQUIRE_ERROR(product.Run(), "failed on the device (cuda:0) with a status without a name (13)");
}

TEST_CASE("a cuBLAS that does not start is left alone, with one warning", "[.][fakes-cublas]") {
  FakeHost& host = GetHost();
  REQUIRE(CublasMissing().empty());
  Fake("FakeFail", int{CUBLAS_STATUS_NOT_INITIALIZED}, 1);
  for (int i = 0; i < 3; ++i) REQUIRE(!Small().Run());
  REQUIRE(GetCublas().Alignment(MICA_F16) == 0);
  REQUIRE_THAT(CublasMissing(), Catch::Matchers::Contains("cublasCreate failed with"));
  REQUIRE((host.warnings.size() == 1 && host.warnings[0] == CublasMissing()));
}

}  // namespace
}  // namespace cuda::test
