R"cl(
// Interpolation: dimension d of planes becomes another by its table, and back by the transpose.
//
// Row o of table d has TAPS_d places of the dimension of size in<d>, or -1 for none, and a weight for each.
// A plane is [size of dimension 0, ..., inner] without gaps. A work-item computes W neighbours of P planes at a
// place, so that each entry of a table is read once for all of them: SPLIT says which place, and SUMS nests the
// sums of the dimensions, the last one innermost. Those of the transpose go over the rows that read a place, in
// order: nothing is added up by two work-items, and the result is the same in every run.
//
// The host defines E (the element type), LOAD(p), STORE(v, p), WEIGHT(p) (in every lane), TABLES (the parameters
// TABLE(d)), TAPS_d, SPLIT, SUMS, P, and TRANSPOSED for the transpose.
#define TABLE(d)                                                                                           \
  const global long *places##d, const global E_WEIGHT *weights##d, const INDEX in##d, const INDEX out##d, \
      const INDEX taps##d, const INDEX step##d, READERS(d)

#ifdef TRANSPOSED
// Of place q, 2 numbers: how many rows there are from the first row on that reads it, and the row behind the last.
#define READERS(d) global uint* readers##d,
// SUM_<next> for each of the rows of table d that read place k<d>, weighted; `above` is where the dimensions before
// d stand.
#define SUM(d, next, above, WITHIN)                                                            \
  L sum##d[P];                                                                                \
  UNROLL for (uint p = 0; p < P; ++p) sum##d[p] = ZERO;                                       \
  for (INDEX o##d = out##d - readers##d[2 * k##d]; o##d < readers##d[2 * k##d + 1]; ++o##d) { \
    bool reads = false;                                                                       \
    L weight##d = ZERO;                                                                       \
    for (INDEX tap = o##d * TAPS_##d; tap < (o##d + 1) * TAPS_##d; ++tap)                     \
      if (places##d[tap] == (long)k##d) reads = true, weight##d += WEIGHT(weights##d + tap);  \
    if (!reads) continue;                                                                     \
    const INDEX from##d = above + o##d * step##d;                                              \
    WITHIN                                                                                    \
    UNROLL for (uint p = 0; p < P; ++p) sum##d[p] += weight##d * sum##next[p];                \
  }
#else
#define READERS(d)
// The same for the taps of row k<d>.
#define SUM(d, next, above, WITHIN)                                             \
  L sum##d[P];                                                                 \
  UNROLL for (uint p = 0; p < P; ++p) sum##d[p] = ZERO;                        \
  for (INDEX tap##d = 0; tap##d < TAPS_##d; ++tap##d) {                        \
    const long at##d = places##d[k##d * TAPS_##d + tap##d];                    \
    if ((ulong)at##d >= in##d) {                                               \
      outside |= IS_OUTSIDE(at##d);                                            \
      continue;                                                                \
    }                                                                          \
    const L weight##d = WEIGHT(weights##d + k##d * TAPS_##d + tap##d);         \
    const INDEX from##d = above + (INDEX)at##d * step##d;                       \
    WITHIN                                                                     \
    UNROLL for (uint p = 0; p < P; ++p) sum##d[p] += weight##d * sum##next[p]; \
  }
#endif
// The elements that all of it is made of, as the innermost sum.
#define ELEMENTS(d, at) \
  L sum##d[P];            \
  UNROLL for (uint p = 0; p < P; ++p) sum##d[p] = LOAD(planes[p] + at);

kernel void resample(const global E* data, global E* out, TABLES const INDEX blocks, const INDEX count,
                     const ulong data_plane, const ulong out_plane, const ulong num_planes, global int* raised) {
  const INDEX i = get_global_id(0);
  if (i >= count) return;
  SPLIT
  bool outside = false;
  for (ulong first = (ulong)get_group_id(1) * P; first < num_planes; first += (ulong)get_num_groups(1) * P) {
    const ulong left = num_planes - first;
    const global E* planes[P];  // behind the last one, the first again
    UNROLL for (uint p = 0; p < P; ++p) planes[p] = data + (first + (p < left ? p : 0)) * data_plane;
    SUMS
    UNROLL for (uint p = 0; p < P; ++p)
      if (p < left) STORE(sum0[p], out + (first + p) * out_plane + i * W);
  }
  if (outside) *raised = 1;
}
)cl"
