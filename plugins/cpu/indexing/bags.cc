// embedding_bag where nothing requires grad: sums and means of the rows that a bag names, held in
// registers for some columns at a time, so that the rows go through no memory of their own. Terms
// are added in their order from 0 on, as the composition does, which has the other modes and dtypes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/indexing/bags.cc"
#include "hwy/foreach_target.h"
//
#include <hwy/highway.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/indexing/indexing.h"
#include "plugins/cpu/indexing/indices.h"

#ifndef MICA_PLUGINS_CPU_INDEXING_BAG_
#define MICA_PLUGINS_CPU_INDEXING_BAG_
namespace mica::cpu {
// Rows of a table, each taken `factors` times unless that is NULL.
template <class T>
struct Bag {
  const T* table;
  int64_t step, width;  // of the table's rows, in elements
  const int64_t* rows;
  const T* factors;
  int64_t count;
  T divisor;
};
template <class T>
using BagLoop = void (*)(const Bag<T>& bag, T* out);
}  // namespace mica::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace mica::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kVectors whole vectors of columns from `column` on.
template <int kVectors, class T>
HWY_INLINE void SumColumns(const Bag<T>& bag, int64_t column, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t i = 0; i < bag.count; ++i) {
    const T* row = bag.table + bag.rows[i] * bag.step + column;
    const auto at = [&](int64_t vector) {
      const auto v = hn::LoadU(d, row + vector * lanes);
      return bag.factors != nullptr ? hn::Mul(v, hn::Set(d, bag.factors[i])) : v;
    };
    s0 = hn::Add(s0, at(0));
    if constexpr (kVectors == 4) {
      s1 = hn::Add(s1, at(1));
      s2 = hn::Add(s2, at(2));
      s3 = hn::Add(s3, at(3));
    }
  }
  const auto divisor = hn::Set(d, bag.divisor);
  hn::StoreU(hn::Div(s0, divisor), d, out + column);
  if constexpr (kVectors == 4) {
    hn::StoreU(hn::Div(s1, divisor), d, out + column + lanes);
    hn::StoreU(hn::Div(s2, divisor), d, out + column + 2 * lanes);
    hn::StoreU(hn::Div(s3, divisor), d, out + column + 3 * lanes);
  }
}

template <class T>
void SumBag(const Bag<T>& bag, T* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t j = 0;
  for (; j + 4 * lanes <= bag.width; j += 4 * lanes) SumColumns<4>(bag, j, out);
  for (; j + lanes <= bag.width; j += lanes) SumColumns<1>(bag, j, out);
  for (; j < bag.width; ++j) {
    T sum = 0;
    for (int64_t i = 0; i < bag.count; ++i) {
      const T value = bag.table[bag.rows[i] * bag.step + j];
      sum += bag.factors != nullptr ? value * bag.factors[i] : value;
    }
    out[j] = sum / bag.divisor;
  }
}

BagLoop<float> ChooseFloats() { return SumBag<float>; }
BagLoop<double> ChooseDoubles() { return SumBag<double>; }

}  // namespace mica::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mica::cpu {
HWY_EXPORT(ChooseFloats);
HWY_EXPORT(ChooseDoubles);
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

// The rows of one bag that are not padding, with their factors; n entries from the first on.
template <class T>
struct Kept {
  std::vector<int64_t> rows;
  std::vector<T> factors;
  void Take(const int64_t* index, const T* weights, int64_t n, int64_t padding) {
    rows.clear();
    factors.clear();
    for (int64_t i = 0; i < n; ++i) {
      if (index[i] == padding) continue;
      rows.push_back(index[i]);
      if (weights != nullptr) factors.push_back(weights[i]);
    }
  }
};

// Where bags begin and end among n indices; they follow each other from 0 on.
std::vector<int64_t> Bounds(MicaTensor* offsets, int64_t bags, int64_t n) {
  const IndexList starts = Indices(offsets, n + 1);
  std::vector<int64_t> bounds(starts.data(), starts.data() + bags);
  bounds.push_back(n);
  if (bounds[0] != 0 || !std::is_sorted(bounds.begin(), bounds.end())) throw plugin::NotImplemented();
  return bounds;
}

// bag_of: the bag of each index; counts: the rows of each bag.
template <class T>
void SumBags(const TensorRef& table, const IndexList& index, const T* weights, int64_t padding,
             const std::vector<int64_t>& bounds, bool mean, T* out, int64_t* bag_of, int64_t* counts,
             BagLoop<T> loop, int32_t threads) {
  const auto bags = static_cast<int64_t>(bounds.size()) - 1;
  const int64_t width = table.size(1);
  const int64_t grain = std::max<int64_t>(1, kIndexGrain * bags / std::max<int64_t>(1, index.size() * width));
  ParallelSteps(bags, grain, 1, threads, [&](int64_t begin, int64_t end) {
    Kept<T> kept;
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = bounds[static_cast<size_t>(b)];
      int64_t n = bounds[static_cast<size_t>(b) + 1] - first;
      std::fill_n(bag_of + first, n, b);
      const int64_t* rows = index.data() + first;
      const T* factors = weights == nullptr ? nullptr : weights + first;
      if (padding >= 0) {
        kept.Take(rows, factors, n, padding);
        rows = kept.rows.data();
        factors = weights == nullptr ? nullptr : kept.factors.data();
        n = static_cast<int64_t>(kept.rows.size());
      }
      counts[b] = n;
      const T divisor = mean ? static_cast<T>(std::max<int64_t>(n, 1)) : T{1};
      loop({table.data<T>(), table.stride(0), width, rows, factors, n, divisor}, out + b * width);
    }
  });
}

// What is wrong with a call is for the composition to say.
void RunBags(const MicaCall* call, MicaTensor* weight, MicaTensor* indices, MicaTensor* offsets, int64_t mode,
             MicaTensor* per_sample_weights, bool include_last_offset, int64_t padding, MicaValue* results) {
  const TensorRef table(weight), places(indices), starts(offsets), factors(per_sample_weights);
  if (table.ndim() != 2 || table.stride(1) != 1 || places.ndim() != 1 || starts.ndim() != 1 || mode < 0 ||
      mode > 1)
    throw plugin::NotImplemented();
  if (factors.defined() && (mode != 0 || factors.ndim() != 1 || factors.size(0) != places.size(0) ||
                            factors.dtype() != table.dtype()))
    throw plugin::NotImplemented();
  const int64_t n = places.numel(), bags = starts.numel() - (include_last_offset ? 1 : 0);
  if (bags < 1 || table.numel() == 0) throw plugin::NotImplemented();
  const IndexList index = Indices(indices, table.size(0));
  const std::vector<int64_t> bounds = Bounds(offsets, bags, n);
  const auto made = [&](std::vector<int64_t> sizes, int32_t dtype) {
    return OwnedTensor::Empty(sizes.data(), static_cast<int64_t>(sizes.size()), dtype, MicaDevice{0, 0});
  };
  OwnedTensor made_tensors[4] = {made({bags, table.size(1)}, table.dtype()), made({n}, MICA_I64),
                                 made({bags}, MICA_I64), made({0}, MICA_I64)};
  const auto run = [&](auto zero, auto loop) {
    using T = decltype(zero);
    std::optional<DenseInput> dense;
    if (factors.defined()) dense.emplace(per_sample_weights, table.dtype(), 1);
    SumBags<T>(table, index, dense ? dense->template data<T>() : nullptr, padding, bounds, mode == 1,
               TensorRef(made_tensors[0].get()).data<T>(), TensorRef(made_tensors[1].get()).data<int64_t>(),
               TensorRef(made_tensors[2].get()).data<int64_t>(), loop, ThreadsOf(call));
  };
  if (table.dtype() == MICA_F32)
    run(float(), HWY_DYNAMIC_DISPATCH(ChooseFloats)());
  else if (table.dtype() == MICA_F64)
    run(double(), HWY_DYNAMIC_DISPATCH(ChooseDoubles)());
  else
    throw plugin::NotImplemented();
  for (int r = 0; r < 4; ++r) {
    results[r] = {};
    results[r].tag = MICA_VALUE_TENSOR;
    results[r].u.tensor = made_tensors[r].release();
  }
}

}  // namespace

void EmbeddingBag(const MicaCall* call, MicaTensor* weight, MicaTensor* indices, MicaTensor* offsets, int32_t,
                  int64_t mode, int32_t, MicaTensor* per_sample_weights, int32_t include_last_offset,
                  MicaValue* results) {
  RunBags(call, weight, indices, offsets, mode, per_sample_weights, include_last_offset != 0, -1, results);
}

void EmbeddingBagPadding(const MicaCall* call, MicaTensor* weight, MicaTensor* indices, MicaTensor* offsets,
                         int32_t, int64_t mode, int32_t, MicaTensor* per_sample_weights,
                         int32_t include_last_offset, MicaOptInt padding_idx, MicaValue* results) {
  const TensorRef table(weight);
  const int64_t rows = table.ndim() == 0 ? 0 : table.size(0);
  int64_t padding = padding_idx.has ? padding_idx.value : -1;
  if (padding_idx.has && padding < 0) padding += rows;
  if (padding_idx.has && (padding < 0 || padding >= rows)) throw plugin::NotImplemented();
  RunBags(call, weight, indices, offsets, mode, per_sample_weights, include_last_offset != 0, padding,
          results);
}

}  // namespace mica::cpu
#endif
