R"cl(
// C = A B of small matrices: 64 work-items make SIDE x SIDE elements of C, an item four neighbours of a row.
//
// All that they need of A and B is on its way at once, without a branch, before any of it goes to local
// memory. An element is the sum over k in rising order, which begins with 0 and takes one fused multiply-add
// a step, as gemm.cl computes it. W is 4. The host defines DEPTH (the most that K may be, a multiple of 64),
// PARAMETERS, ADDEND where there is one, and for X in A, B and C
//   READ_X(at, last)    four neighbours from `at` on, along k where ALONG_K_X is 1, else across; behind the
//                       one that is `last` further on, that one again
//   STORE_OUT(value, at, left)   of which `left` are there
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT ON
#define ALIGNED(p) (p)
#else
#define ALIGNED(p) assume_aligned(p, sizeof(*(p)) < 4 ? 4 * sizeof(*(p)) : 16)
#endif
// The first lanes of four vectors.
static L joined(L a, L b, L c, L d) {
  LANE lanes[16];
  UNPACK(4, a, lanes);
  UNPACK(4, b, lanes + 4);
  UNPACK(4, c, lanes + 8);
  UNPACK(4, d, lanes + 12);
  UNROLL for (int i = 1; i < 4; ++i) lanes[i] = lanes[4 * i];
  return PACK(4, lanes);
}
#define SIDE 16
#define GROUP 64
#define PITCH (DEPTH + 4)  // rows of a tile begin in different banks
#define VECTORS 4          // of each operand that an item reads for 64 steps of k

// Of the vectors of SIDE rows (of A, or columns of B), 64 deep, the item's i-th. What lies behind the matrix
// is not read: its end is, once more, from where four neighbours begin.
#define LAST_FOUR(size) (((size)-1) / 4 * 4)
#define ROW(ALONG_K, i) (ALONG_K ? ((i) * GROUP + item) / 16 : item % 4 * 4)
#define STEP(ALONG_K, i) (first_k + (ALONG_K ? item % 16 * 4 : ((i) * GROUP + item) / 4))
#define READ_ROWS(READ, ALONG_K, to, rows, start, row_stride, k_stride)                     \
  UNROLL for (int i = 0; i < VECTORS; ++i) {                                                \
    const int row = min(ROW(ALONG_K, i), ALONG_K ? (rows)-1 : LAST_FOUR(rows));             \
    const int k = min(STEP(ALONG_K, i), ALONG_K ? LAST_FOUR(K) : K - 1);                    \
    to[i] = READ((start) + row * row_stride + k * k_stride, ALONG_K ? K - 1 - k : (rows)-1 - row); \
  }
// Tiles keep the steps of a row together; behind the last one they hold zeros, as deep as sums are unrolled.
#define KEEP_ROWS(ALONG_K, tile, from)                                                      \
  UNROLL for (int i = 0; i < VECTORS; ++i) {                                                \
    const int row = ROW(ALONG_K, i), k = STEP(ALONG_K, i);                                  \
    LANE four[4];                                                                           \
    UNPACK(4, from[i], four);                                                               \
    UNROLL for (int j = 0; j < 4; ++j) {                                                    \
      if (ALONG_K)                                                                          \
        tile[row * PITCH + k + j] = k + j < K ? four[j] : (LANE)0;                          \
      else                                                                                  \
        tile[(row + j) * PITCH + k] = k < K ? four[j] : (LANE)0;                            \
    }                                                                                       \
  }

kernel void small_product(PARAMETERS, const int M, const int N, const int K) {
  local LANE tile_a[SIDE * PITCH] __attribute__((aligned(16)));
  local LANE tile_b[SIDE * PITCH] __attribute__((aligned(16)));
  const int item = get_local_id(0), z = get_group_id(2);
  const int first_n = get_group_id(0) * SIDE, first_m = get_group_id(1) * SIDE;
  const long start_a = z * a_z + first_m * a_r, start_b = z * b_z + first_n * b_c;
  const int m = first_m + item / 4, n = first_n + item % 4 * 4;
#ifdef ADDEND  // on its way while sums are computed
  const int own_m = min(m, M - 1), own_n = min(n, LAST_FOUR(N));
  const L addend = READ_C(z * c_z + own_m * c_r + own_n * c_c, N - 1 - own_n);
#endif
  for (int first_k = 0; first_k < K; first_k += 64) {
    L of_a[VECTORS], of_b[VECTORS];
    READ_ROWS(READ_A, ALONG_K_A, of_a, M - first_m, start_a, a_r, a_c)
    READ_ROWS(READ_B, ALONG_K_B, of_b, N - first_n, start_b, b_c, b_r)
    // Without it, NVRTC 13 moves reads behind writes of local memory, which wait for other reads.
    barrier(CLK_LOCAL_MEM_FENCE);
    KEEP_ROWS(ALONG_K_A, tile_a, of_a)
    KEEP_ROWS(ALONG_K_B, tile_b, of_b)
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int row_a = item / 4 * PITCH, rows_b = item % 4 * 4 * PITCH;
  LANE sums[4] = {0, 0, 0, 0};
  for (int first_k = 0; first_k < K; first_k += 16) {
    UNROLL for (int k = first_k; k < first_k + 16; k += 4) {
      LANE a[4], b[4][4];
      UNPACK(4, PACK(4, tile_a + row_a + k), a);
      UNROLL for (int j = 0; j < 4; ++j) UNPACK(4, PACK(4, tile_b + rows_b + j * PITCH + k), b[j]);
      UNROLL for (int i = 0; i < 4; ++i) {
        UNROLL for (int j = 0; j < 4; ++j) sums[j] = MULTIPLY_ADD(a[i], b[j][i], sums[j]);
      }
    }
  }
  if (m >= M || n >= N) return;
  L value = PACK(4, sums);
#ifdef ADDEND
  value = value * alpha;
  if (beta != 0) value = value + addend * beta;
#endif
  const long at = z * out_z + m * out_r + n * out_c;
  STORE_OUT(value, at, N - n)
}
)cl"
