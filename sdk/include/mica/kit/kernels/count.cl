R"cl(
// What the elements that are set give, in their order: nonzero, masked_select, masked_scatter.
//
// A group counts those of TILE neighbours; one group adds the counts up to where each tile's begin; then
// each tile writes. The host defines GROUP, EACH, TESTED (the type of elements that are tested), IS_SET(p),
// POINTERS and SIZES (parameters), PLACE (declares at_0 and more from the element's number i), and
// WRITE(i, at): what element i, the at-th that is set, gives.
#define TILE (GROUP * EACH)
// Item m of a group gets how much the items before it have: an inclusive scan in `sums`.
#define SCAN_SUMS                                                             \
  for (uint apart = 1; apart < GROUP; apart *= 2) {                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                             \
    const ulong before = item >= apart ? sums[item - apart] : 0;              \
    barrier(CLK_LOCAL_MEM_FENCE);                                             \
    sums[item] += before;                                                     \
  }                                                                           \
  barrier(CLK_LOCAL_MEM_FENCE);

kernel void count(POINTERS SIZES global ulong* counts, const ulong numel) {
  local uint sums[GROUP];
  const uint item = get_local_id(0);
  const ulong begin = (ulong)get_group_id(0) * TILE, end = min(numel, begin + TILE);
  uint sum = 0;
  for (ulong n = begin + item; n < end; n += GROUP) {
    const INDEX i = n;
    PLACE
    sum += IS_SET(a0 + at_0);
  }
  sums[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_group = GROUP / 2; half_group > 0; half_group /= 2) {
    if (item < half_group) sums[item] += sums[item + half_group];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) counts[get_group_id(0)] = sums[0];
}

// counts[t] becomes the sum of those before it; counts[tiles], of all.
kernel void add_up(global ulong* counts, const ulong tiles) {
  local ulong sums[GROUP];
  const uint item = get_local_id(0);
  ulong total = 0;
  for (ulong tile = 0; tile < tiles; tile += TILE) {
    ulong own[EACH], sum = 0;
    UNROLL for (uint e = 0; e < EACH; ++e) {
      const ulong t = tile + item * EACH + e;
      own[e] = t < tiles ? counts[t] : 0;
      sum += own[e];
    }
    sums[item] = sum;
    SCAN_SUMS
    ulong before = total + sums[item] - sum;
    UNROLL for (uint e = 0; e < EACH; ++e) {
      const ulong t = tile + item * EACH + e;
      if (t < tiles) counts[t] = before;
      before += own[e];
    }
    total += sums[GROUP - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) counts[tiles] = total;
}

kernel void write(POINTERS SIZES const global ulong* counts, const ulong numel, const ulong total) {
  local uchar set[TILE];
  local uint sums[GROUP];
  const uint item = get_local_id(0);
  const ulong begin = (ulong)get_group_id(0) * TILE;
  for (uint t = item; t < TILE; t += GROUP) {
    set[t] = 0;
    if (begin + t < numel) {
      const INDEX i = begin + t;
      PLACE
      set[t] = IS_SET(a0 + at_0);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  uint sum = 0;
  UNROLL for (uint e = 0; e < EACH; ++e) sum += set[item * EACH + e];
  sums[item] = sum;
  SCAN_SUMS
  ulong at = counts[get_group_id(0)] + sums[item] - sum;
  for (uint e = 0; e < EACH; ++e) {
    if (set[item * EACH + e] == 0) continue;
    const INDEX i = begin + item * EACH + e;
    WRITE(i, at)
    ++at;
  }
}
)cl"
