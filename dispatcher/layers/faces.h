// What layers read of the core without a call: this thread's state and what stands behind a wrapper, as the
// structs of <mica/layers.h>; and an operator as a C function.
//
// The structs are the beginnings of the core's own, whose other members may change: faces.cc asserts that
// the beginnings agree. Nobody writes through them.
#pragma once

#include <mica/layers.h>
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/frames/frames.h"

namespace mica::layers {

inline const MicaThread* FaceOf(const ThreadState& t) { return reinterpret_cast<const MicaThread*>(&t); }
inline const MicaWrapper* FaceOf(const frames::Wrapper& w) {
  return reinterpret_cast<const MicaWrapper*>(&w);
}

// These three are of MicaLayers.
const MicaThread* ThreadFace();
const MicaWrapper* WrapperFace(MicaTensor* t);
MicaStatus CallOf(void* op, const char* signature, MicaFunction* call);

}  // namespace mica::layers
