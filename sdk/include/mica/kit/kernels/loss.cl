R"cl(
// Negative log likelihood of class indices, and its gradient.
//
// The host defines E, LOAD(p), STORE(v, p) and Target (the type of an index). A row
// whose class is `ignored` counts for nothing; a class out of bounds sets *raised to
// its row + 1.
#define NONE 0
#define MEAN 1

static LANE WeightOf(const global E* weight, long stride, long c) {
  return weight ? LOAD(weight + c * stride) : (LANE)1;
}

// One group adds up all rows; with reduction NONE it writes each row's loss.
kernel void nll_forward(const global E* in, const long row_stride, const long class_stride,
                        const global long* target, const long target_stride, const global E* weight,
                        const long weight_stride, global E* out, const long out_stride, global E* total,
                        const int rows, const int classes, const int reduction, const long ignored,
                        global int* raised) {
  local LANE sums[64], weights[64];
  const int member = get_local_id(0);
  LANE sum = 0, whole = 0;
  for (int row = member; row < rows; row += 64) {
    const long c = target[row * target_stride];
    LANE loss = 0;
    if (c != ignored) {
      if (c < 0 || c >= classes) {
        *raised = row + 1;
      } else {
        const LANE w = WeightOf(weight, weight_stride, c);
        loss = -LOAD(in + row * row_stride + c * class_stride) * w;
        whole += w;
      }
    }
    sum += loss;
    if (reduction == NONE) STORE(loss, out + row * out_stride);
  }
  sums[member] = sum;
  weights[member] = whole;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (member != 0) return;
  for (int i = 1; i < 64; ++i) {
    sum += sums[i];
    whole += weights[i];
  }
  if (reduction == NONE) {
    STORE((LANE)0, total);
  } else {
    STORE(reduction == MEAN ? sum / whole : sum, out);
    STORE(whole, total);
  }
}

kernel void nll_backward(const global E* grad, const long grad_stride, const global long* target,
                         const long target_stride, const global E* weight, const long weight_stride,
                         const global E* total, global E* out, const long row_stride, const long class_stride,
                         const int rows, const int classes, const int reduction, const long ignored) {
  const long i = get_global_id(0);
  if (i >= (long)rows * classes) return;
  const int row = i / classes, c = i % classes;
  const long chosen = target[row * target_stride];
  LANE value = 0;
  if (chosen == c && chosen != ignored) {
    const LANE g = LOAD(grad + (reduction == NONE ? row * grad_stride : 0));
    value = -WeightOf(weight, weight_stride, c) * (reduction == MEAN ? g / LOAD(total) : g);
  }
  STORE(value, out + row * row_stride + c * class_stride);
}
)cl"
