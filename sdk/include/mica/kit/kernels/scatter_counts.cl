R"cl(
// Behind scatter.cl where it matters how many elements go to each place: `counts` has a number
// for each element of `to`, which is dense.
#ifdef __OPENCL_VERSION__
#define COUNT_UP(p) atomic_inc((volatile global uint*)(p))
#elif defined(__CUDACC__)
#define COUNT_UP(p) atomicAdd((uint*)(p), 1u)
#else
#define COUNT_UP(p) __sync_fetch_and_add((uint*)(p), 1u)
#endif

// How many elements go to each place: the same arguments.
kernel void count_elements(PARAMETERS, global uint* counts, global int* raised, const ulong count) {
  const INDEX i = get_global_id(0);
  if (i >= count) return;
  SIDE
  bool inside = true;
  INDEX from = 0;
  PLACE
  if (inside) COUNT_UP(counts + from);
}

// Places that get an element begin without their own.
kernel void leave_out_self(global LANE* to, const global uint* counts, const ulong count) {
  const ulong i = get_global_id(0);
  if (i < count && counts[i] > 0) to[i] = NEUTRAL;
}

// Sums of counts[i] + own elements; of integers the floor.
kernel void divide_by_counts(global LANE* to, const global uint* counts, const uint own, const ulong count) {
  const ulong i = get_global_id(0);
  if (i >= count) return;
  const LANE n = (LANE)(counts[i] + own), sum = to[i];
  if (counts[i] + own < 2) return;
#ifdef LANE_FLOAT
  to[i] = sum / n;
#else
  to[i] = sum / n - (sum % n != 0 && sum < 0);
#endif
}
)cl"
