R"cl(
// Normalises channels; stands after batch_norm.cl.
//
// `statistics` leaves the mean of each piece and the sum of the squares of deviations from it in
// `partial`, `join_statistics` makes mean and 1 / deviation of them, and `normalize` applies both. A
// work-item adds up differences from the mean of the first elements that it meets, so that little cancels where
// the channel's mean is large, or one of them lies far away from all others.
kernel void statistics(const global E_INPUT* input, SHAPE, global LANE* partial) {
  local LANE slots[OWN][LANES][COLUMNS];
  const INDEX piece = GROUP_PIECE;
  const Walk walk(channels, chunks, total, size, blocks, piece);
  LANE first[OWN], sums[OWN], squares[OWN], means[OWN];
  EACH_OWN first[j] = sums[j] = squares[j] = 0;
  const E_INPUT* const from[1] = {input};
  Walk beginning = walk;
  beginning.left = min(walk.left, (INDEX)AHEAD);
  each_chunk(beginning, from, [&](INDEX, const E_INPUT(*elements)[CHUNK]) {
    EACH_ELEMENT first[CHANNEL_OF(j)] += LOAD_INPUT(elements[0] + j);
  });
  EACH_OWN first[j] /= (LANE)(max(beginning.left, (INDEX)1) * OF_CHUNK);
  each_chunk(walk, from, [&](INDEX, const E_INPUT(*elements)[CHUNK]) {
    EACH_ELEMENT {
      const LANE d = LOAD_INPUT(elements[0] + j) - first[CHANNEL_OF(j)];
      sums[CHANNEL_OF(j)] += d;
      squares[CHANNEL_OF(j)] = MULTIPLY_ADD(d, d, squares[CHANNEL_OF(j)]);
    }
  });
  const LANE own = (LANE)(walk.left * OF_CHUNK), all = elements_of(piece, total, size);
  EACH_OWN {
    const LANE mean = sums[j] / max(own, (LANE)1);
    squares[j] -= sums[j] * mean;
    first[j] += mean;
    means[j] = own * first[j];
  }
  sum_lanes(slots, means);
  EACH_OWN {
    means[j] /= all;
    const LANE d = first[j] - means[j];
    squares[j] += own * d * d;
  }
  sum_lanes(slots, squares);
  if (LANE_NUMBER > 0 || walk.channel >= channels) return;
  EACH_OWN {
    partial[2 * piece * channels + walk.channel + j] = means[j];
    partial[(2 * piece + 1) * channels + walk.channel + j] = squares[j];
  }
}

// As kept: what the operator gives back, in its own dtype; `means` and `deviations` are for the next kernel.
kernel void join_statistics(const global LANE* partial, const INDEX channels, const INDEX total, const INDEX size,
                            const INDEX pieces, const LANE eps, const LANE momentum, global LANE* means,
                            global LANE* deviations, global E_KEPT* kept_means, global E_KEPT* kept_deviations,
                            global E_RUNNING_MEAN* running_mean, global E_RUNNING_VAR* running_var) {
  local LANE slots[REST][FEW];
  const INDEX c = OWN_CHANNEL, known = min(c, channels - 1);
  LANE mean = 0, squares = 0;
  for (INDEX piece = get_local_id(0) / FEW; piece < pieces; piece += REST)
    mean += elements_of(piece, total, size) * partial[2 * piece * channels + known];
  const LANE count = (LANE)(total * OF_CHUNK);
  mean = sum_rest(slots, mean) / count;
  for (INDEX piece = get_local_id(0) / FEW; piece < pieces; piece += REST) {
    const LANE d = partial[2 * piece * channels + known] - mean;
    squares += partial[(2 * piece + 1) * channels + known] + elements_of(piece, total, size) * d * d;
  }
  squares = sum_rest(slots, squares);
  if (get_local_id(0) / FEW > 0 || c >= channels) return;
  const LANE deviation = 1 / sqrt(squares / count + eps);
  means[c] = mean;
  deviations[c] = deviation;
  STORE_KEPT(mean, kept_means + c);
  STORE_KEPT(deviation, kept_deviations + c);
#ifdef UPDATES_MEAN
  STORE_RUNNING_MEAN((1 - momentum) * LOAD_RUNNING_MEAN(running_mean + c) + momentum * mean, running_mean + c);
#endif
#ifdef UPDATES_VAR
  STORE_RUNNING_VAR((1 - momentum) * LOAD_RUNNING_VAR(running_var + c) + momentum * (squares / (count - 1)),
                    running_var + c);
#endif
}

// `deviations` are 1 / deviations in training, and variances else.
kernel void normalize(const global E_INPUT* input, const global E_MEAN* means, const global E_VAR* deviations,
                      const global E_WEIGHT* weight, const global E_BIAS* bias, const LANE eps, SHAPE,
                      global E_INPUT* out) {
  const Walk walk(channels, chunks, total, size, blocks, GROUP_PIECE_FROM_END);
  if (walk.left == 0) return;
  LANE mean[OWN], scale[OWN], shift[OWN];
  EACH_OWN {
    const INDEX c = walk.channel + j;
    mean[j] = LOAD_MEAN(means + c);
    scale[j] = DEVIATION(LOAD_VAR(deviations + c)) * WEIGHT_OF(c);
    shift[j] = BIAS_OF(c);
  }
  const E_INPUT* const from[1] = {input};
  each_chunk(walk, from, [&](INDEX at, const E_INPUT(*elements)[CHUNK]) {
    E_INPUT made[CHUNK];
    EACH_ELEMENT {
      const LANE d = LOAD_INPUT(elements[0] + j) - mean[CHANNEL_OF(j)];
      STORE_INPUT(MULTIPLY_ADD(d, scale[CHANNEL_OF(j)], shift[CHANNEL_OF(j)]), made + j);
    }
    store_chunk(made, out + at, CHUNK);
  });
}
)cl"
