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

#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/reduce/loops.h"
#include "plugins/cpu/reduce/reduction.h"

namespace mica::cpu {
namespace {

// Elements of a row between two questions for a Ctrl-C: a few milliseconds.
constexpr int64_t kPatience = 1 << 20;

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

// Four rows, in step, as far as nobody stops them.
template <class T, bool kProduct>
void AccumulateRows(const char* const* data, char* const* out, int64_t n) {
  using A = Accumulator<T>;
  constexpr int kRows = 4;
  A total[kRows];
  std::fill_n(total, kRows, static_cast<A>(kProduct));
  for (int64_t begin = 0; begin < n && (begin == 0 || !StopAsked()); begin += kPatience) {
    const int64_t end = std::min(n, begin + kPatience);
    for (int64_t i = begin; i < end; ++i) {
      for (int r = 0; r < kRows; ++r) {
        const auto value = static_cast<A>(reinterpret_cast<const T*>(data[r])[i]);
        total[r] = kProduct ? total[r] * value : total[r] + value;
        reinterpret_cast<T*>(out[r])[i] = static_cast<T>(total[r]);
      }
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

// One row of `n` columns, each with its best element so far and that one's row.
template <class T, bool kMax>
void ExtremeColumns(const void* data, int64_t n, int64_t row, void* bests, int64_t* where) {
  const T* x = static_cast<const T*>(data);
  T* best = static_cast<T*>(bests);
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    const T old = best[j];
    const int64_t place = where[j];
    const bool takes = (x[j] != x[j]) | ((old == old) & (kMax ? x[j] >= old : x[j] <= old));
    best[j] = takes ? x[j] : old;
    where[j] = takes ? row : place;
  }
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

using Columns = void (*)(const void* data, int64_t n, int64_t row, void* bests, int64_t* where);
using Loop = void (*)(const void* data, int64_t n, int64_t first, void* out, int64_t* indices, Carry* carry);

// Along a row, and of extremes down the columns.
struct Loops {
  Loop row;
  Columns columns;
};

template <class T>
Loops LoopOf(Kind kind) {
  switch (kind) {
    case Kind::kSum:
      return {Accumulate<T, false>, nullptr};
    case Kind::kProduct:
      return {Accumulate<T, true>, nullptr};
    case Kind::kMax:
      return {Extreme<T, true>, ExtremeColumns<T, true>};
    default:
      return {Extreme<T, false>, ExtremeColumns<T, false>};
  }
}

Loops FindLoop(int32_t lane, Kind kind) {
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
      return {};
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

// What the workers of a call share.
struct Scan {
  int32_t in, lane, out;  // dtypes
  bool extreme;
  Loops loops;
  Fours fours = nullptr;
  Space space;

  static constexpr int64_t kBytes = kBlock * 8;
  static constexpr int64_t kMemory = 6 * kBytes;

  // n lanes of the input at a piece, by way of the first two and the last of the six buffers.
  const char* Read(const Iteration& it, int64_t shift, int64_t position, int64_t n, char* memory) const {
    const char* x = it.Locate(0, shift, position, n, memory, true);
    if (in == lane && in != MICA_BOOL) return x;  // of bools any byte but 0 becomes 1
    CastOut(in, lane, memory + kBytes, x, memory + 5 * kBytes, n);
    return memory + kBytes;
  }

  // By way of the last two.
  void Write(const Iteration& it, const int64_t* shifts, int64_t position, int64_t n, const char* lanes,
             const int64_t* indices, char* memory) const {
    char* buffer = memory + 4 * kBytes;
    char* target = it.Locate(1, shifts[0], position, n, buffer, false);
    CastOut(lane, out, target, lanes, memory + 5 * kBytes, n);
    if (target == buffer) it.Deliver(1, shifts[0], position, n, target);
    if (!extreme) return;
    target = it.Locate(2, shifts[1], position, n, buffer, false);
    std::memcpy(target, indices, static_cast<size_t>(n) * 8);
    if (target == buffer) it.Deliver(2, shifts[1], position, n, target);
  }

  void Along(int64_t begin, int64_t end, char* memory) const {
    const int64_t n = space.inner.numel;
    char* lanes = memory + 2 * kBytes;
    int64_t* indices = reinterpret_cast<int64_t*>(memory + 3 * kBytes);
    for (int64_t o = begin + (fours != nullptr ? fours(space, begin, end) : 0); o < end; ++o) {
      Carry carry;
      const int64_t shifts[2] = {space.outer.Offset(1, o), extreme ? space.outer.Offset(2, o) : 0};
      Patience patience(kPatience);
      for (int64_t p = 0; p < n;) {
        const int64_t m = space.inner.PieceLength(p, n, kBlock);
        loops.row(Read(space.inner, space.outer.Offset(0, o), p, m, memory), m, p, lanes, indices, &carry);
        Write(space.inner, shifts, p, m, lanes, indices, memory);
        p += m;
        if (patience.Ends(m)) return;
      }
    }
  }

  // Extremes of rows that lie side by side.
  void Across(int64_t begin, int64_t end, char* memory) const {
    char* lanes = memory + 2 * kBytes;
    int64_t* indices = reinterpret_cast<int64_t*>(memory + 3 * kBytes);
    Patience patience(kPatience);
    for (int64_t position = begin; position < end;) {
      const int64_t m = space.outer.PieceLength(position, end, kBlock);
      for (int64_t r = 0; r < space.inner.numel; ++r) {
        const int64_t shifts[2] = {space.inner.Offset(1, r), space.inner.Offset(2, r)};
        const char* x = Read(space.outer, space.inner.Offset(0, r), position, m, memory);
        if (r == 0) {
          std::memcpy(lanes, x, static_cast<size_t>(m * DtypeSize(lane)));
          std::fill_n(indices, m, int64_t{0});
        } else {
          loops.columns(x, m, r, lanes, indices);
        }
        Write(space.outer, shifts, position, m, lanes, indices, memory);
        if (patience.Ends(m)) return;
      }
      position += m;
    }
  }
};

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
  Scan scan;
  scan.extreme = kind == Kind::kMax || kind == Kind::kMin;
  scan.lane = LaneOf(call.call->compute_dtype);
  scan.in = DtypeOf(call.inputs[0]);
  scan.out = DtypeOf(call.outputs[0]);
  scan.loops = FindLoop(scan.lane, kind);
  if (scan.loops.row == nullptr || IsComplex(scan.in) || IsComplex(scan.out) ||
      (!scan.extreme && scan.lane == MICA_BOOL))
    return false;
  if (scan.extreme && (call.num_outputs != 2 || DtypeOf(call.outputs[1]) != MICA_I64)) return false;
  const Space& space = scan.space;
  MakeSpace(call, true, true, &scan.space);
  const int64_t n = space.inner.numel;
  if (n == 0 || space.outer.numel == 0) return true;
  const bool dense = scan.in == scan.lane && scan.out == scan.lane && space.inner.ndim == 1 &&
                     space.inner.operands[0].flat && space.inner.operands[1].flat;
  if (dense && !scan.extreme) scan.fours = FindFours(scan.lane, kind == Kind::kProduct);
  // Side by side, rows are lanes of the program; positions would not fit those.
  const bool across = scan.fours == nullptr && !GoesAlong(space);
  if (across && !scan.extreme) return false;
  std::atomic<bool> no_memory{false};
  const int64_t grain = std::max<int64_t>(across ? 64 : 1, 16384 / n);
  ParallelSteps(space.outer.numel, grain, across ? 64 : 1, ThreadsOf(call.call),
                [&](int64_t begin, int64_t end) {
                  char* memory = Scratch(Scan::kMemory);
                  if (memory == nullptr) {
                    no_memory = true;
                    return;
                  }
                  across ? scan.Across(begin, end, memory) : scan.Along(begin, end, memory);
                });
  if (no_memory) throw std::bad_alloc();
  return true;
}

}  // namespace mica::cpu
