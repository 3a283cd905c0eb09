// Whether two strided tensors may have a byte in common: exact but for boxes so tangled that
// the search is given up. Slices of one matrix whose rows interleave do not.
//
// For kernels that write one tensor while they read another, and for the host that decides
// whether they may. Not for the question whether a tensor overlaps itself.
//
// A common byte is a solution of i·a + u = distance + j·b + v, where i and j are indices within
// the sizes, a and b strides in bytes, and u and v bytes within an element. Counting j and v from
// behind makes all terms positive; strides are taken from the largest down, and of each only the
// multiples that leave a rest which the smaller ones can reach are looked at: mostly one.
#ifndef MICA_OVERLAP_H_
#define MICA_OVERLAP_H_

#include <algorithm>
#include <cstdint>
#include <functional>

#include <mica/abi.h>

namespace mica {

class SharedByteSearch {
 public:
  SharedByteSearch(const MicaDLTensor& a, const MicaDLTensor& b) {
    Add(a);
    const int64_t before = reach_;
    Add(b);
    target_ = Begin(b) - Begin(a) + reach_ - before;
    std::sort(terms_, terms_ + count_, std::greater<>());
  }

  bool MayShare() { return Reaches(0, target_, reach_); }

 private:
  // Strides in bytes, and the largest multiple of each.
  struct Term {
    int64_t stride, most;
    bool operator>(const Term& other) const { return stride > other.stride; }
  };
  static constexpr int kRoom = 32, kSteps = 256;

  static int64_t Begin(const MicaDLTensor& t) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data)) + static_cast<int64_t>(t.byte_offset);
  }
  // A term of `most` times `stride` elements of `size` bytes.
  void Add(int64_t elements, int64_t size, int64_t most) {
    if (elements == 0 || most == 0) return;
    int64_t stride, term, reach;
    if (__builtin_mul_overflow(elements, size, &stride) || __builtin_mul_overflow(stride, most, &term) ||
        __builtin_add_overflow(reach_, term, &reach)) {
      given_up_ = true;
      return;
    }
    reach_ = reach;
    for (int t = 0; t < count_; ++t) {
      if (terms_[t].stride != stride) continue;
      terms_[t].most += most;
      return;
    }
    given_up_ |= count_ == kRoom || stride < 0;
    if (count_ < kRoom) terms_[count_++] = {stride, most};
  }
  void Add(const MicaDLTensor& t) {
    for (int32_t d = 0; d < t.ndim; ++d) empty_ |= t.shape[d] == 0;
    if (empty_) return;  // its strides may be anything
    const int64_t size = int64_t{t.dtype.bits} * t.dtype.lanes / 8;
    Add(1, 1, size - 1);
    for (int32_t d = 0; d < t.ndim; ++d) Add(t.strides[d], size, t.shape[d] - 1);
  }
  // Whether multiples of the terms from `t` on, which reach `reach` together, make `rest`.
  bool Reaches(int t, int64_t rest, int64_t reach) {
    if (empty_ || (!given_up_ && (rest < 0 || rest > reach))) return false;
    if (given_up_ || rest == 0 || ++steps_ > kSteps) return true;
    if (t == count_) return false;
    const auto [stride, most] = terms_[t];
    const int64_t smaller = reach - stride * most;
    int64_t times = std::min(most, rest / stride);
    for (; times >= 0 && rest - times * stride <= smaller; --times)
      if (Reaches(t + 1, rest - times * stride, smaller)) return true;
    return false;
  }

  Term terms_[kRoom];
  int count_ = 0, steps_ = 0;
  int64_t reach_ = 0, target_ = 0;
  bool empty_ = false, given_up_ = false;
};

inline bool MayShareBytes(const MicaDLTensor& a, const MicaDLTensor& b) {
  return SharedByteSearch(a, b).MayShare();
}

}  // namespace mica

#endif  // MICA_OVERLAP_H_
