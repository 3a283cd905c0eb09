// argmax, argmin, max and min with indices, count_nonzero: loops whose result is
// a position or a count, which the lanes of a program could not hold.
//
// Ties go to the first position, NaN wins over all. Along rows each piece is
// searched for its extreme and then for where it stands; across rows every lane
// keeps its best value and position.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/reduce/arg_loops.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <type_traits>

#include "plugins/cpu/engine/lanes/loops-inl.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/reduce/arg_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether x takes the place of m: it is better, or the first NaN.
template <bool kMax, class T>
HWY_INLINE bool Beats(T x, T m) {
  return (kMax ? x > m : x < m) | ((x != x) & (m == m));
}

// The best of the row, any where there are NaN; `nan` says whether there are.
template <class T, bool kMax>
T BestOf(const T* x, int64_t n, bool* nan) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T m = x[0];
  *nan = false;
  int64_t i = 0;
  if (n >= 2 * lanes) {
    auto best0 = hn::LoadU(d, x), best1 = best0;
    auto strange = hn::Zero(d);
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
      best0 = kMax ? hn::Max(best0, a) : hn::Min(best0, a);
      best1 = kMax ? hn::Max(best1, b) : hn::Min(best1, b);
      if constexpr (std::is_floating_point_v<T>)
        strange = hn::Or(strange, hn::VecFromMask(d, hn::Or(hn::IsNaN(a), hn::IsNaN(b))));
    }
    if constexpr (std::is_floating_point_v<T>) *nan = !hn::AllFalse(d, hn::MaskFromVec(strange));
    HWY_ALIGN T bests[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(kMax ? hn::Max(best0, best1) : hn::Min(best0, best1), d, bests);
    m = bests[0];
    for (int64_t l = 1; l < lanes; ++l) m = (kMax ? bests[l] > m : bests[l] < m) ? bests[l] : m;
  }
  for (; i < n; ++i) {
    *nan |= x[i] != x[i];
    if (kMax ? x[i] > m : x[i] < m) m = x[i];
  }
  return m;
}

// Where the first element stands that equals m, or is NaN; there is one.
template <class T>
int64_t FirstOf(const T* x, int64_t n, T m, bool nan) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto wanted = hn::Set(d, m);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    auto hits = hn::Eq(v, wanted);
    if constexpr (std::is_floating_point_v<T>) hits = nan ? hn::IsNaN(v) : hits;
    const intptr_t found = hn::FindFirstTrue(d, hits);
    if (found >= 0) return i + found;
  }
  while (i < n - 1 && !(nan ? x[i] != x[i] : x[i] == m)) ++i;
  return i;
}

template <class T, bool kMax>
void SearchRow(const void* data, int64_t n, int64_t first, void* best, int64_t* where, bool fresh) {
  const T* x = static_cast<const T*>(data);
  T* before = static_cast<T*>(best);
  bool nan = false;
  const T m = BestOf<T, kMax>(x, n, &nan);
  if (!fresh && (*before != *before || !(nan || (kMax ? m > *before : m < *before)))) return;
  const int64_t at = FirstOf(x, n, m, nan);
  *where = first + at;
  *before = x[at];
}

template <class T, bool kMax>
void UpdateLanes(const void* data, int64_t n, int64_t position, void* best, int64_t* where) {
  const T* x = static_cast<const T*>(data);
  T* m = static_cast<T*>(best);
  MICA_IVDEP
  for (int64_t j = 0; j < n; ++j) {
    const bool takes = Beats<kMax>(x[j], m[j]);
    const int64_t old = where[j];
    const T value = m[j];
    m[j] = takes ? x[j] : value;
    where[j] = takes ? position : old;
  }
}

template <class T>
int64_t CountRow(const void* data, int64_t n) {
  const T* x = static_cast<const T*>(data);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += x[i] != 0;
  return count;
}

template <class T>
ArgLoops Loops(bool max) {
  return max ? ArgLoops{SearchRow<T, true>, UpdateLanes<T, true>, CountRow<T>}
             : ArgLoops{SearchRow<T, false>, UpdateLanes<T, false>, CountRow<T>};
}

ArgLoops FindArgLoops(int32_t dtype, bool max) {
  switch (dtype) {
    case MICA_I8:
      return Loops<int8_t>(max);
    case MICA_U16:
      return Loops<uint16_t>(max);
    case MICA_I16:
      return Loops<int16_t>(max);
    case MICA_U32:
      return Loops<uint32_t>(max);
    case MICA_I32:
      return Loops<int32_t>(max);
    case MICA_U64:
      return Loops<uint64_t>(max);
    case MICA_I64:
      return Loops<int64_t>(max);
    case MICA_F32:
      return Loops<float>(max);
    case MICA_F64:
      return Loops<double>(max);
    default:
      return Loops<uint8_t>(max);
  }
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FindArgLoops);

namespace {

// What the workers share.
struct ArgReduction {
  const ReduceCall& call;
  ArgLoops loops;
  Primitive widen;   // half types to float32, bools to 0 and 1, or NULL
  Primitive narrow;  // and back
  int32_t lane;
  bool counts;
  int values, indices;  // output numbers, -1 where there is none
  Space space;
  mutable std::atomic<bool> no_memory{false};
};

constexpr int64_t kBlockBytes = kBlock * 8;
// Elements between two questions for a Ctrl-C.
constexpr int64_t kPatience = 1 << 20;
constexpr int64_t kMemory = 6 * kBlockBytes;

// A piece of operand 0 in lanes; `buffers` has room for two blocks.
const char* Piece(const ArgReduction& arg, const Iteration& it, int64_t shift, int64_t position, int64_t n,
                  char* buffers) {
  const char* data = it.Locate(0, shift, position, n, buffers, true);
  if (arg.widen == nullptr) return data;
  arg.widen(buffers + kBlockBytes, data, nullptr, nullptr, n);
  return buffers + kBlockBytes;
}

void WriteOutput(const ArgReduction& arg, int output, int64_t position, int64_t n, const char* lanes,
                 char* buffer) {
  if (output < 0) return;
  const int k = arg.space.OutputOperand(output);
  char* target = arg.space.outer.Locate(k, 0, position, n, buffer, false);
  if (output == arg.values && arg.narrow != nullptr) {
    arg.narrow(target, lanes, nullptr, nullptr, n);
  } else {
    std::memcpy(target, lanes, static_cast<size_t>(n * arg.space.outer.operands[k].size));
  }
  if (target == buffer) arg.space.outer.Deliver(k, 0, position, n, buffer);
}

void Along(const ArgReduction& arg, int64_t begin, int64_t end) {
  char* memory = Scratch(kMemory);
  if (memory == nullptr) {
    arg.no_memory = true;
    return;
  }
  char* best = memory + 2 * kBlockBytes;
  int64_t* where = reinterpret_cast<int64_t*>(memory + 3 * kBlockBytes);
  const Iteration& inner = arg.space.inner;
  const int64_t size = DtypeSize(arg.lane);
  Patience patience(kPatience);
  for (int64_t position = begin; position < end;) {
    const int64_t n = arg.space.outer.PieceLength(position, end, kBlock);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t shift = arg.space.outer.Offset(0, position + j);
      where[j] = 0;
      for (int64_t p = 0; p < inner.numel;) {
        const int64_t m = inner.PieceLength(p, inner.numel, kBlock);
        const char* data = Piece(arg, inner, shift, p, m, memory);
        if (arg.counts) {
          where[j] += arg.loops.count(data, m);
        } else {
          arg.loops.search(data, m, p, best + j * size, where + j, p == 0);
        }
        p += m;
        if (p < inner.numel && patience.Ends(m)) return;
      }
    }
    WriteOutput(arg, arg.values, position, n, best, memory + 4 * kBlockBytes);
    WriteOutput(arg, arg.indices, position, n, reinterpret_cast<char*>(where), memory + 5 * kBlockBytes);
    position += n;
  }
}

void Across(const ArgReduction& arg, int64_t begin, int64_t end) {
  char* memory = Scratch(kMemory);
  if (memory == nullptr) {
    arg.no_memory = true;
    return;
  }
  char* best = memory + 2 * kBlockBytes;
  int64_t* where = reinterpret_cast<int64_t*>(memory + 3 * kBlockBytes);
  const int64_t size = DtypeSize(arg.lane);
  Patience patience(kPatience);
  for (int64_t position = begin; position < end;) {
    const int64_t n = arg.space.outer.PieceLength(position, end, kBlock);
    for (int64_t r = 0; r < arg.space.inner.numel; ++r) {
      const char* data = Piece(arg, arg.space.outer, arg.space.inner.Offset(0, r), position, n, memory);
      if (r == 0) {
        std::memcpy(best, data, static_cast<size_t>(n * size));
        std::fill_n(where, n, int64_t{0});
      } else {
        arg.loops.update(data, n, r, best, where);
      }
      if (patience.Ends(n)) return;
    }
    WriteOutput(arg, arg.values, position, n, best, memory + 4 * kBlockBytes);
    WriteOutput(arg, arg.indices, position, n, reinterpret_cast<char*>(where), memory + 5 * kBlockBytes);
    position += n;
  }
}

}  // namespace

bool RunArgLoop(const ReduceCall& call, ArgKind kind, bool max) {
  const int32_t dtype = DtypeOf(call.inputs[0]);
  if (IsComplex(dtype)) return false;
  ArgReduction arg = {call, {}, nullptr, nullptr, LaneOf(dtype), kind == ArgKind::kCount, -1, 0, {}, {}};
  if (kind == ArgKind::kValueAndIndex) {
    arg.values = 0;
    arg.indices = 1;
    if (DtypeOf(call.outputs[0]) != dtype) return false;
  }
  if (DtypeOf(call.outputs[arg.indices]) != MICA_I64) return false;
  // Bools are compared as 0 and 1, whatever byte a true one has.
  if (arg.lane != dtype || (dtype == MICA_BOOL && !arg.counts)) {
    arg.widen = DirectCast(dtype, arg.lane);
    arg.narrow = DirectCast(arg.lane, dtype);
  }
  arg.loops = HWY_DYNAMIC_DISPATCH(FindArgLoops)(arg.lane, max);
  MakeSpace(call, true, false, &arg.space);
  const int64_t outputs = arg.space.outer.numel;
  const int64_t reduced = arg.space.inner.numel;
  if (outputs == 0) return true;
  if (reduced == 0 && !arg.counts) return false;
  const Operand& first = arg.space.inner.operands[0];
  const int last = arg.space.inner.ndim - 1;
  const bool along =
      arg.counts || (first.strides[last] == first.size && arg.space.inner.sizes[last] >= 32) || outputs < 16;
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, reduced));
  ParallelSteps(outputs, grain, 1, ThreadsOf(call.call), [&](int64_t begin, int64_t end) {
    along ? Along(arg, begin, end) : Across(arg, begin, end);
  });
  if (arg.no_memory) throw std::bad_alloc();
  return true;
}

}  // namespace mica::cpu
#endif
