// normal_ of dense float32, complex64 and half types, from 16 elements on: the generator's words
// become Box-Muller pairs by vectors.
//
// The stream is torch's, as tensor/random.cc draws it: blocks of 16 elements, of which
// the first 8 words give radii and the last 8 angles, 8 cosines and then 8 sines; an
// incomplete last block is drawn anew over the last 16 elements. Logarithm, sine and
// cosine are the single-precision ones of the Cephes library (S. L. Moshier), with the
// additions fused that torch's AVX2 build fuses, so that float32 is torch's there bit for
// bit; without fused multiply-add, as torch's other builds, within 2 ULP.
// Any other tensor is left to the portable kernel.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/random/normal.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <numbers>
#include <vector>

#include "hwy/highway.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/random/random.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::CappedTag<float, 8>;
using Vec = hn::Vec<Lanes>;
using Ints = hn::RebindToSigned<Lanes>;

// c[0] x^(n-1) + ... + c[n-1] by Horner's rule.
template <size_t kCount>
HWY_INLINE Vec Polynomial(Vec x, const float (&c)[kCount]) {
  const Lanes d;
  Vec sum = hn::Set(d, c[0]);
  for (size_t i = 1; i < kCount; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// log of positive normal numbers: x = 2^e (1 + m) with 1 + m in [sqrt(1/2), sqrt(2)), and
// log(1 + m) = m - m^2 / 2 + m^3 P(m).
HWY_INLINE Vec Logarithm(Vec x) {
  const Lanes d;
  const Ints di;
  static constexpr float kSeries[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                      -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                      2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const Vec one = hn::Set(d, 1.0f);
  const auto bits = hn::BitCast(di, x);
  const Vec mantissa = hn::BitCast(
      d, hn::Or(hn::And(bits, hn::Set(di, 0x7fffff)), hn::BitCast(di, hn::Set(d, 0.5f))));  // in [1/2, 1)
  const Vec exponent = hn::ConvertTo(d, hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 126)));
  const auto low = hn::Lt(mantissa, hn::Set(d, 0.707106781186547524f));
  const Vec e = hn::Sub(exponent, hn::IfThenElseZero(low, one));
  const Vec m = hn::Add(hn::Sub(mantissa, one), hn::IfThenElseZero(low, mantissa));
  const Vec square = hn::Mul(m, m);
  // log(2) in two parts, the smaller first.
  Vec rest = hn::Mul(Polynomial(m, kSeries), m);
  rest = hn::MulAdd(rest, square, hn::Mul(e, hn::Set(d, -2.12194440e-4f)));
  rest = hn::NegMulAdd(square, hn::Set(d, 0.5f), rest);
  return hn::MulAdd(e, hn::Set(d, 0.693359375f), hn::Add(m, rest));
}

// Sine and cosine of x in [0, 7], by polynomials about the nearest even multiple of pi/4.
HWY_INLINE void SineAndCosine(Vec x, Vec* sine, Vec* cosine) {
  const Lanes d;
  const Ints di;
  static constexpr float kSine[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
  static constexpr float kCosine[] = {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};
  auto octant = hn::ConvertTo(di, hn::Mul(x, hn::Set(d, 1.27323954473516f)));
  octant = hn::And(hn::Add(octant, hn::Set(di, 1)), hn::Set(di, ~1));
  const Vec k = hn::ConvertTo(d, octant);
  // pi/4 in three parts, whose products with k are exact.
  Vec rest = hn::MulAdd(k, hn::Set(d, -0.78515625f), x);
  rest = hn::MulAdd(k, hn::Set(d, -2.4187564849853515625e-4f), rest);
  rest = hn::MulAdd(k, hn::Set(d, -3.77489497744594108e-8f), rest);
  const Vec square = hn::Mul(rest, rest);
  Vec c = hn::Mul(Polynomial(square, kCosine), square);
  c = hn::MulSub(c, square, hn::Mul(square, hn::Set(d, 0.5f)));
  c = hn::Add(c, hn::Set(d, 1.0f));
  const Vec s = hn::MulAdd(hn::Mul(Polynomial(square, kSine), square), rest, rest);
  const auto odd = hn::MaskFromVec(hn::BitCast(d, hn::ShiftLeft<30>(octant)));  // of the quarters
  const Vec sign = hn::SignBit(d);
  const auto next = hn::Add(octant, hn::Set(di, 2));
  *sine = hn::Xor(hn::IfThenElse(odd, c, s), hn::And(hn::BitCast(d, hn::ShiftLeft<29>(octant)), sign));
  *cosine = hn::Xor(hn::IfThenElse(odd, s, c), hn::And(hn::BitCast(d, hn::ShiftLeft<29>(next)), sign));
}

// Turns `blocks` blocks of 16 words into normal numbers where they stand.
void NormalBlocks(float* data, int64_t blocks, float mean, float std) {
  const Lanes d;
  const Ints words;
  const auto low = hn::Set(words, 0xffffff);
  const Vec unit = hn::Set(d, 1.0f / 16777216.0f), two_pi = hn::Set(d, 6.28318530717958647692f);
  const Vec center = hn::Set(d, mean), scale = hn::Set(d, std);
  for (float* block = data; blocks > 0; --blocks, block += 16) {
    for (size_t j = 0; j < 8; j += hn::Lanes(d)) {
      const int32_t* at = reinterpret_cast<const int32_t*>(block + j);
      const Vec u1 = hn::Mul(hn::ConvertTo(d, hn::And(hn::LoadU(words, at), low)), unit);
      const Vec u2 = hn::Mul(hn::ConvertTo(d, hn::And(hn::LoadU(words, at + 8), low)), unit);
      const Vec log = Logarithm(hn::Sub(hn::Set(d, 1.0f), u1));
      const Vec radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0f), log));
      Vec sine, cosine;
      SineAndCosine(hn::Mul(two_pi, u2), &sine, &cosine);
      hn::StoreU(hn::MulAdd(hn::Mul(radius, cosine), scale, center), d, block + j);
      hn::StoreU(hn::MulAdd(hn::Mul(radius, sine), scale, center), d, block + j + 8);
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
  const bool complex = out.dtype() == MICA_C64;
  const int64_t n = out.numel() * (complex ? 2 : 1);
  const int32_t dtype = complex ? MICA_F32 : out.dtype();
  const bool half = dtype == MICA_F16 || dtype == MICA_BF16;
  const bool serves = (dtype == MICA_F32 || half) && out.contiguous() && n >= kBlock && std >= 0;
  if (!serves) throw plugin::NotImplemented();
  const MicaHost* host = plugin::Host();
  const int32_t threads = ThreadsOf(call);
  const auto run = HWY_DYNAMIC_DISPATCH(NormalBlocks);
  const MicaDevice cpu = {};
  // torch takes mean and std in float32.
  const auto m = static_cast<float>(mean), s = static_cast<float>(complex ? std / std::numbers::sqrt2 : std);
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
