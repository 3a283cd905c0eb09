R"cl(
// Walking the channels of a batch, and adding up over them; kernels stand behind this text.
//
// C++ alone, as it stands on the chunks of reduce.cl. A channel is `total` chunks, in runs of `chunks` that lie one
// behind the other in memory. PLANES: the images' planes, a run each, and a chunk is CHUNK neighbours of one
// channel. Else the channels lie side by side, a run is one chunk, and a chunk is one element of each of CHUNK channels.
// A group has COLUMNS times OWN channels and of each a piece of `size` chunks, which LANES work-items
// share. No sum depends on which group runs first. The host defines MEMBERS, the work-items of a group.
#define LANES (MEMBERS / COLUMNS)
#if PLANES
#define OWN 1       // channels of a work-item
#define OF_CHUNK CHUNK  // elements of a channel in a chunk
#define RUN (chunks * CHUNK)
#define LANE_NUMBER ((INDEX)get_local_id(0) % LANES)
#define COLUMN ((INDEX)get_local_id(0) / LANES)
#else
#define OWN CHUNK
#define OF_CHUNK 1
#define RUN ((INDEX)1)
#define LANE_NUMBER ((INDEX)get_local_id(0) / COLUMNS)
#define COLUMN ((INDEX)get_local_id(0) % COLUMNS)
#endif
#define CHANNEL_OF(j) ((j) % OWN)
#define EACH_OWN UNROLL for (uint j = 0; j < OWN; ++j)
#define EACH_ELEMENT UNROLL for (uint j = 0; j < CHUNK; ++j)
#define AHEAD 4  // chunks of a tensor that are on their way at once

#define SHAPE                                                                                       \
  const INDEX channels, const INDEX chunks, const INDEX total, const INDEX size, const INDEX blocks
#define GROUP_BLOCK ((INDEX)get_group_id(0) % blocks)
#define GROUP_PIECE ((INDEX)get_group_id(0) / blocks)
// From the end to the beginning: what the kernel before read last is still near.
#define GROUP_PIECE_FROM_END ((get_num_groups(0) - 1 - (INDEX)get_group_id(0)) / blocks)

// The chunks of a work-item in a piece: how many, where the next one begins and its number in its run.
struct Walk {
  INDEX channel, left, at, number;
  INDEX chunks, step, step_in_run, to_next_run;
  Walk(SHAPE, INDEX piece) : chunks(chunks) {
    channel = (GROUP_BLOCK * COLUMNS + COLUMN) * OWN;
    const INDEX first = piece * size + LANE_NUMBER, end = min(total, (piece + 1) * size);
    left = channel < channels && first < end ? (end - first + LANES - 1) / LANES : 0;
    const INDEX between_runs = channels * RUN;
    number = first % chunks;
    at = channel * RUN + first / chunks * between_runs + number * CHUNK;
    step_in_run = LANES % chunks;
    step = LANES / chunks * between_runs + step_in_run * CHUNK;
    to_next_run = between_runs - chunks * CHUNK;
  }
  void Next() {
    at += step;
#if PLANES
    number += step_in_run;
    if (number >= chunks) {
      number -= chunks;
      at += to_next_run;
    }
#endif
  }
};

// Calls use(at, elements) for each chunk of the walk, where elements[n] are those of the tensor from[n].
template <int N, typename F>
static void each_chunk(Walk walk, const E_INPUT* const (&from)[N], const F& use) {
  while (walk.left > 0) {
    E_INPUT raw[AHEAD][N][CHUNK];
    INDEX at[AHEAD];
    UNROLL for (uint a = 0; a < AHEAD; ++a) {
      at[a] = walk.at;
      if (a < walk.left) UNROLL for (int n = 0; n < N; ++n) load_chunk(from[n] + at[a], raw[a][n], CHUNK);
      walk.Next();
    }
    UNROLL for (uint a = 0; a < AHEAD; ++a) if (a < walk.left) use(at[a], raw[a]);
    walk.left -= min(walk.left, (INDEX)AHEAD);
  }
}

// Adds up over the work-items that share channels; all of them get the sums.
static void sum_lanes(LANE (*slots)[LANES][COLUMNS], LANE* v) {
  const uint lane = LANE_NUMBER, column = COLUMN;
  EACH_OWN slots[j][lane][column] = v[j];
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (uint half_of = LANES / 2; half_of > 0; half_of /= 2) {
    if (lane < half_of)
      EACH_OWN slots[j][lane][column] = v[j] = v[j] + slots[j][lane + half_of][column];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  EACH_OWN v[j] = slots[j][0][column];
  barrier(CLK_LOCAL_MEM_FENCE);
}

// The kernels that put pieces together have FEW channels for a group, each of which MEMBERS / FEW work-items share.
#define FEW 8
#define REST (MEMBERS / FEW)
#define OWN_CHANNEL ((INDEX)get_group_id(0) * FEW + get_local_id(0) % FEW)
static LANE sum_rest(LANE (*slots)[FEW], LANE v) {
  const uint lane = get_local_id(0) / FEW, column = get_local_id(0) % FEW;
  slots[lane][column] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (uint half_of = REST / 2; half_of > 0; half_of /= 2) {
    if (lane < half_of) slots[lane][column] = v = v + slots[lane + half_of][column];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  v = slots[0][column];
  barrier(CLK_LOCAL_MEM_FENCE);
  return v;
}

// The number of a piece's elements of a channel.
static LANE elements_of(INDEX piece, INDEX total, INDEX size) {
  return (LANE)(min(size, total - piece * size) * OF_CHUNK);
}

#if TRAINING
#define DEVIATION(v) (v)
#else
#define DEVIATION(v) (1 / sqrt((v) + eps))
#endif
#ifdef E_WEIGHT
#define WEIGHT_OF(c) LOAD_WEIGHT(weight + (c))
#else
#define E_WEIGHT E_INPUT
#define WEIGHT_OF(c) ((LANE)1)
#endif
#ifdef E_BIAS
#define BIAS_OF(c) LOAD_BIAS(bias + (c))
#else
#define E_BIAS E_INPUT
#define BIAS_OF(c) ((LANE)0)
#endif
)cl"
