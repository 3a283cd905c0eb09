R"cl(
// Reductions, scans and rows: a team of TEAM work-items for each row.
//
// A row is one position of the kept dimensions; its elements are the positions of
// the other dimensions. Each member of a team walks every TEAM-th element, or, IN_ORDER, its
// share of neighbours; then the team combines its states through local memory, and all
// members read the result.
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
// GET_RIGHT(i) reads them as the right side of COMBINE. In order, the right side's elements
// follow the left's, and `members` have any.
#ifdef IN_ORDER
#define PAIRS(distance) (uint distance = 1; distance < TEAM; distance *= 2)
#define IS_LEFT(distance) (MEMBER % (2 * distance) == 0 && MEMBER + distance < members)
#else
#define PAIRS(distance) (uint distance = TEAM / 2; distance > 0; distance /= 2)
#define IS_LEFT(distance) (MEMBER < distance)
#endif
#define COMBINE_TEAM(PUT, GET, GET_RIGHT, COMBINE) \
  PUT(MEMBER)                                      \
  barrier(CLK_LOCAL_MEM_FENCE);                    \
  for PAIRS(distance) {                            \
    if (IS_LEFT(distance)) {                       \
      GET_RIGHT(MEMBER + distance)                 \
      COMBINE                                      \
      PUT(MEMBER)                                  \
    }                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                  \
  }                                                \
  GET(0)                                           \
  barrier(CLK_LOCAL_MEM_FENCE);
)cl"
