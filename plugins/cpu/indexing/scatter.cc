// Writing by index: out is a copy of self (or zeros), then elements are set or added
// in the order of the index, so that results do not depend on the number of threads.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/engine/plans/numbers.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/indexing/advanced.h"
#include "plugins/cpu/indexing/indexing.h"
#include "plugins/cpu/indexing/line_walk.h"
#include "plugins/cpu/indexing/slices.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// What `out` starts from: self, unless it is `out` itself.
void CopySelf(const TensorRef& self, const TensorRef& out, int32_t threads) {
  if (self.data<void>() == out.data<void>()) return;
  CopyStrided(out.itemsize(), out.ndim(), out.sizes(), self.data<void>(), self.strides(), out.data<void>(),
              out.strides(), threads);
}

// A scatter along `dim` line by line of the index, in its order.
struct Lines {
  TensorRef index, src;
  int64_t dim, length, count;
  int64_t out[kMaxDims];  // strides
  int64_t along, step;

  Lines(const TensorRef& to, int64_t d, const TensorRef& at, const TensorRef& from)
      : index(at), src(from), dim(d < 0 ? d + to.ndim() : d) {
    if (to.ndim() == 0 || to.ndim() > kMaxDims || at.ndim() != to.ndim() || from.ndim() != to.ndim())
      throw plugin::NotImplemented();
    std::copy_n(to.strides(), to.ndim(), out);
    const int32_t last = to.ndim() - 1;
    length = at.size(last);
    count = at.numel() / std::max<int64_t>(length, 1);
    along = dim == last ? 0 : out[last];
    step = out[dim];
  }

  // Calls f(elements from the beginning of the index, of src and of out, and how many) for each
  // line, a long one piece by piece, until it returns false, which is the result.
  template <class F>
  bool All(F f) const {
    if (count == 0) return true;
    const int32_t last = index.ndim() - 1;
    LineWalk<3> walk(index.sizes(), index.ndim());
    for (int32_t d = 0; d < last; ++d) {
      walk.strides[0][d] = index.stride(d);
      walk.strides[1][d] = src.stride(d);
      walk.strides[2][d] = d == dim ? 0 : out[d];
    }
    walk.Seek(0);
    for (int64_t line = 0; line < count; ++line, walk.Next()) {
      const int64_t* places = walk.offsets;
      for (int64_t i = 0; i < length; i += kLineElements) {
        if (i > 0 && Interrupted()) ThrowInterrupted();
        if (!f(places[0] + i * index.stride(last), places[1] + i * src.stride(last), places[2] + i * along,
               std::min(kLineElements, length - i)))
          return false;
      }
    }
    return true;
  }
};

// Places that are named begin from `start` where there is one.
template <class I, class T, class Write>
void ScatterLines(const Lines& lines, T* out, int64_t size, const T* start, Write write) {
  const I* index = lines.index.data<I>();
  const T* src = lines.src.data<T>();
  const int32_t last = lines.index.ndim() - 1;
  const int64_t stride = lines.index.stride(last), apart = lines.src.stride(last);
  // All are checked before the first is written: out may be self.
  const bool inside = lines.All(
      [&](int64_t at, int64_t, int64_t, int64_t n) { return AreInside(index + at, stride, n, size); });
  if (!inside) throw plugin::NotImplemented();
  if (start != nullptr)
    lines.All([&](int64_t at, int64_t, int64_t to, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        out[to + i * lines.along + index[at + i * stride] * lines.step] = *start;
      return true;
    });
  lines.All([&](int64_t at, int64_t from, int64_t to, int64_t n) {
    if (stride == 0 && lines.along == 1 && apart == 1) {  // a row to a row
      const int64_t row = to + index[at] * lines.step;
      for (int64_t i = 0; i < n; ++i) write(out, row + i, src[from + i]);
      return true;
    }
    for (int64_t i = 0; i < n; ++i)
      write(out, to + i * lines.along + index[at + i * stride] * lines.step, src[from + i * apart]);
    return true;
  });
}

// write(elements of out, place of one, element of src) for each index, on a copy of self in which the
// places that are named hold `start`, if there is one.
template <class T, class Write>
void RunScatter(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out, Write write, const T* start = nullptr) {
  const TensorRef in(self), to(out), from(src), at(index);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype()) throw plugin::NotImplemented();
  if (at.dtype() != MICA_I64 && at.dtype() != MICA_I32) throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const Lines lines(to, dim, at, from);
  const int64_t size = to.size(static_cast<int>(lines.dim));
  CopySelf(in, to, threads);
  if (at.dtype() == MICA_I64)
    ScatterLines<int64_t>(lines, to.data<T>(), size, start, write);
  else
    ScatterLines<int32_t>(lines, to.data<T>(), size, start, write);
}

// The combinations of scatter_reduce, each with the element that leaves every other one as it is.
struct Sum {
  template <class T>
  static T Of(T a, T b) {
    return Plus(a, b);
  }
  template <class T>
  static T Start() {
    return FromLane<T>(-LaneOfElement<T>(0));  // 0 would make 0 of -0
  }
};
struct Product {
  template <class T>
  static T Of(T a, T b) {
    return FromLane<T>(ToLane(a) * ToLane(b));
  }
  template <class T>
  static T Start() {
    return FromLane<T>(1);
  }
};

// A number that is ordered as the element is.
template <class T>
auto InOrder(T x) {
  if constexpr (kIsHalf<T> || std::is_same_v<T, TruthByte>)
    return ToLane(x);
  else
    return x;
}
// Of two NaN-free numbers the larger or smaller, else NaN.
template <bool kLargest>
struct Extreme {
  template <class T>
  static T Of(T a, T b) {
    const auto x = InOrder(a), y = InOrder(b);
    return x != x || (kLargest ? x > y : x < y) ? a : b;
  }
  template <class T>
  static T Start() {
    if constexpr (std::is_same_v<T, TruthByte>) {
      return {!kLargest};
    } else if constexpr (std::is_integral_v<T>) {
      return kLargest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    } else {
      using Lane = LaneOfElement<T>;
      return FromLane<T>(kLargest ? -std::numeric_limits<Lane>::infinity()
                                  : std::numeric_limits<Lane>::infinity());
    }
  }
};

// The elements from the first to the last that a tensor reaches.
int64_t ReachOf(const TensorRef& t) {
  int64_t last = 0;
  for (int32_t d = 0; d < t.ndim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return last + 1;
}

// A number as an element of `dtype`; false where the portable kernel says how it is converted.
bool ElementOf(const MicaScalar& scalar, int32_t dtype, char* element) {
  MicaValue value = {};
  value.tag = MICA_VALUE_SCALAR;
  value.u.scalar = scalar;
  const Number number = NumberOf(value);
  const int32_t lane = LaneOf(dtype);
  const bool truth = number.kind == Number::kInteger && (number.i == 0 || number.i == 1);
  if (IsFloat(dtype) ? number.kind == Number::kComplex : IsComplex(dtype) || !truth) return false;
  alignas(16) char wide[16] = {};
  FillLanes(number, lane, wide, 1);
  if (lane == dtype)
    std::memcpy(element, wide, 16);
  else
    DirectCast(lane, dtype)(element, wide, nullptr, nullptr, 1);
  return true;
}

// sum / count; of integers the floor.
template <class T>
T Mean(T sum, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    const T n = static_cast<T>(count);
    return static_cast<T>(sum / n - (sum % n != 0 && sum < 0));
  } else {
    return sum / static_cast<T>(count);
  }
}

}  // namespace

void EmbeddingDenseBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* indices,
                            int64_t num_weights, int64_t padding_idx, int32_t scale_grad_by_freq,
                            MicaTensor* out) {
  if (scale_grad_by_freq) throw plugin::NotImplemented();
  const TensorRef to(out), grad(grad_output);
  const int32_t threads = ThreadsOf(call);
  const IndexList rows = Indices(indices, num_weights);
  const int32_t last = grad.ndim() - 1;
  const int64_t zero[2] = {};
  const auto add = [&](auto* sums, const int64_t* sum_strides, const auto* values, Rows value_rows,
                       int64_t step) {
    using T = std::remove_pointer_t<decltype(sums)>;
    Slices slices;
    slices.Add(to.size(1), sum_strides[1], step);
    slices.Finish();
    CopyStrided(sizeof(T), 2, to.sizes(), zero, zero, sums, sum_strides, threads);
    WriteSlices(slices, sums, {rows.data(), sum_strides[0]}, values, value_rows, rows.size(), true,
                padding_idx, threads, AddTo<T>{1});
  };
  if (to.dtype() == MICA_F16 || to.dtype() == MICA_BF16) {  // summed in float32
    const DenseInput values(grad_output, MICA_F32, threads);
    DenseOutput sums(out, MICA_F32, threads);
    const int64_t strides[2] = {to.size(1), 1};
    add(sums.data<float>(), strides, values.data<float>(), {nullptr, to.size(1)}, 1);
    return sums.Finish();
  }
  const RowsAlong places(grad, 0, last);
  VisitAdded(to.dtype(), [&](auto unit) {
    using T = decltype(unit);
    add(to.data<T>(), to.strides(), static_cast<const T*>(grad.data<T>()), places.rows(), grad.stride(last));
  });
}

namespace {

// Along `dim` of out and source, at the rows of an index_add or index_copy.
template <class T, class Write>
void WriteAlong(const TensorRef& out, int64_t dim, const IndexList& index, const TensorRef& source,
                int32_t threads, Write write) {
  Slices slices;
  Rows to{index.data(), 0}, from{nullptr, 0};
  if (out.ndim() > 0) {
    const auto d = static_cast<int32_t>(dim < 0 ? dim + out.ndim() : dim);
    to.step = out.stride(d);
    from.step = source.ndim() > 0 ? source.stride(d) : 0;
    slices.AddAll(out.sizes(), out.strides(), source.strides(), 0, d, 0);
    slices.AddAll(out.sizes(), out.strides(), source.strides(), d + 1, out.ndim(), 0);
  }
  slices.Finish();
  WriteSlices(slices, out.data<T>(), to, static_cast<const T*>(source.data<T>()), from, index.size(), true,
              -1, threads, write);
}

int64_t SizeAlong(const TensorRef& t, int64_t dim) {
  return t.ndim() == 0 ? 1 : t.size(static_cast<int>(dim));
}

}  // namespace

void IndexAdd(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* source,
              MicaScalar alpha, MicaTensor* out) {
  const TensorRef in(self), to(out), from(source);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype() || alpha.tag == MICA_SCALAR_COMPLEX ||
      from.ndim() != to.ndim())
    throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const IndexList rows = Indices(index, SizeAlong(to, dim));
  VisitAdded(to.dtype(), [&](auto unit) {
    using T = decltype(unit);
    using Lane = LaneOfElement<T>;
    if (std::is_integral_v<T> && alpha.tag == MICA_SCALAR_FLOAT) throw plugin::NotImplemented();
    if (std::is_same_v<T, TruthByte> && (alpha.tag != MICA_SCALAR_INT || alpha.u.i != 1))
      throw plugin::NotImplemented();
    const Lane factor =
        alpha.tag == MICA_SCALAR_FLOAT ? static_cast<Lane>(alpha.u.f) : static_cast<Lane>(alpha.u.i);
    CopySelf(in, to, threads);
    WriteAlong<T>(to, dim, rows, from, threads, AddTo<T>{factor});
  });
}

void ScatterAdd(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out) {
  VisitAdded(TensorRef(out).dtype(), [&](auto unit) {
    using T = decltype(unit);
    RunScatter<T>(call, self, dim, index, src, out,
                  [](T* to, int64_t at, T value) { to[at] = Plus(to[at], value); });
  });
}

void ScatterSrc(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out) {
  VisitSize(TensorRef(out).itemsize(), [&](auto unit) {
    using T = decltype(unit);
    RunScatter<T>(call, self, dim, index, src, out, [](T* to, int64_t at, T value) { to[at] = value; });
  });
}

void ScatterValue(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaScalar value,
                  MicaTensor* out) {
  alignas(16) char element[16] = {};
  if (!ElementOf(value, TensorRef(out).dtype(), element)) throw plugin::NotImplemented();
  // A tensor of the index's shape that has this element everywhere.
  const int64_t zeros[kMaxDims] = {};
  MicaTensor source = *out;
  source.dl.data = element;
  source.dl.shape = index->dl.shape;
  source.dl.strides = const_cast<int64_t*>(zeros);
  source.dl.ndim = index->dl.ndim;
  if (source.dl.ndim > kMaxDims) throw plugin::NotImplemented();
  ScatterSrc(call, self, dim, index, &source, out);
}

namespace {

plugin::OwnedTensor CopyAs(const MicaCall* call, int32_t dtype, MicaTensor* t) {
  plugin::OwnedTensor copy = plugin::OwnedTensor::Empty(t->dl.shape, t->dl.ndim, dtype, MicaDevice{0, 0});
  CopyInto(call, copy.get(), t, 0);
  return copy;
}

// The dtype in which numbers are combined before they are rounded once, or divided.
int32_t WideDtype(int32_t dtype, std::string_view how) {
  switch (dtype) {
    case MICA_F16:
      return MICA_F32;
    case MICA_BF16:  // whose order costs a shift where float16's costs a conversion
      return how == "amax" || how == "amin" ? dtype : MICA_F32;
    case MICA_U8:
    case MICA_I8:
    case MICA_I16:
    case MICA_I32:
      return how == "mean" ? MICA_I64 : dtype;
    default:
      return dtype;
  }
}

// Combines by `How`; an element of `self` counts if `include_self`, else what `src` names begins anew.
template <class How, class T>
void ReduceInto(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                bool include_self, MicaTensor* out) {
  const T start = How::template Start<T>();
  RunScatter<T>(
      call, self, dim, index, src, out,
      [](T* to, int64_t at, T value) { to[at] = How::template Of<T>(to[at], value); },
      include_self ? nullptr : &start);
}

template <class T>
void MeanInto(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
              bool include_self, MicaTensor* out) {
  // How many numbers each element of out holds, by its place in memory.
  std::vector<int64_t> counts(static_cast<size_t>(ReachOf(out)), include_self ? 1 : 0);
  RunScatter<T>(call, self, dim, index, src, out, [&counts](T* to, int64_t at, T value) {
    to[at] = counts[static_cast<size_t>(at)]++ == 0 ? value : Plus(to[at], value);
  });
  T* to = TensorRef(out).data<T>();
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 1) to[i] = Mean(to[i], counts[i]);
}

}  // namespace

void ScatterReduce(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                   MicaStr reduce, int32_t include_self, MicaTensor* out) {
  const std::string_view how(reduce.data, static_cast<size_t>(reduce.size));
  const int32_t dtype = TensorRef(out).dtype(), wide = WideDtype(dtype, how);
  if (wide != dtype) {
    const plugin::OwnedTensor before = CopyAs(call, wide, self), values = CopyAs(call, wide, src);
    const plugin::OwnedTensor after =
        plugin::OwnedTensor::Empty(out->dl.shape, out->dl.ndim, wide, MicaDevice{0, 0});
    ScatterReduce(call, before.get(), dim, index, values.get(), reduce, include_self, after.get());
    return CopyInto(call, out, after.get(), 0);
  }
  VisitAdded(dtype, [&](auto unit) {
    using T = decltype(unit);
    if constexpr (!kIsComplex<T>) {
      if (how == "sum") return ReduceInto<Sum, T>(call, self, dim, index, src, include_self, out);
      if (how == "prod") return ReduceInto<Product, T>(call, self, dim, index, src, include_self, out);
      if (how == "amax") return ReduceInto<Extreme<true>, T>(call, self, dim, index, src, include_self, out);
      if (how == "amin") return ReduceInto<Extreme<false>, T>(call, self, dim, index, src, include_self, out);
      // The floor of a mean of truth values is 1 where all are.
      if constexpr (std::is_same_v<T, TruthByte>) {
        if (how == "mean") return ReduceInto<Product, T>(call, self, dim, index, src, include_self, out);
      } else if constexpr (!kIsHalf<T>) {
        if (how == "mean") return MeanInto<T>(call, self, dim, index, src, include_self, out);
      }
    }
    throw plugin::NotImplemented();
  });
}

void IndexCopy(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* source,
               MicaTensor* out) {
  const TensorRef in(self), to(out), from(source);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype() || from.ndim() != to.ndim())
    throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const IndexList rows = Indices(index, SizeAlong(to, dim));
  CopySelf(in, to, threads);
  VisitSize(to.itemsize(),
            [&](auto unit) { WriteAlong<decltype(unit)>(to, dim, rows, from, threads, Move()); });
}

void IndexPut(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensor* values,
              int32_t accumulate, MicaTensor* out) {
  const TensorRef in(self), to(out), from(values);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype()) throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const AdvancedIndex at = Resolve(to, indices);
  const auto ndim = static_cast<int32_t>(at.sizes.size());
  if (from.ndim() > ndim) throw plugin::NotImplemented();
  std::vector<int64_t> strides(at.sizes.size());  // of values, broadcast
  for (int32_t d = ndim - 1, own = from.ndim() - 1; d >= 0 && own >= 0; --d, --own)
    if (from.size(own) != 1) strides[static_cast<size_t>(d)] = from.stride(own);
  const int32_t behind = at.first + at.ndim - at.past;
  Slices slices;
  slices.AddAll(to.sizes(), to.strides(), strides.data(), 0, at.first, 0);
  slices.AddAll(to.sizes(), to.strides(), strides.data(), at.past, to.ndim(), behind);
  slices.Finish();
  const RowsAlong places(at.sizes.data(), strides.data(), at.first, at.first + at.ndim);
  const auto count = static_cast<int64_t>(at.offsets.size());
  const auto write = [&](auto unit, auto how) {
    using T = decltype(unit);
    CopySelf(in, to, threads);
    WriteSlices(slices, to.data<T>(), {at.offsets.data(), 1}, static_cast<const T*>(from.data<T>()),
                places.rows(), count, true, -1, threads, how);
  };
  if (accumulate)
    VisitAdded(to.dtype(), [&](auto unit) { write(unit, AddTo<decltype(unit)>{1}); });
  else
    VisitSize(to.itemsize(), [&](auto unit) { write(unit, Move()); });
}

}  // namespace mica::cpu
