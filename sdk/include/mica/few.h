// A list that needs no memory of its own while it has at most N elements: sizes, strides, the arguments of
// a call.
//
// The members that it has mean what they mean of std::vector. Elements that it does not have are not made.
// Use std::vector for what mostly is longer. Pointers into it hold until it grows or moves; what was moved
// from is empty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>

namespace mica {
namespace plugin {

template <typename T, size_t N>
class Few {
  static_assert(alignof(T) <= alignof(std::max_align_t), "memory for more is of the usual alignment");
  template <typename I>
  using IsIterator = typename std::iterator_traits<I>::iterator_category;

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  Few() = default;
  explicit Few(size_t size) { resize(size); }
  Few(size_t size, const T& value) { resize(size, value); }
  template <typename I, typename = IsIterator<I>>
  Few(I first, I last) {
    Append(first, last);
  }
  Few(std::initializer_list<T> list) : Few(list.begin(), list.end()) {}
  Few(const Few& o) : Few(o.begin(), o.end()) {}
  Few(Few&& o) noexcept { Take(o); }
  Few& operator=(const Few& o) {
    if (this != &o) *this = Few(o);
    return *this;
  }
  Few& operator=(Few&& o) noexcept {
    if (this == &o) return *this;
    Drop();
    Take(o);
    return *this;
  }
  ~Few() { Drop(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T& back() { return data_[size_ - 1]; }

  void reserve(size_t room) {
    if (room > room_) Grow(room);
  }
  void push_back(T value) {
    if (size_ == room_) Grow(size_ + 1);
    new (data_ + size_) T(std::move(value));
    ++size_;
  }
  void resize(size_t size) {
    Shrink(size);
    reserve(size);
    for (; size_ < size; ++size_) new (data_ + size_) T();
  }
  void resize(size_t size, T value) {  // a copy: it may be one of the elements
    Shrink(size);
    reserve(size);
    for (; size_ < size; ++size_) new (data_ + size_) T(value);
  }
  void clear() { Shrink(0); }
  // Of another list's elements.
  template <typename I, typename = IsIterator<I>>
  T* insert(const T* at, I first, I last) {
    const auto place = at - data_;
    const auto before = static_cast<std::ptrdiff_t>(size_);
    Append(first, last);
    std::rotate(data_ + place, data_ + before, data_ + size_);
    return data_ + place;
  }
  T* insert(const T* at, T value) { return insert(at, &value, &value + 1); }

  friend bool operator==(const Few& a, const Few& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend bool operator!=(const Few& a, const Few& b) { return !(a == b); }

 private:
  T* Here() { return reinterpret_cast<T*>(here_); }
  template <typename I>
  void Append(I first, I last) {
    reserve(size_ + static_cast<size_t>(std::distance(first, last)));
    for (; first != last; ++first, ++size_) new (data_ + size_) T(*first);
  }
  void Shrink(size_t size) {
    for (; size_ > size; --size_) data_[size_ - 1].~T();
  }
  void Drop() {
    Shrink(0);
    if (data_ != Here()) ::operator delete(data_);
    data_ = Here();
    room_ = N;
  }
  void MoveTo(T* to) {
    for (size_t i = 0; i < size_; ++i) {
      new (to + i) T(std::move(data_[i]));
      data_[i].~T();
    }
  }
  void Grow(size_t least) {
    const size_t room = std::max(least, 2 * room_);
    T* const more = static_cast<T*>(::operator new(room * sizeof(T)));
    MoveTo(more);
    if (data_ != Here()) ::operator delete(data_);
    data_ = more;
    room_ = room;
  }
  // Into an empty list, from one that is empty afterwards.
  void Take(Few& o) {
    if (o.data_ == o.Here()) {
      o.MoveTo(Here());
    } else {
      data_ = o.data_;
      room_ = o.room_;
      o.data_ = o.Here();
      o.room_ = N;
    }
    size_ = std::exchange(o.size_, 0);
  }

  alignas(T) unsigned char here_[N * sizeof(T)];
  T* data_ = Here();
  size_t size_ = 0, room_ = N;
};

}  // namespace plugin
}  // namespace mica
