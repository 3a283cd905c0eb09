// Borrowed lists: (pointer, length), as the ABI passes them.
//
// Use as parameters. Do not keep one: it does not own its elements. A span made
// from a braced list lives to the end of the full expression.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace mica {

using Dims = absl::InlinedVector<int64_t, 6>;  // sizes or strides that we own

template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(const T* data, int64_t size) : data_(data), size_(size) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // meant for parameters, as said above
  constexpr Span(std::initializer_list<T> list)
      : data_(list.begin()), size_(static_cast<int64_t>(list.size())) {}
#pragma GCC diagnostic pop
  template <typename A>
  Span(const std::vector<T, A>& v) : data_(v.data()), size_(static_cast<int64_t>(v.size())) {}
  template <size_t N>
  Span(const absl::InlinedVector<T, N>& v) : data_(v.data()), size_(static_cast<int64_t>(v.size())) {}
  constexpr const T* data() const { return data_; }
  constexpr int64_t size() const { return size_; }
  constexpr bool empty() const { return size_ <= 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + (size_ > 0 ? size_ : 0); }
  constexpr const T& operator[](int64_t i) const { return data_[i]; }
  Span subspan(int64_t from, int64_t count) const { return Span(data_ + from, count); }
  friend bool operator==(Span a, Span b) {
    if (a.size_ != b.size_) return false;
    for (int64_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  int64_t size_ = 0;
};

using IntSpan = Span<int64_t>;
using FloatSpan = Span<double>;
using BoolSpan = Span<uint8_t>;
inline Dims ToDims(IntSpan s) { return Dims(s.begin(), s.end()); }

}  // namespace mica
