R"cl(
// Scans in teams, behind reduce.cl: a team for each row, or for each piece of one.
//
// A team takes TEAM * EACH elements at a time, each member EACH neighbours: it folds them, the team scans
// the members' states, and each goes through its elements again from what stands before them. Pieces of a
// row are folded by a first kernel ("part"), and a second ("rest") scans the pieces' states and the piece.
// Where a row lies densely, LOAD_OWN reads a member's neighbours at once and STORE_OWN writes them.
// The host defines LOAD_ELEMENT (element k's offsets and values), BEGIN and STEP (the state from the first
// element, and from a further one), COMBINE, RESULTS, and how states move between the registers s<k>
// (left) and t<k> (right), a team's slots, `partial`, and the registers that carry them to the next elements.
#define TEAM_PIECE                                                                                    \
  if (ROW_NUMBER >= rows * splits) return;                                                            \
  const INDEX row = PIECE_ROW, part = PIECE_PART, piece = (length + splits - 1) / splits;             \
  const INDEX begin = min(length, part * piece), end = min(length, begin + piece);
#ifdef BY_COLUMN
#define PIECE_ROW (ROW_NUMBER % rows)
#define PIECE_PART (ROW_NUMBER / rows)
#else
#define PIECE_ROW (ROW_NUMBER / splits)
#define PIECE_PART (ROW_NUMBER % splits)
#endif

#if TEAM > 1
#define EACH_ELEMENT(first, last) UNROLL for (uint j = 0; j < EACH; ++j) if (first + j < (last))
#else
#define EACH_ELEMENT(first, last) for (INDEX j = 0; first + j < (last); ++j)
#endif
#define FOLD(first, last)                              \
  EACH_ELEMENT(first, last) {                          \
    const INDEX k = first + j;                         \
    LOAD_ELEMENT                                       \
    if (j == 0) {                                      \
      BEGIN                                            \
    } else {                                           \
      STEP                                             \
    }                                                  \
  }
// Through elements that may have others before them, whose state is in s<k>.
#define APPLY(first, last, has_before)                 \
  EACH_ELEMENT(first, last) {                          \
    const INDEX k = first + j;                         \
    LOAD_ELEMENT                                       \
    if (j == 0 && !(has_before)) {                     \
      BEGIN                                            \
    } else {                                           \
      STEP                                             \
    }                                                  \
    RESULTS                                            \
  }

#if TEAM > 1
// The slots of the first `used` members get what the members up to each have; s<k> too.
#define SCAN_TEAM(used)                                                \
  PUT(MEMBER)                                                          \
  barrier(CLK_LOCAL_MEM_FENCE);                                        \
  for (uint apart = 1; apart < TEAM; apart *= 2) {                     \
    const bool joins = MEMBER >= apart && MEMBER < (used);             \
    if (joins) {                                                       \
      GET_RIGHT(MEMBER)                                                \
      GET(MEMBER - apart)                                              \
      COMBINE                                                          \
    }                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                      \
    if (joins) {                                                       \
      PUT(MEMBER)                                                      \
    }                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                      \
  }
// Into the carry, behind what it has: the state of all `used` members.
#define CARRY(has_carry, used)                                         \
  if (has_carry) {                                                     \
    GET_RIGHT((used) - 1)                                              \
    FROM_CARRY                                                         \
    COMBINE                                                            \
  } else {                                                             \
    GET((used) - 1)                                                    \
  }                                                                    \
  TO_CARRY
#define EACH_TILE                                                                                      \
  for (INDEX tile = begin; tile < end; tile += TEAM * EACH) {                                          \
    const INDEX used = min((INDEX)TEAM, (end - tile + EACH - 1) / EACH);                               \
    const INDEX own = min(end, tile + MEMBER * EACH), own_end = min(end, own + EACH);                  \
    LOAD_OWN                                                                                           \
    FOLD(own, own_end)                                                                                 \
    SCAN_TEAM(used)
#define FOLD_PIECE                                  \
  EACH_TILE                                         \
    CARRY(tile > begin, used)                       \
    barrier(CLK_LOCAL_MEM_FENCE);                   \
  }                                                 \
  if (MEMBER == 0) {                                \
    PUT_PART(part)                                  \
  }
#define SCAN_PIECE                                                     \
  EACH_TILE                                                            \
    const bool has_carry = begin > 0 || tile > begin;                  \
    if (MEMBER > 0) {                                                  \
      if (has_carry) {                                                 \
        GET_RIGHT(MEMBER - 1)                                          \
        FROM_CARRY                                                     \
        COMBINE                                                        \
      } else {                                                         \
        GET(MEMBER - 1)                                                \
      }                                                                \
    } else {                                                           \
      FROM_CARRY                                                       \
    }                                                                  \
    APPLY(own, own_end, has_carry || MEMBER > 0)                       \
    STORE_OWN                                                          \
    CARRY(has_carry, used)                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                      \
  }
// The state of the pieces before this one, at most as many as a team has members, into the carry.
#define BEFORE_PIECE                                \
  if (part > 0) {                                   \
    if (MEMBER < part) {                            \
      GET_PART(MEMBER)                              \
    }                                               \
    SCAN_TEAM(part)                                 \
    CARRY(false, part)                              \
    barrier(CLK_LOCAL_MEM_FENCE);                   \
  }
#else
#define FOLD_PIECE    \
  FOLD(begin, end)    \
  PUT_PART(part)
#define SCAN_PIECE    \
  FROM_CARRY          \
  APPLY(begin, end, begin > 0)
#define BEFORE_PIECE                          \
  for (INDEX k = 0; k < part; ++k) {          \
    GET_PART(k)                               \
    if (k > 0) {                              \
      TO_RIGHT                                \
      FROM_CARRY                              \
      COMBINE                                 \
    }                                         \
    TO_CARRY                                  \
  }
#endif
)cl"
