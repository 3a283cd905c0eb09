// What PocketFFT includes, and its settings: Mica's threads, not its own; plans of the
// last 16 lengths are kept; between the passes of a long line it asks for a Ctrl-C. Included before the
// instruction set is raised for it, so that nothing of the standard library is compiled for AVX2.
#ifndef MICA_PLUGINS_CPU_FFT_POCKETFFT_STD_H_
#define MICA_PLUGINS_CPU_FFT_POCKETFFT_STD_H_

#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16
#define POCKETFFT_BETWEEN_PASSES(length) ::mica::cpu::BetweenPasses(length)

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "plugins/cpu/fft/passes.h"

#endif  // MICA_PLUGINS_CPU_FFT_POCKETFFT_STD_H_
