R"cl(
// The gradients of weight and bias, which are sums of columns; stands after normalization.cl.
//
// A group walks a piece of the rows in strides of LANES for COLUMNS chunks of neighbours and
// leaves the sums in `partial`, SUMS of them: for WANTS_WEIGHT, then for WANTS_BIAS. A second
// kernel adds up the pieces. No sum depends on which group is the first.
#define LANES (256 / COLUMNS)
kernel void parameter_part(const global E_INPUT* gradient, const global E_INPUT* input,
                           const global E_STATISTIC* means, const global E_STATISTIC* rstds, const INDEX rows,
                           const INDEX length, const INDEX blocks, const INDEX pieces, global LANE* partial) {
  local LANE slots[SUMS][LANES][COLUMNS * CHUNK];
  const uint column = get_local_id(0) % COLUMNS, lane = get_local_id(0) / COLUMNS;
  const INDEX block = (INDEX)get_group_id(0) % blocks, piece = (INDEX)get_group_id(0) / blocks;
  const INDEX size = (rows + pieces - 1) / pieces;
  const INDEX begin = min(rows, piece * size), end = min(rows, begin + size);
  const INDEX chunk = (block * COLUMNS + column) * CHUNK;
  LANE sums[SUMS][CHUNK];
  UNROLL for (uint s = 0; s < SUMS; ++s) UNROLL for (uint j = 0; j < CHUNK; ++j) sums[s][j] = 0;
  if (chunk < length) {
    for (INDEX row = begin + lane; row < end; row += LANES) {
      E_INPUT raw_g[CHUNK];
      load_chunk(gradient + row * length + chunk, raw_g, LEFT);
#ifdef WANTS_WEIGHT
      E_INPUT raw_x[CHUNK];
      load_chunk(input + row * length + chunk, raw_x, LEFT);
      const LANE mean = LOAD_STATISTIC(means + row), rstd = LOAD_STATISTIC(rstds + row);
#endif
      EACH_ELEMENT {
        const LANE g = LOAD_INPUT(raw_g + j);
#ifdef WANTS_WEIGHT
        sums[0][j] += g * ((LOAD_INPUT(raw_x + j) - mean) * rstd);
#endif
#ifdef WANTS_BIAS
        sums[SUMS - 1][j] += g;
#endif
      }
    }
  }
  UNROLL for (uint s = 0; s < SUMS; ++s)
    UNROLL for (uint j = 0; j < CHUNK; ++j) slots[s][lane][column * CHUNK + j] = sums[s][j];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = get_local_id(0); i < SUMS * COLUMNS * CHUNK; i += 256) {
    const uint s = i / (COLUMNS * CHUNK), own = i % (COLUMNS * CHUNK);
    LANE sum = 0;
    for (uint k = 0; k < LANES; ++k) sum += slots[s][k][own];
    const INDEX at = block * (COLUMNS * CHUNK) + own;
    if (at < length) partial[(s * pieces + piece) * length + at] = sum;
  }
}

// 32 columns of one of the sums for a group, whose pieces eight work-items share.
kernel void parameter_rest(const global LANE* partial, const INDEX length, const INDEX blocks,
                           const INDEX pieces, global E_PARAMETER* first, global E_PARAMETER* second) {
  local LANE slots[8][32];
  const uint column = get_local_id(0) % 32, lane = get_local_id(0) / 32;
  const INDEX at = (INDEX)get_group_id(0) % blocks * 32 + column, s = (INDEX)get_group_id(0) / blocks;
  LANE sum = 0;
  if (at < length)
    for (INDEX piece = lane; piece < pieces; piece += 8) sum += partial[(s * pieces + piece) * length + at];
  slots[lane][column] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane > 0 || at >= length) return;
  for (uint k = 1; k < 8; ++k) sum += slots[k][column];
  global E_PARAMETER* out = s == 0 ? first : second;
  STORE_PARAMETER(sum, out + at);
}
)cl"
