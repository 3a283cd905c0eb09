// The tiled matrix product of kernels/gemm.cl over any two things that can be indexed
// as matrices: products of tensors (matmul.cc) and convolutions (convolution.cc).
#pragma once

#include "classes.h"

namespace opencl_device {

// The macros that gemm.cl needs. `parameters` ends without a comma.
struct GemmText {
  std::string parameters, setup, load_a, load_b, store_c;
};

// The lanes of a product of tensors of a dtype; throws NotImplemented for bool and
// complex.
int32_t ProductLane(const Device& device, int32_t dtype);

template <typename F>
Kernel& FindGemm(const MicaCall* call, int32_t lane, const Key& key, F&& make_text) {
  Device& device = DeviceOf(call);
  return FindKernel(device, key, "gemm", call->name, [&] {
    const GemmText text = make_text();
    return LanesText(device, {lane, 1}, true) + Define("PARAMETERS", text.parameters) +
           Define("SETUP", text.setup) + Define("LOAD_A(k, info)", text.load_a) +
           Define("LOAD_B(k, info)", text.load_b) + Define("STORE_C(m, n, at, value)", text.store_c) +
           std::string(EmbeddedSource("gemm.cl"));
  });
}

// Appends M, N and K and runs the kernel over `batches` products.
void RunGemm(Launch& launch, int64_t m, int64_t n, int64_t k, int64_t batches);

}  // namespace opencl_device
