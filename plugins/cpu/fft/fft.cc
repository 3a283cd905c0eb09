// Transforms over several axes as passes over one each, every pass divided among the
// threads along the longest other dimension. Shapes and dtypes are the host's concern
// (meta functions); here they fit.
#include "plugins/cpu/fft/fft.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <new>
#include <utility>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/fft/passes.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// Elements that make a second thread worth waking.
constexpr int64_t kGrain = 8192;

// Lines of as many elements ask for a Ctrl-C between their passes, of a millisecond and more.
constexpr size_t kLongLine = size_t{1} << 18;

// A box of elements: a tensor, or memory of the same sizes.
struct Box {
  Box(const TensorRef& t, void* data) : data(static_cast<char*>(data)), ndim(t.ndim()) {
    for (int32_t d = 0; d < ndim; ++d) sizes[d] = t.size(d);
  }
  explicit Box(const TensorRef& t) : Box(t, t.data<void>()) {
    for (int32_t d = 0; d < ndim; ++d) strides[d] = t.stride(d) * t.itemsize();
  }
  // Row-major memory of the sizes that it has.
  void MakeDense(int64_t itemsize) {
    int64_t stride = itemsize;
    for (int32_t d = ndim - 1; d >= 0; --d) {
      strides[d] = stride;
      stride *= sizes[d];
    }
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int32_t d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }

  char* data;
  int32_t ndim;
  int64_t sizes[kMaxPassDims], strides[kMaxPassDims];
};

void (*BestPass())(const Pass&) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return avx2 ? &RunPassAvx2 : &RunPass;
#else
  return &RunPass;
#endif
}

bool IsWide(const TensorRef& t) { return t.dtype() == MICA_F64 || t.dtype() == MICA_C128; }

// The dtypes of a transform; others are declined.
void RequireDtypes(const TensorRef& from, bool from_complex, const TensorRef& to, bool to_complex) {
  const auto is = [](const TensorRef& t, bool wide, bool is_complex) {
    return t.dtype() == (is_complex ? (wide ? MICA_C128 : MICA_C64) : (wide ? MICA_F64 : MICA_F32));
  };
  const bool wide = IsWide(from);
  if (!is(from, wide, from_complex) || !is(to, wide, to_complex)) throw plugin::NotImplemented();
}

// A pass from one box to another along `axis`.
void Run(PassKind kind, bool wide, const Box& in, const Box& out, int32_t axis, bool forward, double factor,
         int32_t threads) {
  const Box& longer = kind == PassKind::kComplexToReal ? out : in;
  Pass pass;
  pass.kind = kind;
  pass.wide = wide;
  pass.forward = forward;
  pass.ndim = in.ndim;
  pass.axis = axis;
  pass.factor = factor;
  int32_t cut = axis == 0 ? std::min(1, in.ndim - 1) : 0;
  for (int32_t d = 0; d < in.ndim; ++d) {
    pass.sizes[d] = longer.sizes[d];
    pass.in_strides[d] = in.strides[d];
    pass.out_strides[d] = out.strides[d];
    if (d != axis && longer.sizes[d] > longer.sizes[cut]) cut = d;
  }
  const int64_t total = longer.numel();
  if (total == 0) return;
  // Without another dimension the one line is the whole.
  const int64_t lines = cut == axis ? 1 : longer.sizes[cut];
  std::atomic<bool> failed{false};
  ParallelSteps(lines, std::max<int64_t>(1, kGrain * lines / total), 1, threads,
                [&](int64_t begin, int64_t end) {
                  Pass part = pass;
                  if (cut != axis) part.sizes[cut] = end - begin;
                  part.in = in.data + (cut == axis ? 0 : begin * in.strides[cut]);
                  part.out = out.data + (cut == axis ? 0 : begin * out.strides[cut]);
                  try {
                    BestPass()(part);
                  } catch (const Interruption&) {
                    return;
                  } catch (...) {
                    failed = true;
                  }
                });
  if (failed) throw std::bad_alloc();
}

// What the transform over `dim` is multiplied by.
double Factor(const Box& real, MicaIntSpan dim, int64_t normalization) {
  double n = 1;
  for (int64_t i = 0; i < dim.size; ++i) n *= static_cast<double>(real.sizes[dim.data[i]]);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

void Copy(const TensorRef& from, const TensorRef& to, int32_t threads) {
  CopyStrided(to.itemsize(), to.ndim(), to.sizes(), from.data<void>(), from.strides(), to.data<void>(),
              to.strides(), threads);
}

// The second half of a real line's spectrum: the conjugates of the first, backwards.
template <class R>
void Mirror(const Box& out, int32_t axis, int32_t threads) {
  const int64_t n = out.sizes[axis], lines = n == 0 ? 0 : out.numel() / n;
  ParallelFor(lines, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)), 1, threads,
              [&](int64_t begin, int64_t end) {
                for (int64_t line = begin; line < end; ++line) {
                  int64_t rest = line, offset = 0;
                  for (int32_t d = out.ndim - 1; d >= 0; --d) {
                    if (d == axis) continue;
                    offset += rest % out.sizes[d] * out.strides[d];
                    rest /= out.sizes[d];
                  }
                  const auto at = [&](int64_t k) {
                    return reinterpret_cast<std::complex<R>*>(out.data + offset + k * out.strides[axis]);
                  };
                  for (int64_t k = n / 2 + 1; k < n; ++k) *at(k) = std::conj(*at(n - k));
                }
              });
}

void FftC2c(const MicaCall* call, MicaTensor* self, MicaIntSpan dim, int64_t normalization, int32_t forward,
            MicaTensor* out) {
  const TensorRef from(self), to(out);
  RequireDtypes(from, true, to, true);
  const int32_t threads = ThreadsOf(call);
  if (dim.size == 0) return Copy(from, to, threads);
  const Box in(from), result(to);
  for (int64_t i = 0; i < dim.size; ++i)
    Run(PassKind::kComplex, IsWide(to), i == 0 ? in : result, result, static_cast<int32_t>(dim.data[i]),
        forward != 0, i == 0 ? Factor(in, dim, normalization) : 1, threads);
}

void FftR2c(const MicaCall* call, MicaTensor* self, MicaIntSpan dim, int64_t normalization, int32_t onesided,
            MicaTensor* out) {
  const TensorRef from(self), to(out);
  RequireDtypes(from, false, to, true);
  const int32_t threads = ThreadsOf(call);
  const Box in(from), result(to);
  const auto last = static_cast<int32_t>(dim.data[dim.size - 1]);
  Run(PassKind::kRealToComplex, IsWide(to), in, result, last, true, Factor(in, dim, normalization), threads);
  if (!onesided) IsWide(to) ? Mirror<double>(result, last, threads) : Mirror<float>(result, last, threads);
  for (int64_t i = 0; i + 1 < dim.size; ++i)
    Run(PassKind::kComplex, IsWide(to), result, result, static_cast<int32_t>(dim.data[i]), true, 1, threads);
}

void FftC2r(const MicaCall* call, MicaTensor* self, MicaIntSpan dim, int64_t normalization, int64_t,
            MicaTensor* out) {
  const TensorRef from(self), to(out);
  RequireDtypes(from, true, to, false);
  const int32_t threads = ThreadsOf(call);
  const Box in(from), result(to);
  Box between(from, nullptr);
  between.MakeDense(from.itemsize());
  Temporary memory;
  if (dim.size > 1) {
    memory = Temporary(between.numel() * from.itemsize());
    between.data = memory.data();
  }
  for (int64_t i = 0; i + 1 < dim.size; ++i)
    Run(PassKind::kComplex, IsWide(to), i == 0 ? in : between, between, static_cast<int32_t>(dim.data[i]),
        false, 1, threads);
  Run(PassKind::kComplexToReal, IsWide(to), dim.size > 1 ? between : in, result,
      static_cast<int32_t>(dim.data[dim.size - 1]), false, Factor(result, dim, normalization), threads);
}

}  // namespace

void BetweenPasses(size_t length) {
  if (length >= kLongLine && StopAsked()) throw Interruption();
}

void RegisterFft(plugin::Registrar& r) {
  r.Kernel<&FftC2c>("_fft_c2c.out");
  r.Kernel<&FftR2c>("_fft_r2c.out");
  r.Kernel<&FftC2r>("_fft_c2r.out");
}

}  // namespace mica::cpu
