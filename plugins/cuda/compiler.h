// NVIDIA's run-time compiler, NVRTC: from the text of a kernel to what the driver loads.
//
// It is opened at the first use, from the path in MICA_NVRTC if that is set, else from where folders.h
// looks. It needs neither a device nor a driver, and no header: the prelude has all that kernels use.
#pragma once

#include <string>

namespace cuda {

// Why there is no compiler, as a sentence; empty where there is one. Throws nothing.
const std::string& CompilerMissing();

// "nvrtc 13.0"; "nvrtc (missing)" where there is none. Throws nothing.
std::string CompilerVersion();

// The words that kernels are written in, as CUDA C++ (plugins/gpu/text).
const char* KernelPrelude();

// Compiles a text, prelude included, for an architecture ("sm_90"): a cubin, or PTX for the newest
// architecture that the compiler knows where it does not know this one yet. Products and sums stay apart,
// as on the CPU, unless the text has the line `#pragma MICA_CONTRACT`. Throws MICA_ERROR_RUNTIME with `what`
// and the compiler's first lines.
std::string CompileKernel(const std::string& text, const std::string& architecture, const std::string& what);

}  // namespace cuda
