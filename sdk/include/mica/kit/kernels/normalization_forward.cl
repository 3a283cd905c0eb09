R"cl(
// Normalises rows; stands after normalization.cl.
// The mean comes first, then the squares of the differences from it.
kernel void normalize(const global E_INPUT* input, const global E_WEIGHT* weight, const global E_BIAS* bias,
                      const LANE eps, const INDEX rows, const INDEX length, global E_INPUT* out,
                      global LANE* means, global LANE* rstds) {
  local LANE slots[2][GROUP];
  const INDEX row = (INDEX)get_group_id(0) * ROWS + get_local_id(0) / TEAM;
  const INDEX end = row < rows ? length : 0;  // a team without a row waits with the others
  const global E_INPUT* x = input + row * length;
  KEEP(x, x)
  LANE mean = 0, variance = 0;
  EACH_CHUNK {
    RAW(x, x)
    EACH_ELEMENT mean += LOAD_INPUT(raw_x + j);
  }
  team_sums<1>(slots, &mean);
  mean /= length;
  EACH_CHUNK {
    RAW(x, x)
    EACH_ELEMENT {
      const LANE deviation = LOAD_INPUT(raw_x + j) - mean;
      variance += deviation * deviation;
    }
  }
  team_sums<1>(slots + 1, &variance);
  const LANE rstd = 1 / sqrt(variance / length + eps);
  EACH_CHUNK {
    RAW(x, x)
    RAW_WEIGHT
    RAW_BIAS
    E_INPUT made[CHUNK];
    EACH_ELEMENT {
      const LANE hat = (LOAD_INPUT(raw_x + j) - mean) * rstd;
      STORE_INPUT(BIASED(WEIGHTED(hat)), made + j);
    }
    store_chunk(made, out + row * length + chunk, LEFT);
  }
  if (TEAM_MEMBER == 0 && row < rows) {
    means[row] = mean;
    rstds[row] = rstd;
  }
}
)cl"
