R"cl(
// Sums of weighted elements of planes [N, C, places] at any places, and the two other maps that a product of three
// has. A point l of an image has TAPS places in a plane, each with a weight:
//
//   GATHER   out[n, c, l] = sum over k of weight k * plane[n, c, place k]
//   SCATTER  plane[n, c, place k] += weight k * side[n, c, l], by atomics
//   WEIGHTS  weight k = sum over c of side[n, c, l] * plane[n, c, place k]
//
// A work-item has the taps of a point in registers while CHANNELS of its planes pass at a time. FIND_TAPS sets, for
// each tap, `is_inside`, `from` (of its place in a plane) and, but for WEIGHTS, `weight`.
typedef struct {
  long n, c, at;  // strides
} Layout;
typedef struct {
  ulong batch, channels, length, places;
  ulong parts, each;    // how many work-items share a point's channels, and how many channels each has
  Layout plane, side, index, weight;  // of the last two, c is the tap
} Samples;

kernel void over_taps(PLANE global E_PLANE* planes, SIDE global E* sides, const Samples s, TAP_PARAMETERS
                      global int* raised) {
  const ulong l = get_global_id(0);
  if (l >= s.length) return;
  for (ulong row = get_group_id(1); row < s.batch * s.parts; row += get_num_groups(1)) {
    const ulong n = row / s.parts, first = row % s.parts * s.each;
    const ulong end = min(first + s.each, s.channels);
    bool is_inside[TAPS];
    long from[TAPS];
    LANE weight[TAPS];
    FIND_TAPS
    PLANE global E_PLANE* plane = planes + n * s.plane.n;
    SIDE global E* side = sides + n * s.side.n + l * s.side.at;
#ifdef WEIGHTS
    UNROLL for (int k = 0; k < TAPS; ++k) weight[k] = 0;
    for (ulong c = first; c < end; ++c) {
      const LANE x = LOAD(side + c * s.side.c);
      UNROLL for (int k = 0; k < TAPS; ++k)
        if (is_inside[k]) weight[k] += x * LOAD(plane + c * s.plane.c + from[k]);
    }
    UNROLL for (int k = 0; k < TAPS; ++k) STORE(weight[k], out + n * s.weight.n + k * s.weight.c + l * s.weight.at);
#else
    for (ulong c = first; c < end; c += CHANNELS) {
      // Behind the last channel, the first again.
      ulong channel[CHANNELS];
      UNROLL for (uint p = 0; p < CHANNELS; ++p) channel[p] = c + p < end ? c + p : c;
#ifdef SCATTER
      LANE x[CHANNELS];
      UNROLL for (uint p = 0; p < CHANNELS; ++p) x[p] = LOAD(side + channel[p] * s.side.c);
      UNROLL for (int k = 0; k < TAPS; ++k) {
        if (!is_inside[k]) continue;
        UNROLL for (uint p = 0; p < CHANNELS; ++p)
          if (c + p < end) ADD_IN(plane + channel[p] * s.plane.c + from[k], weight[k] * x[p])
      }
#else
      LANE sum[CHANNELS];
      UNROLL for (uint p = 0; p < CHANNELS; ++p) sum[p] = 0;
      UNROLL for (int k = 0; k < TAPS; ++k) {
        if (!is_inside[k]) continue;
        UNROLL for (uint p = 0; p < CHANNELS; ++p) sum[p] += weight[k] * LOAD(plane + channel[p] * s.plane.c + from[k]);
      }
      UNROLL for (uint p = 0; p < CHANNELS; ++p)
        if (c + p < end) STORE(sum[p], side + channel[p] * s.side.c);
#endif
    }
#endif
  }
}
)cl"
