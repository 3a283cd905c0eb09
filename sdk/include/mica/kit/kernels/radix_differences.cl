R"cl(
// In which bits the keys of a row differ, behind radix_passes.cl: of each part, from the first key; then of all
// parts.
#define DIFFERENCES_OF_PARTS (DIFFERENCES + rows + (ulong)own * parts)
#define OR_OF_GROUP(to)                                                                     \
  local ulong found[GROUP];                                                                 \
  found[item] = bits;                                                                       \
  barrier(CLK_LOCAL_MEM_FENCE);                                                             \
  for (uint half_group = GROUP / 2; half_group > 0; half_group /= 2) {                      \
    if (item < half_group) found[item] |= found[item + half_group];                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                           \
  }                                                                                         \
  if (item == 0) to = found[0];
kernel void find_differences(PARAMETERS) {
  PART_OF_ROW
  const uint moves = 0;
  const global BITS* keys_in = keys_0;
  const ulong key_0 = key_of(in[at_0]);
  ulong bits = 0;
  for (uint tile = tile_0; tile < tile_1; ++tile) {
    const uint begin = tile * TILE;
    LOAD_KEYS
    UNROLL for (uint e = 0; e < EACH; ++e) {
      if (begin + e * GROUP + item < length) bits |= loaded_keys[e] ^ key_0;
    }
  }
  OR_OF_GROUP(DIFFERENCES_OF_PARTS[part])
}
kernel void join_differences(global uint* counts, const uint rows, const uint parts) {
  const uint item = get_local_id(0), own = get_group_id(0);
  ulong bits = 0;
  for (uint p = item; p < parts; p += GROUP) bits |= DIFFERENCES_OF_PARTS[p];
  OR_OF_GROUP(DIFFERENCES[own])
}
)cl"
