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

// A group has EACH elements for each of its items, neighbours for neighbours. An item finds all of its places
// before it reads, and reads before it writes, so that its accesses are on their way together.
kernel void gather(PARAMETERS, const BITS fill, global int* raised, const INDEX count) {
  const INDEX first = (INDEX)get_group_id(0) * (INDEX)get_local_size(0) * EACH + (INDEX)get_local_id(0);
  if (first >= count) return;
  INDEX places[EACH], outs[EACH];
  bool insides[EACH], outside = false;
  UNROLL for (uint e = 0; e < EACH; ++e) {
    // Past the end an item finds the last element's place, and leaves it.
    const INDEX i = min(first + e * (INDEX)get_local_size(0), count - 1);
    SIDE
    bool inside = true;
    INDEX from = 0;
    PLACE
    places[e] = from;
    insides[e] = inside;
    outs[e] = OUT_AT;
  }
  BITS found[EACH];
  UNROLL for (uint e = 0; e < EACH; ++e) {
    found[e] = fill;
    if (insides[e]) found[e] = data[places[e]];
  }
  UNROLL for (uint e = 0; e < EACH; ++e)
    if (first + e * (INDEX)get_local_size(0) < count) out[outs[e]] = found[e];
  if (outside) *raised = 1;
}
)cl"
