// Writing by index: out is a copy of self (or zeros), then elements are set or added
// in the order of the index, so that results do not depend on the number of threads.
#include <algorithm>
#include <cstring>

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
void AddRows(T* to, int64_t outer, int64_t extent, int64_t inner, const std::vector<int64_t>& rows,
             const T* from, T factor, int64_t skip, int32_t threads) {
  const auto count = static_cast<int64_t>(rows.size());
  const auto add = [&](int64_t o, int64_t column, int64_t past) {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = rows[static_cast<size_t>(r)];
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

// Positions in out, row-major, that scatter along `dim` writes, one for each of index.
std::vector<int64_t> ScatterPlaces(const TensorRef& out, int64_t dim, const TensorRef& index) {
  if (out.ndim() == 0 || index.ndim() != out.ndim()) throw plugin::NotImplemented();
  if (dim < 0) dim += out.ndim();
  std::vector<int64_t> places = Indices(index.get(), out.size(static_cast<int>(dim)), false);
  if (places.empty()) return places;
  std::vector<int64_t> strides(static_cast<size_t>(out.ndim())), at(strides.size());
  int64_t n = 1;
  for (int32_t d = out.ndim() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = n;
    n *= out.size(d);
  }
  const int64_t step = strides[static_cast<size_t>(dim)];
  strides[static_cast<size_t>(dim)] = 0;
  const auto last = static_cast<size_t>(out.ndim() - 1);
  const int64_t length = index.size(-1), along = strides[last];
  for (size_t line = 0; line < places.size(); line += static_cast<size_t>(length)) {
    int64_t base = 0;
    for (size_t d = 0; d < last; ++d) base += at[d] * strides[d];
    for (int64_t i = 0; i < length; ++i) {
      int64_t& place = places[line + static_cast<size_t>(i)];
      place = place * step + base + i * along;
    }
    for (size_t d = last; d-- > 0;) {
      if (++at[d] < index.size(static_cast<int>(d))) break;
      at[d] = 0;
    }
  }
  return places;
}

// The part of src that has the shape of index, as a tensor's face over src's memory.
struct Leading {
  MicaTensor face;
  Leading(const TensorRef& src, const TensorRef& index) : face(*src.get()) {
    face.dl.shape = index.get()->dl.shape;
    bool same = src.ndim() == index.ndim();
    for (int32_t d = 0; same && d < src.ndim(); ++d) same = src.size(d) == index.size(d);
    if (!same) face.flags &= ~MICA_TENSOR_CONTIGUOUS;
    if (src.ndim() != index.ndim()) throw plugin::NotImplemented();
  }
};

template <class F>
void RunScatter(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out, F write) {
  const TensorRef in(self), to(out), from(src), at(index);
  if (from.dtype() != to.dtype() || in.dtype() != to.dtype()) throw plugin::NotImplemented();
  const int32_t threads = ThreadsOf(call);
  const std::vector<int64_t> places = ScatterPlaces(to, dim, at);
  const Leading part(from, at);
  const DenseInput values(&part.face, from.dtype(), threads);
  DenseOutput result(out, to.dtype(), threads);
  CopySelf(in, to, result, threads);
  write(places, values, result);
  result.Finish();
}

}  // namespace

void EmbeddingDenseBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* indices,
                            int64_t num_weights, int64_t padding_idx, int32_t scale_grad_by_freq,
                            MicaTensor* out) {
  if (scale_grad_by_freq) throw plugin::NotImplemented();
  const TensorRef to(out), grad(grad_output);
  const int32_t threads = ThreadsOf(call);
  const int32_t dtype = to.dtype() == MICA_F16 || to.dtype() == MICA_BF16 ? MICA_F32 : to.dtype();
  const std::vector<int64_t> rows = Indices(indices, num_weights, false);
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
  const std::vector<int64_t> rows = Indices(index, around.size, false);
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
  RunScatter(call, self, dim, index, src, out,
             [&](const std::vector<int64_t>& places, const DenseInput& values, DenseOutput& result) {
               VisitAdded(TensorRef(out).dtype(), [&](auto unit) {
                 using T = decltype(unit);
                 for (size_t i = 0; i < places.size(); ++i) {
                   T& sum = result.data<T>()[places[i]];
                   sum = Plus(sum, values.data<T>()[i]);
                 }
               });
             });
}

void ScatterSrc(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index, MicaTensor* src,
                MicaTensor* out) {
  RunScatter(call, self, dim, index, src, out,
             [&](const std::vector<int64_t>& places, const DenseInput& values, DenseOutput& result) {
               VisitSize(TensorRef(out).itemsize(), [&](auto unit) {
                 using T = decltype(unit);
                 for (size_t i = 0; i < places.size(); ++i) result.data<T>()[places[i]] = values.data<T>()[i];
               });
             });
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
      AddRows(result.data<T>(), at.outer, at.extent, at.inner, at.rows, dense.data<T>(), T(1), -1, threads);
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
