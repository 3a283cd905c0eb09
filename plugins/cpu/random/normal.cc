// normal_ of dense float32 and half types, from 16 elements on: the generator's words
// become Box-Muller pairs by vectors.
//
// The stream is torch's, as tensor/random.cc draws it: blocks of 16 elements, of which
// the first 8 words give radii and the last 8 angles, 8 cosines and then 8 sines; an
// incomplete last block is drawn anew over the last 16 elements. The angle is rounded
// to float32 as torch rounds it, all that follows is computed in float64 (to about
// 1e-9, so that rounding to float32 is all the error), hence within 2 ULP of torch.
// Any other tensor is left to the portable kernel.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mica/plugins/cpu/random/normal.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <vector>

#include "hwy/highway.h"
#include "mica/plugins/cpu/engine/lanes.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/random/random.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Real = hn::CappedTag<double, 8>;
using RealVec = hn::Vec<Real>;
using Bits = hn::RebindToSigned<Real>;
using Narrow = hn::Rebind<float, Real>;
using Words = hn::Rebind<int32_t, Real>;

// c[0] + c[1] x + ... by Horner's rule.
template <size_t kCount>
HWY_INLINE RealVec Polynomial(RealVec x, const double (&c)[kCount]) {
  const Real d;
  RealVec sum = hn::Set(d, c[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// log of positive normal numbers: x = 2^e m with m in [2/3, 4/3), and log(m) is the
// series of 2 atanh((m - 1) / (m + 1)).
HWY_INLINE RealVec Logarithm(RealVec x) {
  const Real d;
  const Bits di;
  static constexpr double kSeries[] = {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11};
  const auto bits = hn::BitCast(di, x);
  const auto two_thirds = hn::BitCast(di, hn::Set(d, 2.0 / 3));
  const auto e = hn::And(hn::Sub(bits, two_thirds), hn::Set(di, static_cast<int64_t>(0xfff) << 52));
  const RealVec m = hn::BitCast(d, hn::Sub(bits, e));
  // The exponent, in the top 12 bits, as a number: through the low bits of 1.5 * 2^52.
  const RealVec magic = hn::Set(d, 6755399441055744.0);
  const auto whole = hn::Add(hn::BitCast(di, magic), hn::ShiftRight<52>(e));
  const RealVec exponent = hn::Sub(hn::BitCast(d, whole), magic);
  const RealVec one = hn::Set(d, 1.0);
  const RealVec s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  return hn::MulAdd(exponent, hn::Set(d, 0.69314718055994530942),
                    hn::Mul(s, Polynomial(hn::Mul(s, s), kSeries)));
}

// Sine and cosine of x in [0, 7], by Taylor's series about the nearest multiple of pi/2.
HWY_INLINE void SineAndCosine(RealVec x, RealVec* sine, RealVec* cosine) {
  const Real d;
  const Bits di;
  static constexpr double kSine[] = {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800};
  static constexpr double kCosine[] = {1.0, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800};
  const RealVec magic = hn::Set(d, 6755399441055744.0);
  const RealVec shifted = hn::Add(hn::Mul(x, hn::Set(d, 0.63661977236758134308)), magic);
  const auto quarter = hn::BitCast(di, shifted);  // its low bits
  const RealVec k = hn::Sub(shifted, magic);
  // pi/2 in two parts; the first has so few bits that its product with k is exact.
  RealVec rest = hn::NegMulAdd(k, hn::Set(d, 1.5707963267341256), x);
  rest = hn::NegMulAdd(k, hn::Set(d, 6.0771005065061922e-11), rest);
  const RealVec square = hn::Mul(rest, rest);
  const RealVec s = hn::Mul(rest, Polynomial(square, kSine));
  const RealVec c = Polynomial(square, kCosine);
  const auto odd = hn::MaskFromVec(hn::BitCast(d, hn::ShiftLeft<63>(quarter)));
  const RealVec sign = hn::SignBit(d);
  const auto next = hn::Add(quarter, hn::Set(di, 1));
  *sine = hn::Xor(hn::IfThenElse(odd, c, s), hn::And(hn::BitCast(d, hn::ShiftLeft<62>(quarter)), sign));
  *cosine = hn::Xor(hn::IfThenElse(odd, s, c), hn::And(hn::BitCast(d, hn::ShiftLeft<62>(next)), sign));
}

// mean + std * x, rounded to float32 after the product as torch does.
HWY_INLINE void StoreScaled(RealVec x, double mean, double std, float* out) {
  const Real d;
  const Narrow narrow;
  auto rounded = hn::DemoteTo(narrow, x);
  if (mean != 0 || std != 1)
    rounded = hn::DemoteTo(narrow, hn::MulAdd(hn::PromoteTo(d, rounded), hn::Set(d, std), hn::Set(d, mean)));
  hn::StoreU(rounded, narrow, out);
}

// Turns `blocks` blocks of 16 words into normal numbers where they stand.
void NormalBlocks(float* data, int64_t blocks, double mean, double std) {
  const Real d;
  const Narrow narrow;
  const Words words;
  const auto low = hn::Set(words, 0xffffff);
  const auto unit = hn::Set(narrow, 1.0f / 16777216.0f);
  const auto two_pi = hn::Set(narrow, 6.28318530717958647692f);
  for (float* block = data; blocks > 0; --blocks, block += 16) {
    for (size_t j = 0; j < 8; j += hn::Lanes(d)) {
      const int32_t* at = reinterpret_cast<const int32_t*>(block + j);
      const auto u1 = hn::Mul(hn::ConvertTo(narrow, hn::And(hn::LoadU(words, at), low)), unit);
      const auto u2 = hn::Mul(hn::ConvertTo(narrow, hn::And(hn::LoadU(words, at + 8), low)), unit);
      const RealVec log = Logarithm(hn::PromoteTo(d, hn::Sub(hn::Set(narrow, 1.0f), u1)));
      const RealVec radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), log));
      RealVec sine, cosine;
      SineAndCosine(hn::PromoteTo(d, hn::Mul(two_pi, u2)), &sine, &cosine);
      StoreScaled(hn::Mul(radius, cosine), mean, std, block + j);
      StoreScaled(hn::Mul(radius, sine), mean, std, block + j + 8);
    }
  }
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(NormalBlocks);

namespace {

constexpr int64_t kBlock = 16;
// Elements drawn at a time: their words stay in the second cache until they are used.
constexpr int64_t kChunk = 1 << 16;

void Normal(const MicaCall* call, MicaTensor* self, double mean, double std, MicaGenerator* generator) {
  const plugin::TensorRef out(self);
  const int64_t n = out.numel();
  const int32_t dtype = out.dtype();
  const bool half = dtype == MICA_F16 || dtype == MICA_BF16;
  const bool serves = (dtype == MICA_F32 || half) && out.contiguous() && n >= kBlock && std >= 0;
  if (!serves) throw plugin::NotImplemented();
  const MicaHost* host = plugin::Host();
  const int32_t threads = ThreadsOf(call);
  const auto run = HWY_DYNAMIC_DISPATCH(NormalBlocks);
  const MicaDevice cpu = {};
  // torch takes mean and std in float32.
  const double m = static_cast<float>(mean), s = static_cast<float>(std);
  std::vector<float> buffer(static_cast<size_t>(half ? std::min(n, kChunk) : 0));
  // Draws `words` words for elements from `at` on, and makes the whole blocks of them.
  const auto draw = [&](int64_t at, int64_t words) {
    float* to = half ? buffer.data() : out.data<float>() + at;
    plugin::Check(host->random_u32(generator, cpu, reinterpret_cast<uint32_t*>(to), words));
    const int64_t blocks = words / kBlock;
    ParallelFor(blocks, 256, 1, threads, [&](int64_t begin, int64_t end) {
      run(to + begin * kBlock, end - begin, m, s);
      if (half)
        DirectCast(MICA_F32, dtype)(out.data<uint16_t>() + at + begin * kBlock, to + begin * kBlock, nullptr,
                                    nullptr, (end - begin) * kBlock);
    });
    if (Interrupted()) ThrowInterrupted();
  };
  const int64_t whole = half ? n / kBlock * kBlock : n;
  for (int64_t at = 0; at < whole; at += kChunk) draw(at, std::min(kChunk, whole - at));
  if (n % kBlock != 0) draw(n - kBlock, kBlock);
}

}  // namespace

void RegisterRandom(plugin::Registrar& registrar) { registrar.Kernel<&Normal>("normal_"); }

}  // namespace mica::cpu
#endif
