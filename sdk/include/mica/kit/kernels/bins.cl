R"cl(
// How often each number from 0 on occurs among sorted ones, or the sum of the weights of those that are it,
// which lie at `places`. The host defines WEIGHTS (parameters), SUM (an element of the result) and
// ADD_UP: what numbers `first` up to `last` give.
static long first_from(const global long* sorted, long numel, long number) {
  long low = 0, high = numel;
  while (low < high) {
    const long middle = (low + high) / 2;
    if (sorted[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

kernel void count_bins(const global long* sorted, const global long* places, WEIGHTS global SUM* out,
                       const long numel, const long bins) {
  const long bin = get_global_id(0);
  if (bin >= bins) return;
  const long first = first_from(sorted, numel, bin), last = first_from(sorted, numel, bin + 1);
  ADD_UP
}
)cl"
