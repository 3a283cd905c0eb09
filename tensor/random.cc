// Words to distributions. Formulas and their order of rounding are those of
// torch's ATen/core/DistributionsHelper.h and native/cpu/DistributionTemplates.h.
#include "tensor/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "tensor/error.h"

namespace mica {

namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;
constexpr int kBatch = 256;

// The type that torch draws T in ("opmath"), and the word one draw takes.
template <typename T>
using Draw = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <typename T>
using Word = std::conditional_t<std::is_same_v<T, double>, uint64_t, uint32_t>;

inline void FillWords(Generator& g, uint32_t* out, int64_t n) { g.Fill32(out, n); }
inline void FillWords(Generator& g, uint64_t* out, int64_t n) { g.Fill64(out, n); }

// [0, 1) from the low 24 or 53 bits of a word.
template <typename D>
D UnitUniform(Word<D> word) {
  constexpr int kDigits = std::numeric_limits<D>::digits;
  constexpr Word<D> kMask = (Word<D>{1} << kDigits) - 1;
  constexpr D kScale = D(1) / static_cast<D>(Word<D>{1} << kDigits);
  return static_cast<D>(word & kMask) * kScale;
}

// Calls f(i, word) for n words in order, drawn in batches.
template <typename W, typename F>
void ForWords(Generator& g, int64_t n, F&& f) {
  W words[kBatch];
  for (int64_t done = 0; done < n; done += kBatch) {
    const int64_t count = std::min<int64_t>(n - done, kBatch);
    FillWords(g, words, count);
    for (int64_t i = 0; i < count; ++i) f(done + i, words[i]);
  }
}

// Calls f with the C++ type of a floating dtype that torch's kernels take.
template <typename F>
void VisitFloating(DType dtype, const char* what, F&& f) {
  switch (dtype) {
    case DType::kF16:
      return f.template operator()<Half>();
    case DType::kBF16:
      return f.template operator()<BFloat16>();
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF64:
      return f.template operator()<double>();
    default:
      MICA_THROW(kNotImplemented, "The distribution ", what, " is not defined for the dtype ", Name(dtype),
                 "; expected float16, bfloat16, float32 or float64.");
  }
}

template <typename F>
void VisitReal(DType dtype, const char* what, F&& f) {
  MICA_CHECK_IMPLEMENTED(!IsComplex(dtype) && ItemSize(dtype) * 8 >= (IsFloating(dtype) ? 16 : 8),
                         "The distribution ", what, " is not defined for the dtype ", Name(dtype),
                         "; expected a real dtype.");
  VisitDType(dtype, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>) {
      f.template operator()<T>();
    }
  });
}

// Integer to element, through float for the narrow floating types.
template <typename T>
T FromInt(int64_t value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

// Box-Muller over 16 uniforms in place: 8 radii, 8 angles. The angle is rounded
// as torch's vector code rounds it, because near a zero of sine and cosine its
// last bit decides many of the result's.
template <typename D>
void NormalBlock(D* data, D mean, D std) {
  for (int j = 0; j < 8; ++j) {
    const D u1 = D(1) - data[j];  // (0, 1]
    const D theta = static_cast<D>(kTwoPi) * data[j + 8];
    // In double, so that float32 adds no error to that of torch's vector code.
    const double radius = std::sqrt(-2 * std::log(static_cast<double>(u1)));
    const double angle = static_cast<double>(theta);
    data[j] = std::fma(static_cast<D>(radius * std::cos(angle)), std, mean);
    data[j + 8] = std::fma(static_cast<D>(radius * std::sin(angle)), std, mean);
  }
}

template <typename T>
void NormalBlocks(Generator& g, T* data, int64_t n, Draw<T> mean, Draw<T> std) {
  using D = Draw<T>;
  // torch draws all words first and then the tail's 16 again: the order of words
  // is the same block by block, except for the first pass over the tail.
  const auto block = [&](T* at) {
    D uniforms[16];
    ForWords<Word<D>>(g, 16, [&](int64_t i, Word<D> word) { uniforms[i] = UnitUniform<D>(word); });
    NormalBlock<D>(uniforms, mean, std);
    for (int i = 0; i < 16; ++i) at[i] = static_cast<T>(uniforms[i]);
  };
  for (int64_t i = 0; i + 16 <= n; i += 16) block(data + i);
  if (n % 16 == 0) return;
  // float32 and float64 have drawn the tail once already; the half types not.
  if constexpr (std::is_same_v<T, D>) ForWords<Word<D>>(g, n % 16, [](int64_t, Word<D>) {});
  block(data + n - 16);
}

}  // namespace

double DrawUniform53(Generator& g) { return UnitUniform<double>(g.Random64()); }
float DrawUniform24(Generator& g) { return UnitUniform<float>(g.Random32()); }

double DrawNormal(Generator& g, double mean, double std) {
  double sample;
  if (g.next_double_normal) {
    sample = *g.next_double_normal;
    g.next_double_normal.reset();
  } else {
    const double u1 = DrawUniform53(g);
    const double u2 = DrawUniform53(g);
    const double radius = std::sqrt(-2.0 * std::log1p(-u2));
    const double theta = kTwoPi * u1;
    g.next_double_normal = radius * std::sin(theta);
    sample = radius * std::cos(theta);
  }
  return std::fma(sample, std, mean);
}

void FillUniform(Generator& g, void* data, int64_t n, DType dtype, double from, double to) {
  MICA_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to,
             ".");
  std::lock_guard<std::mutex> lock(g.mutex());
  VisitFloating(dtype, "uniform", [&]<typename T>() {
    using D = Draw<T>;
    T* out = static_cast<T*>(data);
    const D low = static_cast<D>(from);
    const D width = static_cast<D>(to) - low;
    const T first = static_cast<T>(from);
    const T last = static_cast<T>(to);
    ForWords<Word<D>>(g, n, [&](int64_t i, Word<D> word) {
      const D unit = UnitUniform<D>(word);
      const T value = static_cast<T>(low == 0 && width == 1 ? unit : std::fma(unit, width, low));
      out[i] = value == last ? first : value;  // rounding reached the open end
    });
  });
}

void FillNormal(Generator& g, void* data, int64_t n, DType dtype, double mean, double std) {
  MICA_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std, ".");
  std::lock_guard<std::mutex> lock(g.mutex());
  VisitFloating(dtype, "normal", [&]<typename T>() {
    T* out = static_cast<T*>(data);
    if (n >= 16) return NormalBlocks<T>(g, out, n, static_cast<Draw<T>>(mean), static_cast<Draw<T>>(std));
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(DrawNormal(g, mean, std));
  });
}

void FillBernoulli(Generator& g, void* data, int64_t n, DType dtype, double p) {
  MICA_CHECK(p >= 0 && p <= 1, "bernoulli expects p to be in [0, 1], but got p=", p, ".");
  std::lock_guard<std::mutex> lock(g.mutex());
  VisitReal(dtype, "bernoulli", [&]<typename T>() {
    T* out = static_cast<T*>(data);
    ForWords<uint64_t>(g, n,
                       [&](int64_t i, uint64_t word) { out[i] = FromInt<T>(UnitUniform<double>(word) < p); });
  });
}

void FillBernoulliTensor(Generator& g, void* data, int64_t n, DType dtype, const void* p, DType p_dtype) {
  std::lock_guard<std::mutex> lock(g.mutex());
  VisitReal(dtype, "bernoulli", [&]<typename T>() {
    T* out = static_cast<T*>(data);
    VisitFloating(p_dtype, "bernoulli (probabilities)", [&]<typename P>() {
      const P* probabilities = static_cast<const P*>(p);
      for (int64_t i = 0; i < n; ++i) {
        const double value = static_cast<double>(probabilities[i]);
        MICA_CHECK(value >= 0 && value <= 1, "bernoulli expects p to be in [0, 1], but element (", i,
                   ") of `p` is (", value, "): Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
      }
      if constexpr (std::is_same_v<P, double>) {
        ForWords<uint64_t>(g, n, [&](int64_t i, uint64_t word) {
          out[i] = FromInt<T>(UnitUniform<double>(word) < probabilities[i]);
        });
      } else {
        ForWords<uint32_t>(g, n, [&](int64_t i, uint32_t word) {
          out[i] = FromInt<T>(UnitUniform<float>(word) < static_cast<float>(probabilities[i]));
        });
      }
    });
  });
}

void FillRandint(Generator& g, void* data, int64_t n, DType dtype, int64_t low, int64_t high) {
  MICA_CHECK(low < high || high == std::numeric_limits<int64_t>::min(),
             "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high, ".");
  // 0: all of them, from -2^63 to 2^63.
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  std::lock_guard<std::mutex> lock(g.mutex());
  VisitReal(dtype, "randint", [&]<typename T>() {
    T* out = static_cast<T*>(data);
    const auto store = [&](int64_t i, uint64_t word) {
      const uint64_t above = range == 0 ? word : word % range;
      out[i] = FromInt<T>(static_cast<int64_t>(above + static_cast<uint64_t>(low)));
    };
    if (range == 0 || range >= uint64_t{1} << 28)
      ForWords<uint64_t>(g, n, store);
    else
      ForWords<uint32_t>(g, n, store);
  });
}

void FillRandperm(Generator& g, void* data, int64_t n, DType dtype, void (*pause)()) {
  constexpr int64_t kPause = 1 << 18;  // some milliseconds: nearly each swap waits for memory
  MICA_CHECK(n >= 0, "The length (", n, ") of a random permutation is negative.");
  std::unique_lock<std::mutex> lock(g.mutex());
  VisitReal(dtype, "randperm", [&]<typename T>() {
    T* out = static_cast<T*>(data);
    for (int64_t i = 0; i < n; ++i) out[i] = FromInt<T>(i);
    // torch draws two words once n comes near a word's range.
    const bool wide = n >= std::numeric_limits<uint32_t>::max() / 20;
    for (int64_t i = 0; i < n - 1; ++i) {
      const uint64_t word = wide ? g.Random64() : g.Random32();
      std::swap(out[i], out[i + static_cast<int64_t>(word % static_cast<uint64_t>(n - i))]);
      if (pause == nullptr || i % kPause != kPause - 1) continue;
      lock.unlock();
      pause();
      lock.lock();
    }
  });
}

}  // namespace mica
