// Reductions, scans and rows: a team of TEAM work-items for each row.
//
// A row is one position of the kept dimensions; its elements are the positions of
// the other dimensions. Each member of a team walks every TEAM-th element; then the
// team combines its states through local memory, and all members read the result.
// A team of one needs no memory and no barrier. The kernel itself is generated
// (reduce.cc) around these macros.
#if TEAM > 1
#define ROW_NUMBER ((INDEX)get_group_id(0))
#define MEMBER ((INDEX)get_local_id(0))
#else
#define ROW_NUMBER ((INDEX)get_global_id(0))
#define MEMBER ((INDEX)0)
#endif

// PUT(i) writes the states to slot i of local memory, GET(i) reads them from it,
// GET_RIGHT(i) reads them as the right side of COMBINE.
#define COMBINE_TEAM(PUT, GET, GET_RIGHT, COMBINE) \
  PUT(MEMBER)                                      \
  barrier(CLK_LOCAL_MEM_FENCE);                    \
  for (uint half_team = TEAM / 2; half_team > 0; half_team /= 2) { \
    if (MEMBER < half_team) {                      \
      GET_RIGHT(MEMBER + half_team)                \
      COMBINE                                      \
      PUT(MEMBER)                                  \
    }                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                  \
  }                                                \
  GET(0)                                           \
  barrier(CLK_LOCAL_MEM_FENCE);
