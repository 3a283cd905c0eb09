#include "kernels/portable/lanes.h"

#include <cmath>
#include <type_traits>

#include "tensor/shape.h"

namespace mica::portable {
namespace {

template <typename T>
constexpr bool kIsComplex = false;
template <typename F>
constexpr bool kIsComplex<std::complex<F>> = true;
template <typename T>
constexpr bool kIsNarrow = std::is_class_v<T> && !kIsComplex<T>;

int64_t Truncate(double v) {
  return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? static_cast<int64_t>(v) : INT64_MIN;
}
int32_t TruncateTo32(double v) {
  return v >= -2147483648.0 && v < 2147483648.0 ? static_cast<int32_t>(v) : INT32_MIN;
}

template <typename To, typename From>
To Convert(From v) {
  if constexpr (kIsNarrow<From>)
    return Convert<To>(static_cast<float>(v));
  else if constexpr (kIsComplex<From> && kIsComplex<To>)
    return To(v);
  else if constexpr (kIsComplex<From> && std::is_same_v<To, bool>)
    return v.real() != 0 || v.imag() != 0;
  else if constexpr (kIsComplex<From>)
    return Convert<To>(v.real());
  else if constexpr (kIsComplex<To>)
    return To(static_cast<typename To::value_type>(v));
  else if constexpr (kIsNarrow<To>)
    return To(static_cast<float>(v));
  else if constexpr (std::is_same_v<To, bool>)
    return v != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint64_t>)
    return v >= 9223372036854775808.0 && v < 18446744073709551616.0 ? static_cast<uint64_t>(v)
                                                                    : static_cast<uint64_t>(Truncate(v));
  else if constexpr (std::is_floating_point_v<From> && (std::is_same_v<To, int32_t> || sizeof(To) < 4))
    return static_cast<To>(TruncateTo32(v));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return static_cast<To>(Truncate(v));
  else
    return static_cast<To>(v);
}

template <typename L>
void Load(DType d, const char* base, const int64_t* offsets, int64_t n, L* out) {
  VisitDType(d, [&]<typename T>() {
    // Any byte of a bool but 0 is true; C++ may read no other than 0 and 1 as a bool.
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    for (int64_t i = 0; i < n; ++i) {
      const auto stored = *reinterpret_cast<const Stored*>(base + offsets[i]);
      if constexpr (std::is_same_v<T, bool>)
        out[i] = Convert<L>(stored != 0);
      else
        out[i] = Convert<L>(stored);
    }
  });
}
template <typename L>
void Store(DType d, const L* in, char* base, const int64_t* offsets, int64_t n) {
  VisitDType(d, [&]<typename T>() {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(base + offsets[i]) = Convert<T>(in[i]);
  });
}

}  // namespace

Lane LaneOf(DType d) {
  if (IsComplex(d)) return Lane::kC128;
  if (IsFloating(d)) return Lane::kF64;
  return d == DType::kU64 ? Lane::kU64 : Lane::kI64;
}

void LoadLanes(Lane lane, DType d, const char* base, const int64_t* offsets, int64_t n, void* out) {
  VisitLane(lane, [&]<typename L>() { Load(d, base, offsets, n, static_cast<L*>(out)); });
}
void StoreLanes(Lane lane, DType d, const void* in, char* base, const int64_t* offsets, int64_t n) {
  VisitLane(lane, [&]<typename L>() { Store(d, static_cast<const L*>(in), base, offsets, n); });
}

Offsets::Offsets(IntSpan sizes, IntSpan strides, int64_t itemsize)
    : sizes_(ToDims(sizes)), at_(sizes_.size(), 0) {
  for (int64_t s : strides) strides_.push_back(s * itemsize);
}

void Offsets::Next(int64_t* out, int64_t n) {
  const int last = static_cast<int>(sizes_.size()) - 1;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = offset_;
    for (int d = last; d >= 0; --d) {
      const auto k = static_cast<size_t>(d);
      offset_ += strides_[k];
      if (++at_[k] < sizes_[k]) break;
      offset_ -= strides_[k] * sizes_[k];
      at_[k] = 0;
    }
  }
}

Dims BroadcastStrides(const Tensor& t, IntSpan shape) {
  Dims resolved;
  return ExpandStrides(t.sizes(), t.strides(), shape, &resolved);
}

std::vector<int64_t> AllOffsets(const Tensor& t) {
  std::vector<int64_t> out(static_cast<size_t>(t.numel()));
  Offsets(t).Next(out.data(), t.numel());
  return out;
}

int64_t CheckedIndex(int64_t index, int64_t size, int64_t dim, bool wrap, ErrorKind kind) {
  const int64_t position = wrap && index < 0 ? index + size : index;
  if (position >= 0 && position < size) return position;
  internal::Throw(kind,
                  absl::StrCat("The index ", index, " is out of bounds for dimension ", dim, " with size ",
                               size, " (index out of range in self)."),
                  __FILE__, __LINE__);
}

std::vector<int64_t> CheckedIndices(const Tensor& index, int64_t size, int64_t dim, bool wrap,
                                    ErrorKind kind) {
  std::vector<int64_t> values = ToLanes<int64_t>(index);
  for (int64_t& v : values) v = CheckedIndex(v, size, dim, wrap, kind);
  return values;
}

}  // namespace mica::portable
