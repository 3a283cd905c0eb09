R"cl(
// Sorting by digits, the least significant first, behind sort_key.cl.
//
// A group sorts a tile of TILE = GROUP * EACH entries in local memory by 4 bits at a time, and keeps the
// order of equal ones: each item counts its own EACH neighbours by digit, a scan over (digit, item) gives
// where those of each digit and item begin (Satish, Harris and Garland), and numbers of entries change
// places, not the entries. No item waits for another group, and none writes what others do, so that any
// order of items and groups gives the same. PADDED leaves a gap after every 32 neighbours in local memory:
// so items that read EACH of them each find theirs in different banks.
#define TILE (GROUP * EACH)
#define PADDED(j) ((j) + (j) / 32)
#define DIGITS 256

// Where the key lies in local memory that stands at j in the order of now; and numbers of 16 bits, two a
// word, of an item's entries by digit, while entries find their places.
typedef union {
  ushort order[PADDED(TILE)];
  uint counters[PADDED(8 * GROUP)];
} Ranking;
#define ORDER(j) ranking.order[PADDED(j)]
// Entry e * GROUP + item of a tile, and the entry that lies somewhere.
#define SLOT(e) ((e) * PADDED(GROUP) + PADDED(item))
#define ENTRY_AT(slot) ((slot) - (slot) / 33)
#define COUNTER(digit) ranking.counters[((digit) & 7) * PADDED(GROUP) + item + item / 32]
#define HALF(digit) (((digit) & 8) * 2)

// Before a kernel: its items have no more registers than lets that many groups run at once.
#ifdef __CUDACC__
#define GROUPS_AT_ONCE(groups, name) kernel __launch_bounds__(GROUP, groups) void name(PARAMETERS);
#else
#define GROUPS_AT_ONCE(groups, name)
#endif

// Sorts `order`, the item's neighbours, by the last 4 bits of DIGIT(where they lie), into ORDER. An item has at
// most 16 entries, so that an entry's rank among them takes 4 bits, as its digit does; and a power of 2, so that they lie together.
#define SPLIT_TILE(DIGIT)                                                                   \
  {                                                                                         \
    uint digits[(EACH + 7) / 8] = {0}, ranks[(EACH + 7) / 8] = {0}, words[8], own_sum = 0;  \
    UNROLL for (uint w = 0; w < 8; ++w) COUNTER(w) = 0;                                     \
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                \
      const uint digit = DIGIT(order[e]) & 15;                                              \
      const uint word = COUNTER(digit);                                                     \
      COUNTER(digit) = word + (1u << HALF(digit));                                          \
      digits[e / 8] |= digit << e % 8 * 4;                                                  \
      ranks[e / 8] |= (word >> HALF(digit) & 15) << e % 8 * 4;                              \
    }                                                                                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                                           \
    UNROLL for (uint w = 0; w < 8; ++w) {                                                   \
      words[w] = ranking.counters[PADDED(item * 8 + w)];                                    \
      own_sum += words[w];                                                                  \
    }                                                                                       \
    SCAN_GROUP(own_sum, before, total)                                                      \
    before += total << 16; /* digits from 8 on stand behind all the others */               \
    UNROLL for (uint w = 0; w < 8; ++w) {                                                   \
      ranking.counters[PADDED(item * 8 + w)] = before;                                      \
      before += words[w];                                                                   \
    }                                                                                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                                           \
    ushort to[EACH];                                                                        \
    UNROLL for (uint e = 0; e < EACH; ++e) {                                                \
      const uint digit = digits[e / 8] >> e % 8 * 4 & 15;                                   \
      to[e] = (COUNTER(digit) >> HALF(digit)) + (ranks[e / 8] >> e % 8 * 4 & 15);           \
    }                                                                                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                                           \
    UNROLL for (uint e = 0; e < EACH; ++e) ORDER(to[e]) = order[e];                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                           \
  }
// The item's neighbours in the order of now. COUNTER may be written behind it: a barrier stands in between.
#define TAKE_NEIGHBOURS                                                                     \
  UNROLL for (uint e = 0; e < EACH; ++e) order[e] = ORDER(item * EACH + e);                 \
  barrier(CLK_LOCAL_MEM_FENCE);
)cl"
