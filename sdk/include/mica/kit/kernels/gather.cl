R"cl(
// An element of the result from anywhere in `data`: elements move as BITS, whatever
// their dtype. SIDE: the coordinates o<d> of the result. PLACE: for each dimension of
// `data` its coordinate, checked by INSIDE, which adds to `from`. OUT_AT: where the
// result's element lies.
#define INSIDE(coordinate, size, stride)                 \
  {                                                      \
    const long at = (coordinate);                        \
    if (at >= 0 && at < (long)(size)) {                  \
      from += (INDEX)at * (stride);                      \
    } else {                                             \
      inside = false;                                    \
      OUTSIDE(at)                                        \
    }                                                    \
  }

kernel void gather(PARAMETERS, const BITS fill, global int* raised, const INDEX count) {
  const INDEX i = get_global_id(0);
  if (i >= count) return;
  SIDE
  bool inside = true;
  INDEX from = 0;
  PLACE
  out[OUT_AT] = inside ? data[from] : fill;
}
)cl"
