R"cl(
// Rows of elements E that begin at any address, copied to rows at another distance; where there are more or longer
// rows than are copied, zeros follow. The WIDE work-items of a row in a group copy neighbouring elements, so that
// memory is read and written whole, and PER of them each, whose loads are on their way together. All of a batch's
// rows are `all_rows`, `to_rows` a matrix.
kernel void copy_rows(const global E* from, const ulong from_batch, const ulong from_row, const ulong from_rows,
                      const ulong from_columns, global E* to, const ulong to_batch, const ulong to_row,
                      const ulong to_rows, const ulong to_columns, const ulong all_rows) {
  const ulong first = (ulong)get_group_id(0) * (WIDE * PER) + get_local_id(0), end = first + WIDE * PER;
  for (ulong row = get_global_id(1); row < all_rows; row += get_global_size(1)) {
    const ulong batch = row / to_rows, own = row % to_rows;
    const ulong length = own < from_rows ? from_columns : 0;
    const global E* x = from + batch * from_batch + own * from_row;
    global E* y = to + batch * to_batch + own * to_row;
    if (first + (PER - 1) * WIDE < min(length, to_columns)) {
      E values[PER];
      UNROLL for (int j = 0; j < PER; ++j) values[j] = x[first + j * WIDE];
      UNROLL for (int j = 0; j < PER; ++j) y[first + j * WIDE] = values[j];
    } else {
      for (ulong j = first; j < min(end, to_columns); j += WIDE) y[j] = j < length ? x[j] : (E)0;
    }
  }
}
)cl"
