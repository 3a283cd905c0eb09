R"cl(
// Keys of elements, and what kernels that sort share: sort.cl, radix.cl and select.cl stand behind this.
//
// Rows are sorted by (key, place): keys are unsigned integers that compare as the elements do, places
// number a row's elements, so that no two entries are equal and equal elements keep their order. The host
// defines BITS (an element, or a key of a list), KEY, KEY_BITS, SIGN and ALL (bits of a key), FLOATING with
// LARGEST (infinity's bits), SIGNED or TRUTH, FLIP where the order falls, GROUP, SIZES (parameters),
// ROW(row) (declares at_0, at_1, at_2: where a row lies in `in`, `values` and `indices`) and STEP_0..
// (parameters too: from element to element).
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

// The element that has a key; a zero and a NaN are read again, since several have theirs.
#ifdef FLIP
#define UNFLIPPED(key) ((key) ^ ALL)
#else
#define UNFLIPPED(key) (key)
#endif
#ifdef FLOATING
#define ELEMENT_OF(key, element) \
  (UNFLIPPED(key) == ALL || UNFLIPPED(key) == SIGN ? (element) : bits_of(UNFLIPPED(key)))
static BITS bits_of(KEY key) { return (BITS)(key & SIGN ? key ^ SIGN : key ^ ALL); }
#elif defined(SIGNED)
#define ELEMENT_OF(key, element) ((BITS)(UNFLIPPED(key) ^ SIGN))
#elif defined(TRUTH)
#define ELEMENT_OF(key, element) ((BITS)(UNFLIPPED(key) & 1))
#else
#define ELEMENT_OF(key, element) ((BITS)UNFLIPPED(key))
#endif

#define LESS(a, p, b, q) ((a) < (b) || ((a) == (b) && (p) < (q)))
// Behind every entry of a row.
#define NO_KEY (~(KEY)0)
#define NO_PLACE 0xffffffffu

#define PARAMETERS                                                                                      \
  const global BITS *in, global BITS *values, global long *indices, global BITS *keys_0,                \
      global uint *places_0, global BITS *keys_1, global uint *places_1, global uint *counts,           \
      SIZES const INDEX row_begin, const uint rows, const uint length, const uint pitch_from,           \
      const uint pitch_to, const uint parts, const uint piece, const uint shift, const uint from_rows,  \
      const uint to_rows, const uint first, const uint kept
// Entry j of the asked ones of a row.
#define GIVE(j, key, place)                                                                 \
  {                                                                                         \
    values[at_1 + (j) * step_1] = ELEMENT_OF(key, in[at_0 + (place) * step_0]);             \
    indices[at_2 + (j) * step_2] = place;                                                   \
  }

// Sorts each `padded` of `count` entries of keys and places in local memory, both powers of 2 (Batcher's
// bitonic network).
#define SORT_LOCAL(count, padded)                                                           \
  for (uint run = 2; run <= (padded); run *= 2)                                             \
    for (uint apart = run / 2; apart > 0; apart /= 2) {                                     \
      barrier(CLK_LOCAL_MEM_FENCE);                                                         \
      for (uint t = get_local_id(0); t < (count) / 2; t += GROUP) {                         \
        const uint a = 2 * t - (t & (apart - 1)), b = a + apart;                            \
        const bool falls = (a & run & ((padded) - 1)) != 0;                                 \
        const KEY key_a = keys[a], key_b = keys[b];                                         \
        const uint place_a = places[a], place_b = places[b];                                \
        if ((LESS(key_b, place_b, key_a, place_a)) != falls) {                              \
          keys[a] = key_b, keys[b] = key_a;                                                 \
          places[a] = place_b, places[b] = place_a;                                         \
        }                                                                                   \
      }                                                                                     \
    }                                                                                       \
  barrier(CLK_LOCAL_MEM_FENCE);

// `before` becomes the sum of `own` of the items before this one, `total` that of all. A barrier must
// stand between two of them, which share `sums`, of 2 * GROUP numbers. Where 32 neighbours add up without
// local memory (HAS_SUMS_OF_32), one barrier is enough of the nine that 256 items need else.
#ifdef HAS_SUMS_OF_32
#define SCAN_GROUP(own, before, total)                                                      \
  uint before = sum_up_to(own), total = 0;                                                  \
  if (item % 32 == 31) sums[item / 32] = before;                                            \
  barrier(CLK_LOCAL_MEM_FENCE);                                                             \
  UNROLL for (uint others = 0; others < GROUP / 32; ++others) {                             \
    if (others == item / 32) before += total;                                               \
    total += sums[others];                                                                  \
  }                                                                                         \
  before -= own;
#else
#define SCAN_GROUP(own, before, total)                                                      \
  uint before = own, total, half_of_sums = 0;                                               \
  sums[item] = before;                                                                      \
  barrier(CLK_LOCAL_MEM_FENCE);                                                             \
  for (uint apart = 1; apart < GROUP; apart *= 2) {                                         \
    if (item >= apart) before += sums[half_of_sums + item - apart];                         \
    half_of_sums ^= GROUP;                                                                  \
    sums[half_of_sums + item] = before;                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                           \
  }                                                                                         \
  before -= own;                                                                            \
  total = sums[half_of_sums + GROUP - 1];
#endif
)cl"
