R"cl(
// The gradient of the rows that were normalised; stands after normalization.cl.
kernel void input_gradient(const global E_INPUT* gradient, const global E_INPUT* input,
                           const global E_STATISTIC* means, const global E_STATISTIC* rstds,
                           const global E_WEIGHT* weight, const INDEX rows, const INDEX length,
                           global E_INPUT* out) {
  local LANE slots[2][GROUP];
  const INDEX row = (INDEX)get_group_id(0) * ROWS + get_local_id(0) / TEAM;
  const INDEX end = row < rows ? length : 0, known = min(row, rows - 1);
  const global E_INPUT* x = input + row * length;
  const global E_INPUT* g = gradient + row * length;
  KEEP(x, x)
  KEEP(g, g)
  const LANE mean = LOAD_STATISTIC(means + known), rstd = LOAD_STATISTIC(rstds + known);
  LANE sums[2] = {0, 0};  // of the weighted gradient, and of its products with the normalised row
  EACH_CHUNK {
    RAW(x, x)
    RAW(g, g)
    RAW_WEIGHT
    EACH_ELEMENT {
      const LANE weighted = WEIGHTED(LOAD_INPUT(raw_g + j));
      sums[0] += weighted;
      sums[1] += weighted * ((LOAD_INPUT(raw_x + j) - mean) * rstd);
    }
  }
  team_sums<2>(slots, sums);
  const LANE mean_gradient = sums[0] / length, mean_product = sums[1] / length;
  EACH_CHUNK {
    RAW(x, x)
    RAW(g, g)
    RAW_WEIGHT
    E_INPUT made[CHUNK];
    EACH_ELEMENT {
      const LANE hat = (LOAD_INPUT(raw_x + j) - mean) * rstd;
      STORE_INPUT((WEIGHTED(LOAD_INPUT(raw_g + j)) - mean_gradient - hat * mean_product) * rstd, made + j);
    }
    store_chunk(made, out + row * length + chunk, LEFT);
  }
}
)cl"
