// Fourier transforms of the CPU backend.
#ifndef MICA_PLUGINS_CPU_FFT_FFT_H_
#define MICA_PLUGINS_CPU_FFT_FFT_H_

#include <mica/plugin.h>

namespace mica::cpu {

void RegisterFft(plugin::Registrar& registrar);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_FFT_FFT_H_
