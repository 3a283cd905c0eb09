// Writing by index: out is a copy of self (or zeros), then elements are set or added
// in the order of the index, so that results do not depend on the number of threads.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "mica/plugins/cpu/engine/iteration.h"
#include "mica/plugins/cpu/engine/threads.h"
#include "mica/plugins/cpu/indexing/advanced.h"
#include "mica/plugins/cpu/indexing/indexing.h"
#include "mica/plugins/cpu/indexing/indices.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

// Where `self` starts out: a copy of it in row-major order, unless it is `out` itself.
void CopySelf(const TensorRef& self, const TensorRef& out, DenseOutput& result, int32_t threads) {
  if (self.data<void>() == result.data<void>()) return;
  std::vector<int64_t> strides(static_cast<size_t>(out.ndim()));
  int64_t n = 1;
  for (int32_t d = out.ndim() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = n;
    n *= out.size(d);
  }
  CopyStrided(out.itemsize(), out.ndim(), out.sizes(), self.data<void>(), self.strides(), result.data<void>(),
              strides.data(), threads);
}

// to (outer, extent, inner) += factor * from (outer, rows, inner) at `rows`. Threads
// divide the columns, or the outer parts: each element is added by one thread.
template <class T>
void AddRows(T* to, int64_t outer, int64_t extent, int64_t inner, const IndexList& rows, const T* from,
             T factor, int64_t skip, int32_t threads) {
  const int64_t count = rows.size();
  const auto add = [&](int64_t o, int64_t column, int64_t past) {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = rows[r];
      if (row == skip) continue;
      T* sum = to + (o * extent + row) * inner;
      const T* add = from + (o * count + r) * inner;
      if (factor == T(1))
        for (int64_t i = column; i < past; ++i) sum[i] = Plus(sum[i], add[i]);
      else
        for (int64_t i = column; i < past; ++i) sum[i] = Plus(sum[i], static_cast<T>(factor * add[i]));
    }
  };
  if (outer >= threads) {
    ParallelSteps(outer, std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(count * inner, 1)), 1, threads,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t o = begin; o < end; ++o) add(o, 0, inner);
                  });
    return;
  }
  ParallelSteps(inner, std::max<int64_t>(64, kIndexGrain / std::max<int64_t>(count * outer, 1)), 16, threads,
                [&](int64_t begin, int64_t end) {
                  for (int64_t o = 0; o < outer; ++o) add(o, begin, end);
                });
}

// A scatter along `dim` line by line of the index, in its order. The output is dense.
struct Lines {
  TensorRef index, src;
  int64_t dim, length, count;
  int64_t out[kMaxDims];  // strides
  int64_t along, step;

  Lines(const TensorRef& to, int64_t d, const TensorRef& at, const TensorRef& from)
      : index(at), src(from), dim(d < 0 ? d + to.ndim() : d) {
    if (to.ndim() == 0 || to.ndim() > kMaxDims || at.ndim() != to.ndim() || from.ndim() != to.ndim())
      throw plugin::NotImplemented();
    int64_t n = 1;
    for (int32_t k = to.ndim() - 1; k >= 0; n *= to.size(k--)) out[k] = n;
    const int32_t last = to.ndim() - 1;
    length = at.size(last);
    count = at.numel() / std::max<int64_t>(length, 1);
    along = dim == last ? 0 : out[last];
    step = out[dim];
  }

  // Calls f(elements from the beginning of the index, of src and of out) for each line
  // until it returns false, which is the result.
  template <class F>
  bool All(F f) const {
    const int32_t last = index.ndim() - 1;
    for (int64_t line = 0; line < count; ++line) {
      int64_t places[3] = {};
      int64_t rest = line;
      for (int32_t d = last - 1; d >= 0; --d) {
        const int64_t at = rest % index.size(d);
        rest /= index.size(d);
        places[0] += at * index.stride(d);
        places[1] += at * src.stride(d);
        if (d != dim) places[2] += at * out[d];
      }
      if (!f(places[0], places[1], places[2])) return false;
    }
    return true;
  }
};

template <class I, class T, class Write>
void ScatterLines(const Lines& lines, T* out, int64_t size, Write write) {
  const I* index = lines.index.data<I>();
  const T* src = lines.src.data<T>();
  const int32_t last = lines.index.ndim() - 1;
  const int64_t stride = lines.index.stride(last), apart = lines.src.stride(last);
  // All are checked before the first is written: out may be self.
  const bool inside = lines.All(
      [&](int64_t at, int64_t, int64_t) { return AreInside(index + at, stride, lines.length, size); });
  if (!inside) throw plugin::NotImplemented();
  lines.All([&](int64_t at, int64_t from, int64_t to) {
    if (stride == 0 && lines.along == 1 && apart == 1) {  // a row to a row
      const int64_t row = to + index[at] * lines.step;
      for (int64_t i = 0; i < lines.length; ++i) write(out, row + i, src[from + i]);
      return true;
    }
    for (int64_t i = 0; i < lines.length; ++i)
      write(out, to + i * lines.along + index[at + i * stride] * lines.step, src[from + i * apart]);
    return true;
  });
}

// write(elements of out, place of one, element of src) for each index, on a copy of self, and then
// finish(elements of out).
template <class T, class Write, class Finish>
void RunScatter(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out, Write write, Finish finish) {
  const TensorRef in(self), to(out), from(src), at(index);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype()) throw plugin::NotImplemented();
  if (at.dtype() != MICA_I64 && at.dtype() != MICA_I32) throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const Lines lines(to, dim, at, from);
  const int64_t size = to.size(static_cast<int>(lines.dim));
  DenseOutput result(out, to.dtype(), threads);
  CopySelf(in, to, result, threads);
  if (at.dtype() == MICA_I64)
    ScatterLines<int64_t>(lines, result.data<T>(), size, write);
  else
    ScatterLines<int32_t>(lines, result.data<T>(), size, write);
  finish(result.data<T>());
  result.Finish();
}

constexpr auto kNothing = [](auto*) {};

// The combinations of scatter_reduce; of two NaN-free numbers the larger or smaller, else NaN.
template <class T>
T Times(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
  else
    return a * b;
}
template <class T>
T Larger(T a, T b) {
  return a != a || a > b ? a : b;
}
template <class T>
T Smaller(T a, T b) {
  return a != a || a < b ? a : b;
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
  const int32_t dtype = to.dtype() == MICA_F16 || to.dtype() == MICA_BF16 ? MICA_F32 : to.dtype();
  const IndexList rows = Indices(indices, num_weights);
  const DenseInput values(grad_output, dtype, threads);
  DenseOutput result(out, dtype, threads);
  VisitAdded(dtype, [&](auto unit) {
    using T = decltype(unit);
    std::memset(result.data<void>(), 0, static_cast<size_t>(to.numel()) * sizeof(T));
    AddRows(result.data<T>(), 1, num_weights, to.size(1), rows, values.data<T>(), T(1), padding_idx, threads);
  });
  result.Finish();
}

void IndexAdd(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* source,
              MicaScalar alpha, MicaTensor* out) {
  const TensorRef in(self), to(out), from(source);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype() || alpha.tag == MICA_SCALAR_COMPLEX)
    throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const Around around(to, dim);
  const IndexList rows = Indices(index, around.size);
  const DenseInput values(source, from.dtype(), threads);
  DenseOutput result(out, to.dtype(), threads);
  CopySelf(in, to, result, threads);
  VisitAdded(to.dtype(), [&](auto unit) {
    using T = decltype(unit);
    const T factor = alpha.tag == MICA_SCALAR_FLOAT ? static_cast<T>(alpha.u.f) : static_cast<T>(alpha.u.i);
    if (std::is_integral_v<T> && factor != T(1)) throw plugin::NotImplemented();  // products that wrap
    AddRows(result.data<T>(), around.outer, around.size, around.inner, rows, values.data<T>(), factor, -1,
            threads);
  });
  result.Finish();
}

void ScatterAdd(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out) {
  VisitAdded(TensorRef(out).dtype(), [&](auto unit) {
    using T = decltype(unit);
    RunScatter<T>(
        call, self, dim, index, src, out, [](T* to, int64_t at, T value) { to[at] = Plus(to[at], value); },
        kNothing);
  });
}

void ScatterSrc(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out) {
  VisitSize(TensorRef(out).itemsize(), [&](auto unit) {
    using T = decltype(unit);
    RunScatter<T>(
        call, self, dim, index, src, out, [](T* to, int64_t at, T value) { to[at] = value; }, kNothing);
  });
}

void ScatterReduce(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                   MicaStr reduce, int32_t include_self, MicaTensor* out) {
  const std::string_view how(reduce.data, static_cast<size_t>(reduce.size));
  VisitAdded(TensorRef(out).dtype(), [&](auto unit) {
    using T = decltype(unit);
    // How many numbers each element of out holds, where that matters.
    std::vector<int64_t> counts;
    if (how == "mean" || !include_self)
      counts.assign(static_cast<size_t>(TensorRef(out).numel()), include_self ? 1 : 0);
    const auto run = [&](auto combine) {
      if (counts.empty())
        return RunScatter<T>(
            call, self, dim, index, src, out,
            [combine](T* to, int64_t at, T value) { to[at] = combine(to[at], value); }, kNothing);
      const auto write = [&counts, combine](T* to, int64_t at, T value) {
        to[at] = counts[static_cast<size_t>(at)]++ == 0 ? value : combine(to[at], value);
      };
      RunScatter<T>(call, self, dim, index, src, out, write, [&](T* to) {
        for (size_t i = 0; how == "mean" && i < counts.size(); ++i)
          if (counts[i] > 1) to[i] = Mean(to[i], counts[i]);
      });
    };
    if (how == "sum" || how == "mean") return run([](T a, T b) { return Plus(a, b); });
    if (how == "prod") return run([](T a, T b) { return Times(a, b); });
    if (how == "amax") return run([](T a, T b) { return Larger(a, b); });
    if (how == "amin") return run([](T a, T b) { return Smaller(a, b); });
    throw plugin::NotImplemented();
  });
}

void IndexCopy(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* source,
               MicaTensor* out) {
  const TensorRef in(self), to(out), from(source);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype()) throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const Around around(to, dim);
  const IndexList rows = Indices(index, around.size);
  const DenseInput values(source, from.dtype(), threads);
  DenseOutput result(out, to.dtype(), threads);
  CopySelf(in, to, result, threads);
  const int64_t bytes = around.inner * to.itemsize();
  for (int64_t o = 0; o < around.outer; ++o)
    for (int64_t r = 0; r < rows.size(); ++r)
      std::memcpy(result.data<char>() + (o * around.size + rows[r]) * bytes,
                  values.data<char>() + (o * rows.size() + r) * bytes, static_cast<size_t>(bytes));
  result.Finish();
}

void IndexPut(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensor* values,
              int32_t accumulate, MicaTensor* out) {
  const TensorRef in(self), to(out), from(values);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype()) throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const AdvancedIndex at = Resolve(to, indices);
  const auto ndim = static_cast<int32_t>(at.sizes.size());
  const auto count = static_cast<int64_t>(at.rows.size());
  if (from.ndim() > ndim) throw plugin::NotImplemented();
  // values, broadcast and dense: (outer, rows, inner)
  std::vector<int64_t> theirs(at.sizes.size()), mine(at.sizes.size());
  int64_t n = 1;
  for (int32_t d = ndim - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    const int32_t own = d - ndim + from.ndim();
    theirs[i] = own < 0 || from.size(own) == 1 ? 0 : from.stride(own);
    mine[i] = n;
    n *= at.sizes[i];
  }
  const Temporary dense(n * to.itemsize());
  CopyStrided(to.itemsize(), ndim, at.sizes.data(), from.data<void>(), theirs.data(), dense.data(),
              mine.data(), threads);
  DenseOutput result(out, to.dtype(), threads);
  CopySelf(in, to, result, threads);
  if (accumulate) {
    VisitAdded(to.dtype(), [&](auto unit) {
      using T = decltype(unit);
      const IndexList rows(at.rows.data(), count);
      AddRows(result.data<T>(), at.outer, at.extent, at.inner, rows, dense.data<T>(), T(1), -1, threads);
    });
  } else {
    const int64_t bytes = at.inner * to.itemsize();
    for (int64_t o = 0; o < at.outer; ++o)
      for (int64_t r = 0; r < count; ++r)
        std::memcpy(result.data<char>() + (o * at.extent + at.rows[static_cast<size_t>(r)]) * bytes,
                    dense.data() + (o * count + r) * bytes, static_cast<size_t>(bytes));
  }
  result.Finish();
}

}  // namespace mica::cpu
