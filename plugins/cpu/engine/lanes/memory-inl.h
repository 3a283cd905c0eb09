// Floating dtypes in memory, read and written as vectors of the lane in which they
// compute: float32 for float16 and bfloat16, float32 and float64 for themselves.
//
// For loops that go over memory once and would else convert it in a pass of its own
// (reduce/row_loops.cc, casts.cc). Rounding, NaN and denormals are casts-inl.h's.
#if defined(MICA_CPU_MEMORY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_MEMORY_INL_H_
#undef MICA_CPU_MEMORY_INL_H_
#else
#define MICA_CPU_MEMORY_INL_H_
#endif

#include "plugins/cpu/engine/lanes/casts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How elements of type S are read and written.
template <class S>
struct Memory {
  using Lane = S;
  using D = hn::ScalableTag<S>;
  using V = hn::Vec<D>;
  static HWY_INLINE V Load(const S* at) { return hn::LoadU(D(), at); }
  static HWY_INLINE void Store(V v, S* at) { hn::StoreU(v, D(), at); }
  static HWY_INLINE void StoreTwo(V v, V w, S* at) {
    Store(v, at);
    Store(w, at + static_cast<int64_t>(hn::Lanes(D())));
  }
  static HWY_INLINE S Get(S element) { return element; }
  static HWY_INLINE S Put(S lane) { return lane; }
};

template <>
struct Memory<Brain> {
  using Lane = float;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Wide = hn::RebindToUnsigned<D>;
  using Narrow = hn::Rebind<uint16_t, D>;
  static HWY_INLINE V Load(const Brain* at) {
    const auto bits = hn::LoadU(Narrow(), reinterpret_cast<const uint16_t*>(at));
    return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(Wide(), bits)));
  }
  // The upper half, rounded to nearest even, with the sign above it; not of NaN.
  static HWY_INLINE auto Upper(V v) {
    const hn::RebindToSigned<D> wide;
    const auto bits = hn::BitCast(wide, v);
    const auto odd = hn::BitCast(wide, hn::ShiftRight<31>(hn::BitCast(Wide(), hn::ShiftLeft<15>(bits))));
    return hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(wide, 0x7fff)), odd));
  }
  static HWY_INLINE void Store(V v, Brain* at) {
    const Wide wide;
    const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(wide, v)), hn::Set(wide, 0x8000));
    const auto rounded = hn::And(hn::BitCast(wide, Upper(v)), hn::Set(wide, 0xffff));
    const auto nan = hn::Or(sign, hn::Set(wide, 0x7fc0));
    const auto value = hn::IfThenElse(hn::RebindMask(wide, hn::Eq(v, v)), rounded, nan);
    hn::StoreU(hn::DemoteTo(Narrow(), hn::BitCast(hn::RebindToSigned<D>(), value)), Narrow(),
               reinterpret_cast<uint16_t*>(at));
  }
  // Two vectors side by side, at less than twice the cost of one.
  static HWY_INLINE void StoreTwo(V v, V w, Brain* at) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
#if HWY_TARGET == HWY_AVX2
    const hn::RebindToSigned<D> wide;
    if (HWY_LIKELY(hn::AllTrue(D(), hn::And(hn::Eq(v, v), hn::Eq(w, w))))) {
      const auto packed = hn::ReorderDemote2To(hn::RepartitionToNarrow<decltype(wide)>(), Upper(v), Upper(w));
      const __m256i in_order = _mm256_permute4x64_epi64(packed.raw, _MM_SHUFFLE(3, 1, 2, 0));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), in_order);
      return;
    }
#endif
    Store(v, at);
    Store(w, at + lanes);
  }
  static HWY_INLINE float Get(Brain element) { return ToFloat(element); }
  static HWY_INLINE Brain Put(float lane) { return ToBrain(lane); }
};

template <>
struct Memory<Half> {
  using Lane = float;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
#if HWY_TARGET == HWY_SSE4
  static HWY_INLINE V Load(const Half* at) {
    HWY_ALIGN float lanes[4];
    for (int i = 0; i < 4; ++i) lanes[i] = ToFloat(at[i]);
    return hn::Load(D(), lanes);
  }
  static HWY_INLINE void Store(V v, Half* at) {
    HWY_ALIGN float lanes[4];
    hn::Store(v, D(), lanes);
    for (int i = 0; i < 4; ++i) at[i] = ToHalf(lanes[i]);
  }
#else
  using Narrow = hn::Rebind<hwy::float16_t, D>;
  static HWY_INLINE V Load(const Half* at) {
    return hn::PromoteTo(D(), hn::LoadU(Narrow(), reinterpret_cast<const hwy::float16_t*>(at)));
  }
  static HWY_INLINE void Store(V v, Half* at) {
    hn::StoreU(hn::DemoteTo(Narrow(), v), Narrow(), reinterpret_cast<hwy::float16_t*>(at));
  }
#endif
  static HWY_INLINE void StoreTwo(V v, V w, Half* at) {
    Store(v, at);
    Store(w, at + static_cast<int64_t>(hn::Lanes(D())));
  }
  static HWY_INLINE float Get(Half element) { return ToFloat(element); }
  static HWY_INLINE Half Put(float lane) { return ToHalf(lane); }
};

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
