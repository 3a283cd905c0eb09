R"cl(
// Philox 4x32-10 (Salmon et al., SC 2011): the four words of one counter, so that what an element
// gets depends on the seed and its place alone.
static void philox(ulong seed, ulong counter, uint* words) {
  uint key0 = (uint)seed, key1 = (uint)(seed >> 32);
  uint x = (uint)counter, y = (uint)(counter >> 32), z = 0, w = 0;
  for (int round = 0; round < 10; ++round) {
    const uint low0 = 0xD2511F53u * x, low1 = 0xCD9E8D57u * z;
    const uint high0 = mul_hi(0xD2511F53u, x), high1 = mul_hi(0xCD9E8D57u, z);
    x = high1 ^ y ^ key0, y = low1, z = high0 ^ w ^ key1, w = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  words[0] = x, words[1] = y, words[2] = z, words[3] = w;
}
// Kernels take `seed` and `counter`, and RECORDED_PLACE behind their other parameters.
#ifdef RECORDED  // work that is run again, each time from another place of the generator
#define RECORDED_PLACE , const global ulong* recorded
#define SEED recorded[0]
#define FIRST_COUNTER (recorded[1] / 4 + counter)
#else
#define RECORDED_PLACE
#define SEED seed
#define FIRST_COUNTER counter
#endif
)cl"
