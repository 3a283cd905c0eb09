// The float32 and float64 lanes without the maths library: arithmetic,
// comparison, rounding and classification (float_ops-inl.h). maths.cc adds the rest.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/lanes/lanes_float.cc"
#include "hwy/foreach_target.h"
//
#include "plugins/cpu/engine/lanes/float_ops-inl.h"
#include "plugins/cpu/engine/lanes/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

template <class T>
PrimitiveTable MakeFloatTable() {
  PrimitiveTable table{};
  FillCommon<T>(table);
  Primitive* at = table.at;
  at[MICA_OP_ADD] = Map2<T, T, FloatAdd>;
  at[MICA_OP_SUB] = Map2<T, T, FloatSub>;
  at[MICA_OP_MUL] = Map2<T, T, FloatMul>;
  at[MICA_OP_DIV] = Map2<T, T, FloatDiv>;
  at[MICA_OP_TRUNC_DIV] = Map2<T, T, FloatTruncDiv>;
  at[MICA_OP_MIN] = Map2<T, T, FloatMin>;
  at[MICA_OP_MAX] = Map2<T, T, FloatMax>;
  at[MICA_OP_FMIN] = Map2<T, T, FloatFmin>;
  at[MICA_OP_FMAX] = Map2<T, T, FloatFmax>;
  at[MICA_OP_COPYSIGN] = Map2<T, T, FloatCopySign>;
  at[MICA_OP_NEG] = Map1<T, T, FloatNeg>;
  at[MICA_OP_ABS] = Map1<T, T, FloatAbs>;
  at[MICA_OP_SIGN] = Map1<T, T, FloatSign>;
  at[MICA_OP_SQUARE] = Map1<T, T, FloatSquare>;
  at[MICA_OP_RECIPROCAL] = Map1<T, T, FloatReciprocal>;
  at[MICA_OP_FLOOR] = Map1<T, T, FloatFloor>;
  at[MICA_OP_CEIL] = Map1<T, T, FloatCeil>;
  at[MICA_OP_TRUNC] = Map1<T, T, FloatTrunc>;
  at[MICA_OP_ROUND] = Map1<T, T, FloatRound>;
  at[MICA_OP_SQRT] = Map1<T, T, FloatSqrt>;
  at[MICA_OP_RSQRT] = Map1<T, T, FloatRsqrt>;
  at[MICA_OP_IS_NAN] = Map1<uint8_t, T, FloatIsNan>;
  at[MICA_OP_IS_INF] = Map1<uint8_t, T, FloatIsInf>;
  at[MICA_OP_IS_FINITE] = Map1<uint8_t, T, FloatIsFinite>;
  at[MICA_OP_SIGNBIT] = Map1<uint8_t, T, FloatSignBit>;
  at[MICA_OP_IMAG] = Map1<T, T, FloatZero>;
  at[MICA_OP_ANGLE] = Map1<T, T, FloatAngle>;
  at[MICA_OP_FMA] = Map3<T, FloatFma>;
  at[kOpMulAdd] = Map3<T, FloatMulAdd>;
  return table;
}

template <class T, class F, int kRepeated>
void MapRows(const RepeatedRows& r) {
  for (int64_t row = 0; row < r.rows; ++row) {
    T* d = reinterpret_cast<T*>(r.dst + row * r.dst_step);
    const T* x = reinterpret_cast<const T*>(r.a + row * r.a_step);
    const T* y = reinterpret_cast<const T*>(r.b + row * r.b_step);
    const T one = kRepeated == 0 ? x[0] : y[0];
    MICA_IVDEP
    for (int64_t i = 0; i < r.n; ++i) d[i] = kRepeated == 0 ? F::Do(one, y[i]) : F::Do(x[i], one);
  }
}

template <class T, class F>
RowPrimitive RowsOf(Primitive primitive, int repeated) {
  if (primitive != static_cast<Primitive>(Map2<T, T, F>)) return nullptr;
  return repeated == 0 ? MapRows<T, F, 0> : MapRows<T, F, 1>;
}
template <class T>
RowPrimitive FirstOf(Primitive primitive, int repeated) {
  for (RowPrimitive found :
       {RowsOf<T, FloatAdd>(primitive, repeated), RowsOf<T, FloatSub>(primitive, repeated),
        RowsOf<T, FloatMul>(primitive, repeated), RowsOf<T, FloatDiv>(primitive, repeated)})
    if (found != nullptr) return found;
  return nullptr;
}
RowPrimitive FloatRows(Primitive primitive, int repeated) {
  const RowPrimitive narrow = FirstOf<float>(primitive, repeated);
  return narrow != nullptr ? narrow : FirstOf<double>(primitive, repeated);
}

const PrimitiveTable* FloatTables(int32_t dtype) {
  static const PrimitiveTable tables[] = {MakeFloatTable<float>(), MakeFloatTable<double>()};
  return &tables[dtype - MICA_F32];
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(FloatTables);
HWY_EXPORT(FloatRows);
RowPrimitive RowPrimitiveOf(Primitive primitive, int repeated) {
  return HWY_DYNAMIC_DISPATCH(FloatRows)(primitive, repeated);
}
const PrimitiveTable* ChooseFloatTable(int32_t dtype) { return HWY_DYNAMIC_DISPATCH(FloatTables)(dtype); }
}  // namespace mica::cpu
#endif
