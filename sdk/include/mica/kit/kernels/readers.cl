R"cl(
// The readers of each place of resampling.cl's transposed tables, which stands before: the first row that reads it,
// and the last. Whole numbers, so that it does not matter in which order work-items come.
#ifdef __OPENCL_VERSION__
#define MAX_IN(p, x) atomic_max((volatile global uint*)(p), x)
#elif defined(__CUDACC__)
#define MAX_IN(p, x) atomicMax(p, x)
#else
#define MAX_IN(p, x)                                                                    \
  for (uint most = *(p); most < (x) && !__sync_bool_compare_and_swap(p, most, x);) { \
    most = *(p);                                                                        \
  }
#endif
// Fills the readers, zeros before, of the dimension that the group's second number says.
#define FIND(d)                                                 \
  if (get_group_id(1) == d && i < out##d * TAPS_##d) {          \
    const long at = places##d[i];                               \
    const uint row = (uint)(i / TAPS_##d);                      \
    if ((ulong)at < in##d) {                                    \
      MAX_IN(readers##d + 2 * at, (uint)out##d - row);          \
      MAX_IN(readers##d + 2 * at + 1, row + 1);                 \
    } else if (IS_OUTSIDE(at)) {                                \
      *raised = 1;                                              \
    }                                                           \
  }
kernel void find_readers(MAPS global int* raised) {
  const INDEX i = get_global_id(0);
  FIND_ALL
}
)cl"
