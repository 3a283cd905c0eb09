// Slices: what index_select, embedding, index_add, index_copy and advanced indexing move or
// add. Two tensors agree in all but the indexed dimensions; row r of each is the slice at one
// place along those, and the elements of a slice lie wherever strides put them, so that
// neither tensor is made dense first.
//
// Rows are walked in order within a part of the slices. Where elements of a slice do not lie
// side by side, sixteen go together: a cache line of one tensor, and columns of the other
// that stay in cache from row to row.
#ifndef MICA_PLUGINS_CPU_INDEXING_SLICES_H_
#define MICA_PLUGINS_CPU_INDEXING_SLICES_H_

#include <algorithm>
#include <cstring>
#include <vector>

#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/indexing/adding.h"
#include "plugins/cpu/indexing/indices.h"

namespace mica::cpu {

// Where rows begin: row r is (index ? index[r] : r) * step elements from the first element.
struct Rows {
  const int64_t* index;
  int64_t step;
  int64_t operator()(int64_t r) const { return (index ? index[r] : r) * step; }
};

// Rows along dimensions [first, past) of sizes and strides, in row-major order: one step
// where the dimensions lie so, else a list.
class RowsAlong {
 public:
  RowsAlong(const int64_t* sizes, const int64_t* strides, int32_t first, int32_t past);
  RowsAlong(const plugin::TensorRef& t, int32_t first, int32_t past)
      : RowsAlong(t.sizes(), t.strides(), first, past) {}
  Rows rows() const { return {offsets_.empty() ? nullptr : offsets_.data(), step_}; }

 private:
  int64_t step_ = 1;
  std::vector<int64_t> offsets_;
};

// The dimensions of a slice in both tensors, collapsed; strides count elements.
struct Slices {
  int32_t ndim = 0;
  int64_t sizes[kMaxDims], to[kMaxDims], from[kMaxDims];

  void Add(int64_t size, int64_t to_stride, int64_t from_stride);
  // Dimensions [first, past) of two tensors that have them alike, `shift` further on in `from`.
  void AddAll(const int64_t* all, const int64_t* to_strides, const int64_t* from_strides, int32_t first,
              int32_t past, int32_t shift);
  // Sorts by the strides of `to` and joins what lies alike; the last dimension is the row's line.
  void Finish();
  bool dense() const { return to[ndim - 1] == 1 && from[ndim - 1] == 1; }
};

// How elements of slices are written: moved as they are, ...
struct Move {
  static constexpr bool kCopies = true;
  template <class T>
  void operator()(T& to, const T& from) const {
    to = from;
  }
};
// ... or added, times a factor.
template <class T>
struct AddTo {
  static constexpr bool kCopies = false;
  using Lane = LaneOfElement<T>;
  Lane factor;
  void operator()(T& to, const T& from) const {
    if (factor == Lane(1))
      to = Plus(to, from);
    else
      to = FromLane<T>(ToLane(to) + factor * ToLane(from));
  }
};

namespace internal {

template <class T, class Write>
void WriteLine(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t n, Write write) {
  if (to_stride != 1 || from_stride != 1) {
    for (int64_t i = 0; i < n; ++i) write(to[i * to_stride], from[i * from_stride]);
  } else if constexpr (Write::kCopies) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) write(to[i], from[i]);
  }
}

}  // namespace internal

// Writes row r of `from` to row r of `to` for each r < count, in order where rows of `to` may
// repeat (`repeats`), so that results do not depend on the number of threads. Rows whose
// number in `to_rows` is `skip` stay as they are.
template <class T, class Write>
void WriteSlices(const Slices& s, T* to, Rows to_rows, const T* from, Rows from_rows, int64_t count,
                 bool repeats, int64_t skip, int32_t threads, Write write) {
  const int32_t last = s.ndim - 1;
  const int64_t width = s.sizes[last], to_stride = s.to[last], from_stride = s.from[last];
  int64_t outer = 1;
  for (int32_t d = 0; d < last; ++d) outer *= s.sizes[d];
  if (outer * width * count == 0) return;
  const bool rows_inside = std::min(to_stride, from_stride) > std::max(to_rows.step, from_rows.step);
  int64_t block = s.dense() ? width : rows_inside ? 1 : 16;
  if (s.dense() && repeats && outer < threads)
    block = std::max<int64_t>(64, (width / threads + 15) / 16 * 16);
  block = std::min(block, width);
  const int64_t blocks = (width + block - 1) / block;
  const bool by_rows = !repeats && outer * blocks < threads;
  // Block `place % blocks` of the lines at outer place `place / blocks`, of rows [begin, end).
  const auto part = [&](int64_t place, int64_t begin, int64_t end) {
    const int64_t column = place % blocks * block, n = std::min(block, width - column);
    T* t = to + column * to_stride;
    const T* f = from + column * from_stride;
    int64_t rest = place / blocks;
    for (int32_t d = last - 1; d >= 0; --d) {
      t += rest % s.sizes[d] * s.to[d];
      f += rest % s.sizes[d] * s.from[d];
      rest /= s.sizes[d];
    }
    if (n == 1 && skip < 0 && to_rows.index == nullptr && from_rows.index != nullptr) {
      for (int64_t r = begin; r < end; ++r)
        write(t[r * to_rows.step], f[from_rows.index[r] * from_rows.step]);
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      if (skip >= 0 && to_rows.index[r] == skip) continue;
      if (n == 1)
        write(t[to_rows(r)], f[from_rows(r)]);
      else
        internal::WriteLine(t + to_rows(r), to_stride, f + from_rows(r), from_stride, n, write);
    }
  };
  if (by_rows) {
    const int64_t grain = std::max<int64_t>(1, kIndexGrain / (outer * width));
    return ParallelSteps(count, grain, 1, threads, [&](int64_t begin, int64_t end) {
      for (int64_t place = 0; place < outer * blocks; ++place) part(place, begin, end);
    });
  }
  const int64_t grain = std::max<int64_t>(1, kIndexGrain / (block * count));
  const int64_t piece = std::max<int64_t>(1, kLineElements / block);
  ParallelSteps(outer * blocks, grain, 1, threads, [&](int64_t begin, int64_t end) {
    for (int64_t place = begin; place < end; ++place)
      for (int64_t row = 0; row < count && (row == 0 || !StopAsked()); row += piece)
        part(place, row, std::min(count, row + piece));
  });
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_INDEXING_SLICES_H_
