// The tiled matrix product of kernels/gemm.cl over any two things that can be indexed
// as matrices: products of tensors (matmul.h) and convolutions (convolution.h).
#pragma once

#include <algorithm>

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {

// The macros that gemm.cl needs. `parameters` ends without a comma.
struct GemmText {
  std::string parameters, setup, load_a, load_b, store_c;
};

// The lanes of a product of tensors of a dtype; throws NotImplemented for bool and
// complex.
inline int32_t ProductLane(const Device& device, int32_t dtype) {
  CheckDtype(device, dtype);
  if (dtype == MICA_BOOL) throw plugin::NotImplemented();
  return LaneDtype(dtype);
}

template <typename F>
const Kernel& FindGemm(const MicaCall* call, int32_t lane, const Key& key, F&& make_text) {
  const Device& device = DeviceOf(call);
  return FindKernel(device, key, "gemm", call->name, [&] {
    const GemmText text = make_text();
    return LanesText(device, {lane, 1}, true) + Define("PARAMETERS", text.parameters) +
           Define("SETUP", text.setup) + Define("LOAD_A(k, info)", text.load_a) +
           Define("LOAD_B(k, info)", text.load_b) + Define("STORE_C(m, n, at, value)", text.store_c) +
           kGemmText;
  });
}

// Appends M, N and K and runs the kernel over `batches` products.
inline void RunGemm(Launch& launch, int64_t m, int64_t n, int64_t k, int64_t batches) {
  constexpr int64_t kMost = INT32_MAX - 64;  // the kernel counts in int, to the end of a tile
  if (std::max({m, n, k}) > kMost) throw plugin::NotImplemented();
  if (std::max((m + 63) / 64, batches) > launch.device().max_groups_yz) throw plugin::NotImplemented();
  launch.Value(static_cast<int32_t>(m)).Value(static_cast<int32_t>(n)).Value(static_cast<int32_t>(k));
  launch.Run((n + 63) / 64 * 8, (m + 63) / 64 * 8, batches, 8, 8);
}

}  // namespace kit
}  // namespace mica
