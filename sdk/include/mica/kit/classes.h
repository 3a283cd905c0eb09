// The class kernels, which run operators from their programs, and what they share.
#pragma once

#include "programs.h"
#include "source.h"
#include "space.h"

namespace opencl_device {

void RunPointwise(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
                  int64_t num_outputs);
void RunFactory(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
                int64_t num_outputs);
void RunReduction(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
                  int64_t num_outputs);
void RunScan(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
             int64_t num_outputs);
void RunRow(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
            int64_t num_outputs);
void RunWindow(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
               int64_t num_outputs);
void RunGather(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
               int64_t num_outputs);

// Writes `from`, which has the sizes of `to` or broadcasts to them, into `to`, with
// conversion.
void CopyTensor(const MicaCall* call, const MicaTensor* to, const MicaTensor* from);
// The same for a part of `to`: its strides, from an element on.
void CopyPart(const MicaCall* call, Space space);

// Refuses a dtype that the device cannot hold, and what no kernel here computes.
void CheckDtype(const Device& device, int32_t dtype);
// Whether any section divides integers, which may raise.
bool MayRaise(const MicaProgram& program, int32_t lane_dtype);
[[noreturn]] void ThrowZeroDivision();

}  // namespace opencl_device
