// A list that needs no memory of its own while it has at most N elements: what one call of an operator
// works with. Do not keep it in other containers; it neither copies nor moves.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mica {
namespace layer {

template <typename T, size_t N>
class Few {
 public:
  Few() = default;
  explicit Few(size_t size) : size_(size) {
    if (size > N) many_.resize(size);
  }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;

  size_t size() const { return size_; }
  T* data() { return size_ > N ? many_.data() : few_; }
  const T* data() const { return size_ > N ? many_.data() : few_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  void push_back(T value) {
    if (size_ < N) {
      few_[size_++] = std::move(value);
      return;
    }
    if (size_++ == N)
      for (T& t : few_) many_.push_back(std::move(t));
    many_.push_back(std::move(value));
  }

 private:
  size_t size_ = 0;
  T few_[N]{};
  std::vector<T> many_;
};

}  // namespace layer
}  // namespace mica
