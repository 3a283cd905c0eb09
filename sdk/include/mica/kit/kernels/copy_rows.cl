R"cl(
// Rows of `columns` elements E, copied from one distance between rows to another, for rows that begin at any
// address. The WIDE work-items of a row in a group copy neighbouring elements, so that memory is read and written
// whole, and PER of them each, whose loads are on their way together. A batch has `rows` rows of `all_rows`; what
// lies behind the `from_rows` rows and `from_columns` columns that there are becomes zero.
kernel void copy_rows(const global E* from, const ulong from_batch, const ulong from_row, global E* to,
                      const ulong to_batch, const ulong to_row, const ulong from_rows,
                      const ulong from_columns, const ulong all_rows, const ulong rows, const ulong columns) {
  const ulong first = (ulong)get_group_id(0) * (WIDE * PER) + get_local_id(0);
  if (first >= columns) return;
  const ulong left = columns - first, there = first < from_columns ? from_columns - first : 0;
  for (ulong row = get_global_id(1); row < all_rows; row += get_global_size(1)) {
    const ulong batch = row / rows, own = row % rows;
    const global E* x = from + batch * from_batch + own * from_row + first;
    global E* y = to + batch * to_batch + own * to_row + first;
    const ulong has = own < from_rows ? there : 0;
    if (has > (PER - 1) * WIDE) {
      E values[PER];
      UNROLL for (int j = 0; j < PER; ++j) values[j] = x[j * WIDE];
      UNROLL for (int j = 0; j < PER; ++j) y[j * WIDE] = values[j];
    } else {
      for (ulong j = 0; j < left && j < PER * WIDE; j += WIDE) y[j] = j < has ? x[j] : (E)0;
    }
  }
}
)cl"
