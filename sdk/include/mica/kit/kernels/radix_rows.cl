R"cl(
// Rows of at most TILE elements, behind radix.cl: a group a row.
GROUPS_AT_ONCE(4, sort_tiles)
kernel void sort_tiles(PARAMETERS) {
  local KEY keys[PADDED(TILE)];
  local Ranking ranking;
  local uint sums[2 * GROUP];
  ushort order[EACH];
  const uint item = get_local_id(0), begin = 0;
  const INDEX row = row_begin + get_group_id(0);
  ROW(row)
  const ulong list_from = 0;
  LOAD_TILE
  SPLIT_TILE(0)
  for (uint low = 4; low < KEY_BITS; low += 4) {
    TAKE_NEIGHBOURS
    SPLIT_TILE(low)
  }
  for (uint j = item; j < kept; j += GROUP) {
    const uint slot = ORDER(first + j), place = ENTRY_AT(slot);
    const KEY key = keys[slot];
    GIVE(j, key, place)
  }
}
)cl"
