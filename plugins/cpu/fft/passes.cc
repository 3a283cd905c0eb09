// PocketFFT for every machine.
#include "mica/plugins/cpu/fft/pocketfft_std.h"
#include "mica/plugins/cpu/third_party/pocketfft/pocketfft_hdronly.h"

namespace mica::cpu {
namespace {

#include "mica/plugins/cpu/fft/passes-inl.h"

}  // namespace

void RunPass(const Pass& pass) { pass.wide ? RunPassIn<double>(pass) : RunPassIn<float>(pass); }

}  // namespace mica::cpu
