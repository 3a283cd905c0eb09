// cumsum, cumprod, cummax and cummin along rows that do not lie side by side.
//
// One element after the other, so plain loops; float32 sums and products carry a
// double. Sums and products of dense rows run four rows at a time, since each waits
// for its own last addition alone. cummax and cummin keep the last of equals, NaN from
// the first one on.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>

#include "mica/plugins/cpu/engine/pointwise.h"
#include "mica/plugins/cpu/engine/scratch.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/reduce/loops.h"
#include "mica/plugins/cpu/reduce/reduction.h"

namespace mica::cpu {
namespace {

enum class Kind { kSum, kProduct, kMax, kMin };

// What goes from one piece of a row to the next.
struct Carry {
  bool fresh = true;
  double real = 0;
  uint64_t integer = 0;
  alignas(8) char best[8] = {};
  int64_t where = 0;
};

template <class T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <class T, bool kProduct>
void Accumulate(const void* data, int64_t n, int64_t, void* out, int64_t*, Carry* carry) {
  const T* x = static_cast<const T*>(data);
  T* o = static_cast<T*>(out);
  Accumulator<T> total;
  if constexpr (std::is_floating_point_v<T>) {
    total = carry->fresh ? kProduct : carry->real;
  } else {
    total = carry->fresh ? kProduct : carry->integer;
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<Accumulator<T>>(x[i]);
    total = kProduct ? total * value : total + value;
    o[i] = static_cast<T>(total);
  }
  if constexpr (std::is_floating_point_v<T>) {
    carry->real = total;
  } else {
    carry->integer = total;
  }
  carry->fresh = false;
}

// Four whole rows of n, in step.
template <class T, bool kProduct>
void AccumulateRows(const char* const* data, char* const* out, int64_t n) {
  using A = Accumulator<T>;
  constexpr int kRows = 4;
  A total[kRows];
  std::fill_n(total, kRows, static_cast<A>(kProduct));
  for (int64_t i = 0; i < n; ++i) {
    for (int r = 0; r < kRows; ++r) {
      const auto value = static_cast<A>(reinterpret_cast<const T*>(data[r])[i]);
      total[r] = kProduct ? total[r] * value : total[r] + value;
      reinterpret_cast<T*>(out[r])[i] = static_cast<T>(total[r]);
    }
  }
}

template <class T, bool kMax>
void Extreme(const void* data, int64_t n, int64_t first, void* out, int64_t* indices, Carry* carry) {
  const T* x = static_cast<const T*>(data);
  T* o = static_cast<T*>(out);
  T best = x[0];
  if (!carry->fresh) std::memcpy(&best, carry->best, sizeof(T));
  int64_t where = carry->where;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i] || (best == best && (kMax ? x[i] >= best : x[i] <= best))) {
      best = x[i];
      where = first + i;
    }
    o[i] = best;
    indices[i] = where;
  }
  std::memcpy(carry->best, &best, sizeof(T));
  carry->where = where;
  carry->fresh = false;
}

// The rows of a dense sum or product, as far as they come in fours, of dtype T in and
// out; the number of rows done.
template <class T, bool kProduct>
int64_t AccumulateFours(const Space& space, int64_t begin, int64_t end) {
  const Iteration& outer = space.outer;
  const int last = outer.ndim - 1;
  const int64_t in = outer.operands[0].strides[last], out = outer.operands[1].strides[last];
  int64_t o = begin;
  for (; o + 4 <= end; o += 4) {
    const bool near = o % outer.sizes[last] + 4 <= outer.sizes[last];
    const char* data[4];
    char* results[4];
    for (int64_t r = 0; r < 4; ++r) {
      const bool steps = near && r > 0;
      data[r] = steps ? data[r - 1] + in : outer.operands[0].data + outer.Offset(0, o + r);
      results[r] = steps ? results[r - 1] + out : outer.operands[1].data + outer.Offset(1, o + r);
    }
    AccumulateRows<T, kProduct>(data, results, space.inner.numel);
  }
  return o - begin;
}

using Fours = int64_t (*)(const Space& space, int64_t begin, int64_t end);

Fours FindFours(int32_t lane, bool product) {
  switch (lane) {
    case MICA_F32:
      return product ? AccumulateFours<float, true> : AccumulateFours<float, false>;
    case MICA_F64:
      return product ? AccumulateFours<double, true> : AccumulateFours<double, false>;
    case MICA_I64:
      return product ? AccumulateFours<int64_t, true> : AccumulateFours<int64_t, false>;
    default:
      return nullptr;
  }
}

using Loop = void (*)(const void* data, int64_t n, int64_t first, void* out, int64_t* indices, Carry* carry);

template <class T>
Loop LoopOf(Kind kind) {
  switch (kind) {
    case Kind::kSum:
      return Accumulate<T, false>;
    case Kind::kProduct:
      return Accumulate<T, true>;
    case Kind::kMax:
      return Extreme<T, true>;
    default:
      return Extreme<T, false>;
  }
}

Loop FindLoop(int32_t lane, Kind kind) {
  switch (lane) {
    case MICA_BOOL:
    case MICA_U8:
      return LoopOf<uint8_t>(kind);
    case MICA_I8:
      return LoopOf<int8_t>(kind);
    case MICA_U16:
      return LoopOf<uint16_t>(kind);
    case MICA_I16:
      return LoopOf<int16_t>(kind);
    case MICA_U32:
      return LoopOf<uint32_t>(kind);
    case MICA_I32:
      return LoopOf<int32_t>(kind);
    case MICA_U64:
      return LoopOf<uint64_t>(kind);
    case MICA_I64:
      return LoopOf<int64_t>(kind);
    case MICA_F32:
      return LoopOf<float>(kind);
    case MICA_F64:
      return LoopOf<double>(kind);
    default:
      return nullptr;
  }
}

// From the lane to the output's dtype; over float32 for the half types.
void CastOut(int32_t lane, int32_t dtype, char* to, const char* from, char* middle, int64_t n) {
  if (Primitive direct = DirectCast(lane, dtype)) {
    direct(to, from, nullptr, nullptr, n);
  } else {
    DirectCast(lane, MICA_F32)(middle, from, nullptr, nullptr, n);
    DirectCast(MICA_F32, dtype)(to, middle, nullptr, nullptr, n);
  }
}

}  // namespace

bool RunScanLoop(const ReduceCall& call) {
  const std::string_view hint = call.call->program->hint;
  Kind kind;
  if (hint == "cumsum")
    kind = Kind::kSum;
  else if (hint == "cumprod")
    kind = Kind::kProduct;
  else if (hint == "cummax")
    kind = Kind::kMax;
  else if (hint == "cummin")
    kind = Kind::kMin;
  else
    return false;
  const bool extreme = kind == Kind::kMax || kind == Kind::kMin;
  const int32_t lane = LaneOf(call.call->compute_dtype);
  const int32_t in = DtypeOf(call.inputs[0]);
  const int32_t out = DtypeOf(call.outputs[0]);
  const Loop loop = FindLoop(lane, kind);
  if (loop == nullptr || IsComplex(in) || IsComplex(out) || (!extreme && lane == MICA_BOOL)) return false;
  if (extreme && (call.num_outputs != 2 || DtypeOf(call.outputs[1]) != MICA_I64)) return false;
  Space space;
  MakeSpace(call, true, true, &space);
  const int64_t n = space.inner.numel;
  if (n == 0 || space.outer.numel == 0) return true;
  const bool dense = in == lane && out == lane && space.inner.ndim == 1 && space.inner.operands[0].flat &&
                     space.inner.operands[1].flat;
  const Fours fours = dense && !extreme ? FindFours(lane, kind == Kind::kProduct) : nullptr;
  // Side by side, rows are lanes of the program; positions would not fit those.
  if (!extreme && fours == nullptr && !GoesAlong(space)) return false;
  std::atomic<bool> no_memory{false};
  const int64_t grain = std::max<int64_t>(1, 16384 / n);
  ParallelSteps(space.outer.numel, grain, 1, ThreadsOf(call.call), [&](int64_t begin, int64_t end) {
    constexpr int64_t kBytes = kBlock * 8;
    char* memory = Scratch(6 * kBytes);
    if (memory == nullptr) {
      no_memory = true;
      return;
    }
    for (int64_t o = begin + (fours != nullptr ? fours(space, begin, end) : 0); o < end; ++o) {
      Carry carry;
      const auto shift = [&](int k) { return space.outer.Offset(k, o); };
      for (int64_t p = 0; p < n;) {
        const int64_t m = space.inner.PieceLength(p, n, kBlock);
        const char* x = space.inner.Locate(0, shift(0), p, m, memory, true);
        if (in != lane) {
          CastOut(in, lane, memory + kBytes, x, memory + 2 * kBytes, m);
          x = memory + kBytes;
        }
        char* lanes = memory + 2 * kBytes;
        int64_t* indices = reinterpret_cast<int64_t*>(memory + 3 * kBytes);
        loop(x, m, p, lanes, indices, &carry);
        char* target = space.inner.Locate(1, shift(1), p, m, memory + 4 * kBytes, false);
        CastOut(lane, out, target, lanes, memory + 5 * kBytes, m);
        if (target == memory + 4 * kBytes) space.inner.Deliver(1, shift(1), p, m, target);
        if (extreme) {
          target = space.inner.Locate(2, shift(2), p, m, memory + 4 * kBytes, false);
          std::memcpy(target, indices, static_cast<size_t>(m) * 8);
          if (target == memory + 4 * kBytes) space.inner.Deliver(2, shift(2), p, m, target);
        }
        p += m;
      }
    }
  });
  if (no_memory) throw std::bad_alloc();
  return true;
}

}  // namespace mica::cpu
