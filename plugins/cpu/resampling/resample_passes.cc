// One dimension of a resampling, compiled for each instruction set: plain loops that
// the compiler vectorizes, over adjacent elements where a place has several (`inner`),
// else over the places of a row.
#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/resampling/resample_passes.cc"
#include <hwy/foreach_target.h>
// After foreach_target, which includes this file once for each instruction set.
#include <hwy/highway.h>

#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/resampling/resampling.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// Calls f(line, first place, last place) for parts of the places of all lines of a pass, as far as nobody
// stops them.
template <class F>
HWY_INLINE void ForPlaces(const ResamplePass& p, F f) {
  constexpr int64_t kWork = int64_t{1} << 20;  // some milliseconds
  const int64_t each = std::max<int64_t>(1, p.taps * p.inner);
  const int64_t part = std::max<int64_t>(1, kWork / each);
  Patience patience(kWork);
  for (int64_t a = 0; a < p.outer; ++a)
    for (int64_t o = 0; o < p.out; o += part) {
      const int64_t end = std::min(p.out, o + part);
      f(a, o, end);
      if (patience.Ends((end - o) * each)) return;
    }
}

// `count` of the taps' rows added up; a compile-time count keeps the sum in registers.
template <class T, int kTaps>
void SumOfRows(const T* const* rows, const T* weights, T* to, int64_t n) {
  const T* const x0 = rows[0];
  const T* const x1 = rows[kTaps > 1 ? 1 : 0];
  const T* const x2 = rows[kTaps > 2 ? 2 : 0];
  const T* const x3 = rows[kTaps > 3 ? 3 : 0];
  T w[4] = {};
  for (int k = 0; k < kTaps; ++k) w[k] = weights[k];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T sum = w[0] * x0[i];
    if constexpr (kTaps > 1) sum += w[1] * x1[i];
    if constexpr (kTaps > 2) sum += w[2] * x2[i];
    if constexpr (kTaps > 3) sum += w[3] * x3[i];
    to[i] = sum;
  }
}

template <class T>
void AddRow(const T* from, T weight, T* to, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] += weight * from[i];
}

template <class T>
void Blocks(const ResamplePass& p, const T* from, T* to, int64_t begin, int64_t end) {
  const T* weights = static_cast<const T*>(p.weights);
  to += begin * p.inner;
  for (int64_t o = begin; o < end; ++o, to += p.inner) {
    const int64_t* at = p.places + o * p.taps;
    const T* w = weights + o * p.taps;
    int64_t count = 0;
    while (count < p.taps && at[count] >= 0) ++count;
    const T* rows[4] = {};
    for (int64_t k = 0; k < std::min<int64_t>(count, 4); ++k) rows[k] = from + at[k] * p.inner;
    if (count == 0)
      std::memset(to, 0, static_cast<size_t>(p.inner) * sizeof(T));
    else
      (count == 1   ? SumOfRows<T, 1>
       : count == 2 ? SumOfRows<T, 2>
       : count == 3 ? SumOfRows<T, 3>
                    : SumOfRows<T, 4>)(rows, w, to, p.inner);
    for (int64_t k = 4; k < count; ++k) AddRow(from + at[k] * p.inner, w[k], to, p.inner);
  }
}

template <class T>
void Row(const ResamplePass& p, const T* from, T* to, int64_t begin, int64_t end) {
  const T* w = static_cast<const T*>(p.weights) + begin * p.taps;
  const int64_t* at = p.places + begin * p.taps;
  if (p.whole && p.taps == 2) {
    for (int64_t o = begin; o < end; ++o, at += 2, w += 2) to[o] = w[0] * from[at[0]] + w[1] * from[at[1]];
    return;
  }
  if (p.whole && p.taps == 4) {
    for (int64_t o = begin; o < end; ++o, at += 4, w += 4)
      to[o] = w[0] * from[at[0]] + w[1] * from[at[1]] + w[2] * from[at[2]] + w[3] * from[at[3]];
    return;
  }
  for (int64_t o = begin; o < end; ++o, at += p.taps, w += p.taps) {
    T sum = 0;
    if (p.counts) {
      const T* x = from + at[0];
      for (int64_t k = 0; k < p.counts[o]; ++k) sum += w[k] * x[k];
    } else {
      for (int64_t k = 0; k < p.taps && at[k] >= 0; ++k) sum += w[k] * from[at[k]];
    }
    to[o] = sum;
  }
}

template <class T>
void Pass(const ResamplePass& p, const void* from, void* to) {
  ForPlaces(p, [&](int64_t a, int64_t begin, int64_t end) HWY_ATTR {
    const T* x = static_cast<const T*>(from) + a * p.in * p.inner;
    T* y = static_cast<T*>(to) + a * p.out * p.inner;
    p.inner > 1 ? Blocks(p, x, y, begin, end) : Row(p, x, y, begin, end);
  });
}

template <class T>
void Transposed(const ResamplePass& p, const void* from, void* to) {
  const T* weights = static_cast<const T*>(p.weights);
  std::memset(to, 0, static_cast<size_t>(p.outer * p.in * p.inner) * sizeof(T));
  ForPlaces(p, [&](int64_t a, int64_t begin, int64_t end) HWY_ATTR {
    const T* y = static_cast<const T*>(from) + a * p.out * p.inner;
    T* x = static_cast<T*>(to) + a * p.in * p.inner;
    for (int64_t o = begin; o < end; ++o)
      for (int64_t k = 0; k < p.taps; ++k) {
        const int64_t at = p.places[o * p.taps + k];
        if (at < 0) break;
        const T w = weights ? weights[o * p.taps + k] : T(1);
        if (p.inner == 1)
          x[at] += w * y[o];
        else
          AddRow(y + o * p.inner, w, x + at * p.inner, p.inner);
      }
  });
}

template <class T>
void MoveRow(const ResamplePass& p, const void* from, void* to, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (int64_t o = begin; o < end; ++o) y[o] = x[p.places[o]];
}

void Moving(const ResamplePass& p, int64_t element, const void* from, void* to) {
  const int64_t block = p.inner * element;
  ForPlaces(p, [&](int64_t a, int64_t begin, int64_t end) HWY_ATTR {
    const char* x = static_cast<const char*>(from) + a * p.in * block;
    char* y = static_cast<char*>(to) + a * p.out * block;
    switch (block) {
      case 1:
        MoveRow<uint8_t>(p, x, y, begin, end);
        break;
      case 2:
        MoveRow<uint16_t>(p, x, y, begin, end);
        break;
      case 4:
        MoveRow<uint32_t>(p, x, y, begin, end);
        break;
      case 8:
        MoveRow<uint64_t>(p, x, y, begin, end);
        break;
      default:
        for (int64_t o = begin; o < end; ++o)
          std::memcpy(y + o * block, x + p.places[o] * block, static_cast<size_t>(block));
    }
  });
}

void PassF32(const ResamplePass& p, const void* from, void* to) { Pass<float>(p, from, to); }
void PassF64(const ResamplePass& p, const void* from, void* to) { Pass<double>(p, from, to); }
void TransposedF32(const ResamplePass& p, const void* from, void* to) { Transposed<float>(p, from, to); }
void TransposedF64(const ResamplePass& p, const void* from, void* to) { Transposed<double>(p, from, to); }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(PassF32);
HWY_EXPORT(PassF64);
HWY_EXPORT(TransposedF32);
HWY_EXPORT(TransposedF64);
HWY_EXPORT(Moving);

void RunResamplePass(const ResamplePass& pass, int32_t element, const void* from, void* to) {
  element == 4 ? HWY_DYNAMIC_DISPATCH(PassF32)(pass, from, to)
               : HWY_DYNAMIC_DISPATCH(PassF64)(pass, from, to);
}
void RunTransposedPass(const ResamplePass& pass, int32_t element, const void* from, void* to) {
  element == 4 ? HWY_DYNAMIC_DISPATCH(TransposedF32)(pass, from, to)
               : HWY_DYNAMIC_DISPATCH(TransposedF64)(pass, from, to);
}
void RunMovingPass(const ResamplePass& pass, int64_t element, const void* from, void* to) {
  HWY_DYNAMIC_DISPATCH(Moving)(pass, element, from, to);
}

}  // namespace mica::cpu
#endif  // HWY_ONCE
