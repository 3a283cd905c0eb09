R"cl(
// A pointwise operator over many tensors: W elements a work-item, and every group works for one row of the list.
//
// ROWS: by row, the addresses of its results and inputs, how many elements it has, and its first group.
// PARAMETERS: numbers, *raised. POINTERS: a<k> to results, then inputs. OFFSETS, LOADS, NUMBERS, BODY and STORES as
// in pointwise.cl.
kernel void pointwise_list(const ROWS rows, PARAMETERS, const uint num_rows) {
  const uint group = (uint)get_group_id(0);
  uint row = 0;
  for (uint beyond = num_rows; beyond - row > 1;) {
    const uint middle = (row + beyond) / 2;
    if (rows.first[middle] <= group)
      row = middle;
    else
      beyond = middle;
  }
  const ulong count = rows.count[row];
  const INDEX i = ((INDEX)(group - rows.first[row]) * GROUP + get_local_id(0)) * W;
  if (i >= count) return;
  POINTERS
  OFFSETS
  NUMBERS
  if (count - i >= W) {
    const uint left = W;
    LOADS
    BODY
    STORES
  } else {
    const uint left = (uint)(count - i);
    LOADS
    BODY
    STORES
  }
}
)cl"
