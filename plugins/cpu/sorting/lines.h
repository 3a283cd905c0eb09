// Lines of a tensor along one dimension, and their elements as pairs of key and position.
#ifndef MICA_PLUGINS_CPU_SORTING_LINES_H_
#define MICA_PLUGINS_CPU_SORTING_LINES_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/indexing/indices.h"
#include "plugins/cpu/sorting/keys.h"

namespace mica::cpu {

// Ordered by key, then by position; one number where the key is short.
template <class Key, bool kShortKey = sizeof(Key) <= 4>
class Entry {
 public:
  Entry() = default;
  Entry(Key key, uint32_t position) : pair_(static_cast<uint64_t>(key) << 32 | position) {}
  uint64_t key() const { return pair_ >> 32; }
  uint32_t position() const { return static_cast<uint32_t>(pair_); }
  bool operator<(const Entry& other) const { return pair_ < other.pair_; }

 private:
  uint64_t pair_;
};
template <class Key>
class Entry<Key, false> {
 public:
  Entry() = default;
  Entry(Key key, uint32_t position) : key_(key), position_(position) {}
  uint64_t key() const { return key_; }
  uint32_t position() const { return position_; }
  bool operator<(const Entry& other) const {
    return key_ != other.key_ ? key_ < other.key_ : position_ < other.position_;
  }

 private:
  Key key_;
  uint32_t position_;
};

// Elements of a line, `step` apart.
template <class T>
struct Line {
  T* data;
  int64_t step;
  T& operator[](int64_t i) const { return data[i * step]; }
};

// Where lines along dimension `dim` of a tensor begin and how their elements follow.
struct LinesAlong {
  const plugin::TensorRef t;
  const int32_t dim;
  int64_t step() const { return t.ndim() == 0 ? 0 : t.stride(dim); }
  int64_t Begin(int64_t line) const {
    int64_t offset = 0;
    for (int32_t d = t.ndim() - 1; d >= 0; --d) {
      if (d == dim) continue;
      offset += line % t.size(d) * t.stride(d);
      line /= t.size(d);
    }
    return offset;
  }
  template <class T>
  Line<T> At(int64_t line) const {
    return {t.data<T>() + Begin(line), step()};
  }
};

inline int64_t LengthAlong(const plugin::TensorRef& t, int64_t dim) {
  return t.ndim() == 0 ? 1 : t.size(static_cast<int>(dim));
}

// What leaves f of ForEachLines after a Ctrl-C.
struct Stopped {};

// Calls f(begin, end) for pieces of [0, n), one after another, and asks for a Ctrl-C between them.
template <class F>
void InPieces(int64_t n, F f) {
  constexpr int64_t kPiece = 1 << 20;  // a few milliseconds of memory's time
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    if (begin > 0 && StopAsked()) throw Stopped();
    f(begin, std::min(n, begin + kPiece));
  }
}

// Calls f(rule, first line, last line) for parts of the lines along `dim`, in parallel.
template <class F>
void ForEachLines(const MicaCall* call, const plugin::TensorRef& in, int64_t dim, F f) {
  const int64_t length = LengthAlong(in, dim);
  if (length >= UINT32_MAX) throw plugin::NotImplemented();
  const int64_t lines = in.numel() / std::max<int64_t>(length, 1);
  std::atomic<bool> no_memory{false};
  VisitOrdered(in.dtype(), [&](auto rule) {
    ParallelSteps(lines, std::max<int64_t>(1, kIndexGrain / 8 / std::max<int64_t>(length, 1)), 1,
                  ThreadsOf(call), [&](int64_t begin, int64_t end) {
                    try {
                      f(rule, begin, end);
                    } catch (const std::bad_alloc&) {
                      no_memory = true;
                    } catch (const Stopped&) {
                      return;
                    }
                  });
  });
  if (no_memory) throw std::bad_alloc();
}

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_SORTING_LINES_H_
