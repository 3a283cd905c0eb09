// Four vectors of lanes at a time stay in registers while a window's elements go by, then
// single vectors, then single lanes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/pooling/window_loops.cc"
#include "hwy/foreach_target.h"
//
#include <hwy/highway.h>

#include <type_traits>

#include "plugins/cpu/pooling/window_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls f(element, place, column of the window) for the elements of a window.
template <class P, class F>
HWY_INLINE void ForEachTap(P* from, const Taps& t, F f) {
  for (int64_t z = 0; z < t.count[0]; ++z)
    for (int64_t y = 0; y < t.count[1]; ++y) {
      P* at = from + z * t.distance[0] + y * t.distance[1];
      int64_t place = t.first + z * t.step[0] + y * t.step[1];
      for (int64_t x = 0; x < t.count[2]; ++x, at += t.distance[2], place += t.step[2]) f(at, place, x);
    }
}

// Calls unit(d, vectors, lane) for all lanes.
template <class T, class F>
HWY_INLINE void ForEachUnit(int64_t lanes, F unit) {
  const hn::ScalableTag<T> d;
  const auto whole = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + 4 * whole <= lanes; c += 4 * whole) unit(d, std::integral_constant<int, 4>(), c);
  for (; c + whole <= lanes; c += whole) unit(d, std::integral_constant<int, 1>(), c);
  for (; c < lanes; ++c) unit(hn::CappedTag<T, 1>(), std::integral_constant<int, 1>(), c);
}

// Lanes kStep elements apart. Of pairs one half is taken, which lies inside of the window's row
// either way: before its first column there may be nothing, nor after its last one.
template <int kStep, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadLanes(D d, const T* at, int64_t column) {
  if constexpr (kStep < 2 || hn::MaxLanes(D()) == 1) {
    return hn::LoadU(d, at);
  } else {
    hn::Vec<D> even, odd;
    hn::LoadInterleaved2(d, column == 0 ? at : at - 1, even, odd);
    return column == 0 ? even : odd;
  }
}

template <int kStep, int kVectors, class D, class T = hn::TFromD<D>>
HWY_INLINE void LargestUnit(D d, const T* from, const Taps& taps, T* out, int64_t* places) {
  const hn::RebindToSigned<D> di;
  using I = hn::TFromD<decltype(di)>;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kApart = kStep == 2 ? 2 : 1;
  hn::Vec<D> most[kVectors];
  hn::Vec<decltype(di)> best[kVectors];
  for (size_t k = 0; k < kVectors; ++k) {
    most[k] = LoadLanes<kStep>(d, from + k * lanes * kApart, 0);
    best[k] = hn::Set(di, static_cast<I>(taps.first));
  }
  ForEachTap(from, taps, [&](const T* at, int64_t place, int64_t column) HWY_ATTR {
    const auto here = hn::Set(di, static_cast<I>(place));
    for (size_t k = 0; k < kVectors; ++k) {
      const auto value = LoadLanes<kStep>(d, at + k * lanes * kApart, column);
      // Nothing is larger than a NaN: it stays until the next one.
      const auto wins = hn::Or(hn::Gt(value, most[k]), hn::IsNaN(value));
      most[k] = hn::IfThenElse(wins, value, most[k]);
      best[k] = hn::IfThenElse(hn::RebindMask(di, wins), here, best[k]);
    }
  });
  HWY_ALIGN I buffer[HWY_MAX_BYTES / sizeof(I)];
  for (size_t k = 0; k < kVectors; ++k) {
    hn::StoreU(most[k], d, out + k * lanes);
    hn::Store(best[k], di, buffer);
    for (size_t i = 0; i < lanes; ++i)
      places[k * lanes + i] = buffer[i] + static_cast<int64_t>(kStep * (k * lanes + i));
  }
}

template <class T, int kStep>
void Largest(const T* from, const Taps& taps, int64_t lanes, T* out, int64_t* places) {
  ForEachUnit<T>(lanes, [&](auto d, auto vectors, int64_t c) HWY_ATTR {
    Taps own = taps;
    own.first += kStep * c;
    LargestUnit<kStep, decltype(vectors)::value>(d, from + c * (kStep == 2 ? 2 : 1), own, out + c,
                                                 places + c);
  });
}

template <class T, int kStep>
void Mean(const T* from, const Taps& taps, int64_t lanes, T divisor, T* out) {
  ForEachUnit<T>(lanes, [&](auto d, auto vectors, int64_t c) HWY_ATTR {
    constexpr size_t kVectors = decltype(vectors)::value, kApart = kStep == 2 ? 2 : 1;
    const size_t n = hn::Lanes(d);
    hn::Vec<decltype(d)> sum[kVectors];
    for (size_t k = 0; k < kVectors; ++k) sum[k] = hn::Zero(d);
    ForEachTap(from + c * static_cast<int64_t>(kApart), taps,
               [&](const T* at, int64_t, int64_t column) HWY_ATTR {
                 for (size_t k = 0; k < kVectors; ++k)
                   sum[k] = hn::Add(sum[k], LoadLanes<kStep>(d, at + k * n * kApart, column));
               });
    for (size_t k = 0; k < kVectors; ++k)
      hn::StoreU(hn::Div(sum[k], hn::Set(d, divisor)), d, out + c + k * n);
  });
}

template <class T>
void Spread(T* to, const Taps& taps, int64_t channels, T divisor, const T* grad) {
  ForEachUnit<T>(channels, [&](auto d, auto vectors, int64_t c) HWY_ATTR {
    constexpr size_t kVectors = decltype(vectors)::value;
    const size_t n = hn::Lanes(d);
    hn::Vec<decltype(d)> share[kVectors];
    for (size_t k = 0; k < kVectors; ++k)
      share[k] = hn::Div(hn::LoadU(d, grad + c + k * n), hn::Set(d, divisor));
    ForEachTap(to + c, taps, [&](T* at, int64_t, int64_t) HWY_ATTR {
      for (size_t k = 0; k < kVectors; ++k)
        hn::StoreU(hn::Add(hn::LoadU(d, at + k * n), share[k]), d, at + k * n);
    });
  });
}

template <class T>
const WindowLoops<T>* Table() {
  static constexpr WindowLoops<T> kLoops = {
      {Largest<T, 0>, Largest<T, 1>, Largest<T, 2>}, {Mean<T, 0>, Mean<T, 1>, Mean<T, 2>}, Spread<T>};
  return &kLoops;
}
const WindowLoops<float>* FloatTable() { return Table<float>(); }
const WindowLoops<double>* DoubleTable() { return Table<double>(); }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FloatTable);
HWY_EXPORT(DoubleTable);
template <>
const WindowLoops<float>& WindowLoopsOf<float>() {
  return *HWY_DYNAMIC_DISPATCH(FloatTable)();
}
template <>
const WindowLoops<double>& WindowLoopsOf<double>() {
  return *HWY_DYNAMIC_DISPATCH(DoubleTable)();
}
}  // namespace mica::cpu
#endif
