// PocketFFT for every machine.
#include "plugins/cpu/fft/pocketfft_std.h"
#include "plugins/cpu/third_party/pocketfft/pocketfft_hdronly.h"

namespace mica::cpu {
namespace {

#include "plugins/cpu/fft/passes-inl.h"

}  // namespace

void RunPass(const Pass& pass) { pass.wide ? RunPassIn<double>(pass) : RunPassIn<float>(pass); }

}  // namespace mica::cpu
