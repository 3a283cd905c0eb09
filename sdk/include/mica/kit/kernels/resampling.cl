R"cl(
// How planes.cl maps a dimension by a table, and back by the transpose. Row o of table d has TAPS_d places of the
// dimension of size in<d>, or -1 for none, and a weight for each.
//
// The sums of the transpose go over the rows that read a place, in order: nothing is added up by two work-items, and
// the result is the same in every run. The host defines TAPS_d, WEIGHT(p) (in every lane), IS_OUTSIDE(at) of what is
// no place, and TRANSPOSED for the transpose.
#define MAP(d)                                                                                             \
  const global long *places##d, const global E_WEIGHT *weights##d, const INDEX in##d, const INDEX out##d, \
      const INDEX taps##d, const INDEX step##d, READERS(d)

#ifdef TRANSPOSED
// Of place q, 2 numbers: how many rows there are from the first row on that reads it, and the row behind the last.
#define READERS(d) global uint* readers##d,
#define SUM(d, next, above, WITHIN)                                                           \
  NO_SUM(d)                                                                                   \
  for (INDEX o##d = out##d - readers##d[2 * k##d]; o##d < readers##d[2 * k##d + 1]; ++o##d) { \
    bool reads = false;                                                                       \
    L weight##d = ZERO;                                                                       \
    for (INDEX tap = o##d * TAPS_##d; tap < (o##d + 1) * TAPS_##d; ++tap)                     \
      if (places##d[tap] == (long)k##d) reads = true, weight##d += WEIGHT(weights##d + tap);  \
    if (!reads) continue;                                                                     \
    const INDEX from##d = above + o##d * step##d;                                             \
    WITHIN                                                                                    \
    ADD_TO(d, next, weight##d)                                                                \
  }
#else
#define READERS(d)
#define SUM(d, next, above, WITHIN)                                      \
  NO_SUM(d)                                                              \
  for (INDEX tap##d = 0; tap##d < TAPS_##d; ++tap##d) {                  \
    const long at##d = places##d[k##d * TAPS_##d + tap##d];              \
    if ((ulong)at##d >= in##d) {                                         \
      outside |= IS_OUTSIDE(at##d);                                      \
      continue;                                                          \
    }                                                                    \
    const L weight##d = WEIGHT(weights##d + k##d * TAPS_##d + tap##d);   \
    const INDEX from##d = above + (INDEX)at##d * step##d;                \
    WITHIN                                                               \
    ADD_TO(d, next, weight##d)                                           \
  }
#endif
)cl"
