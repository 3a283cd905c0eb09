// Reading by index: runs of adjacent elements move by memcpy, single ones in loops
// typed by their size.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/indexing/advanced.h"
#include "plugins/cpu/indexing/indexing.h"
#include "plugins/cpu/indexing/line_walk.h"
#include "plugins/cpu/indexing/slices.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// out's rows are self's at `rows`, along dimensions that stand in both from `first` on and
// take `self_dims` dimensions of self and `out_dims` of out.
void SelectSlices(const TensorRef& self, Rows rows, int32_t first, int32_t self_dims, int32_t out_dims,
                  const TensorRef& out, int32_t threads) {
  Slices slices;
  slices.AddAll(out.sizes(), out.strides(), self.strides(), 0, first, 0);
  slices.AddAll(out.sizes(), out.strides(), self.strides(), first + out_dims, out.ndim(),
                self_dims - out_dims);
  slices.Finish();
  const RowsAlong places(out, first, first + out_dims);
  int64_t count = 1;
  for (int32_t d = first; d < first + out_dims; ++d) count *= out.size(d);
  VisitSize(out.itemsize(), [&](auto unit) {
    using T = decltype(unit);
    WriteSlices(slices, out.data<T>(), places.rows(), static_cast<const T*>(self.data<T>()), rows, count,
                false, -1, threads, Move());
  });
}

// A line of gather: to[i * apart] = from[i * along + index[i * stride] * step]. False where an
// index is not in [0, size); nothing is read for it.
template <class T, class I>
bool GatherLine(T* to, int64_t apart, const T* from, int64_t along, int64_t step, const I* index,
                int64_t stride, int64_t n, int64_t size) {
  const auto outside = [size](I i) { return static_cast<uint64_t>(i) >= static_cast<uint64_t>(size); };
  if (along == 0 && step == 1 && stride == 1 && apart == 1) {
    for (int64_t i = 0; i < n; ++i) {
      if (outside(index[i])) return false;
      to[i] = from[index[i]];
    }
    return true;
  }
  for (int64_t i = 0; i < n; ++i) {
    const I place = index[i * stride];
    if (outside(place)) return false;
    to[i * apart] = from[i * along + place * step];
  }
  return true;
}

}  // namespace

void Embedding(const MicaCall* call, MicaTensor* weight, MicaTensor* indices, int64_t, int32_t, int32_t,
               MicaTensor* out) {
  const TensorRef w(weight), to(out);
  const IndexList rows = Indices(indices, w.size(0));
  SelectSlices(w, {rows.data(), w.stride(0)}, 0, 1, to.ndim() - 1, to, ThreadsOf(call));
}

void IndexSelect(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* out) {
  const TensorRef in(self), to(out);
  const IndexList rows = Indices(index, in.ndim() == 0 ? 1 : in.size(static_cast<int>(dim)));
  if (in.ndim() == 0) return SelectSlices(in, {rows.data(), 0}, 0, 0, 0, to, 1);
  const auto d = static_cast<int32_t>(dim < 0 ? dim + in.ndim() : dim);
  SelectSlices(in, {rows.data(), in.stride(d)}, d, 1, 1, to, ThreadsOf(call));
}

void Index(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensor* out) {
  const TensorRef in(self);
  const AdvancedIndex at = Resolve(in, indices);
  SelectSlices(in, {at.offsets.data(), 1}, at.first, at.past - at.first, at.ndim, out, ThreadsOf(call));
}

void Gather(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, int32_t,
            MicaTensor* out) {
  const TensorRef in(self), at(index), result(out);
  if (in.ndim() == 0 || at.ndim() != in.ndim() || in.ndim() > 16) throw plugin::NotImplemented();
  if (at.dtype() != MICA_I64 && at.dtype() != MICA_I32) throw plugin::NotImplemented();
  if (dim < 0) dim += in.ndim();
  const int32_t threads = ThreadsOf(call), last = in.ndim() - 1;
  const int64_t length = at.size(last), step = in.stride(static_cast<int>(dim));
  const int64_t along = dim == last ? 0 : in.stride(last), size = in.size(static_cast<int>(dim));
  const int64_t lines = at.numel() / std::max<int64_t>(length, 1);
  std::atomic<bool> valid{true};
  VisitSize(in.itemsize(), [&](auto unit) {
    using T = decltype(unit);
    const int64_t apart = result.stride(last), stride = at.stride(last);
    const auto line = [&](const T* from, int64_t first, T* to) {
      for (int64_t i = 0; i < length && (i == 0 || !StopAsked()); i += kLineElements) {
        const int64_t n = std::min(kLineElements, length - i), place = first + i * stride;
        const bool inside = at.dtype() == MICA_I64
                                ? GatherLine(to + i * apart, apart, from + i * along, along, step,
                                             at.data<int64_t>() + place, stride, n, size)
                                : GatherLine(to + i * apart, apart, from + i * along, along, step,
                                             at.data<int32_t>() + place, stride, n, size);
        if (!inside) return false;
      }
      return true;
    };
    ParallelSteps(
        lines, std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(length, 1)), 1, threads,
        [&](int64_t begin, int64_t end) {
          LineWalk<3> walk(at.sizes(), in.ndim());
          for (int32_t d = 0; d < last; ++d) {
            walk.strides[0][d] = d == dim ? 0 : in.stride(d);
            walk.strides[1][d] = at.stride(d);
            walk.strides[2][d] = result.stride(d);
          }
          walk.Seek(begin);
          for (int64_t number = begin; number < end; ++number, walk.Next())
            if (!line(in.data<T>() + walk.offsets[0], walk.offsets[1], result.data<T>() + walk.offsets[2]))
              valid.store(false, std::memory_order_relaxed);
        });
  });
  // The portable kernel names the index.
  if (!valid) throw plugin::NotImplemented();
}

}  // namespace mica::cpu
