// A half-typed matrix times a vector; see gemm_half.h. Each element of the matrix is
// read once, widened in registers: half the memory that float32 takes.
//
// Rows that lie together are dot products, four at a time, so that x is read a quarter
// as often; where the columns do, they are added up over a block of rows in L1, four at
// a time too.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/contraction/half_vector.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "plugins/cpu/contraction/gemm_half.h"
#include "plugins/cpu/engine/lanes/memory-inl.h"
#include "plugins/cpu/engine/threads.h"

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {

using TagF = hn::ScalableTag<float>;

constexpr int64_t kRows = 512;  // of a block whose sums stand in L1
constexpr int64_t kAtOnce = 4;

// sums[r] = w[r * step ...] . x for `rows` (at most kAtOnce) rows of n elements.
template <class S>
void Dots(const S* w, int64_t step, const float* x, int64_t n, int64_t rows, float* sums) {
  const TagF d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // Rows that are not there repeat the last.
  const S* at[kAtOnce];
  for (int64_t r = 0; r < kAtOnce; ++r) at[r] = w + std::min(r, rows - 1) * step;
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    s0 = hn::MulAdd(Memory<S>::Load(at[0] + i), v, s0);
    s1 = hn::MulAdd(Memory<S>::Load(at[1] + i), v, s1);
    s2 = hn::MulAdd(Memory<S>::Load(at[2] + i), v, s2);
    s3 = hn::MulAdd(Memory<S>::Load(at[3] + i), v, s3);
  }
  const float whole[kAtOnce] = {hn::GetLane(hn::SumOfLanes(d, s0)), hn::GetLane(hn::SumOfLanes(d, s1)),
                                hn::GetLane(hn::SumOfLanes(d, s2)), hn::GetLane(hn::SumOfLanes(d, s3))};
  for (int64_t r = 0; r < rows; ++r) {
    float rest = whole[r];
    for (int64_t k = i; k < n; ++k) rest += Memory<S>::Get(at[r][k]) * x[k];
    sums[r] = rest;
  }
}

// sums[r] += x[0] * w[r] + ... + x[columns - 1] * w[(columns - 1) * step + r].
template <class S>
void AddColumns(const S* w, int64_t step, const float* x, int64_t rows, int64_t columns, float* sums) {
  const TagF d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t k = 0; k < columns; k += kAtOnce) {
    const S* at[kAtOnce];
    float factor[kAtOnce];
    for (int64_t j = 0; j < kAtOnce; ++j) {
      at[j] = w + std::min(k + j, columns - 1) * step;
      factor[j] = k + j < columns ? x[k + j] : 0;
    }
    const int64_t here = std::min(kAtOnce, columns - k);
    const auto f0 = hn::Set(d, factor[0]), f1 = hn::Set(d, factor[1]), f2 = hn::Set(d, factor[2]),
               f3 = hn::Set(d, factor[3]);
    int64_t r = 0;
    for (; here == kAtOnce && r + lanes <= rows; r += lanes) {
      auto sum = hn::LoadU(d, sums + r);
      sum = hn::MulAdd(Memory<S>::Load(at[0] + r), f0, sum);
      sum = hn::MulAdd(Memory<S>::Load(at[1] + r), f1, sum);
      sum = hn::MulAdd(Memory<S>::Load(at[2] + r), f2, sum);
      sum = hn::MulAdd(Memory<S>::Load(at[3] + r), f3, sum);
      hn::StoreU(sum, d, sums + r);
    }
    for (; r < rows; ++r) {
      for (int64_t j = 0; j < here; ++j) sums[r] += Memory<S>::Get(at[j][r]) * factor[j];
    }
  }
}

template <class S>
void Rows(const HalfVectorTask& t, int64_t begin, int64_t end) {
  const S* w = static_cast<const S*>(t.w.data);
  S* y = static_cast<S*>(t.y);
  float sums[kRows];
  for (int64_t row = begin; row < end; row += kRows) {
    const int64_t rows = std::min(kRows, end - row);
    if (t.w.transposed) {
      std::fill_n(sums, rows, 0.0f);
      AddColumns(w + row, t.w.stride, t.x, rows, t.columns, sums);
    } else {
      for (int64_t r = 0; r < rows; r += kAtOnce)
        Dots(w + (row + r) * t.w.stride, t.w.stride, t.x, t.columns, std::min(kAtOnce, rows - r), sums + r);
    }
    for (int64_t r = 0; r < rows; ++r) {
      S& to = y[(row + r) * t.y_step];
      const float value = t.factor * sums[r];
      to = Memory<S>::Put(t.old == 0 ? value : value + t.old * Memory<S>::Get(to));
    }
  }
}

void HalfVectorOn(const HalfVectorTask& t, int64_t begin, int64_t end) {
  if (t.dtype == MICA_F16) {
    Rows<Half>(t, begin, end);
  } else {
    Rows<Brain>(t, begin, end);
  }
}

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(HalfVectorOn);
void HalfVector(const HalfVectorTask& task, int32_t threads) {
  const int64_t grain = std::max<int64_t>(64, (1 << 17) / std::max<int64_t>(task.columns, 1));
  ParallelSteps(task.rows, grain, 16, threads, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(HalfVectorOn)(task, begin, end);
  });
}
}  // namespace mica::cpu
#endif
