R"cl(
// Rows of at most TILE elements, behind radix.cl: a group sorts TILE / piece of them, each in `piece` entries
// of a tile, 2 to the power of `shift`: at most 16 rows, whose number in the tile is the last digit.
#define KEY_DIGIT(slot) ((uint)(keys[slot] >> low))
#define ROW_DIGIT(slot) (ENTRY_AT(slot) >> shift)
GROUPS_AT_ONCE(4, sort_tiles)
kernel void sort_tiles(PARAMETERS) {
  local KEY keys[PADDED(TILE)];
  local Ranking ranking;
  local uint sums[2 * GROUP];
  ushort order[EACH];
  const uint item = get_local_id(0), row_0 = get_group_id(0) * (TILE / piece);
  BITS loaded[EACH];
  UNROLL for (uint e = 0; e < EACH; ++e) {
    const uint t = e * GROUP + item, own = row_0 + (t >> shift), j = t & (piece - 1);
    loaded[e] = 0;
    if (own < rows && j < length) {
      const INDEX row = row_begin + own;
      ROW(row)
      loaded[e] = in[at_0 + j * step_0];
    }
  }
  UNROLL for (uint e = 0; e < EACH; ++e) {
    const uint j = (e * GROUP + item) & (piece - 1);
    keys[SLOT(e)] = j < length ? key_of(loaded[e]) : NO_KEY;
    order[e] = PADDED(item * EACH) + e;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint low = 0; low < KEY_BITS; low += 4) {
    if (low > 0) {
      TAKE_NEIGHBOURS
    }
    SPLIT_TILE(KEY_DIGIT)
  }
  if (piece < TILE) {
    TAKE_NEIGHBOURS
    SPLIT_TILE(ROW_DIGIT)
  }
  for (uint t = item; t < TILE; t += GROUP) {
    const uint own = row_0 + (t >> shift), j = t & (piece - 1);
    if (own < rows && j >= first && j < first + kept) {
      const uint slot = ORDER(t), place = ENTRY_AT(slot) & (piece - 1);
      const INDEX row = row_begin + own;
      ROW(row)
      GIVE(j - first, keys[slot], place)
    }
  }
}
)cl"
