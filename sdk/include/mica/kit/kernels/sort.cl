R"cl(
// Sorting rows by (key, place): keys are unsigned integers that compare as the elements do, places
// number a row's elements, so that no two entries are equal and every order of equal elements is theirs.
//
// A group sorts BLOCK entries in local memory (Batcher's bitonic network): several short rows, or one
// block of a long one. Blocks of a long row are lists in a workspace, which merge passes join two by two:
// a group writes BLOCK entries of a joined list, whose parts it finds by binary search (Green, McColl
// and Bader's merge path). The host defines BITS (an element), KEY, SIGN and ALL (bits of a key),
// FLOATING with LARGEST (infinity's bits), SIGNED or TRUTH, FLIP where the order falls, GROUP, BLOCK,
// SIZES (parameters), ROW(row) (declares at_0, at_1, at_2: where a row lies in `in`, `values` and
// `indices`) and STEP_0.. (parameters too: from element to element).
static KEY key_of(BITS bits) {
#ifdef FLOATING
  const KEY magnitude = bits & (SIGN - 1);
  const KEY key = magnitude > LARGEST ? ALL : magnitude == 0 ? SIGN : bits & SIGN ? ALL ^ bits : bits | SIGN;
#elif defined(SIGNED)
  const KEY key = (bits ^ SIGN) & ALL;
#elif defined(TRUTH)
  const KEY key = bits != 0;
#else
  const KEY key = bits;
#endif
#ifdef FLIP
  return key ^ ALL;
#else
  return key;
#endif
}

#define LESS(a, p, b, q) ((a) < (b) || ((a) == (b) && (p) < (q)))
// Behind every entry of a row.
#define NO_KEY (~(KEY)0)
#define NO_PLACE 0xffffffffu

#define PARAMETERS                                                                                      \
  const global BITS *in, global BITS *values, global long *indices, const global KEY *keys_from,        \
      const global uint *places_from, global KEY *keys_to, global uint *places_to, SIZES                \
      const INDEX row_begin, const uint rows, const uint length, const uint width, const uint pitch,    \
      const uint first, const uint kept
// Entry j of the sorted row, if it is asked for.
#define GIVE(j, place)                                                                      \
  if ((j) >= first && (j) < first + kept) {                                                 \
    values[at_1 + ((j) - first) * step_1] = in[at_0 + (place) * step_0];                    \
    indices[at_2 + ((j) - first) * step_2] = place;                                         \
  }

// Sorts each `padded` entries of keys and places, a power of 2.
#define SORT_LOCAL(padded)                                                                  \
  for (uint run = 2; run <= padded; run *= 2)                                               \
    for (uint apart = run / 2; apart > 0; apart /= 2) {                                     \
      barrier(CLK_LOCAL_MEM_FENCE);                                                         \
      for (uint t = get_local_id(0); t < BLOCK / 2; t += GROUP) {                           \
        const uint a = 2 * t - (t & (apart - 1)), b = a + apart;                            \
        const bool falls = (a & run & (padded - 1)) != 0;                                   \
        const KEY key_a = keys[a], key_b = keys[b];                                         \
        const uint place_a = places[a], place_b = places[b];                                \
        if ((LESS(key_b, place_b, key_a, place_a)) != falls) {                              \
          keys[a] = key_b, keys[b] = key_a;                                                 \
          places[a] = place_b, places[b] = place_a;                                         \
        }                                                                                   \
      }                                                                                     \
    }                                                                                       \
  barrier(CLK_LOCAL_MEM_FENCE);

// Rows of at most `width` elements, a power of 2: BLOCK / width of them a group.
kernel void sort_rows(PARAMETERS) {
  local KEY keys[BLOCK];
  local uint places[BLOCK];
  const uint each = BLOCK / width, row_0 = get_group_id(0) * each;
  for (uint t = get_local_id(0); t < BLOCK; t += GROUP) {
    const uint own = row_0 + t / width, j = t % width;
    KEY key = NO_KEY;
    uint place = NO_PLACE;
    if (own < rows && j < length) {
      const INDEX row = row_begin + own;
      ROW(row)
      key = key_of(in[at_0 + j * step_0]);
      place = j;
    }
    keys[t] = key;
    places[t] = place;
  }
  SORT_LOCAL(width)
  for (uint t = get_local_id(0); t < BLOCK; t += GROUP) {
    const uint own = row_0 + t / width, j = t % width;
    if (own < rows && j < length) {
      const INDEX row = row_begin + own;
      ROW(row)
      GIVE(j, places[t])
    }
  }
}

// Blocks of long rows: the first `kept` entries of each become lists, one behind the other; a row's
// begin at `pitch` times its number.
kernel void sort_blocks(PARAMETERS) {
  local KEY keys[BLOCK];
  local uint places[BLOCK];
  const uint blocks = (length + BLOCK - 1) / BLOCK;
  const uint own = get_group_id(0) / blocks, block = get_group_id(0) % blocks;
  if (own >= rows) return;
  const INDEX row = row_begin + own;
  ROW(row)
  for (uint t = get_local_id(0); t < BLOCK; t += GROUP) {
    const uint j = block * BLOCK + t;
    keys[t] = j < length ? key_of(in[at_0 + j * step_0]) : NO_KEY;
    places[t] = j < length ? j : NO_PLACE;
  }
  SORT_LOCAL(BLOCK)
  const ulong to = (ulong)own * pitch + block * kept;
  for (uint t = get_local_id(0); t < kept; t += GROUP) {
    if (block * kept + t >= pitch) continue;
    keys_to[to + t] = keys[t];
    places_to[to + t] = places[t];
  }
}

// The same of entries in the workspace, `length` a row of `width` there.
kernel void sort_again(PARAMETERS) {
  local KEY keys[BLOCK];
  local uint places[BLOCK];
  const uint blocks = (length + BLOCK - 1) / BLOCK;
  const uint own = get_group_id(0) / blocks, block = get_group_id(0) % blocks;
  if (own >= rows) return;
  const ulong from = (ulong)own * width;
  for (uint t = get_local_id(0); t < BLOCK; t += GROUP) {
    const uint j = block * BLOCK + t;
    keys[t] = j < length ? keys_from[from + j] : NO_KEY;
    places[t] = j < length ? places_from[from + j] : NO_PLACE;
  }
  SORT_LOCAL(BLOCK)
  const ulong to = (ulong)own * pitch + block * kept;
  for (uint t = get_local_id(0); t < kept; t += GROUP) {
    if (block * kept + t >= pitch) continue;
    keys_to[to + t] = keys[t];
    places_to[to + t] = places[t];
  }
}

// At most BLOCK entries of the workspace, `length` a row of `width` there, into the results.
kernel void sort_last(PARAMETERS) {
  local KEY keys[BLOCK];
  local uint places[BLOCK];
  const INDEX row = row_begin + get_group_id(0);
  const ulong from = (ulong)get_group_id(0) * width;
  for (uint t = get_local_id(0); t < BLOCK; t += GROUP) {
    keys[t] = t < length ? keys_from[from + t] : NO_KEY;
    places[t] = t < length ? places_from[from + t] : NO_PLACE;
  }
  SORT_LOCAL(BLOCK)
  ROW(row)
  for (uint t = get_local_id(0); t < BLOCK; t += GROUP) GIVE(t, places[t])
}

// How many of the first `count` entries of two joined lists come from list a, of `size_a` entries of
// keys and places from `a` on; list b has `size_b` from `b` on.
#define SPLIT(result, count, keys, places, a, size_a, b, size_b)                                        \
  {                                                                                                     \
    uint low = (count) > (size_b) ? (count) - (size_b) : 0, high = min(count, size_a);                  \
    while (low < high) {                                                                                \
      const uint middle = (low + high) / 2, other = (count) - 1 - middle;                               \
      if (LESS(keys[(a) + middle], places[(a) + middle], keys[(b) + other], places[(b) + other]))       \
        low = middle + 1;                                                                               \
      else                                                                                              \
        high = middle;                                                                                  \
    }                                                                                                   \
    result = low;                                                                                       \
  }
#define EACH (BLOCK / GROUP)
// Joins lists of `width` entries two by two. JOINED: the keys and places of BLOCK entries of a row, from
// `begin` on, in local memory.
#define JOIN_LISTS                                                                                      \
  local KEY keys[BLOCK];                                                                                \
  local uint places[BLOCK], splits[2];                                                                  \
  const uint item = get_local_id(0), blocks = (length + BLOCK - 1) / BLOCK;                             \
  const uint own = get_group_id(0) / blocks, begin = get_group_id(0) % blocks * BLOCK;                  \
  if (own >= rows || begin + BLOCK <= first || begin >= first + kept) return;                           \
  const ulong from = (ulong)own * length;                                                               \
  const uint pair = begin / width / 2 * 2 * width;                                                      \
  const uint size_a = min(width, length - pair), size_b = min(width, length - pair - size_a);           \
  const uint count_0 = begin - pair, count_1 = min(count_0 + BLOCK, size_a + size_b);                   \
  const ulong a = from + pair, b = a + size_a;                                                          \
  if (item < 2) {                                                                                       \
    const uint count = item == 0 ? count_0 : count_1;                                                   \
    uint split;                                                                                         \
    SPLIT(split, count, keys_from, places_from, a, size_a, b, size_b)                                   \
    splits[item] = split;                                                                               \
  }                                                                                                     \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                         \
  const uint a_0 = splits[0], own_a = splits[1] - a_0;                                                  \
  const uint b_0 = count_0 - a_0, both = count_1 - count_0, own_b = both - own_a;                       \
  for (uint t = item; t < both; t += GROUP) {                                                           \
    const ulong at = t < own_a ? a + a_0 + t : b + b_0 + (t - own_a);                                   \
    keys[t] = keys_from[at];                                                                            \
    places[t] = places_from[at];                                                                        \
  }                                                                                                     \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                         \
  KEY joined_keys[EACH];                                                                                \
  uint joined_places[EACH];                                                                             \
  const uint begin_own = min(item * EACH, both), end_own = min(begin_own + EACH, both);                 \
  uint i;                                                                                               \
  SPLIT(i, begin_own, keys, places, 0, own_a, own_a, own_b)                                             \
  uint j = own_a + begin_own - i;                                                                       \
  UNROLL for (uint e = 0; e < EACH; ++e) {                                                              \
    if (begin_own + e >= end_own) continue;                                                             \
    const bool from_a = j >= both || (i < own_a && LESS(keys[i], places[i], keys[j], places[j]));       \
    const uint at = from_a ? i++ : j++;                                                                 \
    joined_keys[e] = keys[at];                                                                          \
    joined_places[e] = places[at];                                                                      \
  }                                                                                                     \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                         \
  UNROLL for (uint e = 0; e < EACH; ++e) {                                                              \
    if (begin_own + e >= end_own) continue;                                                             \
    keys[begin_own + e] = joined_keys[e];                                                               \
    places[begin_own + e] = joined_places[e];                                                           \
  }                                                                                                     \
  barrier(CLK_LOCAL_MEM_FENCE);

kernel void join(PARAMETERS) {
  JOIN_LISTS
  for (uint t = item; t < both; t += GROUP) {
    keys_to[from + begin + t] = keys[t];
    places_to[from + begin + t] = places[t];
  }
}
kernel void join_last(PARAMETERS) {
  JOIN_LISTS
  const INDEX row = row_begin + own;
  ROW(row)
  for (uint t = item; t < both; t += GROUP) GIVE(begin + t, places[t])
}
)cl"
