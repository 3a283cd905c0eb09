// Loops of whole expressions, for the operators that say `hot: true` in their entry.
//
// mica-gen writes the expressions (hot/programs.h) over the functors of
// float_ops-inl.h, so that a value is the same as the block program's; the compiler turns
// each loop into vectors of each instruction set. A program is known by its text and code.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/engine/hot.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "plugins/cpu/engine/hot.h"
#include "plugins/cpu/engine/lanes/float_ops-inl.h"
#include "plugins/cpu/engine/lanes/loops-inl.h"

#define OP_ADD FloatAdd::Do
#define OP_SUB FloatSub::Do
#define OP_MUL FloatMul::Do
#define OP_DIV FloatDiv::Do
#define OP_MIN FloatMin::Do
#define OP_MAX FloatMax::Do
#define OP_NEG FloatNeg::Do
#define OP_ABS FloatAbs::Do
#define OP_SQUARE FloatSquare::Do
#define OP_RECIPROCAL FloatReciprocal::Do
#define OP_SQRT FloatSqrt::Do
#define OP_IS_NAN FloatIsNan::Do
#define OP_IS_INF FloatIsInf::Do
#define OP_EQ OpEq::Do
#define OP_NE OpNe::Do
#define OP_LT OpLt::Do
#define OP_LE OpLe::Do
#define OP_GT OpGt::Do
#define OP_GE OpGe::Do
#define OP_MASK_AND(a, b) ((a) & (b))
#define OP_MASK_OR(a, b) ((a) | (b))
#define OP_MASK_NOT(a) (!(a))
#define OP_SELECT(m, a, b) ((m) ? (a) : (b))

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

#include <hot/programs.h>

// All results of an element are computed before one is written: they may lie over inputs.
template <class T, class F, size_t... I, size_t... N, size_t... R>
void Loop(void* const* operands, int64_t n, std::index_sequence<I...>, std::index_sequence<N...>,
          std::index_sequence<R...>) {
  const T* inputs[] = {static_cast<const T*>(operands[I])...};
  const T numbers[] = {T{0}, *static_cast<const T*>(operands[F::kInputs + static_cast<int>(N)])...};
  T* const outputs[] = {static_cast<T*>(operands[F::kInputs + F::kNumbers + static_cast<int>(R)])...};
  MICA_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    T results[sizeof...(R)];
    F::template Do<T>(inputs[I][i]..., numbers[N + 1]..., results[R]...);
    ((outputs[R][i] = results[R]), ...);
  }
}

template <class T, class F>
void Hot(void* const* operands, int64_t n) {
  static_assert(F::kInputs + F::kNumbers + F::kResults <= kMaxHotOperands);
  Loop<T, F>(operands, n, std::make_index_sequence<F::kInputs>(), std::make_index_sequence<F::kNumbers>(),
             std::make_index_sequence<F::kResults>());
}

// Constants follow from the text.
template <class F>
bool Is(const MicaProgram& program) {
  return program.main.size == static_cast<int64_t>(std::size(F::kCode)) &&
         std::memcmp(program.main.data, F::kCode, sizeof(F::kCode)) == 0 &&
         std::strcmp(program.source, F::kSource) == 0;
}

HotLoop HotLoopOf(const MicaProgram& program, bool narrow) {
#define MICA_TRY(F) \
  if (Is<F>(program)) return narrow ? &Hot<float, F> : &Hot<double, F>;
  MICA_FORALL_HOT(MICA_TRY)
#undef MICA_TRY
#undef MICA_FORALL_HOT
  return nullptr;
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(HotLoopOf);

HotLoop FindHotLoop(const MicaProgram& program, int32_t lane) {
  if (lane != MICA_F32 && lane != MICA_F64) return nullptr;
  return HWY_DYNAMIC_DISPATCH(HotLoopOf)(program, lane == MICA_F32);
}

}  // namespace mica::cpu
#endif
