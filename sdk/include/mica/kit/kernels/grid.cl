R"cl(
// The taps of grid_sample, operation by operation as the composition in definitions.yaml has them, so that both give
// the same numbers. The host defines DIMS, LINEAR (else the nearest element), ALIGN_CORNERS and PADDING: 0 for
// zeros outside, 1 for the border, 2 for reflection.
typedef struct {
  long size[DIMS], step[DIMS];  // of a plane
} Plane;

static LANE reflected(LANE at, long size) {
#ifdef ALIGN_CORNERS
  const LANE low = 0, span = (LANE)(size - 1);
#else
  const LANE low = (LANE)-0.5f, span = (LANE)size;
#endif
  if (span == 0) return 0;
  const LANE off = fabs(at - low), extra = fmod(off, span), turns = floor(off / span);
  return turns - 2 * floor(turns / 2) == 0 ? extra + low : -extra + (span + low);
}
// Where a coordinate from -1 to 1 lies in a dimension; NaN stays NaN.
static LANE pixel_of(LANE at, long size) {
#ifdef ALIGN_CORNERS
  LANE pixel = (at + 1) * ((LANE)(size - 1) * (LANE)0.5f);
#else
  LANE pixel = ((at + 1) * (LANE)size - 1) * (LANE)0.5f;
#endif
#if PADDING == 2
  pixel = reflected(pixel, size);
#endif
#if PADDING > 0
  const LANE last = (LANE)(size - 1);
  if (!(pixel > 0 && pixel < last)) pixel = pixel < 0 ? (LANE)0 : pixel > last ? last : pixel;
#endif
  return pixel;
}

// Sets the taps of a point, whose coordinates stand at `point` from the last dimension to the first.
static void find_taps(const global LANE* point, const Plane p, bool* is_inside, long* from, LANE* weight) {
  LANE low[DIMS], rest[DIMS];
  UNROLL for (int d = 0; d < DIMS; ++d) {
    const LANE pixel = pixel_of(point[DIMS - 1 - d], p.size[d]);
#ifdef LINEAR
    low[d] = floor(pixel);
#else
    low[d] = rint(pixel);
#endif
    rest[d] = pixel - low[d];
  }
  UNROLL for (int k = 0; k < TAPS; ++k) {
    bool inside = true;
    long offset = 0;
    LANE share[DIMS];
    UNROLL for (int d = 0; d < DIMS; ++d) {
      const int above = TAPS == 1 ? 0 : k >> (DIMS - 1 - d) & 1;  // of the cell's corners
      const LANE at = low[d] + (LANE)above;
      const bool fits = at >= 0 && at <= (LANE)(p.size[d] - 1);
      inside = inside && fits;
      offset += (fits ? (long)at : 0) * p.step[d];
      share[d] = above ? rest[d] : 1 - rest[d];
    }
    is_inside[k] = inside;
    from[k] = offset;
    LANE product = share[DIMS - 2] * share[DIMS - 1];
    if (DIMS == 3) product *= share[0];
    weight[k] = TAPS == 1 ? (LANE)1 : product;
  }
}
)cl"
