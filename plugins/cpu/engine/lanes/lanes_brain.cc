// Single operations on half types where they stand in memory: signs, and of bfloat16 more, two elements
// a word.
//
// A program computes bfloat16 in float32 lanes, with a cast before and after. Where it
// is one cheap operation (x + y) the casts would take most of the time; here the even
// and the odd elements of a word are widened by a shift and a mask, and put together
// again after rounding, so that no lane moves. Same results as by way of the lanes but
// for the payload of a NaN. The plan (plan.cc) chooses between the two.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/lanes/lanes_brain.cc"
#include "hwy/foreach_target.h"
//
#include <bit>

#include "plugins/cpu/engine/lanes/float_ops-inl.h"
#include "plugins/cpu/engine/lanes/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

// Two elements, aligned as one.
using Word __attribute__((aligned(2), may_alias)) = uint32_t;

HWY_INLINE float Even(uint32_t word) { return std::bit_cast<float>(word << 16); }
HWY_INLINE float Odd(uint32_t word) { return std::bit_cast<float>(word & 0xffff0000u); }

// Rounds to nearest even into the upper half. A NaN that arithmetic made of bfloat16
// values has a zero lower half, and stays what it is.
HWY_INLINE uint32_t Rounded(float lane) {
  const uint32_t bits = std::bit_cast<uint32_t>(lane);
  return bits + 0x7fff + ((bits >> 16) & 1);
}
HWY_INLINE uint32_t Joined(float even, float odd) {
  return Rounded(even) >> 16 | (Rounded(odd) & 0xffff0000u);
}

template <class F>
int Narrow1(void* dst, const void* a, const void*, const void*, int64_t n) {
  Word* d = static_cast<Word*>(dst);
  const Word* x = static_cast<const Word*>(a);
  const int64_t words = n / 2;
  MICA_IVDEP
  for (int64_t i = 0; i < words; ++i) d[i] = Joined(F::Do(Even(x[i])), F::Do(Odd(x[i])));
  if (n % 2 != 0) {
    const float last = Even(static_cast<const uint16_t*>(a)[n - 1]);
    static_cast<uint16_t*>(dst)[n - 1] = static_cast<uint16_t>(Rounded(F::Do(last)) >> 16);
  }
  return kFlagNone;
}

template <class F>
int Narrow2(void* dst, const void* a, const void* b, const void*, int64_t n) {
  Word* d = static_cast<Word*>(dst);
  const Word* x = static_cast<const Word*>(a);
  const Word* y = static_cast<const Word*>(b);
  const int64_t words = n / 2;
  MICA_IVDEP
  for (int64_t i = 0; i < words; ++i)
    d[i] = Joined(F::Do(Even(x[i]), Even(y[i])), F::Do(Odd(x[i]), Odd(y[i])));
  if (n % 2 != 0) {
    const float last =
        F::Do(Even(static_cast<const uint16_t*>(a)[n - 1]), Even(static_cast<const uint16_t*>(b)[n - 1]));
    static_cast<uint16_t*>(dst)[n - 1] = static_cast<uint16_t>(Rounded(last) >> 16);
  }
  return kFlagNone;
}

// Of any half type: its sign is the upper bit.
int NegateHalf(void* dst, const void* a, const void*, const void*, int64_t n) {
  uint16_t* d = static_cast<uint16_t*>(dst);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = static_cast<uint16_t>(x[i] ^ 0x8000);
  return kFlagNone;
}
int AbsoluteHalf(void* dst, const void* a, const void*, const void*, int64_t n) {
  uint16_t* d = static_cast<uint16_t*>(dst);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) d[i] = static_cast<uint16_t>(x[i] & 0x7fff);
  return kFlagNone;
}

PrimitiveTable MakeSignTable() {
  PrimitiveTable table{};
  table.at[MICA_OP_NEG] = NegateHalf;
  table.at[MICA_OP_ABS] = AbsoluteHalf;
  return table;
}

PrimitiveTable MakeBrainTable() {
  PrimitiveTable table = MakeSignTable();
  Primitive* at = table.at;
  at[MICA_OP_ADD] = Narrow2<FloatAdd>;
  at[MICA_OP_SUB] = Narrow2<FloatSub>;
  at[MICA_OP_MUL] = Narrow2<FloatMul>;
  at[MICA_OP_DIV] = Narrow2<FloatDiv>;
  at[MICA_OP_MIN] = Narrow2<FloatMin>;
  at[MICA_OP_MAX] = Narrow2<FloatMax>;
  at[MICA_OP_FMIN] = Narrow2<FloatFmin>;
  at[MICA_OP_FMAX] = Narrow2<FloatFmax>;
  at[MICA_OP_SQUARE] = Narrow1<FloatSquare>;
  at[MICA_OP_RECIPROCAL] = Narrow1<FloatReciprocal>;
  at[MICA_OP_SQRT] = Narrow1<FloatSqrt>;
  return table;
}

const PrimitiveTable* HalfTable(int32_t dtype) {
  static const PrimitiveTable brain = MakeBrainTable(), half = MakeSignTable();
  return dtype == MICA_BF16 ? &brain : &half;
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(HalfTable);
const PrimitiveTable* ChooseHalfTable(int32_t dtype) { return HWY_DYNAMIC_DISPATCH(HalfTable)(dtype); }
}  // namespace mica::cpu
#endif
