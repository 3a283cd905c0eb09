// Elements moved to other places or masked: flip, roll, tril, triu, padding.
#include "mica/kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {
namespace {

// Writes each element of `out` from the element of `self` at `source(coordinates)`
// (a byte offset), or from `fill` where that is negative.
template <typename F>
void FillFrom(const Tensor& self, const Tensor& out, const void* fill, F&& source) {
  VisitSize(out.itemsize(), [&]<typename T>() {
    Dims at(static_cast<size_t>(out.ndim()), 0);
    for (int64_t o : AllOffsets(out)) {
      const int64_t from = source(at);
      auto* to = reinterpret_cast<T*>(out.data_as<char>() + o);
      *to =
          from < 0 ? *static_cast<const T*>(fill) : *reinterpret_cast<const T*>(self.data_as<char>() + from);
      for (int64_t d = out.ndim() - 1; d >= 0 && ++at[static_cast<size_t>(d)] == out.sizes()[d]; --d)
        at[static_cast<size_t>(d)] = 0;
    }
  });
}

int64_t OffsetAt(const Tensor& t, const Dims& at) {
  int64_t o = 0;
  for (int64_t d = 0; d < t.ndim(); ++d) o += at[static_cast<size_t>(d)] * t.strides()[d];
  return o * t.itemsize();
}

// The bytes of one element of value `v`.
Bytes16 BytesOf(const Scalar& v, DType dtype) {
  Bytes16 bytes{0, 0};
  const int64_t zero = 0;
  const Complex c = v.ToComplex();
  const int64_t i = v.is_float() || v.is_complex() ? 0 : v.ToInt();
  const bool exact = v.is_int() || v.is_bool();
  if (exact && !IsComplex(dtype))
    StoreLanes(Lane::kI64, dtype, &i, reinterpret_cast<char*>(&bytes), &zero, 1);
  else
    StoreLanes(Lane::kC128, dtype, &c, reinterpret_cast<char*>(&bytes), &zero, 1);
  return bytes;
}

template <typename Keep>
void Triangle(const Tensor& self, const Tensor& out, Keep&& keep) {
  const Bytes16 zero{0, 0};
  const auto row = static_cast<size_t>(out.ndim() - 2), column = static_cast<size_t>(out.ndim() - 1);
  FillFrom(self, out, &zero,
           [&](const Dims& at) { return keep(at[column] - at[row]) ? OffsetAt(self, at) : int64_t{-1}; });
}

}  // namespace

void flip(const Tensor& self, IntSpan dims, const Tensor& out) {
  std::vector<bool> flipped(static_cast<size_t>(self.ndim()), false);
  for (int64_t d : dims)
    if (self.ndim() > 0) flipped[static_cast<size_t>(Wrapped(d, self.ndim()))] = true;
  FillFrom(self, out, nullptr, [&](const Dims& at) {
    int64_t o = 0;
    for (int64_t d = 0; d < self.ndim(); ++d) {
      const int64_t i = at[static_cast<size_t>(d)];
      o += (flipped[static_cast<size_t>(d)] ? self.sizes()[d] - 1 - i : i) * self.strides()[d];
    }
    return o * self.itemsize();
  });
}

void roll(const Tensor& self, IntSpan shifts, IntSpan dims, const Tensor& out) {
  if (dims.empty()) {  // the flattened tensor is rolled
    const std::vector<int64_t> from = AllOffsets(self), to = AllOffsets(out);
    const auto n = static_cast<int64_t>(from.size());
    const int64_t shift = n > 0 ? shifts[0] % n : 0;
    VisitSize(out.itemsize(), [&]<typename T>() {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t j = ((i - shift) % n + n) % n;
        *reinterpret_cast<T*>(out.data_as<char>() + to[static_cast<size_t>(i)]) =
            *reinterpret_cast<const T*>(self.data_as<char>() + from[static_cast<size_t>(j)]);
      }
    });
    return;
  }
  Dims shift(static_cast<size_t>(self.ndim()), 0);
  for (int64_t i = 0; i < dims.size(); ++i) {
    const int64_t d = Wrapped(dims[i], self.ndim());
    shift[static_cast<size_t>(d)] += shifts[i] % std::max<int64_t>(self.sizes()[d], 1);
  }
  FillFrom(self, out, nullptr, [&](const Dims& at) {
    int64_t o = 0;
    for (int64_t d = 0; d < self.ndim(); ++d) {
      const int64_t n = self.sizes()[d];
      o += ((at[static_cast<size_t>(d)] - shift[static_cast<size_t>(d)]) % n + n) % n * self.strides()[d];
    }
    return o * self.itemsize();
  });
}

void tril(const Tensor& self, int64_t diagonal, const Tensor& out) {
  Triangle(self, out, [diagonal](int64_t above) { return above <= diagonal; });
}
void triu(const Tensor& self, int64_t diagonal, const Tensor& out) {
  Triangle(self, out, [diagonal](int64_t above) { return above >= diagonal; });
}

void constant_pad_nd(const Tensor& self, IntSpan pad, const Scalar& value, const Tensor& out) {
  const Bytes16 fill = BytesOf(value, out.dtype());
  Dims before(static_cast<size_t>(self.ndim()), 0);
  for (int64_t i = 0; i < pad.size() / 2; ++i) before[static_cast<size_t>(self.ndim() - 1 - i)] = pad[2 * i];
  FillFrom(self, out, &fill, [&](const Dims& at) {
    int64_t o = 0;
    for (int64_t d = 0; d < self.ndim(); ++d) {
      const int64_t i = at[static_cast<size_t>(d)] - before[static_cast<size_t>(d)];
      if (i < 0 || i >= self.sizes()[d]) return int64_t{-1};
      o += i * self.strides()[d];
    }
    return o * self.itemsize();
  });
}

}  // namespace mica::portable
