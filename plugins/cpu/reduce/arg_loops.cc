// argmax, argmin, max and min with indices, count_nonzero: loops whose result is
// a position or a count, which the lanes of a program could not hold.
//
// Ties go to the first position, NaN wins over all. Along rows each piece is
// searched for its extreme and then for where it stands; across rows every lane
// keeps its best value and position.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mica/plugins/cpu/reduce/arg_loops.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "mica/plugins/cpu/engine/loops-inl.h"
#include "mica/plugins/cpu/engine/pointwise.h"
#include "mica/plugins/cpu/engine/scratch.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/reduce/arg_loops.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// Whether x takes the place of m: it is better, or the first NaN.
template <bool kMax, class T>
HWY_INLINE bool Beats(T x, T m) {
  return (kMax ? x > m : x < m) | ((x != x) & (m == m));
}

template <class T, bool kMax>
void SearchRow(const void* data, int64_t n, int64_t first, void* best, int64_t* where, bool fresh) {
  constexpr int kLanes = 64 / sizeof(T);
  const T* x = static_cast<const T*>(data);
  T m = fresh ? x[0] : *static_cast<T*>(best);
  T lanes[kLanes];
  bool any_nan = m != m;
  std::fill_n(lanes, kLanes, m);
  int64_t i = 0;
  uint8_t nan_lanes[kLanes] = {};
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const T v = x[i + l];
      nan_lanes[l] |= v != v;
      lanes[l] = (kMax ? v > lanes[l] : v < lanes[l]) ? v : lanes[l];
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    any_nan |= nan_lanes[l] != 0;
    if (kMax ? lanes[l] > m : lanes[l] < m) m = lanes[l];
  }
  for (; i < n; ++i) {
    any_nan |= x[i] != x[i];
    if (kMax ? x[i] > m : x[i] < m) m = x[i];
  }
  if (!any_nan && !fresh && m == *static_cast<T*>(best)) return;
  if (any_nan && !fresh && *static_cast<T*>(best) != *static_cast<T*>(best)) return;
  for (i = 0; i < n; ++i) {
    if (any_nan ? x[i] != x[i] : x[i] == m) {
      *where = first + i;
      *static_cast<T*>(best) = x[i];
      return;
    }
  }
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
  Primitive widen;   // half types to float32, or NULL
  Primitive narrow;  // and back
  int32_t lane;
  bool counts;
  int values, indices;  // output numbers, -1 where there is none
  Space space;
  mutable std::atomic<bool> no_memory{false};
};

constexpr int64_t kBlockBytes = kBlock * 8;
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
  if (arg.lane != dtype) {
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
