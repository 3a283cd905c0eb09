// searchsorted, and the places of repeat_interleave.
//
// A search begins where the one before it ended: values in order, as those of bucketize
// often are, cost two comparisons each, others a binary search without branches.
#include <algorithm>
#include <string_view>
#include <type_traits>

#include "mica/plugins/cpu/contraction/dense.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/sorting/sorting.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

// Values that make a second thread worth waking.
constexpr int64_t kGrain = 4096;

// torch's order: NaN is the largest.
template <class T>
bool Less(T a, T b) {
  return a < b || (b != b && a == a);
}

// Finds in one sorted line the first place that is not before a value: of elements that
// are less, or (right) not greater.
template <class T, bool kRight>
struct Search {
  const T* line;
  int64_t size;
  int64_t place = 0;  // the last one found

  bool IsBefore(int64_t i, T value) const { return kRight ? !Less(value, line[i]) : Less(line[i], value); }
  bool IsAnswer(int64_t i, T value) const {
    return (i == 0 || IsBefore(i - 1, value)) && (i == size || !IsBefore(i, value));
  }
  int64_t Find(T value) {
    if (IsAnswer(place, value)) return place;
    if (place < size && IsAnswer(place + 1, value)) return ++place;
    int64_t first = 0;
    for (int64_t left = size; left > 0;) {
      const int64_t half = left / 2;
      const bool before = IsBefore(first + half, value);
      first = before ? first + half + 1 : first;
      left = before ? left - half - 1 : half;
    }
    return place = first;
  }
};

struct Task {
  const void *lines, *values;
  void* out;
  int64_t size, count, per_line;  // of a line; values in all, and for each line
  bool right, narrow;
};

template <class T, bool kRight, class I>
void Run(const Task& t, int32_t threads) {
  ParallelSteps(t.count, kGrain, 1, threads, [&t](int64_t begin, int64_t end) {
    const T* values = static_cast<const T*>(t.values);
    I* out = static_cast<I*>(t.out);
    for (int64_t i = begin; i < end;) {
      const int64_t line = i / t.per_line, stop = std::min(end, (line + 1) * t.per_line);
      Search<T, kRight> search{static_cast<const T*>(t.lines) + line * t.size, t.size};
      for (; i < stop; ++i) out[i] = static_cast<I>(search.Find(values[i]));
    }
  });
}

template <class T>
void RunOf(const Task& t, int32_t threads) {
  if (t.narrow)
    t.right ? Run<T, true, int32_t>(t, threads) : Run<T, false, int32_t>(t, threads);
  else
    t.right ? Run<T, true, int64_t>(t, threads) : Run<T, false, int64_t>(t, threads);
}

template <class I>
bool Repeat(const I* repeats, int64_t n, I* to, int64_t total) {
  for (int64_t i = 0; i < n; ++i) {
    if (repeats[i] < 0 || repeats[i] > total) return false;
    to = std::fill_n(to, repeats[i], static_cast<I>(i));
    total -= repeats[i];
  }
  return total == 0;
}

}  // namespace

void SearchSorted(const MicaCall* call, MicaTensor* sorted_sequence, MicaTensor* self, int32_t, int32_t right,
                  MicaStr side, MicaTensor* sorter, MicaTensor* out) {
  const TensorRef lines(sorted_sequence), values(self), to(out);
  const int32_t dtype = lines.dtype(), threads = ThreadsOf(call);
  const bool known = dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_I32 || dtype == MICA_I64;
  if (!known || values.dtype() != dtype || sorter != nullptr || lines.ndim() == 0)
    throw plugin::NotImplemented();
  if (values.numel() == 0) return;
  const DenseInput sequence(sorted_sequence, dtype, threads), wanted(self, dtype, threads);
  DenseOutput result(out, to.dtype(), threads);
  Task t = {};
  t.lines = sequence.data<void>();
  t.values = wanted.data<void>();
  t.out = result.data<void>();
  t.size = lines.size(lines.ndim() - 1);
  t.count = values.numel();
  t.per_line = lines.ndim() == 1 ? t.count : values.size(values.ndim() - 1);
  t.right = right != 0 || (side.size == 5 && std::string_view(side.data, 5) == "right");
  t.narrow = to.dtype() == MICA_I32;
  if (dtype == MICA_F32) RunOf<float>(t, threads);
  if (dtype == MICA_F64) RunOf<double>(t, threads);
  if (dtype == MICA_I32) RunOf<int32_t>(t, threads);
  if (dtype == MICA_I64) RunOf<int64_t>(t, threads);
  result.Finish();
}

MicaTensor* RepeatInterleave(const MicaCall*, MicaTensor* repeats, MicaOptInt output_size) {
  const TensorRef in(repeats);
  const int32_t dtype = in.dtype();
  // What is wrong with the call is for the composition to say.
  if (in.ndim() != 1 || (dtype != MICA_I64 && dtype != MICA_I32)) throw plugin::NotImplemented();
  const DenseInput counts(repeats, dtype, 1);
  const int64_t n = in.numel();
  const auto each = [&](auto run) {
    if (dtype == MICA_I64) return run(counts.data<int64_t>());
    return run(counts.data<int32_t>());
  };
  int64_t total = output_size.value;
  if (!output_size.has) {
    total = each([n](const auto* from) {
      int64_t sum = 0;
      for (int64_t i = 0; i < n; ++i)
        if (from[i] < 0 || __builtin_add_overflow(sum, from[i], &sum)) return int64_t{-1};
      return sum;
    });
  }
  if (total < 0) throw plugin::NotImplemented();
  OwnedTensor out = OwnedTensor::Empty(&total, 1, dtype, MicaDevice{0, 0});
  const bool done = each([&](const auto* from) {
    using I = std::remove_cvref_t<decltype(*from)>;
    return Repeat(from, n, TensorRef(out.get()).data<I>(), total);
  });
  if (!done) throw plugin::NotImplemented();
  return out.release();
}

void RegisterSearching(plugin::Registrar& registrar) {
  registrar.Kernel<&SearchSorted>("searchsorted.Tensor_out");
  registrar.Kernel<&RepeatInterleave>("repeat_interleave.Tensor");
}

}  // namespace mica::cpu
