R"cl(
// How often each number from 0 up to some thousands occurs, behind count_up.cl: groups count in local memory,
// and what they found is added up. The host defines GROUP; BINS, the most that there may be; and
// AT_ONCE, the numbers of an item that are on their way.
#define READ_NUMBERS(j, behind)                                                             \
  long read[AT_ONCE];                                                                       \
  UNROLL for (int i = 0; i < AT_ONCE; ++i) {                                                \
    const long at = j + i * (long)get_global_size(0);                                       \
    read[i] = at < numel ? numbers[at] : (behind);                                          \
  }

kernel void find_ends(const global long* numbers, const long numel, global long* ends) {
  local long least[GROUP], most[GROUP];
  const uint item = get_local_id(0);
  long own_least = LONG_MAX, own_most = LONG_MIN;
  for (long j = get_global_id(0); j < numel; j += AT_ONCE * (long)get_global_size(0)) {
    READ_NUMBERS(j, read[0])
    UNROLL for (int i = 0; i < AT_ONCE; ++i) {
      own_least = min(own_least, read[i]);
      own_most = max(own_most, read[i]);
    }
  }
  least[item] = own_least;
  most[item] = own_most;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint apart = GROUP / 2; apart > 0; apart /= 2) {
    if (item < apart) {
      least[item] = min(least[item], least[item + apart]);
      most[item] = max(most[item], most[item + apart]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (item == 0) {
    ends[2 * get_group_id(0)] = least[0];
    ends[2 * get_group_id(0) + 1] = most[0];
  }
}

kernel void count_few(const global long* numbers, const long numel, global uint* counts, const uint bins) {
  local uint own_counts[BINS];
  const uint item = get_local_id(0);
  for (uint bin = item; bin < bins; bin += GROUP) own_counts[bin] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long j = get_global_id(0); j < numel; j += AT_ONCE * (long)get_global_size(0)) {
    READ_NUMBERS(j, -1)
    UNROLL for (int i = 0; i < AT_ONCE; ++i) {
      if (read[i] >= 0) COUNT_UP(own_counts + read[i]);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint bin = item; bin < bins; bin += GROUP) counts[(ulong)get_group_id(0) * bins + bin] = own_counts[bin];
}

// A group adds up GROUP / 16 bins, of which 16 items take every 16th count each.
kernel void add_few(const global uint* counts, const uint groups, const uint bins, global long* out) {
  local uint sums[GROUP];
  const uint item = get_local_id(0), bin = get_group_id(0) * (GROUP / 16) + item % (GROUP / 16);
  uint sum = 0;
  if (bin < bins) {
    for (uint g = item / (GROUP / 16); g < groups; g += 16) sum += counts[(ulong)g * bins + bin];
  }
  sums[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item >= GROUP / 16 || bin >= bins) return;
  for (uint other = item + GROUP / 16; other < GROUP; other += GROUP / 16) sum += sums[other];
  out[bin] = sum;
}
)cl"
