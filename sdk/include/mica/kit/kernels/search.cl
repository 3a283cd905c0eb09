R"cl(
// The first place of a sorted line that is not before a value: of elements that are less, or with RIGHT not
// greater; NaN is before everything. The probes are torch's, so that lines that are not sorted give its
// places too. The host defines E, LOAD(p), OUT (an element of the result) and RIGHT; `order` may be NULL, or
// says where a line's elements stand.
kernel void search(const global E* lines, const global E* values, const global long* order, global OUT* out,
                   const ulong size, const ulong per_line, const ulong count, global int* raised) {
  const ulong i = get_global_id(0);
  if (i >= count) return;
  const ulong line = i / per_line * size;
  const LANE value = LOAD(values + i);
  ulong first = 0;
  for (ulong left = size; left > 0;) {
    const ulong half_left = left / 2;
    ulong at = first + half_left;
    if (order) {
      const long place = order[line + at];
      if (place < 0 || place >= (long)size) {
        *raised = 1;
        break;
      }
      at = place;
    }
    const LANE element = LOAD(lines + line + at);
#ifdef RIGHT
    const bool before = !(element > value);
#else
    const bool before = !(element >= value);
#endif
    first = before ? first + half_left + 1 : first;
    left = before ? left - half_left - 1 : half_left;
  }
  out[i] = first;
}
)cl"
