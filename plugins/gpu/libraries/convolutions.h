// A vendor's convolutions, as plugins/gpu calls them.
//
// CUDA has cuDNN behind it, HIP MIOpen; where a library is missing or does not take a convolution, Run says
// so, and a kernel of the kit computes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <mica/kit/driver.h>

namespace gpu {

struct ConvolutionProblem {
  int device = 0;
  uint64_t stream = 0;
  mica::kit::ConvolutionCall convolution;
  // Memory of that size on the device, which takes the place of what an earlier call gave and is used for
  // kernels that are queued before Run returns. Throws where there is none left.
  std::function<void*(size_t size)> workspace;
};

class Convolutions {
 public:
  virtual ~Convolutions() = default;

  // Whether Run may take convolutions of a dtype. Throws nothing.
  virtual bool Has(int device, int32_t dtype) = 0;
  // Queues the convolution on the problem's stream. Returns false, and does nothing, where the library is
  // missing, has no memory left or does not take the problem. Halves are summed as float. How exact the rest
  // is, the host's settings say (<mica/settings.h>).
  virtual bool Run(const ConvolutionProblem& problem) = 0;
};

}  // namespace gpu
