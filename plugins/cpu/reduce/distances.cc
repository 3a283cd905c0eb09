#include "plugins/cpu/reduce/distances.h"

#include <algorithm>
#include <vector>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

// Elements of differences that make a second thread worth waking.
constexpr int64_t kGrain = 32768;

template <class T>
void Between(const T* x1, const T* x2, int64_t batch, int64_t rows, int64_t others, int64_t width,
             DistanceLoop<T> loop, T* out, int32_t threads) {
  const int64_t grain = std::max<int64_t>(1, kGrain / (others * width + 1));
  ParallelSteps(batch * rows, grain, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      loop(x1 + i * width, x2 + i / rows * others * width, others, width, out + i * others);
  });
}

// Row i against those after it; before it stand the distances of i rows.
template <class T>
void Among(const T* x, int64_t rows, int64_t width, DistanceLoop<T> loop, T* out, int32_t threads) {
  const int64_t grain = std::max<int64_t>(1, kGrain / (rows * width / 2 + 1));
  ParallelSteps(rows - 1, grain, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      loop(x + i * width, x + (i + 1) * width, rows - 1 - i, width, out + i * (2 * rows - i - 1) / 2);
  });
}

// Calls f(zero, loop) for a dtype and an order that have a loop.
template <class F>
void WithLoop(int32_t dtype, double p, F f) {
  const auto run = [&](auto zero) {
    const auto loop = DistanceLoopOf<decltype(zero)>(p);
    if (loop == nullptr) throw plugin::NotImplemented();
    f(zero, loop);
  };
  if (dtype == MICA_F32) return run(float());
  if (dtype == MICA_F64) return run(double());
  throw plugin::NotImplemented();
}

}  // namespace

MicaTensor* Cdist(const MicaCall* call, MicaTensor* x1, MicaTensor* x2, double p) {
  const TensorRef a(x1), b(x2);
  const int32_t n = a.ndim(), dtype = a.dtype(), threads = ThreadsOf(call);
  const bool alike = n >= 2 && b.ndim() == n && b.dtype() == dtype && a.size(-1) == b.size(-1) &&
                     std::equal(a.sizes(), a.sizes() + n - 2, b.sizes());
  if (!alike || a.numel() == 0 || b.numel() == 0) throw plugin::NotImplemented();
  std::vector<int64_t> sizes(a.sizes(), a.sizes() + n);
  sizes.back() = b.size(-2);
  OwnedTensor out;
  WithLoop(dtype, p, [&](auto zero, auto loop) {
    using T = decltype(zero);
    const DenseInput left(x1, dtype, threads), right(x2, dtype, threads);
    out = OwnedTensor::Empty(sizes.data(), n, dtype, MicaDevice{0, 0});
    Between(left.data<T>(), right.data<T>(), a.numel() / (a.size(-1) * a.size(-2)), a.size(-2), b.size(-2),
            a.size(-1), loop, TensorRef(out.get()).data<T>(), threads);
  });
  return out.release();
}

MicaTensor* Pdist(const MicaCall* call, MicaTensor* self, double p) {
  const TensorRef in(self);
  const int32_t dtype = in.dtype(), threads = ThreadsOf(call);
  // What is wrong with the call is for the composition to say.
  if (in.ndim() != 2 || in.size(0) < 2 || in.size(1) == 0) throw plugin::NotImplemented();
  const int64_t rows = in.size(0), pairs = rows * (rows - 1) / 2;
  OwnedTensor out;
  WithLoop(dtype, p, [&](auto zero, auto loop) {
    using T = decltype(zero);
    const DenseInput x(self, dtype, threads);
    out = OwnedTensor::Empty(&pairs, 1, dtype, MicaDevice{0, 0});
    Among(x.data<T>(), rows, in.size(1), loop, TensorRef(out.get()).data<T>(), threads);
  });
  return out.release();
}

void RegisterDistances(plugin::Registrar& r) {
  r.Kernel<&Cdist>("_cdist");
  r.Kernel<&Pdist>("pdist");
}

}  // namespace mica::cpu
