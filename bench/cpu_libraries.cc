// Products and convolutions of the CPU plugin against the libraries called directly.
//
//   bench_cpu_libraries [filter]
//
// Each row is the best of many interleaved runs, in GFLOP/s: Mica's kernel, OpenBLAS on
// one thread (products), and the ratio of the two. Convolution rows give
// microseconds for Mica's kernel, forward, for input and for weight.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "plugins/cpu/contraction/open_libraries.h"
#include "plugins/cpu/contraction/products.h"
#include "plugins/cpu/convolution/convolution.h"
#include "plugins/cpu/pooling/pooling.h"

namespace {

using namespace mica::cpu;
using Clock = std::chrono::steady_clock;

// A float32 tensor over its own memory, row-major or with the last two swapped.
struct Array {
  std::vector<char> memory;
  std::vector<int64_t> sizes, strides;
  MicaTensor face{};
  Array(std::vector<int64_t> s, bool transposed = false, int32_t dtype = MICA_F32, int bytes = 4)
      : sizes(std::move(s)), strides(sizes.size()) {
    int64_t n = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      strides[d] = n;
      n *= sizes[d];
    }
    if (transposed) {
      strides[sizes.size() - 1] = sizes[sizes.size() - 2];
      strides[sizes.size() - 2] = 1;
    }
    memory.resize(static_cast<size_t>(n * bytes) + 64);
    if (dtype == MICA_F32)
      for (int64_t i = 0; i < n; ++i) {
        const float value = static_cast<float>(i * 7 % 13) / 13 - 0.4F;
        std::memcpy(memory.data() + i * 4, &value, 4);
      }
    face.flags = MICA_TENSOR_HAS_DATA | static_cast<uint64_t>(dtype) << MICA_TENSOR_DTYPE_SHIFT |
                 (transposed ? 0 : MICA_TENSOR_CONTIGUOUS);
    face.dl = {memory.data(),
               {1, 0},
               static_cast<int32_t>(sizes.size()),
               {2, static_cast<uint8_t>(bytes * 8), 1},
               sizes.data(),
               strides.data(),
               0};
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
};

MicaCall CallOn(int32_t threads) {
  MicaCall call{};
  call.struct_size = sizeof(call);
  call.num_threads = threads;
  return call;
}

// Seconds of each, best of interleaved rounds.
std::vector<double> Best(const std::vector<std::function<void()>>& bodies, double seconds = 0.6) {
  std::vector<double> best(bodies.size(), std::numeric_limits<double>::infinity());
  for (const auto& body : bodies) body();
  const auto start = Clock::now();
  do {
    for (size_t i = 0; i < bodies.size(); ++i) {
      const auto begin = Clock::now();
      bodies[i]();
      best[i] = std::min(best[i], std::chrono::duration<double>(Clock::now() - begin).count());
    }
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  return best;
}

void Products(int32_t threads) {
  std::printf("float32 products on %d threads   mica   OpenBLAS on one  GFLOP/s, mica / OpenBLAS\n", threads);
  struct Shape {
    int64_t m, n, k;
    bool ta, tb;
  };
  const Shape shapes[] = {
      {4, 4, 4, false, false},      {8, 8, 8, false, false},       {16, 16, 16, false, false},
      {32, 32, 32, false, false},   {64, 64, 64, false, false},    {64, 10, 1024, false, true},
      {64, 1024, 10, false, false}, {10, 1024, 64, true, false},   {128, 128, 128, false, false},
      {256, 256, 256, false, true}, {512, 512, 512, false, false}, {1024, 1024, 1024, false, false},
      {1, 1024, 1024, false, true}, {1024, 1, 1024, false, false}, {32, 4096, 1024, false, true},
      {1000, 30, 2000, true, false}};
  const LibraryTable* library = Libraries();
  for (const Shape& s : shapes) {
    Array a({s.m, s.k}, s.ta), b({s.k, s.n}, s.tb), c({s.m, s.n});
    const MicaCall call = CallOn(threads);
    const GemmTask task{MICA_F32,
                        s.m,
                        s.n,
                        s.k,
                        {a.memory.data(), s.ta ? s.m : s.k, s.ta},
                        {b.memory.data(), s.tb ? s.k : s.n, s.tb},
                        c.memory.data(),
                        s.n,
                        {1, 0},
                        {0, 0}};
    std::vector<std::function<void()>> bodies{[&] { Mm(&call, &a.face, &b.face, &c.face); }};
    bodies.push_back([&] { library->blas_gemm(task); });
    const std::vector<double> t = Best(bodies, 0.3);
    const double work = 2e-9 * static_cast<double>(s.m * s.n * s.k);
    std::printf("%5ld x %4ld x %4ld %c%c  %9.2f %9.2f   %5.2f   (%.2f us)\n", s.m, s.n, s.k, s.ta ? 'T' : 'N',
                s.tb ? 'T' : 'N', work / t[0], work / t[1], t[1] / t[0], t[0] * 1e6);
  }
}

void HalfProducts(int32_t threads) {
  std::printf("bfloat16 products on %d threads, GFLOP/s\n", threads);
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{64, 64, 64}, {256, 256, 256}, {1024, 1024, 1024}, {1, 4096, 4096}}) {
    Array a({m, k}, false, MICA_BF16, 2), b({k, n}, true, MICA_BF16, 2), c({m, n}, false, MICA_BF16, 2);
    const MicaCall call = CallOn(threads);
    const double t = Best({[&] { Mm(&call, &a.face, &b.face, &c.face); }})[0];
    std::printf("%5ld x %4ld x %4ld  %8.2f\n", m, n, k, 2e-9 * static_cast<double>(m * n * k) / t);
  }
}

void Convolutions(int32_t threads) {
  std::printf("convolutions on %d threads: microseconds (GFLOP/s) forward, for input, for weight\n", threads);
  struct Shape {
    int64_t batch, in, out, side, kernel, stride, padding;
  };
  for (const Shape& s : {Shape{64, 1, 32, 8, 3, 1, 1},
                         {64, 32, 64, 8, 3, 1, 1},
                         {8, 64, 64, 56, 3, 1, 1},
                         {8, 64, 128, 28, 1, 1, 0},
                         {4, 3, 64, 112, 7, 2, 3}}) {
    const int64_t o = (s.side + 2 * s.padding - s.kernel) / s.stride + 1;
    Array x({s.batch, s.in, s.side, s.side}), w({s.out, s.in, s.kernel, s.kernel}), b({s.out}),
        y({s.batch, s.out, o, o});
    const MicaCall call = CallOn(threads);
    const int64_t one = 1, zero = 0;
    const MicaIntSpan stride{&s.stride, 1}, padding{&s.padding, 1}, dilation{&one, 1}, none{&zero, 1};
    const std::vector<double> t =
        Best({[&] {
                Convolution(&call, &x.face, &w.face, &b.face, stride, padding, dilation, 0, none, 1, &y.face);
              },
              [&] {
                ConvolutionBackwardInput(&call, &y.face, &w.face, {}, stride, padding, dilation, 0, none, 1,
                                         &x.face);
              },
              [&] {
                ConvolutionBackwardWeight(&call, &y.face, &x.face, {}, stride, padding, dilation, 0, none, 1,
                                          &w.face);
              }});
    const double work = 2e-9 * static_cast<double>(s.batch * s.out * s.in * o * o * s.kernel * s.kernel);
    std::printf("%3ld x %3ld -> %3ld, %3ld, kernel %ld: ", s.batch, s.in, s.out, s.side, s.kernel);
    for (const double one_time : t) std::printf("  %8.1f (%5.1f)", one_time * 1e6, work / one_time);
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  for (const int32_t threads : {1, 2}) {
    if (std::string("products").find(filter) != std::string::npos) Products(threads);
    if (std::string("half").find(filter) != std::string::npos) HalfProducts(threads);
    if (std::string("convolutions").find(filter) != std::string::npos) Convolutions(threads);
  }
  return 0;
}
