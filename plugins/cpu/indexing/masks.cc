// Elements chosen by a condition: masked_select, nonzero and masked_scatter. All count first,
// so that a result is made, or a given one resized, once; all read blocks of strided inputs.
#include <algorithm>
#include <string>
#include <vector>

#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/indexing/indexing.h"
#include "plugins/cpu/indexing/indices.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr MicaDevice kCpu{0, 0};

// `bits` of an element as 0 or 1: -0 is zero too where `floating`.
template <class T>
bool IsSet(T element, bool floating) {
  if constexpr (std::is_same_v<T, Wide>) {  // complex128
    return ((element.parts[0] | element.parts[1]) << 1) != 0;
  } else {
    return floating ? static_cast<T>(element << 1) != 0 : element != 0;
  }
}

bool IsSet64(uint64_t element, int32_t dtype) {
  if (dtype != MICA_C64) return IsSet(element, dtype == MICA_F64);
  return (element & 0x7fffffff7fffffff) != 0;
}

// One or two tensors, broadcast, in row-major order.
class Blocks {
 public:
  Blocks(const std::vector<int64_t>& sizes, const MicaTensor* a, const MicaTensor* b = nullptr) {
    iteration_.SetSizes(sizes.data(), static_cast<int>(sizes.size()));
    iteration_.Add(a);
    if (b != nullptr) iteration_.Add(b);
    iteration_.Normalize(false);
  }
  int64_t numel() const { return iteration_.numel; }
  int64_t Length(int64_t position) const { return iteration_.PieceLength(position, numel(), kBlock); }
  // Elements of operand k from `position` on, as many as the block has.
  char* At(int k, int64_t position, char* buffer) const {
    return iteration_.Locate(k, 0, position, Length(position), buffer, true);
  }
  void Deliver(int k, int64_t position, const char* buffer) const {
    iteration_.Deliver(k, 0, position, Length(position), buffer);
  }
  // Calls f(position, elements, of a, of b) for block after block.
  template <class F>
  void Each(F f) const {
    alignas(64) char buffers[2][kBlock * 16];
    const char* data[2] = {};
    for (int64_t position = 0; position < numel();) {
      const int64_t n = Length(position);
      for (int k = 0; k < iteration_.num_operands; ++k) data[k] = At(k, position, buffers[k]);
      f(position, n, data[0], data[1]);
      position += n;
    }
  }

 private:
  Iteration iteration_;
};

std::vector<int64_t> SizesOf(const TensorRef& t) { return {t.sizes(), t.sizes() + t.ndim()}; }

// Whether out, given by the caller, may be written while `in` is read.
bool Apart(const TensorRef& out, const TensorRef& in) {
  const auto reach = [](const TensorRef& t) {
    int64_t last = 0;
    for (int32_t d = 0; d < t.ndim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    return t.data<char>() + (last + 1) * t.itemsize();
  };
  return out.numel() == 0 || in.numel() == 0 || reach(out) <= in.data<char>() ||
         reach(in) <= out.data<char>();
}

// Gives `out` the sizes, if it has others.
void Fit(MicaTensor* out, const int64_t* sizes, int32_t ndim) {
  const TensorRef t(out);
  if (t.ndim() == ndim && std::equal(sizes, sizes + ndim, t.sizes())) return;
  plugin::Check(plugin::Host()->tensor_resize(out, {sizes, ndim}));
}

// Calls f(position, n, is_set) for blocks of `in`; is_set(i) says whether its element i is not zero.
template <class F>
void EachTested(const TensorRef& in, F f) {
  const int32_t dtype = in.dtype();
  const bool floating = dtype >= MICA_F16 && dtype <= MICA_F64;
  if (dtype > MICA_C128) throw plugin::NotImplemented();  // float8
  VisitSize(in.itemsize(), [&](auto unit) {
    using T = decltype(unit);
    Blocks(SizesOf(in), in.get()).Each([&](int64_t position, int64_t n, const char* data, const char*) {
      const T* from = reinterpret_cast<const T*>(data);
      f(position, n, [&](int64_t i) {
        if constexpr (std::is_same_v<T, uint64_t>)
          return IsSet64(from[i], dtype);
        else
          return IsSet(from[i], floating);
      });
    });
  });
}

int64_t CountSet(const TensorRef& in) {
  int64_t count = 0;
  EachTested(in, [&](int64_t, int64_t n, auto is_set) {
    for (int64_t i = 0; i < n; ++i) count += is_set(i);
  });
  return count;
}

// Elements that are looked at together: often none of them is set, or all are.
constexpr int64_t kGroup = 32;

// Calls f(places, count) with the places of the elements of `in` that are not zero, in order,
// block by block. In a group of mixed elements without branches: each place is written down, and
// kept if it counts.
template <class F>
void EachSet(const TensorRef& in, F f) {
  int64_t places[kBlock];
  EachTested(in, [&](int64_t position, int64_t n, auto is_set) {
    int64_t count = 0;
    for (int64_t first = 0; first < n; first += kGroup) {
      const int64_t end = std::min(first + kGroup, n);
      int32_t set = 0;
      for (int64_t i = first; i < end; ++i) set += is_set(i);
      if (set == 0) continue;
      if (set == kGroup) {
        for (int64_t i = 0; i < kGroup; ++i) places[count + i] = position + first + i;
        count += kGroup;
        continue;
      }
      for (int64_t i = first; i < end; ++i) {
        places[count] = position + i;
        count += is_set(i);
      }
    }
    f(places, count);
  });
}

// places[i] / size, and the rest to to[i * row]. A division takes longer than all else, and of
// numbers below 2^31 the nearest double says as much: half a unit is more than its error.
void Divide(int64_t* places, int64_t count, int64_t size, bool small, int64_t* to, int64_t row) {
  if (small) {
    const double inverse = 1.0 / static_cast<double>(size);
    for (int64_t i = 0; i < count; ++i) {
      const auto place = static_cast<int32_t>(places[i]);
      const auto quotient = static_cast<int32_t>((place + 0.5) * inverse);
      to[i * row] = place - quotient * static_cast<int32_t>(size);
      places[i] = quotient;
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t quotient = places[i] / size;
    to[i * row] = places[i] - quotient * size;
    places[i] = quotient;
  }
}

// Coordinates of what is set: that of dimension d of the i-th at to[i * row + d * column].
void WriteCoordinates(const TensorRef& in, int64_t* to, int64_t row, int64_t column) {
  const bool small = in.numel() <= INT32_MAX;
  EachSet(in, [&](int64_t* places, int64_t count) {
    for (int32_t d = in.ndim() - 1; d > 0; --d)
      Divide(places, count, in.size(d), small, to + d * column, row);
    for (int64_t i = 0; i < count && in.ndim() > 0; ++i) to[i * row] = places[i];
    to += count * row;
  });
}

// self and mask, broadcast; what does not fit is the portable kernel's to refuse.
struct Choice {
  std::vector<int64_t> sizes;
  int64_t count = 0;

  Choice(const TensorRef& self, const TensorRef& mask) {
    if (mask.dtype() != MICA_BOOL) throw plugin::NotImplemented();
    sizes.resize(static_cast<size_t>(std::max(self.ndim(), mask.ndim())), 1);
    for (const TensorRef& t : {self, mask})
      for (int32_t d = 1; d <= t.ndim(); ++d) {
        int64_t& size = sizes[sizes.size() - static_cast<size_t>(d)];
        if (size != 1 && t.size(-d) != 1 && size != t.size(-d)) throw plugin::NotImplemented();
        if (t.size(-d) != 1) size = t.size(-d);
      }
    int64_t numel = 1;
    for (const int64_t size : sizes) numel *= size;
    if (numel == 0) return;
    Blocks(SizesOf(mask), mask.get()).Each([&](int64_t, int64_t n, const char* data, const char*) {
      for (int64_t i = 0; i < n; ++i) count += data[i] != 0;
    });
    count *= numel / mask.numel();
  }

  void Write(const TensorRef& self, const TensorRef& mask, const TensorRef& out) const {
    if (count == 0) return;
    VisitSize(self.itemsize(), [&](auto unit) {
      using T = decltype(unit);
      T* to = out.data<T>();
      const int64_t step = out.stride(0);
      T chosen[kBlock];  // each element is written down, and kept if it counts
      Blocks(sizes, self.get(), mask.get())
          .Each([&](int64_t, int64_t n, const char* elements, const char* choose) {
            const T* from = reinterpret_cast<const T*>(elements);
            int64_t kept = 0;
            for (int64_t i = 0; i < n; ++i) {
              chosen[kept] = from[i];
              kept += choose[i] != 0;
            }
            for (int64_t i = 0; i < kept; ++i) to[i * step] = chosen[i];
            to += kept * step;
          });
    });
  }
};

// The elements of a tensor one after the other.
template <class T>
class Stream {
 public:
  explicit Stream(const TensorRef& t) : blocks_(SizesOf(t), t.get()) {}
  T Next() {
    if (at_ == end_) {
      data_ = reinterpret_cast<const T*>(blocks_.At(0, end_, buffer_));
      begin_ = end_;
      end_ += blocks_.Length(end_);
    }
    return data_[at_++ - begin_];
  }

 private:
  const Blocks blocks_;
  int64_t at_ = 0, begin_ = 0, end_ = 0;
  const T* data_ = nullptr;
  alignas(64) char buffer_[kBlock * sizeof(T)];
};

template <class T>
void ScatterChosen(const TensorRef& mask, const TensorRef& source, const TensorRef& out) {
  const Blocks blocks(SizesOf(out), out.get(), mask.get());
  Stream<T> values(source);
  alignas(64) char elements[kBlock * sizeof(T)], choices[kBlock];
  for (int64_t position = 0; position < blocks.numel();) {
    char* data = blocks.At(0, position, elements);
    const char* choose = blocks.At(1, position, choices);
    const int64_t n = blocks.Length(position);
    for (int64_t i = 0; i < n; ++i)
      if (choose[i] != 0) reinterpret_cast<T*>(data)[i] = values.Next();
    if (data == elements) blocks.Deliver(0, position, data);
    position += n;
  }
}

}  // namespace

void MaskedScatter(const MicaCall* call, MicaTensor* self, MicaTensor* mask, MicaTensor* source,
                   MicaTensor* out) {
  const TensorRef in(self), m(mask), from(source), to(out);
  if (in.dtype() != to.dtype() || from.dtype() != to.dtype() || m.ndim() > to.ndim())
    throw plugin::NotImplemented();
  if (Choice(to, m).count > from.numel()) throw plugin::NotImplemented();  // the portable kernel says so
  CopyInto(call, out, self, 0);
  VisitSize(to.itemsize(), [&](auto unit) { ScatterChosen<decltype(unit)>(m, from, to); });
}

MicaTensor* Nonzero(const MicaCall*, MicaTensor* self) {
  const TensorRef in(self);
  const int64_t count = CountSet(in), ndim = in.ndim();
  // As torch: stored column by column.
  const int64_t columns[] = {ndim, count};
  const OwnedTensor stored = OwnedTensor::Empty(columns, 2, MICA_I64, kCpu);
  WriteCoordinates(in, TensorRef(stored.get()).data<int64_t>(), 1, count);
  const int64_t sizes[] = {count, ndim}, strides[] = {1, std::max<int64_t>(count, 1)};
  const MicaTensorResult result =
      plugin::Host()->tensor_as_strided(stored.get(), {sizes, 2}, {strides, 2}, 0);
  plugin::Check(result.status);
  return result.value;
}

void NonzeroOut(const MicaCall*, MicaTensor* self, MicaTensor* out) {
  const TensorRef in(self), to(out);
  if (to.dtype() != MICA_I64)
    throw plugin::Error(
        MICA_ERROR_RUNTIME,
        "nonzero: Expected out tensor to have scalar type Long, that is int64, but `out` has another.");
  if (!Apart(to, in)) throw plugin::NotImplemented();
  const int64_t sizes[] = {CountSet(in), in.ndim()};
  Fit(out, sizes, 2);
  WriteCoordinates(in, to.data<int64_t>(), to.stride(0), to.stride(1));
}

MicaTensor* MaskedSelect(const MicaCall*, MicaTensor* self, MicaTensor* mask) {
  const TensorRef in(self), m(mask);
  const Choice choice(in, m);
  OwnedTensor out = OwnedTensor::Empty(&choice.count, 1, in.dtype(), kCpu);
  choice.Write(in, m, out.get());
  return out.release();
}

void MaskedSelectOut(const MicaCall*, MicaTensor* self, MicaTensor* mask, MicaTensor* out) {
  const TensorRef in(self), m(mask), to(out);
  if (to.dtype() != in.dtype() || !Apart(to, in) || !Apart(to, m)) throw plugin::NotImplemented();
  const Choice choice(in, m);
  Fit(out, &choice.count, 1);
  choice.Write(in, m, to);
}

}  // namespace mica::cpu
