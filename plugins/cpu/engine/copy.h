// The kernel of copy_, and copies between strided places; see copy.cc.
#ifndef MICA_PLUGINS_CPU_ENGINE_COPY_H_
#define MICA_PLUGINS_CPU_ENGINE_COPY_H_

#include <mica/abi.h>

namespace mica::cpu {

// Writes `src`, broadcast and converted, into `self`. The two are the same memory
// or do not overlap.
void CopyInto(const MicaCall* call, MicaTensor* self, MicaTensor* src, int32_t non_blocking);

// Copies a box of elements of `itemsize` bytes, which do not overlap; strides count elements, of any sign,
// and `src` may have 0. At most 24 dimensions.
void CopyStrided(int64_t itemsize, int32_t ndim, const int64_t* sizes, const void* src,
                 const int64_t* src_strides, void* dst, const int64_t* dst_strides, int32_t threads);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_COPY_H_
