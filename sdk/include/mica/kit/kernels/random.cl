// Random fills with Philox 4x32-10 (Salmon et al., SC 2011): a work-item makes the four
// words of one counter and PER elements from them, so that what an element gets
// depends on the seed and its place alone. The host defines PER, PARAMETERS, which
// ends in `count`, and ELEMENT(words, j, i): the value of element i from words j on.
static uint4 philox(ulong seed, ulong counter) {
  uint key0 = (uint)seed, key1 = (uint)(seed >> 32);
  uint4 c = (uint4)((uint)counter, (uint)(counter >> 32), 0, 0);
  for (int round = 0; round < 10; ++round) {
    const uint low0 = 0xD2511F53u * c.x, low1 = 0xCD9E8D57u * c.z;
    const uint high0 = mul_hi(0xD2511F53u, c.x), high1 = mul_hi(0xCD9E8D57u, c.z);
    c = (uint4)(high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

#ifdef LANE_FLOAT
// In [0, 1): all bits that the lane holds, of one word or two.
#ifdef LANE_DOUBLE
#define UNIFORM(w, j) (((((ulong)w[j] << 32) | w[(j) + 1]) >> 11) * 0x1p-53)
#define WORDS 2
#else
#define UNIFORM(w, j) ((w[j] >> 8) * 0x1p-24f)
#define WORDS 1
#endif
// Box and Muller's pair: the cosine for an even element, the sine for an odd one.
static LANE normal(const uint* w, int j) {
  const int pair = j / (2 * WORDS) * (2 * WORDS);
  const LANE radius = sqrt(-2 * log(1 - UNIFORM(w, pair)));
  const LANE angle = (LANE)6.283185307179586f * UNIFORM(w, pair + WORDS);
  return radius * (j == pair ? cos(angle) : sin(angle));
}
#endif
// Uniform below `range`, which is at most 2^63.
static ulong below(const uint* w, int j, ulong range) {
  return PER == 4 ? w[j] % range : (((ulong)w[j] << 32) | w[j + 1]) % range;
}

kernel void draw(PARAMETERS, const ulong seed, const ulong counter, const ulong count) {
  const ulong item = get_global_id(0);
  if (item * PER >= count) return;
  uint words[4];
  vstore4(philox(seed, counter + item), 0, words);
  for (int e = 0; e < PER; ++e) {
    const ulong i = item * PER + e;
    if (i < count) STORE(ELEMENT(words, e * (4 / PER), i), out + i);
  }
}
