// Which instruction sets the kernels may use: the best that the processor has, or, where
// MICA_CPU_TARGET=sse4 or avx2 stands in the environment, none newer than that, so that one machine
// tests what others run. (ONEDNN_MAX_CPU_ISA and OPENBLAS_CORETYPE do so for the libraries.)
#ifndef MICA_PLUGINS_CPU_ENGINE_TARGETS_H_
#define MICA_PLUGINS_CPU_ENGINE_TARGETS_H_

namespace mica::cpu {

// Called once, before any kernel runs. Throws on another word.
void LimitTargets();

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_TARGETS_H_
