R"cl(
// Dropout in one pass; stands after philox.cl: a work-item draws a word for each of four neighbours, as
// bernoulli_ does, and writes their mask and the elements that stay, scaled.
#define PER 4
kernel void dropout(const global ELEMENT* in, global ELEMENT* out, global uchar* mask, const ulong threshold,
                    const LANE scale, const ulong seed, const ulong counter, const INDEX count RECORDED_PLACE) {
  const INDEX first = (INDEX)get_global_id(0) * PER;
  if (first >= count) return;
  uint words[PER];
  philox(SEED, FIRST_COUNTER + get_global_id(0), words);
#ifndef __OPENCL_VERSION__  // whose pointers into memory point nowhere else
  if (first + PER <= count) {
    ELEMENT raw[PER], made[PER];
    uchar kept[PER];
    UNPACK(PER, LOAD_VECTOR(PER, in + first), raw);
    UNROLL for (int e = 0; e < PER; ++e) {
      kept[e] = words[e] < threshold;
      STORE(LOAD(raw + e) * kept[e] * scale, made + e);
    }
    STORE_VECTOR(PER, PACK(PER, made), out + first);
    STORE_VECTOR(PER, PACK(PER, kept), mask + first);
    return;
  }
#endif
  UNROLL for (int e = 0; e < PER; ++e) {
    const INDEX i = first + e;
    if (i >= count) continue;
    mask[i] = words[e] < threshold;
    STORE(LOAD(in + i) * mask[i] * scale, out + i);
  }
}
)cl"
