#include "plugins/cpu/indexing/slices.h"

namespace mica::cpu {

RowsAlong::RowsAlong(const int64_t* sizes, const int64_t* strides, int32_t first, int32_t past) {
  int64_t count = 1, next = 0;
  bool even = true, any = false;
  for (int32_t d = past - 1; d >= first; --d) {
    count *= sizes[d];
    if (sizes[d] == 1) continue;
    if (any)
      even &= strides[d] == next;
    else
      step_ = strides[d];
    any = true;
    next = strides[d] * sizes[d];
  }
  if (even) return;
  step_ = 1;
  offsets_.resize(static_cast<size_t>(count));
  for (int64_t r = 0; r < count; ++r) {
    int64_t rest = r, offset = 0;
    for (int32_t d = past - 1; d >= first; --d) {
      offset += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    offsets_[static_cast<size_t>(r)] = offset;
  }
}

void Slices::Add(int64_t size, int64_t to_stride, int64_t from_stride) {
  if (size == 1) return;
  if (ndim == kMaxDims) throw plugin::NotImplemented();
  sizes[ndim] = size;
  to[ndim] = to_stride;
  from[ndim++] = from_stride;
}

void Slices::AddAll(const int64_t* all, const int64_t* to_strides, const int64_t* from_strides, int32_t first,
                    int32_t past, int32_t shift) {
  for (int32_t d = first; d < past; ++d) Add(all[d], to_strides[d], from_strides[d + shift]);
}

void Slices::Finish() {
  if (ndim == 0) {  // one element
    sizes[0] = to[0] = from[0] = 1;
    ndim = 1;
    return;
  }
  for (int32_t d = 1; d < ndim; ++d)
    for (int32_t e = d; e > 0 && to[e - 1] < to[e]; --e) {
      std::swap(sizes[e - 1], sizes[e]);
      std::swap(to[e - 1], to[e]);
      std::swap(from[e - 1], from[e]);
    }
  int32_t kept = 0;
  for (int32_t d = 1; d < ndim; ++d) {
    if (to[kept] == to[d] * sizes[d] && from[kept] == from[d] * sizes[d]) {
      sizes[kept] *= sizes[d];
    } else {
      sizes[++kept] = sizes[d];
    }
    to[kept] = to[d];
    from[kept] = from[d];
  }
  ndim = kept + 1;
}

}  // namespace mica::cpu
