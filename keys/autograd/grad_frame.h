// The frame kind "grad": one level of reverse mode. Its wrappers have an Autograd state
// of their own, so each level has its own graph: the kernels of Autograd run on the
// wrappers, and what they call below themselves (keys::kFrameBelow) goes on with the
// values in the parent. Tensors of outer levels are constants here.
//
// Backward runs while the frame is current: Gradients() of wrappers. Its operators are
// recorded by this level only with create_graph, and by outer levels as any others.
#pragma once

#include "dispatcher/frames/frames.h"
#include "dispatcher/registration/registration.h"

namespace mica::autograd {

int GradKind();
// A wrapper of `frame` (a grad frame) that requires grad there, where its dtype can.
Tensor MakeGradInput(Tensor value, const frames::Frame& frame);

void RegisterGradFrame(Scope& scope);

}  // namespace mica::autograd
