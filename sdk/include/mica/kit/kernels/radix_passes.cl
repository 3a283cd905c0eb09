R"cl(
// Rows of many tiles, behind radix.cl: passes over digits of 8 bits, from bit `shift` on. A row has `parts`,
// of `piece` tiles each. Groups count the digits of a part each; then, for each digit, come those of the
// parts before; then groups sort their tiles by the digit and write runs of equal ones to where they go.
// What stands behind a row's end counts as its last digit, behind which nothing comes.
// `counts` has, for each row, DIGITS numbers of each part, and those of the row.
#define COUNTS_OF(row, part) (counts + ((ulong)(row) * (parts + 1) + (part)) * DIGITS)
#define DIGIT_OF(key) ((uint)((key) >> shift) & (DIGITS - 1))
#define COPIES (GROUP / 32)

#define PART_OF_ROW                                                                         \
  const uint item = get_local_id(0);                                                        \
  const uint own = get_group_id(0) / parts, part = get_group_id(0) % parts;                 \
  if (own >= rows) return;                                                                  \
  const INDEX row = row_begin + own;                                                        \
  ROW(row)                                                                                  \
  const ulong list_from = (ulong)own * pitch_from;                                          \
  const uint tiles = (length + TILE - 1) / TILE;                                            \
  const uint tile_0 = part * piece, tile_1 = min(tiles, tile_0 + piece);

// Keys of 64 bits seldom differ in all of them (radix_differences.cl finds those): a pass over a digit that a
// row's keys have in common does nothing, but the last one, which gives the results. `moves`: the passes
// before that did something, so that entries lie in the row, or in one of the lists, which are written in
// turn.
#if KEY_BITS == 64
#define DIFFERENCES ((global ulong*)(counts + (ulong)rows * (parts + 1) * DIGITS))
#define DIFFERENCES_OF_ROW DIFFERENCES[own]
#else
#define DIFFERENCES_OF_ROW NO_KEY
#endif
#define PASS_OF_ROW                                                                         \
  PART_OF_ROW                                                                               \
  const KEY differences = DIFFERENCES_OF_ROW;                                               \
  if (!to_rows && DIGIT_OF(differences) == 0) return;                                       \
  uint moves = 0;                                                                           \
  for (uint low = 0; low < shift; low += 8) {                                               \
    moves += ((uint)(differences >> low) & (DIGITS - 1)) != 0;                              \
  }                                                                                         \
  const global BITS* keys_in = moves & 1 ? keys_0 : keys_1;                                 \
  const global uint* places_in = moves & 1 ? places_0 : places_1;

// Entries of the tile from `begin` on, without a question each but in the last tile of a row.
#define LOAD_ENTRIES(from, step)                                                            \
  if (begin + TILE <= length) {                                                             \
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                \
      loaded[e] = ((from) + (begin + item) * (step))[e * GROUP * (step)];                   \
    }                                                                                       \
  } else {                                                                                  \
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                \
      const uint j = begin + e * GROUP + item;                                              \
      loaded[e] = j < length ? (from)[j * (step)] : 0;                                      \
    }                                                                                       \
  }
// Their keys; behind the row's end, keys that are last.
#define LOAD_KEYS                                                                           \
  KEY loaded_keys[EACH];                                                                    \
  {                                                                                         \
    BITS loaded[EACH];                                                                      \
    if (moves == 0) {                                                                        \
      LOAD_ENTRIES(in + at_0, step_0)                                                       \
      UNROLL for (uint e = 0; e < EACH; ++e) loaded_keys[e] = key_of(loaded[e]);            \
    } else {                                                                                \
      LOAD_ENTRIES(keys_in + list_from, 1)                                                \
      UNROLL for (uint e = 0; e < EACH; ++e) loaded_keys[e] = loaded[e];                    \
    }                                                                                       \
    if (begin + TILE > length) {                                                            \
      UNROLL for (uint e = 0; e < EACH; ++e) {                                              \
        if (begin + e * GROUP + item >= length) loaded_keys[e] = NO_KEY;                    \
      }                                                                                     \
    }                                                                                       \
  }
#define LOAD_TILE                                                                           \
  {                                                                                         \
    LOAD_KEYS                                                                               \
    UNROLL for (uint e = 0; e < EACH; ++e) keys[SLOT(e)] = loaded_keys[e];                  \
  }                                                                                         \
  UNROLL for (uint e = 0; e < EACH; ++e) order[e] = PADDED(item * EACH) + e;                \
  barrier(CLK_LOCAL_MEM_FENCE);

kernel void count_digits(PARAMETERS) {
  local uint bins[COPIES * DIGITS];
  PASS_OF_ROW
  for (uint t = item; t < COPIES * DIGITS; t += GROUP) bins[t] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint tile = tile_0; tile < tile_1; ++tile) {
    const uint begin = tile * TILE;
    LOAD_KEYS
    UNROLL for (uint e = 0; e < EACH; ++e) {
      COUNT_UP(bins + item / 32 * DIGITS + DIGIT_OF(loaded_keys[e]));
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint digit = item; digit < DIGITS; digit += GROUP) {
    uint sum = 0;
    UNROLL for (uint copy = 0; copy < COPIES; ++copy) sum += bins[copy * DIGITS + digit];
    COUNTS_OF(own, part)[digit] = sum;
  }
}

// Sums over parts, `lanes` items a digit, a power of 2: the counts of a part become those of the parts
// before it.
#define PARTS_AT_ONCE 8
kernel void add_digits(global uint* counts, const uint rows, const uint parts, const uint lanes) {
  local uint sums[2 * GROUP];
  const uint item = get_local_id(0), each = GROUP / lanes, groups = DIGITS / each;
  const uint own = get_group_id(0) / groups, digit = get_group_id(0) % groups * each + item % each;
  if (own >= rows) return;
  const uint size = (parts + lanes - 1) / lanes, begin = min(parts, item / each * size);
  const uint end = min(parts, begin + size);
  global uint* own_counts = COUNTS_OF(own, 0) + digit;
  uint before = 0;
  for (uint p = begin; p < end; p += PARTS_AT_ONCE) {
    UNROLL for (uint i = 0; i < PARTS_AT_ONCE; ++i) {
      before += p + i < end ? own_counts[(ulong)(p + i) * DIGITS] : 0;
    }
  }
  const uint own_sum = before;
  uint half_of_sums = 0;
  sums[item] = before;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint apart = each; apart < GROUP; apart *= 2) {
    if (item >= apart) before += sums[half_of_sums + item - apart];
    half_of_sums ^= GROUP;
    sums[half_of_sums + item] = before;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item / each == lanes - 1) own_counts[(ulong)parts * DIGITS] = before;
  before -= own_sum;
  for (uint p = begin; p < end; p += PARTS_AT_ONCE) {
    uint found[PARTS_AT_ONCE];
    UNROLL for (uint i = 0; i < PARTS_AT_ONCE; ++i) {
      found[i] = p + i < end ? own_counts[(ulong)(p + i) * DIGITS] : 0;
    }
    UNROLL for (uint i = 0; i < PARTS_AT_ONCE; ++i) {
      if (p + i < end) own_counts[(ulong)(p + i) * DIGITS] = before;
      before += found[i];
    }
  }
}

// GROUP is DIGITS: items have a digit each, whose entries go from `next` on. The entries of a digit stand
// together in a sorted tile, so that entry j goes to bases[its digit] + j.
#define LOWER_DIGIT(slot) ((uint)(keys[slot] >> shift))
#define UPPER_DIGIT(slot) ((uint)(keys[slot] >> (shift + 4)))
#define MOVED_AT_ONCE (EACH < 8 ? EACH : 8)
GROUPS_AT_ONCE(4, move_digits)
kernel void move_digits(PARAMETERS) {
  local KEY keys[PADDED(TILE)];
  local uint places[PADDED(TILE)];
  local Ranking ranking;
  local uint sums[2 * GROUP], bins[DIGITS], bases[DIGITS];
  ushort order[EACH];
  PASS_OF_ROW
  global BITS* keys_out = moves & 1 ? keys_1 : keys_0;
  global uint* places_out = moves & 1 ? places_1 : places_0;
  const ulong list_to = (ulong)own * pitch_to;
  uint next = COUNTS_OF(own, part)[item];
  {
    const uint of_row = COUNTS_OF(own, parts)[item];
    SCAN_GROUP(of_row, before, total)
    next += before;
  }
  for (uint tile = tile_0; tile < tile_1; ++tile) {
    const uint begin = tile * TILE, used = min((uint)TILE, length - begin);
    if (moves == 0) {
      UNROLL for (uint e = 0; e < EACH; ++e) places[SLOT(e)] = begin + e * GROUP + item;
    } else {
      uint loaded[EACH];
      LOAD_ENTRIES(places_in + list_from, 1)
      UNROLL for (uint e = 0; e < EACH; ++e) places[SLOT(e)] = loaded[e];
    }
    bins[item] = 0;
    LOAD_TILE
    UNROLL for (uint e = 0; e < EACH; ++e) COUNT_UP(bins + DIGIT_OF(keys[SLOT(e)]));
    SPLIT_TILE(LOWER_DIGIT)
    TAKE_NEIGHBOURS
    SPLIT_TILE(UPPER_DIGIT)
    {
      const uint of_tile = bins[item];
      SCAN_GROUP(of_tile, before, total)
      bases[item] = next - before;
      next += of_tile;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e_0 = 0; e_0 < EACH; e_0 += MOVED_AT_ONCE) {
      KEY moved[MOVED_AT_ONCE];
      uint from[MOVED_AT_ONCE], to[MOVED_AT_ONCE];
      UNROLL for (uint e = 0; e < MOVED_AT_ONCE; ++e) {
        const uint slot = ranking.order[SLOT(e_0 + e)];
        moved[e] = keys[slot];
        from[e] = places[slot];
        to[e] = bases[DIGIT_OF(moved[e])] + (e_0 + e) * GROUP + item;
      }
      UNROLL for (uint e = 0; e < MOVED_AT_ONCE; ++e) {
        if ((e_0 + e) * GROUP + item >= used) continue;
        if (!to_rows) {
          keys_out[list_to + to[e]] = (BITS)moved[e];
          places_out[list_to + to[e]] = from[e];
        } else if (to[e] >= first && to[e] < first + kept) {
          GIVE(to[e] - first, moved[e], from[e])
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
)cl"
