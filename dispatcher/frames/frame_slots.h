// What stands in an operator's slots at the three bits of frames: the kernels that
// resolve.cc puts there.
#pragma once

#include "dispatcher/tables/operator.h"

namespace mica::internal {

// At kFrame: calls the kernel for the current frame's kind. Context: the FrameTable.
void RunFrame(const BoxedKernel&, const Operator&, KeySet, const MicaValue*, int64_t, MicaValue*);
// At kFrameBelow: goes on in the parent. Also of kinds with nothing to do for the operator.
void RunInParent(const BoxedKernel&, const Operator&, KeySet, const MicaValue*, int64_t, MicaValue*);
// At kFrameEscape: a wrapper that no current frame knows.
void RunEscaped(const BoxedKernel&, const Operator&, KeySet, const MicaValue*, int64_t, MicaValue*);
// For a kind that has no rule for the operator.
void RunNoRule(const BoxedKernel&, const Operator&, KeySet, const MicaValue*, int64_t, MicaValue*);

}  // namespace mica::internal
