// Products of integers; see gemm_integers.h.
//
// A tile of c, a few rows by two vectors, stands in registers while a strip of b and the rows of a
// run by; a strip of b is packed, unless it lies as the tile reads it. Few rows or columns whose
// elements are adjacent along k are multiplied as vectors. Sums are kept in an unsigned type of no fewer
// bits than the dtype, so that parts of k add up exactly: both wrap.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/contraction/gemm_integers.cc"
#include "hwy/foreach_target.h"
//
#include <hwy/highway.h>

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "plugins/cpu/contraction/gemm_half.h"
#include "plugins/cpu/contraction/gemm_integers.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kRows = 4, kVectors = 2;  // of a tile
constexpr int64_t kDepth = 128;             // of a strip along k
constexpr int64_t kVectorBytes = 64;
constexpr int64_t kFew = 8;                  // rows or columns that are multiplied as vectors
constexpr int64_t kPoll = int64_t{1} << 26;  // multiplications between questions for a Ctrl-C

template <class T>
using SumOf =
    std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;

template <class T>
using TagOf = hn::CappedTag<SumOf<T>, kVectorBytes / sizeof(SumOf<T>)>;

// Elements of T, or sums of them, as sums.
template <class D, class Element>
HWY_INLINE hn::Vec<D> Load(D d, const Element* from) {
  if constexpr (sizeof(Element) == sizeof(hn::TFromD<D>)) {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
  } else {
    using Wide = std::conditional_t<std::is_signed_v<Element>, int16_t, uint16_t>;
    static_assert(sizeof(Element) == 1);
    const hn::Rebind<Wide, D> wide;
    return hn::BitCast(d, hn::PromoteTo(wide, hn::LoadU(hn::Rebind<Element, D>(), from)));
  }
}

template <class T>
class IntegerProduct {
  using Sum = SumOf<T>;
  using Tag = TagOf<T>;

 public:
  IntegerProduct(const Product& p)
      : p_(p),
        patience_(kPoll),
        a_(static_cast<const T*>(p.a.data)),
        b_(static_cast<const T*>(p.b.data)),
        c_(static_cast<T*>(p.c.data)),
        alpha_(static_cast<Sum>(p.alpha.integer)),
        beta_(static_cast<Sum>(p.beta.integer)) {}

  void Run() {
    const bool along_k = p_.a.col == 1 && p_.b.row == 1 && p_.k >= kFew;
    if (along_k && std::min(p_.m, p_.n) < kFew)
      Dots();
    else
      Tiles();
  }

 private:
  void Tiles() {
    const int64_t widest = kVectors * static_cast<int64_t>(hn::Lanes(Tag()));
    for (int64_t l = 0; l < p_.k || l == 0; l += kDepth) {
      const int64_t depth = std::min(kDepth, p_.k - l);
      for (int64_t j = 0; j < p_.n; j += widest) {
        const int64_t width = std::min(widest, p_.n - j);
        if (!Strip(l, depth, j, width)) return;
      }
    }
  }

  void Dots() {
    for (int64_t i = 0; i < p_.m; ++i) {
      for (int64_t j = 0; j < p_.n; ++j) {
        Sum sum = 0;
        for (int64_t l = 0; l < p_.k; l += kPoll) {
          const int64_t depth = std::min(kPoll, p_.k - l);
          sum = static_cast<Sum>(sum + Dot(a_ + i * p_.a.row + l, b_ + j * p_.b.col + l, depth));
          if (patience_.Ends(depth)) return;
        }
        Put(c_[i * p_.c.row + j * p_.c.col], sum, beta_);
      }
    }
  }

  static Sum Dot(const T* a, const T* b, int64_t n) {
    const Tag d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    auto even = hn::Zero(d), odd = hn::Zero(d);
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      even = hn::Add(even, hn::Mul(Load(d, a + i), Load(d, b + i)));
      odd = hn::Add(odd, hn::Mul(Load(d, a + i + lanes), Load(d, b + i + lanes)));
    }
    HWY_ALIGN Sum parts[kVectorBytes / sizeof(Sum)];
    hn::Store(hn::Add(even, odd), d, parts);
    uint64_t sum = std::accumulate(parts, parts + lanes, uint64_t{0});
    for (; i < n; ++i) sum += static_cast<uint64_t>(a[i]) * static_cast<uint64_t>(b[i]);
    return static_cast<Sum>(sum);
  }

  // Some columns of c; false after a Ctrl-C.
  bool Strip(int64_t l, int64_t depth, int64_t j, int64_t width) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(Tag()));
    const int64_t vectors = (width + lanes - 1) / lanes;
    const T* b = b_ + l * p_.b.row + j * p_.b.col;
    int64_t step = vectors * lanes;
    const Sum old = l == 0 ? beta_ : Sum{1};
    const bool lies = p_.b.col == 1 && width == step;
    if (lies && (sizeof(T) == sizeof(Sum) || p_.m <= kRows)) {
      return Multiply(l, depth, j, width, b, p_.b.row, old);
    }
    Pack(b, depth, width, step);
    return Multiply(l, depth, j, width, packed_, step, old);
  }

  // All rows of a, columns [l, l + depth), times lines of b; false after a Ctrl-C.
  template <class Line>
  bool Multiply(int64_t l, int64_t depth, int64_t j, int64_t width, const Line* lines, int64_t step,
                Sum old) {
    for (int64_t i = 0; i < p_.m; i += kRows) {
      const int64_t rows = std::min(kRows, p_.m - i);
      const T* a = a_ + i * p_.a.row + l * p_.a.col;
      if (width <= static_cast<int64_t>(hn::Lanes(Tag())))
        TileOf<1>(rows, a, lines, step, depth);
      else
        TileOf<kVectors>(rows, a, lines, step, depth);
      for (int64_t r = 0; r < rows; ++r) {
        T* to = c_ + (i + r) * p_.c.row + j * p_.c.col;
        for (int64_t n = 0; n < width; ++n) Put(to[n * p_.c.col], sums_[r * kWidth + n], old);
      }
      if (patience_.Ends(rows * depth * width)) return false;
    }
    return true;
  }

  void Pack(const T* b, int64_t depth, int64_t width, int64_t step) {
    for (int64_t l = 0; l < depth; ++l) {
      Sum* to = packed_ + l * step;
      for (int64_t j = 0; j < width; ++j) to[j] = static_cast<Sum>(b[l * p_.b.row + j * p_.b.col]);
      std::fill(to + width, to + step, Sum{0});
    }
  }

  template <int V, int R = kRows, class Line>
  void TileOf(int64_t rows, const T* a, const Line* lines, int64_t step, int64_t depth) {
    if constexpr (R > 1) {
      if (rows < R) return TileOf<V, R - 1>(rows, a, lines, step, depth);
    }
    Tile<R, V>(a, lines, step, depth);
  }

  // sums_ = R rows of a times V vectors of each line of b.
  template <int R, int V, class Line>
  void Tile(const T* a, const Line* lines, int64_t step, int64_t depth) {
    const Tag d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<Tag> sums[R][V];
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) sums[r][v] = hn::Zero(d);
    for (int64_t l = 0; l < depth; ++l, lines += step, a += p_.a.col) {
      hn::Vec<Tag> line[V];
      for (int v = 0; v < V; ++v) line[v] = Load(d, lines + v * lanes);
      for (int r = 0; r < R; ++r) {
        const auto factor = hn::Set(d, static_cast<Sum>(a[r * p_.a.row]));
        for (int v = 0; v < V; ++v) sums[r][v] = hn::Add(sums[r][v], hn::Mul(factor, line[v]));
      }
    }
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) hn::StoreU(sums[r][v], d, sums_ + r * kWidth + v * lanes);
  }

  // c = alpha * sum + old * c. In 64 bits, where no product of small unsigned numbers becomes an int.
  void Put(T& element, Sum sum, Sum old) const {
    uint64_t value = uint64_t{alpha_} * sum;
    if (old != 0) value += uint64_t{old} * static_cast<uint64_t>(element);
    element = static_cast<T>(value);
  }

  static constexpr int64_t kWidth = kVectors * kVectorBytes / static_cast<int64_t>(sizeof(Sum));
  const Product& p_;
  Patience patience_;
  const T* a_;
  const T* b_;
  T* c_;
  const Sum alpha_, beta_;
  alignas(64) Sum packed_[kWidth * kDepth];
  alignas(64) Sum sums_[kRows * kWidth];
};

template <class T>
void Multiply(const Product& p) {
  IntegerProduct<T>(p).Run();
}

void RunIntegers(const Product& p) {
  switch (p.dtype) {
    case MICA_U8:
      return Multiply<uint8_t>(p);
    case MICA_I8:
      return Multiply<int8_t>(p);
    case MICA_U16:
      return Multiply<uint16_t>(p);
    case MICA_I16:
      return Multiply<int16_t>(p);
    case MICA_U32:
      return Multiply<uint32_t>(p);
    case MICA_I32:
      return Multiply<int32_t>(p);
    case MICA_U64:
      return Multiply<uint64_t>(p);
    default:
      return Multiply<int64_t>(p);
  }
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mica::cpu {
HWY_EXPORT(RunIntegers);
void IntegerGemm(const Product& given, int32_t threads) {
  constexpr int64_t kPart = int64_t{1} << 16;  // multiplications that pay for a thread
  // Vectors of a tile lie along the columns of c.
  constexpr int64_t kNarrow = 8;  // columns that fill no vector
  const Product p = given.m > given.n && given.n < kNarrow ? Transposed(given) : given;
  const int64_t size = static_cast<int64_t>(DtypeSize(p.dtype));
  const bool by_rows = p.m >= p.n;
  const auto moved = [&](const Strided& x, int64_t step, int64_t begin) {
    return Strided{static_cast<char*>(x.data) + begin * step * size, x.row, x.col};
  };
  StopSign sign;
  const int64_t others = std::max<int64_t>(1, (by_rows ? p.n : p.m) * p.k);
  ParallelFor(by_rows ? p.m : p.n, std::max<int64_t>(1, kPart / others), 32, threads,
              [&](int64_t begin, int64_t end) {
                const Watched watched(&sign);
                Product part = p;
                (by_rows ? part.m : part.n) = end - begin;
                if (by_rows)
                  part.a = moved(p.a, p.a.row, begin);
                else
                  part.b = moved(p.b, p.b.col, begin);
                part.c = moved(p.c, by_rows ? p.c.row : p.c.col, begin);
                HWY_DYNAMIC_DISPATCH(RunIntegers)(part);
              });
  sign.ThrowIfRaised();
}
}  // namespace mica::cpu
#endif
