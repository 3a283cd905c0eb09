R"cl(
// Cross entropy of logits and class indices in one pass, and its gradient; stands after normalization.cl.
//
// A member of a row's team takes AT_ONCE chunks at a time. It holds the greatest element that it met and the
// sum of exp(x - greatest), which is scaled anew when a greater one comes (Milakov and Gimelshein, 2018, "Online
// normalizer calculation for softmax"). Rows begin anywhere in memory and chunks are aligned: the first chunk
// of a row may begin before it. Where there is no element, there is -infinity.
#define NONE 0
#define MEAN 1
#define STEP (TEAM * CHUNK)
#define NOTHING (-(LANE)INFINITY)
#define ROW ((INDEX)get_group_id(0) * ROWS + get_local_id(0) / TEAM)
// A member's first element of the row x, which is negative where an aligned chunk begins before the row.
#define FIRST(x) ((int)(TEAM_MEMBER * CHUNK) - (int)((size_t)(x) / sizeof(E_INPUT) % CHUNK))
#define EACH_PIECE(x, length) for (int k = FIRST(x); k < length; k += AT_ONCE * STEP)

static void load_piece(const E_INPUT* x, int k, int length, LANE (*to)[CHUNK]) {
  if (k >= 0 && k + (AT_ONCE - 1) * STEP + CHUNK <= length) {
    Chunk<E_INPUT> raw[AT_ONCE];  // all of them are on their way before the first is used
    UNROLL for (int part = 0; part < AT_ONCE; ++part) raw[part] = *(const Chunk<E_INPUT>*)(x + k + part * STEP);
    UNROLL for (int part = 0; part < AT_ONCE; ++part)
      UNROLL for (int j = 0; j < CHUNK; ++j) to[part][j] = LOAD_INPUT(raw[part].v + j);
    return;
  }
  UNROLL for (int part = 0; part < AT_ONCE; ++part) {
    const int chunk = k + part * STEP;
    if (chunk >= 0 && chunk + CHUNK <= length) {
      const Chunk<E_INPUT> raw = *(const Chunk<E_INPUT>*)(x + chunk);
      UNROLL for (int j = 0; j < CHUNK; ++j) to[part][j] = LOAD_INPUT(raw.v + j);
    } else {
      UNROLL for (int j = 0; j < CHUNK; ++j)
        to[part][j] = chunk + j >= 0 && chunk + j < length ? LOAD_INPUT(x + chunk + j) : NOTHING;
    }
  }
}

static void store_piece(const LANE (*from)[CHUNK], E_INPUT* out, int k, int length) {
  UNROLL for (int part = 0; part < AT_ONCE; ++part) {
    const int chunk = k + part * STEP;
    Chunk<E_INPUT> made;
    UNROLL for (int j = 0; j < CHUNK; ++j) STORE_INPUT(from[part][j], made.v + j);
    if (chunk >= 0 && chunk + CHUNK <= length && (size_t)(out + chunk) % alignof(Chunk<E_INPUT>) == 0) {
      *(Chunk<E_INPUT>*)(out + chunk) = made;
    } else {
      UNROLL for (int j = 0; j < CHUNK; ++j)
        if (chunk + j >= 0 && chunk + j < length) out[chunk + j] = made.v[j];
    }
  }
}

// The greatest of the team's numbers, of which none is NaN.
static LANE team_greatest(LANE* slots, LANE v) {
#if TEAM > 1
  const uint item = get_local_id(0), member = item % TEAM, first = item - member;
  slots[item] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (member < FOLD) {
    UNROLL for (uint i = FOLD; i < TEAM; i += FOLD) v = fmax(v, slots[item + i]);
    slots[item] = v;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  v = slots[first];
  UNROLL for (uint i = 1; i < FOLD; ++i) v = fmax(v, slots[first + i]);
#endif
  return v;
}

static LANE weight_of(const E_INPUT* weight, long stride, long chosen) {
  return weight ? LOAD_INPUT(weight + chosen * stride) : (LANE)1;
}

// Each row's normalizers, its greatest element and the logarithm of its sum, all of one kind and then all of the
// other; and its loss: to `out` where nothing is reduced, else to `losses`, with the weights behind.
kernel void cross_entropy(const global E_INPUT* input, const global long* target, const long target_stride,
                          const global E_INPUT* weight, const long weight_stride, const INDEX rows,
                          const INDEX length, const INDEX stride, const int reduction, const long ignored,
                          global E_INPUT* out, global LANE* total, global LANE* normalizers, global LANE* losses, global int* raised) {
  local LANE slots[2][GROUP];
  const INDEX row = ROW;
  const int end = row < rows ? length : 0;  // a team without a row waits with the others
  const global E_INPUT* x = input + row * stride;
  const bool tells = TEAM_MEMBER == 0 && row < rows;
  const long chosen = tells ? target[row * target_stride] : ignored;
  const bool inside = chosen >= 0 && chosen < (long)length;
  const LANE x_chosen = tells && inside ? LOAD_INPUT(x + chosen) : (LANE)0;

  LANE greatest = NOTHING, sum = 0;
  EACH_PIECE(x, end) {
    LANE v[AT_ONCE][CHUNK];
    load_piece(x, k, end, v);
    LANE most = NOTHING;  // of a NaN the sum tells
    UNROLL for (int part = 0; part < AT_ONCE; ++part)
      UNROLL for (int j = 0; j < CHUNK; ++j) most = fmax(most, v[part][j]);
    if (most > greatest) {
      sum *= exp(greatest - most);
      greatest = most;
    }
    const LANE base = greatest == NOTHING ? (LANE)0 : greatest;
    UNROLL for (int part = 0; part < AT_ONCE; ++part)
      UNROLL for (int j = 0; j < CHUNK; ++j) sum += exp(v[part][j] - base);
  }
  const LANE own = greatest;
  greatest = team_greatest(slots[0], own);
  sum *= exp(own - (greatest == NOTHING ? (LANE)0 : greatest));
  team_sums<1>(slots + 1, &sum);

  if (!tells) return;
  const LANE log_sum = log(sum);
  normalizers[row] = greatest;
  normalizers[rows + row] = log_sum;
  LANE loss = 0, counts = 0;
  if (chosen != ignored) {
    if (inside) {
      counts = weight_of(weight, weight_stride, chosen);
      loss = counts * ((greatest - x_chosen) + log_sum);
    } else {
      *raised = (int)row + 1;
    }
  }
  if (reduction == NONE) {
    STORE_INPUT(loss, out + row);
    if (row == 0) *total = 0;
  } else {
    losses[row] = loss;
    losses[rows + row] = counts;
  }
}

// One group adds up what the rows have, always in the same order.
kernel void add_rows(const global LANE* losses, const INDEX rows, const int reduction, global E_INPUT* out,
                     global LANE* total) {
  local LANE sums[2][ADDERS];
  const uint member = get_local_id(0);
  LANE loss = 0, counts = 0;
  for (INDEX row = member; row < rows; row += ADDERS) {
    loss += losses[row];
    counts += losses[rows + row];
  }
  sums[0][member] = loss;
  sums[1][member] = counts;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_group = ADDERS / 2; half_group > 0; half_group /= 2) {
    if (member < half_group) {
      sums[0][member] += sums[0][member + half_group];
      sums[1][member] += sums[1][member + half_group];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (member != 0) return;
  STORE_INPUT(reduction == MEAN ? sums[0][0] / sums[1][0] : sums[0][0], out);
  *total = sums[1][0];
}

kernel void cross_entropy_backward(const global E_INPUT* grad, const long grad_stride, const global E_INPUT* input,
                                   const global long* target, const long target_stride,
                                   const global E_INPUT* weight, const long weight_stride, const INDEX rows,
                                   const INDEX length, const INDEX stride, const int reduction,
                                   const long ignored,
                                   const global LANE* total, const global LANE* normalizers, global E_INPUT* out) {
  const INDEX row = ROW;
  if (row >= rows) return;
  const global E_INPUT* x = input + row * stride;
  const long chosen = target[row * target_stride];
  // A row that does not count has a gradient of 0, whatever it holds.
  const bool has = chosen != ignored && chosen >= 0 && chosen < (long)length;
  LANE g = 0;
  if (has) {
    g = LOAD_INPUT(grad + (reduction == NONE ? (long)row * grad_stride : 0));
    if (reduction == MEAN) g /= *total;
    g *= weight_of(weight, weight_stride, chosen);
  }
  const LANE greatest = normalizers[row], log_sum = normalizers[rows + row];
  const int end = length, at = has ? (int)chosen : -1;
  EACH_PIECE(x, end) {
    LANE v[AT_ONCE][CHUNK];
    if (has) load_piece(x, k, end, v);
    UNROLL for (int part = 0; part < AT_ONCE; ++part)
      UNROLL for (int j = 0; j < CHUNK; ++j)
        v[part][j] = has ? g * (exp(v[part][j] - greatest - log_sum) - (k + part * STEP + j == at)) : (LANE)0;
    store_piece(v, out + row * length, k, end);
  }
}
)cl"
