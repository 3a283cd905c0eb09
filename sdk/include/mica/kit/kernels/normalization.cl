R"cl(
// Layer normalisation: TEAM work-items for each row, ROWS rows for a group of both.
//
// C++ alone, since it stands on the chunks of reduce.cl. A member of a team takes every
// TEAM-th chunk of CHUNK neighbours; where a row fits, it keeps them in registers (PARTS of
// them), else it reads them for each pass. The host defines for every operand its element
// (E_INPUT, E_WEIGHT, ...) and how a lane is made from it and stored; WHOLE: no row ends
// within a chunk; FOLD: about the root of TEAM. Kernels: normalization_forward.cl,
// normalization_backward.cl and normalization_columns.cl.
#define GROUP (TEAM * ROWS)
#define TEAM_MEMBER ((INDEX)get_local_id(0) % TEAM)

// The sums of N numbers over each team, in an order that is always the same. Each call has slots of its own.
template <int N>
static void team_sums(LANE (*slots)[GROUP], LANE* v) {
#if TEAM > 1
  const uint item = get_local_id(0), member = item % TEAM, first = item - member;
  UNROLL for (int n = 0; n < N; ++n) slots[n][item] = v[n];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (member < FOLD) {
    UNROLL for (int n = 0; n < N; ++n) {
      UNROLL for (uint i = FOLD; i < TEAM; i += FOLD) v[n] += slots[n][item + i];
      slots[n][item] = v[n];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (int n = 0; n < N; ++n) {
    v[n] = slots[n][first];
    UNROLL for (uint i = 1; i < FOLD; ++i) v[n] += slots[n][first + i];
  }
#endif
}

// A member's chunks of the row from its first element to `end`, and how many elements the row has left there.
#if PARTS > 0
#define EACH_CHUNK                               \
  UNROLL for (uint part = 0; part < PARTS; ++part) \
    if (const INDEX chunk = (TEAM_MEMBER + part * TEAM) * CHUNK; chunk < end)
#define KEEP(name, p)                 \
  E_INPUT kept_##name[PARTS][CHUNK];  \
  EACH_CHUNK load_chunk(p + chunk, kept_##name[part], LEFT);
#define RAW(name, p) const E_INPUT* raw_##name = kept_##name[part];
#else
#define EACH_CHUNK for (INDEX chunk = TEAM_MEMBER * CHUNK; chunk < end; chunk += TEAM * CHUNK)
#define KEEP(name, p)
#define RAW(name, p)         \
  E_INPUT raw_##name[CHUNK]; \
  load_chunk(p + chunk, raw_##name, LEFT);
#endif
#if WHOLE
#define LEFT ((INDEX)CHUNK)
#else
#define LEFT (length - chunk)
#endif
#define EACH_ELEMENT UNROLL for (uint j = 0; j < CHUNK; ++j) if (j < LEFT)
#ifdef E_WEIGHT
#define RAW_WEIGHT           \
  E_WEIGHT raw_weight[CHUNK]; \
  load_chunk(weight + chunk, raw_weight, LEFT);
#define WEIGHTED(v) ((v) * LOAD_WEIGHT(raw_weight + j))
#else
#define E_WEIGHT E_INPUT
#define RAW_WEIGHT
#define WEIGHTED(v) (v)
#endif
#ifdef E_BIAS
#define RAW_BIAS         \
  E_BIAS raw_bias[CHUNK]; \
  load_chunk(bias + chunk, raw_bias, LEFT);
#define BIASED(v) ((v) + LOAD_BIAS(raw_bias + j))
#else
#define E_BIAS E_INPUT
#define RAW_BIAS
#define BIASED(v) (v)
#endif
)cl"
