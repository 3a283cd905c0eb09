R"cl(
// Short rows, behind sort_key.cl: a group sorts BLOCK / piece of them in local memory, whose length is at
// most `piece`, a power of 2.
kernel void sort_rows(PARAMETERS) {
  local KEY keys[BLOCK];
  local uint places[BLOCK];
  const uint each = BLOCK / piece, row_0 = get_group_id(0) * each;
  for (uint t = get_local_id(0); t < BLOCK; t += GROUP) {
    const uint own = row_0 + t / piece, j = t % piece;
    keys[t] = NO_KEY;
    places[t] = NO_PLACE;
    if (own < rows && j < length) {
      const INDEX row = row_begin + own;
      ROW(row)
      keys[t] = key_of(in[at_0 + j * step_0]);
      places[t] = j;
    }
  }
  SORT_LOCAL(BLOCK, piece)
  for (uint t = get_local_id(0); t < BLOCK; t += GROUP) {
    const uint own = row_0 + t / piece, j = t % piece;
    if (own < rows && j >= first && j < first + kept) {
      const INDEX row = row_begin + own;
      ROW(row)
      GIVE(j - first, keys[t], places[t])
    }
  }
}
)cl"
