// One pass of a Fourier transform: along one axis, over all lines of a box.
//
// PocketFFT (third_party/) does the work; it is compiled twice, for every machine and
// for AVX2, and fft.cc chooses at run time. A pass runs on the calling thread; fft.cc
// cuts the box for the threads of Mica's one pool.
#ifndef MICA_PLUGINS_CPU_FFT_PASSES_H_
#define MICA_PLUGINS_CPU_FFT_PASSES_H_

#include <cstddef>
#include <cstdint>

namespace mica::cpu {

enum class PassKind : int32_t { kComplex, kRealToComplex, kComplexToReal };

constexpr int32_t kMaxPassDims = 64;

struct Pass {
  PassKind kind = PassKind::kComplex;
  bool wide = false;  // float64 and complex128, else float32 and complex64
  bool forward = true;
  int32_t ndim = 0, axis = 0;
  double factor = 1;
  // Sizes of the side that is longer: real, where one side is.
  int64_t sizes[kMaxPassDims];
  int64_t in_strides[kMaxPassDims], out_strides[kMaxPassDims];  // in bytes
  const void* in = nullptr;
  void* out = nullptr;
};

// Thrown by BetweenPasses after a Ctrl-C.
struct Interruption {};

// Called before each pass over a line of `length` elements, on the thread that does it.
void BetweenPasses(size_t length);

// May throw std::bad_alloc and Interruption.
void RunPass(const Pass& pass);
void RunPassAvx2(const Pass& pass);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_FFT_PASSES_H_
