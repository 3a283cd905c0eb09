// searchsorted, by binary searches without branches, and the places of repeat_interleave.
#include <algorithm>
#include <string_view>
#include <type_traits>

#include <mica/half.h>
#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/sorting/sorting.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

// Values that make a second thread worth waking.
constexpr int64_t kGrain = 4096;

// What an element is compared as: half types as floats.
template <class T>
auto ToLane(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return x.get();
}

// The first place of a sorted line that is not before a value: of elements that are less,
// or (right) not greater; NaN is before everything. The probes are torch's, so that lines
// that are not sorted give its places too.
template <class T, bool kRight>
int64_t Find(const T* line, int64_t size, T element) {
  const auto value = ToLane(element);
  int64_t first = 0;
  for (int64_t left = size; left > 0;) {
    const int64_t half = left / 2;
    const auto probe = ToLane(line[first + half]);
    const bool before = kRight ? !(probe > value) : !(probe >= value);
    first = before ? first + half + 1 : first;
    left = before ? left - half - 1 : half;
  }
  return first;
}

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
      const T* from = static_cast<const T*>(t.lines) + line * t.size;
      for (; i < stop; ++i) out[i] = static_cast<I>(Find<T, kRight>(from, t.size, values[i]));
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

// The loop of a dtype whose elements are compared where they lie; NULL where there is none.
using Loop = void (*)(const Task& t, int32_t threads);
Loop LoopOf(int32_t dtype) {
  switch (dtype) {
    case MICA_U8:
      return RunOf<uint8_t>;
    case MICA_I8:
      return RunOf<int8_t>;
    case MICA_I16:
      return RunOf<int16_t>;
    case MICA_I32:
      return RunOf<int32_t>;
    case MICA_I64:
      return RunOf<int64_t>;
    case MICA_F16:
      return RunOf<plugin::HalfBits>;
    case MICA_BF16:
      return RunOf<plugin::BrainBits>;
    case MICA_F32:
      return RunOf<float>;
    case MICA_F64:
      return RunOf<double>;
    default:
      return nullptr;
  }
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
  const int32_t dtype = lines.dtype();
  const Loop loop = LoopOf(dtype);
  const bool dense = lines.contiguous() && values.contiguous() && to.contiguous();
  // The portable kernel reads strided lines where they lie.
  if (loop == nullptr || !dense || values.dtype() != dtype || sorter != nullptr || lines.ndim() == 0)
    throw plugin::NotImplemented();
  if (values.numel() == 0) return;
  Task t = {};
  t.lines = lines.data<void>();
  t.values = values.data<void>();
  t.out = to.data<void>();
  t.size = lines.size(lines.ndim() - 1);
  t.count = values.numel();
  t.per_line = lines.ndim() == 1 ? t.count : values.size(values.ndim() - 1);
  t.right = right != 0 || (side.size == 5 && std::string_view(side.data, 5) == "right");
  t.narrow = to.dtype() == MICA_I32;
  loop(t, ThreadsOf(call));
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
