// Windows by vectors: a lane is a channel where channels lie side by side (channels.h), or a
// window of a row of windows that are 1 or 2 columns apart, as almost all are.
#ifndef MICA_PLUGINS_CPU_POOLING_WINDOW_LOOPS_H_
#define MICA_PLUGINS_CPU_POOLING_WINDOW_LOOPS_H_

#include <cstdint>

namespace mica::cpu {

// The elements of the first lane's window, `count` of them in each dimension, at least one.
// Distances count elements of memory; `first` is an element's number in its plane, which fits
// int32, and `step` leads to those of its neighbours.
struct Taps {
  int64_t count[3], distance[3];
  int64_t first, step[3];
  int64_t all() const { return count[0] * count[1] * count[2]; }
};

template <class T>
struct WindowLoops {
  // The largest element of each lane and its number; NaN wins.
  using Largest = void (*)(const T* from, const Taps& taps, int64_t lanes, T* out, int64_t* places);
  // The sum of each lane over `divisor`.
  using Mean = void (*)(const T* from, const Taps& taps, int64_t lanes, T divisor, T* out);
  // By the columns between two windows; 0: lanes are channels.
  Largest largest[3];
  Mean mean[3];
  // Adds grad / divisor to every element of a window of channels.
  void (*spread)(T* to, const Taps& taps, int64_t channels, T divisor, const T* grad);
};

// The best instruction set's; T is float or double.
template <class T>
const WindowLoops<T>& WindowLoopsOf();

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_POOLING_WINDOW_LOOPS_H_
