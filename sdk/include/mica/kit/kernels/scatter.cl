R"cl(
// An element of the source into a place of `to`, by many work-items at once. SIDE: the
// element's coordinates o<d>. PLACE: for each dimension of `to` its coordinate, checked by
// INSIDE, which adds to `from`. WRITE: what the element x0 does to the place.
#define INSIDE(coordinate, size, stride)                 \
  {                                                      \
    const long at = (coordinate);                        \
    if (at >= 0 && at < (long)(size)) {                  \
      from += (INDEX)at * (stride);                      \
    } else {                                             \
      inside = false;                                    \
      OUTSIDE                                            \
    }                                                    \
  }

kernel void scatter(PARAMETERS, global uint* counts, global int* raised, const ulong count) {
  const INDEX i = get_global_id(0);
  if (i >= count) return;
  SIDE
  bool inside = true;
  INDEX from = 0;
  PLACE
  if (!inside) return;
  WRITE
}
)cl"
