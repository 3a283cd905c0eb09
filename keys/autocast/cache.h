// Casts of parameters, kept until the thread's outermost autocast context ends, so that a
// weight that is used at every step of a loop is cast once.
//
// Kept are casts of float32 leaves that require grad and are no views: what a program
// trains. A cast that was made without recording does not serve a call that records, and
// one of values that were written since is made anew.
#pragma once

#include <mica/formula.h>

namespace mica::autocast {

// `t` in `dtype`, from the cache where it may be.
formula::Tensor CachedCast(MicaTensor* t, int32_t dtype);
// This thread's.
void ClearCache();

}  // namespace mica::autocast
