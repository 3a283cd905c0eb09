R"cl(
// Reductions, scans and rows: a team of TEAM work-items for each row.
//
// A row is one position of the kept dimensions; its elements are the positions of
// the other dimensions. Each member of a team walks every TEAM-th element, or
// every TEAM-th chunk of CHUNK; then the team combines its states through local memory, and
// all members read the result.
// A team of one needs no memory and no barrier. The kernel itself is generated
// (reduce_source.h) around these macros.
#if TEAM > 1
#define ROW_NUMBER ((INDEX)get_group_id(0))
#define MEMBER ((INDEX)get_local_id(0))
#else
#define ROW_NUMBER ((INDEX)get_global_id(0))
#define MEMBER ((INDEX)0)
#endif

// PUT(i) writes the states to slot i of local memory, GET(i) reads them from it,
// GET_RIGHT(i) reads them as the right side of COMBINE. The first MEMBERS have elements.
#define COMBINE_TEAM(PUT, GET, GET_RIGHT, COMBINE) \
  PUT(MEMBER)                                      \
  barrier(CLK_LOCAL_MEM_FENCE);                    \
  for (uint half_team = TEAM / 2; half_team > 0; half_team /= 2) { \
    if (MEMBER < half_team && MEMBER + half_team < MEMBERS) {      \
      GET_RIGHT(MEMBER + half_team)                \
      COMBINE                                      \
      PUT(MEMBER)                                  \
    }                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                  \
  }                                                \
  GET(0)                                           \
  barrier(CLK_LOCAL_MEM_FENCE);

#ifdef CHUNK
// CHUNK neighbours as they stand in memory, `left` of them in the row; one access where they
// are aligned. C++ alone: elements are then read of a private array as they are of memory.
template <typename T>
struct alignas(CHUNK * sizeof(T) < 16 ? CHUNK * sizeof(T) : 16) Chunk {
  T v[CHUNK];
};
template <typename T>
static bool is_aligned(const T* p) {
  return (size_t)p % alignof(Chunk<T>) == 0;
}
template <typename T>
static void load_aligned(const T* p, T* to) {
  const Chunk<T> c = *(const Chunk<T>*)p;
  UNROLL for (int i = 0; i < CHUNK; ++i) to[i] = c.v[i];
}
template <typename T>
static void store_aligned(const T* from, T* p) {
  Chunk<T> c;
  UNROLL for (int i = 0; i < CHUNK; ++i) c.v[i] = from[i];
  *(Chunk<T>*)p = c;
}
template <typename T>
static void load_chunk(const T* p, T* to, INDEX left) {
  if (left >= CHUNK && is_aligned(p)) {
    load_aligned(p, to);
  } else {
    UNROLL for (int i = 0; i < CHUNK; ++i) if (i < left) to[i] = p[i];
  }
}
template <typename T>
static void store_chunk(const T* from, T* p, INDEX left) {
  if (left >= CHUNK && is_aligned(p)) {
    store_aligned(from, p);
  } else {
    UNROLL for (int i = 0; i < CHUNK; ++i) if (i < left) p[i] = from[i];
  }
}
#endif
)cl"
