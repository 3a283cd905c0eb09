R"cl(
// C = A B by tiles: 8 x 8 work-items make 64 x 64 elements of C, each 8 x 8 of them.
//
// The matrices are whatever the host says they are (strides of a matrix, places of
// an image that a convolution looks at), by these macros:
//   SETUP         declares what work-item `item` needs to read row `own_m` of A and
//                 column `own_n` of B, and where they stand in C: `m_out`, `n_out`
//   DECODE(k)     an INFO about k that all work-items share as `info`; both are optional
//   LOAD_A(k, info), LOAD_B(k, info)   an element of the own row, or column
//   STORE_C(m, n, at, value)           at: m_out + n_out
// Tiles stand in local memory; `z` counts batches or groups.
#ifdef __OPENCL_VERSION__
#pragma OPENCL FP_CONTRACT ON
#endif
#define TILE 64
#define TILE_K 16
typedef VECTOR_OF(LANE, 8) V8;
#ifndef DECODE
#define INFO int
#define DECODE(k) 0
#endif
#define MULTIPLY_ROW(r) t##r = MULTIPLY_ADD((V8)(tile_a[k * TILE + y * 8 + r]), b, t##r);
#define STORE_ROW(r)                                                            \
  UNPACK(8, sum##r, line);                                                      \
  UNROLL for (int i = 0; i < 8; ++i) {                                          \
    const int m = y * 8 + r, n = x * 8 + i;                                     \
    if (first_m + m < M && first_n + n < N)                                     \
      STORE_C(first_m + m, first_n + n, rows_out[m] + columns_out[n], line[i]); \
  }

kernel void gemm(PARAMETERS, const int M, const int N, const int K) {
  // Aligned, so that a compiler may read four elements at once.
  local LANE tile_a[TILE_K * TILE] __attribute__((aligned(16)));
  local LANE tile_b[TILE_K * TILE] __attribute__((aligned(16)));
  local INFO infos[TILE_K];
  local long rows_out[TILE], columns_out[TILE];
  const int x = get_local_id(0), y = get_local_id(1), z = get_group_id(2);
  const int item = y * 8 + x;
  const int first_n = get_group_id(0) * TILE, first_m = get_group_id(1) * TILE;
  const int own_m = first_m + item, own_n = first_n + item;
  SETUP
  rows_out[item] = m_out;
  columns_out[item] = n_out;
  barrier(CLK_LOCAL_MEM_FENCE);  // the loop's own may not be reached: K may be 0
  V8 sum0 = (V8)(0), sum1 = (V8)(0), sum2 = (V8)(0), sum3 = (V8)(0);
  V8 sum4 = (V8)(0), sum5 = (V8)(0), sum6 = (V8)(0), sum7 = (V8)(0);
  for (int first_k = 0; first_k < K; first_k += TILE_K) {
    if (item < TILE_K) infos[item] = DECODE(first_k + item);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int depth = min(TILE_K, K - first_k);
    for (int k = 0; k < TILE_K; ++k) {
      const INFO info = infos[k];
      tile_a[k * TILE + item] = own_m < M && k < depth ? LOAD_A(first_k + k, info) : (LANE)0;
      tile_b[k * TILE + item] = own_n < N && k < depth ? LOAD_B(first_k + k, info) : (LANE)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    V8 t0 = sum0, t1 = sum1, t2 = sum2, t3 = sum3, t4 = sum4, t5 = sum5, t6 = sum6, t7 = sum7;
    for (int k = 0; k < TILE_K; ++k) {
      const V8 b = PACK(8, tile_b + k * TILE + x * 8);
      MULTIPLY_ROW(0) MULTIPLY_ROW(1) MULTIPLY_ROW(2) MULTIPLY_ROW(3)
      MULTIPLY_ROW(4) MULTIPLY_ROW(5) MULTIPLY_ROW(6) MULTIPLY_ROW(7)
    }
    sum0 = t0, sum1 = t1, sum2 = t2, sum3 = t3, sum4 = t4, sum5 = t5, sum6 = t6, sum7 = t7;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  LANE line[8];
  STORE_ROW(0) STORE_ROW(1) STORE_ROW(2) STORE_ROW(3)
  STORE_ROW(4) STORE_ROW(5) STORE_ROW(6) STORE_ROW(7)
}
)cl"
