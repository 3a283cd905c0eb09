// exp and log of the lanes, short enough to stand inline in a loop.
//
// float32 with fused multiply-add computes by polynomials after N. Juffa's minimax
// fits (0.87 and 0.86 ULP, all exponents), a third of the instructions of SLEEF's
// functions, which are calls; float64, and targets without FMA, take SLEEF's.
// Used by maths.cc and by kernels that need an exponential within a larger loop.
#if defined(MICA_CPU_FLOAT_MATHS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_CPU_FLOAT_MATHS_INL_H_
#undef MICA_CPU_FLOAT_MATHS_INL_H_
#else
#define MICA_CPU_FLOAT_MATHS_INL_H_
#endif

#include <limits>

#include "plugins/cpu/engine/lanes/sleef-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

using TagI = hn::RebindToSigned<TagF>;
using VecI = hn::Vec<TagI>;

// exp(x) = result * 2^n, the result in [0.7, 1.42). The low bits of `shifted` are n;
// |x| is below 2^21.
HWY_INLINE VecF ExpOfRest(VecF x, VecI* shifted) {
  const TagF d;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const VecF magic = hn::Set(d, 12582912.0f);
  const VecF sum = hn::MulAdd(x, hn::Set(d, 1.442695f), magic);
  *shifted = hn::BitCast(TagI(), sum);
  const VecF n = hn::Sub(sum, magic);
  VecF rest = hn::MulAdd(n, hn::Set(d, -6.93145752e-1f), x);
  rest = hn::MulAdd(n, hn::Set(d, -1.42860677e-6f), rest);
  VecF result = hn::Set(d, 1.37805939e-3f);
  result = hn::MulAdd(result, rest, hn::Set(d, 8.37312452e-3f));
  result = hn::MulAdd(result, rest, hn::Set(d, 4.16695364e-2f));
  result = hn::MulAdd(result, rest, hn::Set(d, 1.66664720e-1f));
  result = hn::MulAdd(result, rest, hn::Set(d, 4.99999851e-1f));
  result = hn::MulAdd(result, rest, hn::Set(d, 1.0f));
  return hn::MulAdd(result, rest, hn::Set(d, 1.0f));
}

// exp(x) for |x| <= 87: neither overflow, denormal results nor NaN.
struct ExpInRange {
  static HWY_INLINE VecF Do(VecF x) {
#if HWY_TARGET == HWY_SSE4
    return SleefExp::Do(x);
#else
    VecI shifted;
    const VecF result = ExpOfRest(x, &shifted);
    return hn::BitCast(TagF(), hn::Add(hn::BitCast(TagI(), result), hn::ShiftLeft<23>(shifted)));
#endif
  }
};

struct Exp {
  static HWY_INLINE VecD Do(VecD x) { return SleefExp::Do(x); }
  static HWY_INLINE VecF Do(VecF x) {
#if HWY_TARGET == HWY_SSE4
    return SleefExp::Do(x);
#else
    const TagF d;
    const TagI di;
    // Beyond these the result is 0 or infinity all the same; NaN stays.
    x = hn::IfThenElse(hn::Gt(x, hn::Set(d, 89.0f)), hn::Set(d, 89.0f), x);
    x = hn::IfThenElse(hn::Lt(x, hn::Set(d, -104.0f)), hn::Set(d, -104.0f), x);
    VecI shifted;
    const VecF result = ExpOfRest(x, &shifted);
    // 2^n in two factors, since neither it nor the product need be normal.
    const VecI n = hn::Sub(shifted, hn::BitCast(di, hn::Set(d, 12582912.0f)));
    const VecI half = hn::ShiftRight<1>(n);
    const VecI one = hn::BitCast(di, hn::Set(d, 1.0f));
    const VecF first = hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(half), one));
    const VecF second = hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::Sub(n, half)), one));
    return hn::Mul(hn::Mul(result, first), second);
#endif
  }
};

struct Log {
  static HWY_INLINE VecD Do(VecD x) { return SleefLog::Do(x); }
#if HWY_TARGET == HWY_SSE4
  static HWY_INLINE VecF Do(VecF x) { return SleefLog::Do(x); }
#else
  // log(x) + log(2) * exponent of a positive normal x.
  static HWY_INLINE VecF OfNormal(VecF x, VecF exponent) {
    const TagF d;
    const TagI di;
    const VecI bits = hn::BitCast(di, x);
    const VecI two_thirds = hn::BitCast(di, hn::Set(d, 0.666666667f));
    const VecI e = hn::And(hn::Sub(bits, two_thirds), hn::Set(di, static_cast<int32_t>(0xff800000)));
    const VecF i = hn::MulAdd(hn::ConvertTo(d, e), hn::Set(d, 1.19209290e-7f), exponent);
    const VecF m = hn::Sub(hn::BitCast(d, hn::Sub(bits, e)), hn::Set(d, 1.0f));  // in [-1/3, 1/3)
    const VecF s = hn::Mul(m, m);
    VecF even = hn::Set(d, -0.130310059f);
    VecF odd = hn::Set(d, 0.140869141f);
    even = hn::MulAdd(even, s, hn::Set(d, -0.121483512f));
    odd = hn::MulAdd(odd, s, hn::Set(d, 0.139814854f));
    even = hn::MulAdd(even, s, hn::Set(d, -0.166846126f));
    odd = hn::MulAdd(odd, s, hn::Set(d, 0.200120345f));
    even = hn::MulAdd(even, s, hn::Set(d, -0.249996200f));
    VecF result = hn::MulAdd(odd, m, even);
    result = hn::MulAdd(result, m, hn::Set(d, 0.333331972f));
    result = hn::MulAdd(result, m, hn::Set(d, -0.5f));
    result = hn::MulAdd(result, s, m);
    return hn::MulAdd(i, hn::Set(d, 0.693147182f), result);
  }

  static HWY_INLINE VecF Do(VecF x) {
    const TagF d;
    const VecF infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    const VecF least = hn::Set(d, std::numeric_limits<float>::min());
    if (HWY_LIKELY(hn::AllTrue(d, hn::And(hn::Ge(x, least), hn::Lt(x, infinity)))))
      return OfNormal(x, hn::Zero(d));
    const auto denormal = hn::Lt(x, least);
    const VecF scaled = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
    VecF result = OfNormal(scaled, hn::IfThenElseZero(denormal, hn::Set(d, -23.0f)));
    result = hn::IfThenElse(hn::Lt(x, infinity), result, x);  // infinity and NaN
    result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()),
                          result);
  }
#endif
};

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
