R"cl(
// How planes.cl gathers, for each place of a dimension, from the windows that hold it: the gradients of averages and
// of maxima, and the transpose of im2col. Window o begins at o * stride<d> - padding<d> and has kernel<d> places, dilation<d> apart.
//
// The host defines one of AVERAGE (of all places of a window, those in the padding too, if PADDED; divided by
// DIVISOR instead, if OVERRIDDEN), ADAPTIVE (the windows divide a dimension into nearly equal parts) and COLUMNS
// (each place of a window has an element of its own, tap_step<d> from the one before). MAXIMA, with COLUMNS: the
// window's element counts where the index beside it is PLACE, the place in a plane of the image.
#define MAP(d)                                                                                                  \
  const int in##d, const int out##d, const int kernel##d, const int stride##d, const int padding##d,            \
      const int dilation##d, const INDEX step##d, const INDEX tap_step##d,

#ifdef ADAPTIVE
#define FIRST(d) ((int)((long)k##d * out##d / in##d))
#define PAST(d) ((int)(((long)(k##d + 1) * out##d + in##d - 1) / in##d))
static int places_of(long o, long in, long out) {
  return (int)(((o + 1) * in + out - 1) / out - o * in / out);
}
#define WEIGHT(d) ((L)(1 / (LANE)places_of(o##d, in##d, out##d)))
#else
#define REACH(d) ((int)k##d + padding##d - (kernel##d - 1) * dilation##d)
#define FIRST(d) (REACH(d) > 0 ? (REACH(d) + stride##d - 1) / stride##d : 0)
#define PAST(d) min(((int)k##d + padding##d) / stride##d + 1, out##d)
static int places_of(int o, int in, int kernel_size, int stride, int padding) {
  const int begin = o * stride - padding, end = min(begin + kernel_size, in + padding);
#ifdef PADDED
  return end - begin;
#else
  return min(end, in) - max(begin, 0);
#endif
}
#ifdef OVERRIDDEN
#define WEIGHT(d) ((L)(d == 0 ? 1 / (LANE)DIVISOR : (LANE)1))
#else
#define WEIGHT(d) ((L)(1 / (LANE)places_of(o##d, in##d, kernel##d, stride##d, padding##d)))
#endif
#endif

#ifdef MAXIMA
#define OPERANDS const global long *indices,
#define ELEMENT(p, at) (indices[(ulong)(planes[p] - data) + at] == (long)(PLACE) ? LOAD(planes[p] + at) : ZERO)
#endif

#ifdef COLUMNS
#define SUM(d, next, above, WITHIN)                                                                         \
  NO_SUM(d)                                                                                                 \
  for (int o##d = FIRST(d); o##d < PAST(d); ++o##d) {                                                       \
    const int away##d = (int)k##d + padding##d - o##d * stride##d;                                          \
    if (away##d % dilation##d != 0) continue;                                                               \
    const INDEX from##d = above + (INDEX)o##d * step##d + (INDEX)(away##d / dilation##d) * tap_step##d;     \
    WITHIN                                                                                                  \
    ADD_TO(d, next, ONE)                                                                                    \
  }
#else
#define SUM(d, next, above, WITHIN)                          \
  NO_SUM(d)                                                  \
  for (int o##d = FIRST(d); o##d < PAST(d); ++o##d) {        \
    const INDEX from##d = above + (INDEX)o##d * step##d;     \
    WITHIN                                                   \
    ADD_TO(d, next, WEIGHT(d))                               \
  }
#endif
)cl"
