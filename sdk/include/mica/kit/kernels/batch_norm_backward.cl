R"cl(
// The gradients of channels that were normalised; stands after batch_norm.cl.
//
// `gradient_sums` adds up, over each piece, the gradient and its products with x - mean; where
// the mean was kept in a half type (ROUGH), also x - mean and its square, from which the exact statistics
// follow. `join_sums` makes the parameters' gradients of them, and the coefficients of
// `input_gradient`: gradient * a + (x - mean) * b + c, where b and c are 0 unless TRAINING.
#if ROUGH
#define SUMS 4
#else
#define SUMS 2
#endif
kernel void gradient_sums(const global E_INPUT* gradient, const global E_INPUT* input,
                          const global E_MEAN* means, SHAPE, global LANE* partial) {
  local LANE slots[OWN][LANES][COLUMNS];
  const INDEX piece = GROUP_PIECE;
  const Walk walk(channels, chunks, total, size, blocks, piece);
  LANE mean[OWN], sums[SUMS][OWN];
  EACH_OWN {
    mean[j] = walk.channel < channels ? LOAD_MEAN(means + walk.channel + j) : (LANE)0;
    UNROLL for (uint s = 0; s < SUMS; ++s) sums[s][j] = 0;
  }
  const E_INPUT* const from[2] = {gradient, input};
  each_chunk(walk, from, [&](INDEX, const E_INPUT(*elements)[CHUNK]) {
    EACH_ELEMENT {
      const uint own = CHANNEL_OF(j);
      const LANE g = LOAD_INPUT(elements[0] + j), d = LOAD_INPUT(elements[1] + j) - mean[own];
      sums[0][own] += g;
      sums[1][own] = MULTIPLY_ADD(g, d, sums[1][own]);
#if ROUGH
      sums[2][own] += d;
      sums[3][own] = MULTIPLY_ADD(d, d, sums[3][own]);
#endif
    }
  });
  UNROLL for (uint s = 0; s < SUMS; ++s) {
    sum_lanes(slots, sums[s]);
    if (LANE_NUMBER == 0 && walk.channel < channels)
      EACH_OWN partial[(piece * SUMS + s) * channels + walk.channel + j] = sums[s][j];
  }
}

kernel void join_sums(const global LANE* partial, const INDEX channels, const INDEX total, const INDEX pieces,
                      const global E_MEAN* means, const global E_VAR* deviations, const global E_WEIGHT* weight,
                      const LANE eps, global E_PARAMETER* of_weight, global E_PARAMETER* of_bias,
                      global LANE* coefficients) {
  local LANE slots[REST][FEW];
  const INDEX c = OWN_CHANNEL, known = min(c, channels - 1);
  LANE sums[SUMS];
  UNROLL for (uint s = 0; s < SUMS; ++s) {
    LANE sum = 0;
    for (INDEX piece = get_local_id(0) / FEW; piece < pieces; piece += REST)
      sum += partial[(piece * SUMS + s) * channels + known];
    sums[s] = sum_rest(slots, sum);
  }
  if (get_local_id(0) / FEW > 0 || c >= channels) return;
  const LANE count = (LANE)(total * OF_CHUNK);
  LANE mean = LOAD_MEAN(means + c);
#if ROUGH
  const LANE off = sums[2] / count, deviation = 1 / sqrt(sums[3] / count - off * off + eps);
  mean += off;
  sums[1] -= off * sums[0];
#else
  const LANE deviation = DEVIATION(LOAD_VAR(deviations + c));
#endif
  const LANE slope = sums[1] * deviation;
#ifdef WANTS_WEIGHT
  STORE_PARAMETER(slope, of_weight + c);
#endif
#ifdef WANTS_BIAS
  STORE_PARAMETER(sums[0], of_bias + c);
#endif
  const LANE a = deviation * WEIGHT_OF(c);
  coefficients[c] = mean;
  coefficients[channels + c] = a;
  coefficients[2 * channels + c] = TRAINING ? -a * deviation * (slope / count) : 0;
  coefficients[3 * channels + c] = TRAINING ? -a * (sums[0] / count) : 0;
}

kernel void input_gradient(const global E_INPUT* gradient, const global E_INPUT* input,
                           const global LANE* coefficients, SHAPE, global E_INPUT* out) {
  const Walk walk(channels, chunks, total, size, blocks, GROUP_PIECE_FROM_END);
  if (walk.left == 0) return;
  LANE of_gradient[OWN];
  EACH_OWN of_gradient[j] = coefficients[channels + walk.channel + j];
#if TRAINING
  LANE mean[OWN], of_x[OWN], offset[OWN];
  EACH_OWN {
    mean[j] = coefficients[walk.channel + j];
    of_x[j] = coefficients[2 * channels + walk.channel + j];
    offset[j] = coefficients[3 * channels + walk.channel + j];
  }
  const E_INPUT* const from[2] = {gradient, input};
#else
  const E_INPUT* const from[1] = {gradient};
#endif
  each_chunk(walk, from, [&](INDEX at, const E_INPUT(*elements)[CHUNK]) {
    E_INPUT made[CHUNK];
    EACH_ELEMENT {
      const uint own = CHANNEL_OF(j);
      const LANE g = LOAD_INPUT(elements[0] + j);
#if TRAINING
      const LANE d = LOAD_INPUT(elements[1] + j) - mean[own];
      const LANE made_of_x = MULTIPLY_ADD(d, of_x[own], offset[own]);
      STORE_INPUT(MULTIPLY_ADD(g, of_gradient[own], made_of_x), made + j);
#else
      STORE_INPUT(g * of_gradient[own], made + j);
#endif
    }
    store_chunk(made, out + at, CHUNK);
  });
}
)cl"
