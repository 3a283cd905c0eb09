R"cl(
// The first entries of rows, or one that has a rank, behind sort_key.cl: a group for each part of a row, of
// `piece` elements, or of entries that an earlier launch kept: it reads the list 0 and writes the list 1.
//
// A group counts entries by digits, the most significant first, and goes on with those whose digits are the
// asked entry's, until few are left, which it sorts in local memory. Places follow the keys as further
// digits: so entries are all different, and it ends with any number of equal elements. The order in which
// entries come into local memory does not matter. The host defines DIGIT_BITS and MOST (entries in local
// memory); places are less than 2 to the power of `shift`.
#define BINS (1 << DIGIT_BITS)
#define AT_ONCE 8

// The digits of a key, or a place, that are known by now.
#define HEAD_OF(key) (key_left < KEY_BITS ? (key) >> key_left : 0)
// For entries of the part, AT_ONCE loads at a time: `body` of `key` and `place`.
#define EACH_ENTRY(body)                                                                    \
  for (uint j = begin + item; j < end; j += GROUP * AT_ONCE) {                              \
    BITS raw[AT_ONCE];                                                                      \
    uint own_places[AT_ONCE];                                                               \
    UNROLL for (uint e = 0; e < AT_ONCE; ++e) {                                             \
      const uint at = min(j + e * GROUP, end - 1);                                          \
      raw[e] = from_rows ? in[at_0 + at * step_0] : keys_0[list_from + at];              \
      own_places[e] = from_rows ? at : places_0[list_from + at];                         \
    }                                                                                       \
    UNROLL for (uint e = 0; e < AT_ONCE; ++e) {                                             \
      const KEY key = from_rows ? key_of(raw[e]) : (KEY)raw[e];                             \
      const uint place = own_places[e];                                                     \
      if (j + e * GROUP < end) {                                                            \
        body                                                                                \
      }                                                                                     \
    }                                                                                       \
  }

kernel void select_entries(PARAMETERS) {
  local KEY keys[MOST];
  local uint places[MOST], bins[BINS], sums[2 * GROUP], found[3], listed;
  const uint item = get_local_id(0);
  const uint own = get_group_id(0) / parts, part = get_group_id(0) % parts;
  if (own >= rows) return;
  const INDEX row = row_begin + own;
  ROW(row)
  const ulong list_from = (ulong)own * pitch_from;
  const uint begin = min(length, part * piece), end = min(length, begin + piece);
  // One entry needs none of those before it.
  const bool with_less = first == 0;
  const uint rank = min(first + kept, end - begin) - 1, enough = min((uint)MOST, max(256u, 2 * kept));
  KEY key_head = 0;
  uint place_head = 0, key_left = KEY_BITS, place_left = shift, less = 0, equal = end - begin;
  while ((with_less ? less + equal : equal) > enough) {
    const uint width = min((uint)DIGIT_BITS, key_left > 0 ? key_left : place_left), mask = (1u << width) - 1;
    const bool by_key = key_left > 0;
    const uint low = (by_key ? key_left : place_left) - width;
    for (uint t = item; t < BINS; t += GROUP) bins[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH_ENTRY(
      if (HEAD_OF(key) == key_head && (by_key || place >> place_left == place_head))
        COUNT_UP(bins + ((by_key ? (uint)(key >> low) : place >> low) & mask));
    )
    barrier(CLK_LOCAL_MEM_FENCE);
    uint own_sum = 0;
    UNROLL for (uint b = 0; b < BINS / GROUP; ++b) own_sum += bins[item * (BINS / GROUP) + b];
    SCAN_GROUP(own_sum, before, total)
    if (less + before <= rank && rank < less + before + own_sum) {
      uint bin = item * (BINS / GROUP);
      for (; less + before + bins[bin] <= rank; ++bin) before += bins[bin];
      found[0] = bin;
      found[1] = less + before;
      found[2] = bins[bin];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    less = found[1];
    equal = found[2];
    if (by_key) {
      key_head = (KEY)(key_head << width) | found[0];
      key_left = low;
    } else {
      place_head = place_head << width | found[0];
      place_left = low;
    }
  }
  if (item == 0) listed = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  EACH_ENTRY(
    const KEY head = HEAD_OF(key);
    const uint tail = place >> place_left;
    if ((head == key_head && (tail == place_head || (with_less && tail < place_head))) ||
        (with_less && head < key_head)) {
      const uint to = COUNT_UP(&listed);
      keys[to] = key;
      places[to] = place;
    }
  )
  barrier(CLK_LOCAL_MEM_FENCE);
  uint padded = 1;
  while (padded < max(listed, kept)) padded *= 2;
  for (uint t = listed + item; t < padded; t += GROUP) {
    keys[t] = NO_KEY;
    places[t] = NO_PLACE;
  }
  SORT_LOCAL(padded, padded)
  const uint begin_kept = with_less ? 0 : first - less;
  const ulong list_to = (ulong)own * pitch_to + part * kept;
  for (uint j = item; j < kept; j += GROUP) {
    const KEY key = keys[begin_kept + j];
    const uint place = places[begin_kept + j];
    if (to_rows) {
      GIVE(j, key, place)
    } else {
      keys_1[list_to + j] = (BITS)key;
      places_1[list_to + j] = place;
    }
  }
}
)cl"
