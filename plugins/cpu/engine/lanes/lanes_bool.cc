// The bool lane and the masks: bytes, of which any but 0 is true. Both are read from memory as
// it lies there, so that what tells bytes apart goes through OfTruths, and gives 0 or 1.
//
// Arithmetic on bool is torch's: addition and max are or, multiplication and min
// are and, subtraction is xor. A mask register has the same bytes, so both share
// their loops.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/lanes/lanes_bool.cc"
#include "hwy/foreach_target.h"
//
#include "plugins/cpu/engine/lanes/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

using Byte = uint8_t;

struct BoolAnd {
  static HWY_INLINE int Do(Byte a, Byte b) { return a & b; }
};
struct BoolOr {
  static HWY_INLINE int Do(Byte a, Byte b) { return a | b; }
};
struct BoolXor {
  static HWY_INLINE int Do(Byte a, Byte b) { return a ^ b; }
};
struct BoolNot {
  static HWY_INLINE int Do(Byte a) { return a ^ 1; }
};
// a ** b: false only for false ** true.
struct BoolPow {
  static HWY_INLINE int Do(Byte a, Byte b) { return a | (b ^ 1); }
};
// a << b and a >> b on one bit.
struct BoolShift {
  static HWY_INLINE int Do(Byte a, Byte b) { return a & (b ^ 1); }
};
struct BoolMulAdd {
  static HWY_INLINE Byte Do(Byte a, Byte b, Byte c) { return a | (b & c); }
};
struct BoolDiv {
  static Byte Do(Byte a, Byte) { return a; }
};
struct BoolRest {
  static Byte Do(Byte, Byte) { return 0; }
};

// F of operands made 0 or 1.
template <class F>
struct OfTruths {
  static HWY_INLINE auto Do(Byte a) { return F::Do(static_cast<Byte>(a != 0)); }
  static HWY_INLINE auto Do(Byte a, Byte b) {
    return F::Do(static_cast<Byte>(a != 0), static_cast<Byte>(b != 0));
  }
  static HWY_INLINE auto Do(Byte a, Byte b, Byte c) {
    return F::Do(static_cast<Byte>(a != 0), static_cast<Byte>(b != 0), static_cast<Byte>(c != 0));
  }
};
template <class F>
constexpr Primitive kOfTwo = Map2<Byte, Byte, OfTruths<F>>;

PrimitiveTable MakeMaskTable() {
  PrimitiveTable table{};
  Primitive* at = table.at;
  at[MICA_OP_MASK_AND] = kOfTwo<BoolAnd>;
  at[MICA_OP_MASK_OR] = kOfTwo<BoolOr>;
  at[MICA_OP_MASK_XOR] = kOfTwo<BoolXor>;
  at[MICA_OP_MASK_NOT] = Map1<Byte, Byte, OfTruths<BoolNot>>;
  at[MICA_OP_MASK_SELECT] = Select<Byte>;
  at[kOpCopy] = CopyLanes<Byte>;
  return table;
}

PrimitiveTable MakeBoolTable() {
  PrimitiveTable table{};
  FillCommon<Byte>(table);
  Primitive* at = table.at;
  at[MICA_OP_EQ] = kOfTwo<OpEq>;
  at[MICA_OP_NE] = kOfTwo<OpNe>;
  at[MICA_OP_LT] = kOfTwo<OpLt>;
  at[MICA_OP_LE] = kOfTwo<OpLe>;
  at[MICA_OP_GT] = kOfTwo<OpGt>;
  at[MICA_OP_GE] = kOfTwo<OpGe>;
  at[MICA_OP_ADD] = at[MICA_OP_OR] = at[MICA_OP_MAX] = at[MICA_OP_FMAX] = kOfTwo<BoolOr>;
  at[MICA_OP_MUL] = at[MICA_OP_AND] = at[MICA_OP_MIN] = at[MICA_OP_FMIN] = kOfTwo<BoolAnd>;
  at[MICA_OP_SUB] = at[MICA_OP_XOR] = kOfTwo<BoolXor>;
  at[MICA_OP_NOT] = Map1<Byte, Byte, OfTruths<BoolNot>>;
  at[MICA_OP_POW] = kOfTwo<BoolPow>;
  at[MICA_OP_SHL] = at[MICA_OP_SHR] = kOfTwo<BoolShift>;
  at[MICA_OP_DIV] = at[MICA_OP_TRUNC_DIV] = at[MICA_OP_FLOOR_DIV] = MapDivision<Byte, BoolDiv>;
  at[MICA_OP_REMAINDER] = at[MICA_OP_FMOD] = MapDivision<Byte, BoolRest>;
  at[MICA_OP_GCD] = kOfTwo<BoolOr>;
  at[MICA_OP_LCM] = kOfTwo<BoolAnd>;
  at[MICA_OP_NEG] = at[MICA_OP_ABS] = at[MICA_OP_SIGN] = at[MICA_OP_SQUARE] = CopyLanes<Byte>;
  at[MICA_OP_FLOOR] = at[MICA_OP_CEIL] = at[MICA_OP_TRUNC] = at[MICA_OP_ROUND] = CopyLanes<Byte>;
  at[MICA_OP_IS_NAN] = at[MICA_OP_IS_INF] = at[MICA_OP_SIGNBIT] = Map1<Byte, Byte, OpFalse>;
  at[MICA_OP_IS_FINITE] = Map1<Byte, Byte, OpTrue>;
  at[kOpMulAdd] = Map3<Byte, OfTruths<BoolMulAdd>>;
  return table;
}

const PrimitiveTable* BoolTables(bool mask) {
  static const PrimitiveTable tables[] = {MakeBoolTable(), MakeMaskTable()};
  return &tables[mask];
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(BoolTables);
const PrimitiveTable* ChooseBoolTable(bool mask) { return HWY_DYNAMIC_DISPATCH(BoolTables)(mask); }
}  // namespace mica::cpu
#endif
