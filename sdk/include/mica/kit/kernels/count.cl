R"cl(
// What the elements that are set give, in their order: nonzero, masked_select, masked_scatter.
//
// A group counts those of TILE neighbours; one group adds the counts up to where each tile's begin; then
// each tile writes: its items list what is set in local memory, so that neighbours write neighbours. The
// host defines GROUP, EACH, TESTED (the type of elements that are tested), IS_SET(p), DENSE where those
// lie densely, POINTERS and SIZES (parameters), PLACE (declares at_0 and more from the element's number i),
// and, of what element i, the at-th that is set, gives: TAKE(i, at, moved) reads it, into a MOVED, and
// GIVE(i, at, moved) writes it.
#define TILE (GROUP * EACH)
#define MOVED_AT_ONCE 4
// Item m of a group gets how much the items before it have: an inclusive scan in `sums`.
#define SCAN_SUMS                                                             \
  for (uint apart = 1; apart < GROUP; apart *= 2) {                           \
    barrier(CLK_LOCAL_MEM_FENCE);                                             \
    const ulong before = item >= apart ? sums[item - apart] : 0;              \
    barrier(CLK_LOCAL_MEM_FENCE);                                             \
    sums[item] += before;                                                     \
  }                                                                           \
  barrier(CLK_LOCAL_MEM_FENCE);

// Bit e of `set`: whether neighbour e of the item is set, of the tile from `begin` on.
#ifdef DENSE
#define FIND_SET                                                              \
  {                                                                           \
    const ulong own = begin + item * EACH;                                    \
    TESTED tested[EACH];                                                      \
    if (own + EACH <= numel) {                                                \
      UNPACK(EACH, LOAD_VECTOR(EACH, a0 + own), tested);                      \
    } else {                                                                  \
      UNROLL for (uint e = 0; e < EACH; ++e) {                                \
        tested[e] = own + e < numel ? a0[own + e] : 0;                        \
      }                                                                       \
    }                                                                         \
    UNROLL for (uint e = 0; e < EACH; ++e) set |= (uint)IS_SET(tested + e) << e; \
  }
#else
#define FIND_SET                                                              \
  local uchar flags[TILE];                                                    \
  UNROLL for (uint e = 0; e < EACH; ++e) {                                    \
    const uint t = e * GROUP + item;                                          \
    flags[t] = 0;                                                             \
    if (begin + t < numel) {                                                  \
      const INDEX i = begin + t;                                              \
      PLACE                                                                   \
      flags[t] = IS_SET(a0 + at_0);                                           \
    }                                                                         \
  }                                                                           \
  barrier(CLK_LOCAL_MEM_FENCE);                                               \
  UNROLL for (uint e = 0; e < EACH; ++e) set |= (uint)flags[item * EACH + e] << e;
#endif

kernel void count(POINTERS SIZES global ulong* counts, const ulong numel) {
  local uint sums[GROUP];
  const uint item = get_local_id(0);
  const ulong begin = (ulong)get_group_id(0) * TILE;
  uint set = 0, sum = 0;
  FIND_SET
  UNROLL for (uint e = 0; e < EACH; ++e) sum += set >> e & 1;
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
  local ushort listed[TILE];
  local uint sums[GROUP];
  const uint item = get_local_id(0);
  const ulong begin = (ulong)get_group_id(0) * TILE, to = counts[get_group_id(0)];
  uint set = 0, sum = 0;
  FIND_SET
  UNROLL for (uint e = 0; e < EACH; ++e) sum += set >> e & 1;
  sums[item] = sum;
  SCAN_SUMS
  uint next = sums[item] - sum;
  UNROLL for (uint e = 0; e < EACH; ++e) {
    if (set >> e & 1) listed[next++] = item * EACH + e;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint count = sums[GROUP - 1];
  // A few are read before any is written: reads behind a write wait for it.
  for (uint first = item; first < count; first += GROUP * MOVED_AT_ONCE) {
    MOVED taken[MOVED_AT_ONCE];
#define EACH_MOVED(body)                                                      \
  UNROLL for (uint m = 0; m < MOVED_AT_ONCE; ++m) {                           \
    const uint t = first + m * GROUP;                                         \
    if (t < count) {                                                          \
      const INDEX i = begin + listed[t];                                      \
      const ulong at = to + t;                                                \
      body                                                                    \
    }                                                                         \
  }
    EACH_MOVED(TAKE(i, at, taken[m]))
    EACH_MOVED(GIVE(i, at, taken[m]))
  }
}
)cl"
