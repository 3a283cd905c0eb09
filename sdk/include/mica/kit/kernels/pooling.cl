R"cl(
// The gradient of the largest element of windows over dense planes. The host defines
// E (the element type), LOAD(p), STORE(v, p). An index counts in the flattened plane.
typedef struct {
  int height, width, rows, columns;  // of the input's planes and the output's
  int window[2], stride[2], padding[2], dilation[2];
} Pool;

// An element of the input takes the gradients of the windows that chose it.
kernel void max_pool_backward(const global E* grad, const global long* indices, global E* out, const Pool p,
                              const ulong count) {
  const ulong i = get_global_id(0);
  if (i >= count) return;
  const int x = i % p.width, y = i / p.width % p.height;
  const ulong plane = i / p.width / p.height * p.rows * p.columns;
  LANE sum = 0;
  for (int a = 0; a < p.window[0]; ++a) {
    const int row = y + p.padding[0] - a * p.dilation[0];
    if (row < 0 || row % p.stride[0] != 0 || row / p.stride[0] >= p.rows) continue;
    for (int b = 0; b < p.window[1]; ++b) {
      const int column = x + p.padding[1] - b * p.dilation[1];
      if (column < 0 || column % p.stride[1] != 0 || column / p.stride[1] >= p.columns) continue;
      const ulong at = plane + row / p.stride[0] * p.columns + column / p.stride[1];
      if (indices[at] == y * p.width + x) sum += LOAD(grad + at);
    }
  }
  STORE(sum, out + i);
}
)cl"
