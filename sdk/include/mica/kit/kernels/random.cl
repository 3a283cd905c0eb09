R"cl(
// Random fills; stands after philox.cl: a work-item makes PER elements of the four words of one
// counter. The host defines PER; PARAMETERS: `out` and the draw's own; ELEMENT: the type of a
// result in memory; ROUNDED(v): a lane as it is held there; BEFORE_ALL: what the values of a
// work-item share; and VALUE(words, j, i): the value of element i, from words j on.
#ifdef LANE_FLOAT
static LANE rounded_f16(LANE v) {
  ushort bits;
  vstore_half_rte((float)v, 0, (private half*)&bits);
  return vload_half(0, (private half*)&bits);
}
#define rounded_bf16(v) from_bf16(to_bf16(v))
#define rounded_f32(v) (v)
#define rounded_f64(v) (v)
// In [from, to): a value that rounds to the upper end, which does not belong to it, becomes
// the lower end.
static LANE uniform(LANE u, LANE from, LANE to) {
  const LANE v = u * (to - from) + from;
  return ROUNDED(v) >= to ? from : v;
}

// In [0, 1): all bits that the lane holds, of one word or two.
#ifdef LANE_DOUBLE
#define UNIFORM(w, j) (((((ulong)w[j] << 32) | w[(j) + 1]) >> 11) * 0x1p-53)
#define WORDS 2
#else
#define UNIFORM(w, j) ((w[j] >> 8) * 0x1p-24f)
#define WORDS 1
#endif
// Box and Muller's pairs: the cosine for an even element, the sine for an odd one.
#if defined(__CUDACC__) && !defined(LANE_DOUBLE)
// Instructions of the hardware, exact to 2^-20: the whole functions are most of what a draw computes.
#define ROOT(x) root_nearly(x)
#define COSINE(x) __cosf(x)
#define SINE(x) __sinf(x)
#else
#define ROOT(x) sqrt(x)
#define COSINE(x) cos(x)
#define SINE(x) sin(x)
#endif
static void normals(const uint* w, LANE* z) {
  UNROLL for (int pair = 0; pair < PER; pair += 2) {
    const LANE radius = ROOT(-2 * log(1 - UNIFORM(w, pair * WORDS)));
    const LANE angle = (LANE)6.283185307179586f * UNIFORM(w, pair * WORDS + WORDS);
#ifdef __CUDACC__
    __builtin_assume(fabs(angle) < 8);  // large angles are reduced through memory of the stack
#endif
    z[pair] = radius * COSINE(angle);
    z[pair + 1] = radius * SINE(angle);
  }
}
#endif
// Uniform below `range`, which is at most 2^63.
static ulong below(const uint* w, int j, ulong range) {
  return PER == 4 ? w[j] % range : (((ulong)w[j] << 32) | w[j + 1]) % range;
}
// Whether an event of probability p happens.
static LANE chance(uint w, float p, global int* raised) {
  if (!(p >= 0 && p <= 1)) *raised = 1;
  return (ulong)w < (ulong)(p * 4294967296.0f);
}

kernel void draw(PARAMETERS, const ulong seed, const ulong counter, const ulong count RECORDED_PLACE) {
  const INDEX first_of_item = (INDEX)get_global_id(0) * PER;
  if (first_of_item >= count) return;
  uint words[4];
  philox(SEED, FIRST_COUNTER + get_global_id(0), words);
  BEFORE_ALL
#ifndef __OPENCL_VERSION__  // whose pointers into memory point nowhere else
  if (first_of_item + PER <= count) {
    ELEMENT made[PER];
    UNROLL for (int e = 0; e < PER; ++e)
      STORE(VALUE(words, e * (4 / PER), first_of_item + e), made + e);
    STORE_VECTOR(PER, PACK(PER, made), out + first_of_item);
    return;
  }
#endif
  UNROLL for (int e = 0; e < PER; ++e) {
    const INDEX i = first_of_item + e;
    if (i < count) STORE(VALUE(words, e * (4 / PER), i), out + i);
  }
}
)cl"
