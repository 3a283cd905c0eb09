// PocketFFT for machines with AVX2, under a name of its own so that the linker keeps
// the two apart.
#include "plugins/cpu/fft/pocketfft_std.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define pocketfft pocketfft_avx2
#include "plugins/cpu/third_party/pocketfft/pocketfft_hdronly.h"

namespace mica::cpu {
namespace {

#include "plugins/cpu/fft/passes-inl.h"

}  // namespace

void RunPassAvx2(const Pass& pass) { pass.wide ? RunPassIn<double>(pass) : RunPassIn<float>(pass); }

}  // namespace mica::cpu
#pragma GCC pop_options
#else
namespace mica::cpu {

void RunPassAvx2(const Pass& pass) { RunPass(pass); }

}  // namespace mica::cpu
#endif
