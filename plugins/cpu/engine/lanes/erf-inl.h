// float32 erf and erfc for targets with fused multiply-add, after N. Juffa's minimax
// fits: 1 and 1.9 ULP over all exponents.
//
// Both are two vectors wide, since a polynomial alone waits for its own last product
// (erf: 1.02 ns an element become 0.75), and have a form for arguments near zero that
// costs half, which a stretch of arguments takes as a whole or not at all.
#if defined(MICA_CPU_ERF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_ERF_INL_H_
#undef MICA_CPU_ERF_INL_H_
#else
#define MICA_CPU_ERF_INL_H_
#endif

#include "plugins/cpu/engine/lanes/float_maths-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

struct Erf;
struct Erfc;

#if HWY_TARGET != HWY_SSE4
#define MICA_EACH for (int k = 0; k < Pair::kVectors; ++k)

struct Pair {
  static constexpr int kVectors = 2;
  VecF v[kVectors];

  // *this * b + c
  HWY_INLINE Pair Times(const Pair& b, const Pair& c) const {
    Pair r;
    MICA_EACH r.v[k] = hn::MulAdd(v[k], b.v[k], c.v[k]);
    return r;
  }
  HWY_INLINE Pair Times(const Pair& b, float c) const {
    Pair r;
    MICA_EACH r.v[k] = hn::MulAdd(v[k], b.v[k], hn::Set(TagF(), c));
    return r;
  }
  HWY_INLINE Pair Times(float b, float c) const {
    Pair r;
    MICA_EACH r.v[k] = hn::MulAdd(v[k], hn::Set(TagF(), b), hn::Set(TagF(), c));
    return r;
  }
  HWY_INLINE Pair Times(float b, const Pair& c) const {
    Pair r;
    MICA_EACH r.v[k] = hn::MulAdd(v[k], hn::Set(TagF(), b), c.v[k]);
    return r;
  }
  HWY_INLINE Pair Times(const Pair& b) const {
    Pair r;
    MICA_EACH r.v[k] = hn::Mul(v[k], b.v[k]);
    return r;
  }
  HWY_INLINE Pair Minus(const Pair& b) const {
    Pair r;
    MICA_EACH r.v[k] = hn::Sub(v[k], b.v[k]);
    return r;
  }
  HWY_INLINE Pair Inverse() const {
    Pair r;
    MICA_EACH r.v[k] = hn::Div(hn::Set(TagF(), 1.0f), v[k]);
    return r;
  }
};

// exp(x) - 1 of the rest of x + low by multiples of log(2), whose number n is in the low
// bits of `shifted`; x is in [-104, 0], low tiny.
HWY_INLINE Pair ExpMinusOneOfRest(const Pair& x, const Pair& low, Pair* shifted) {
  const Pair sum = x.Times(1.442695f, 12582912.0f);
  Pair n, rest;
  MICA_EACH n.v[k] = hn::Sub(sum.v[k], hn::Set(TagF(), 12582912.0f));
  rest = n.Times(-1.42860677e-6f, n.Times(-6.93145752e-1f, x));
  MICA_EACH rest.v[k] = hn::Add(rest.v[k], low.v[k]);
  *shifted = sum;
  return rest.Times(1.37805939e-3f, 8.37312452e-3f)
      .Times(rest, 4.16695364e-2f)
      .Times(rest, 1.66664720e-1f)
      .Times(rest, 4.99999851e-1f)
      .Times(rest)
      .Times(rest, rest);
}

struct Erf {
  static constexpr float kNear = 0.927734375f;
  static HWY_INLINE auto IsNear(VecF x) { return hn::Le(hn::Abs(x), hn::Set(TagF(), kNear)); }

  // x + x^3 * ..., for |x| <= kNear.
  static HWY_INLINE Pair Near(const Pair& x) {
    const Pair s = x.Times(x);
    return s.Times(-5.96761703e-4f, 4.99119423e-3f)
        .Times(s, -2.67681349e-2f)
        .Times(s, 1.12819925e-1f)
        .Times(s, -3.76125336e-1f)
        .Times(s, 1.28379166e-1f)
        .Times(x, x);
  }
  // 1 - exp(polynomial of |x|) beyond.
  static HWY_INLINE Pair Any(const Pair& x) {
    const TagF d;
    const TagI di;
    Pair t, minus_t;
    // From 4 on the result is 1; the polynomials would not stay small.
    MICA_EACH t.v[k] = hn::Min(hn::Abs(x.v[k]), hn::Set(d, 4.0f));
    MICA_EACH minus_t.v[k] = hn::Neg(t.v[k]);
    const Pair s = t.Times(t);
    // Polynomials in turn, for the reason given above.
    Pair tail = t.Times(-1.72853470e-5f, 3.83197126e-4f);
    const Pair odd = t.Times(-3.88396438e-3f, 2.42546219e-2f);
    Pair near = s.Times(-5.96761703e-4f, 4.99119423e-3f);
    tail = tail.Times(s, odd);
    near = near.Times(s, -2.67681349e-2f);
    tail = tail.Times(t, -1.06777877e-1f);
    near = near.Times(s, 1.12819925e-1f);
    tail = tail.Times(t, -6.34846687e-1f);
    near = near.Times(s, -3.76125336e-1f);
    tail = tail.Times(t, -1.28717512e-1f);
    near = near.Times(s, 1.28379166e-1f);
    tail = tail.Times(t, minus_t);
    near = near.Times(x, x);
    Pair shifted, result;
    const Pair zero = {{hn::Zero(d), hn::Zero(d)}};
    const Pair e = ExpMinusOneOfRest(tail, zero, &shifted);
    MICA_EACH {
      const VecF power = hn::BitCast(
          d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, shifted.v[k])), hn::BitCast(di, hn::Set(d, 1.0f))));
      const VecF far = hn::NegMulAdd(power, e.v[k], hn::Sub(hn::Set(d, 1.0f), power));
      // NaN is not greater than anything, and `near` of NaN is NaN.
      const auto is_far = hn::Gt(hn::Abs(x.v[k]), hn::Set(d, kNear));
      result.v[k] = hn::CopySign(hn::IfThenElse(is_far, far, near.v[k]), x.v[k]);
    }
    return result;
  }
};

struct Erfc {
  static constexpr float kNear = 0.46875f;  // from -Erf::kNear on
  static HWY_INLINE auto IsNear(VecF x) {
    return hn::And(hn::Ge(x, hn::Set(TagF(), -Erf::kNear)), hn::Le(x, hn::Set(TagF(), kNear)));
  }
  static HWY_INLINE Pair Near(const Pair& x) {
    const Pair one = {{hn::Set(TagF(), 1.0f), hn::Set(TagF(), 1.0f)}};
    return one.Minus(Erf::Near(x));
  }

  // exp(-a^2) (1 + p) / (1 + 2a) for a = |x|, where p is a polynomial of
  // q = (a - 2) / (a + 2) (Shepherd and Laframboise 1981).
  static HWY_INLINE Pair Any(const Pair& x) {
    const TagF d;
    const TagI di;
    const Pair one = {{hn::Set(d, 1.0f), hn::Set(d, 1.0f)}};
    Pair a, sum, minus_a;
    // Above 10.05 the result is 0.
    MICA_EACH a.v[k] = hn::Min(hn::Abs(x.v[k]), hn::Set(d, 10.0546875f));
    MICA_EACH sum.v[k] = hn::Add(a.v[k], hn::Set(d, 2.0f));
    MICA_EACH minus_a.v[k] = hn::Neg(a.v[k]);
    const Pair inverse = sum.Inverse();
    Pair q = inverse.Times(-4.0f, 1.0f), above;
    MICA_EACH above.v[k] = hn::Add(q.v[k], hn::Set(d, 1.0f));
    q = inverse.Times(q.Times(minus_a, above.Times(-2.0f, a)), q);
    const Pair p = q.Times(-0x1.a4a000p-12f, -0x1.42a260p-10f)
                       .Times(q, 0x1.585714p-10f)
                       .Times(q, 0x1.1adcc4p-07f)
                       .Times(q, -0x1.081b82p-07f)
                       .Times(q, -0x1.bc0b6ap-05f)
                       .Times(q, 0x1.4ffc46p-03f)
                       .Times(q, -0x1.540840p-03f)
                       .Times(q, -0x1.7bf616p-04f)
                       .Times(q, 0x1.1ba03ap-02f);
    // The quotient in two parts, and the square.
    const Pair divided = a.Times(2.0f, 1.0f).Inverse();
    const Pair high = p.Times(divided, divided);
    Pair low = high.Times(minus_a.Minus(a), one), rest = p.Minus(high);
    MICA_EACH low.v[k] = hn::Mul(hn::Add(rest.v[k], low.v[k]), divided.v[k]);
    const Pair square = a.Times(a), lost = a.Times(minus_a, square);
    Pair minus_square, shifted, result;
    MICA_EACH minus_square.v[k] = hn::Neg(square.v[k]);
    const Pair e = ExpMinusOneOfRest(minus_square, lost, &shifted);
    low = high.Times(e, low.Times(e, low));
    const Pair near = Near(x);
    MICA_EACH {
      const VecF sum_of_parts = hn::Add(high.v[k], low.v[k]);
      // 2^n in two factors: the result may be denormal.
      const VecI n = hn::Sub(hn::BitCast(di, shifted.v[k]), hn::BitCast(di, hn::Set(d, 12582912.0f)));
      const VecI half = hn::ShiftRight<1>(n), unit = hn::BitCast(di, hn::Set(d, 1.0f));
      const VecF first = hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(half), unit));
      const VecF second = hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::Sub(n, half)), unit));
      VecF far = hn::Mul(hn::Mul(sum_of_parts, first), second);
      far = hn::IfThenElse(hn::Lt(x.v[k], hn::Zero(d)), hn::Sub(hn::Set(d, 2.0f), far), far);
      // NaN is outside of nothing.
      const auto outside = hn::Or(hn::Lt(x.v[k], hn::Set(d, -Erf::kNear)), hn::Gt(x.v[k], hn::Set(d, kNear)));
      result.v[k] = hn::IfThenElse(outside, far, near.v[k]);
    }
    return result;
  }
};

template <Pair (*kFunction)(const Pair&)>
HWY_INLINE void MapPairs(const float* from, float* to, int64_t n) {
  const TagF d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += 2 * lanes) {
    const Pair result = kFunction({{hn::LoadU(d, from + i), hn::LoadU(d, from + i + lanes)}});
    hn::StoreU(result.v[0], d, to + i);
    hn::StoreU(result.v[1], d, to + i + lanes);
  }
}

// out = F(x). Whether a stretch is near zero as a whole is asked before.
template <class F>
HWY_INLINE void MapStretches(const float* x, float* out, int64_t n) {
  constexpr int64_t kStretch = 128;
  const TagF d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float pad[kStretch];
  for (int64_t begin = 0; begin < n; begin += kStretch) {
    const int64_t count = HWY_MIN(kStretch, n - begin);
    const float* from = x + begin;
    float* to = out + begin;
    if (count < kStretch) {
      __builtin_memset(pad, 0, sizeof(pad));
      __builtin_memcpy(pad, from, static_cast<size_t>(count) * sizeof(float));
      from = to = pad;
    }
    auto near = F::IsNear(hn::LoadU(d, from));
    for (int64_t i = lanes; i < kStretch; i += lanes) near = hn::And(near, F::IsNear(hn::LoadU(d, from + i)));
    if (hn::AllTrue(d, near))
      MapPairs<&F::Near>(from, to, count);
    else
      MapPairs<&F::Any>(from, to, count);
    if (to == pad) __builtin_memcpy(out + begin, pad, static_cast<size_t>(count) * sizeof(float));
  }
}
#undef MICA_EACH
#endif

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
