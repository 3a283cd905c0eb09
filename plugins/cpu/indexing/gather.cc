// Reading by index: runs of adjacent elements move by memcpy, single ones in loops
// typed by their size.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/indexing/advanced.h"
#include "mica/plugins/cpu/indexing/indexing.h"
#include "mica/plugins/cpu/indexing/indices.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// A vector, counted as IndexList is.
struct PlainRows {
  const std::vector<int64_t>& rows;
  int64_t operator[](int64_t i) const { return rows[static_cast<size_t>(i)]; }
  size_t size() const { return rows.size(); }
};

// out (outer, rows, inner) from self (outer, extent, inner), both row-major.
template <class Rows>
void CopyRows(const void* self, int64_t outer, int64_t extent, int64_t inner, const Rows& rows, void* out,
              int64_t itemsize, int32_t threads) {
  const auto count = static_cast<int64_t>(rows.size());
  VisitSize(itemsize, [&](auto unit) {
    using T = decltype(unit);
    ParallelSteps(outer * count, std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(inner, 1)), 1, threads,
                  [&](int64_t begin, int64_t end) {
                    int64_t row = begin % count;
                    const T* from = static_cast<const T*>(self) + begin / count * extent * inner;
                    T* to = static_cast<T*>(out) + begin * inner;
                    for (int64_t i = begin; i < end; row = 0, from += extent * inner) {
                      const int64_t past = std::min(count, row + end - i);
                      i += past - row;
                      if (inner == 1)
                        for (; row < past; ++row) *to++ = from[rows[row]];
                      else
                        for (; row < past; ++row, to += inner)
                          std::memcpy(to, from + rows[row] * inner, static_cast<size_t>(inner) * sizeof(T));
                    }
                  });
  });
}

}  // namespace

void Embedding(const MicaCall* call, MicaTensor* weight, MicaTensor* indices, int64_t, int32_t, int32_t,
               MicaTensor* out) {
  const TensorRef w(weight);
  const int32_t threads = ThreadsOf(call);
  const IndexList rows = Indices(indices, w.size(0));
  const DenseInput table(weight, w.dtype(), threads);
  DenseOutput result(out, w.dtype(), threads);
  CopyRows(table.data<void>(), 1, w.size(0), w.size(1), rows, result.data<void>(), w.itemsize(), threads);
  result.Finish();
}

void IndexSelect(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* out) {
  const TensorRef in(self);
  const int32_t threads = ThreadsOf(call);
  const Around around(in, dim);
  const IndexList rows = Indices(index, around.size);
  const DenseInput dense(self, in.dtype(), threads);
  DenseOutput result(out, in.dtype(), threads);
  CopyRows(dense.data<void>(), around.outer, around.size, around.inner, rows, result.data<void>(),
           in.itemsize(), threads);
  result.Finish();
}

void Index(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensor* out) {
  const TensorRef in(self);
  const int32_t threads = ThreadsOf(call);
  const AdvancedIndex at = Resolve(in, indices);
  const DenseInput dense(self, in.dtype(), threads);
  DenseOutput result(out, in.dtype(), threads);
  CopyRows(dense.data<void>(), at.outer, at.extent, at.inner, PlainRows{at.rows}, result.data<void>(),
           in.itemsize(), threads);
  result.Finish();
}

namespace {

// A line of gather: to[i] = from[i * along + index[i * stride] * step]. False where an
// index is not in [0, size); nothing is read for it.
template <class T, class I>
bool GatherLine(T* to, const T* from, int64_t along, int64_t step, const I* index, int64_t stride, int64_t n,
                int64_t size) {
  const auto outside = [size](I i) { return static_cast<uint64_t>(i) >= static_cast<uint64_t>(size); };
  if (along == 0 && step == 1 && stride == 1) {
    for (int64_t i = 0; i < n; ++i) {
      if (outside(index[i])) return false;
      to[i] = from[index[i]];
    }
    return true;
  }
  for (int64_t i = 0; i < n; ++i) {
    const I place = index[i * stride];
    if (outside(place)) return false;
    to[i] = from[i * along + place * step];
  }
  return true;
}

}  // namespace

void Gather(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, int32_t,
            MicaTensor* out) {
  const TensorRef in(self), at(index);
  if (in.ndim() == 0 || at.ndim() != in.ndim() || in.ndim() > 16) throw plugin::NotImplemented();
  if (at.dtype() != MICA_I64 && at.dtype() != MICA_I32) throw plugin::NotImplemented();
  if (dim < 0) dim += in.ndim();
  const int32_t threads = ThreadsOf(call), last = in.ndim() - 1;
  DenseOutput result(out, in.dtype(), threads);
  const int64_t length = at.size(last), step = in.stride(static_cast<int>(dim));
  const int64_t along = dim == last ? 0 : in.stride(last), size = in.size(static_cast<int>(dim));
  const int64_t lines = at.numel() / std::max<int64_t>(length, 1);
  std::atomic<bool> valid{true};
  VisitSize(in.itemsize(), [&](auto unit) {
    using T = decltype(unit);
    const auto line = [&](int64_t number) {
      const T* from = in.data<T>();
      int64_t first = 0;
      for (int64_t d = last - 1, rest = number; d >= 0; --d) {
        const int64_t coordinate = rest % at.size(static_cast<int>(d));
        if (d != dim) from += coordinate * in.stride(static_cast<int>(d));
        first += coordinate * at.stride(static_cast<int>(d));
        rest /= at.size(static_cast<int>(d));
      }
      T* to = result.data<T>() + number * length;
      return at.dtype() == MICA_I64 ? GatherLine(to, from, along, step, at.data<int64_t>() + first,
                                                 at.stride(last), length, size)
                                    : GatherLine(to, from, along, step, at.data<int32_t>() + first,
                                                 at.stride(last), length, size);
    };
    ParallelSteps(lines, std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(length, 1)), 1, threads,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t number = begin; number < end; ++number)
                      if (!line(number)) valid.store(false, std::memory_order_relaxed);
                  });
  });
  // The portable kernel names the index.
  if (!valid) throw plugin::NotImplemented();
  result.Finish();
}

}  // namespace mica::cpu
