R"cl(
// Rows of `columns` elements E, copied from one distance between rows to another, for rows that begin at any
// address. Neighbouring work-items copy neighbouring elements, so that memory is read and written whole; each
// copies PER of them, whose loads are on their way together. A batch has `rows` rows of `all_rows`.
kernel void copy_rows(const global E* from, const ulong from_batch, const ulong from_row, global E* to,
                      const ulong to_batch, const ulong to_row, const ulong all_rows, const ulong rows,
                      const ulong columns) {
  const uint apart = get_local_size(0);
  const ulong first = (ulong)get_group_id(0) * apart * PER + get_local_id(0);
  for (ulong row = get_global_id(1); row < all_rows; row += get_global_size(1)) {
    const ulong batch = row / rows, own = row % rows;
    const global E* x = from + batch * from_batch + own * from_row;
    global E* y = to + batch * to_batch + own * to_row;
    E values[PER];
    UNROLL for (uint j = 0; j < PER; ++j)
      if (first + j * apart < columns) values[j] = x[first + j * apart];
    UNROLL for (uint j = 0; j < PER; ++j)
      if (first + j * apart < columns) y[first + j * apart] = values[j];
  }
}
)cl"
