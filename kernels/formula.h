// The functions of the formula language (codegen/formula/functions.cc): what
// generated composites and gradients call besides operators.
//
// Lists come in as spans and go out as values that own themselves, so that a
// formula may give them names. Do not use them in hand-written kernels, which
// have tensor/shape.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/linalg_error.h"
#include "tensor/number_range.h"
#include "tensor/promote.h"
#include "tensor/scalar_math.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

// `check.memory`; tensor/error.h has the other kinds.
#define MICA_CHECK_MEMORY(condition, ...) MICA_CHECK_KIND(kOutOfMemory, condition, __VA_ARGS__)

namespace mica::formula {

// --- values that own themselves
inline Dims Own(IntSpan list) { return ToDims(list); }
inline std::optional<Dims> Own(const std::optional<IntSpan>& list) {
  return list ? std::optional<Dims>(ToDims(*list)) : std::nullopt;
}
inline std::vector<Tensor> Own(TensorSpan list) { return {list.begin(), list.end()}; }
inline std::vector<double> Own(FloatSpan list) { return {list.begin(), list.end()}; }
inline std::vector<uint8_t> Own(BoolSpan list) { return {list.begin(), list.end()}; }
inline Dims Own(Dims list) { return list; }
inline std::vector<Tensor> Own(std::vector<Tensor> list) { return list; }

// --- messages
inline std::string Show(DType dtype) { return Name(dtype); }
inline std::string Show(IntSpan shape) { return ShapeText(shape); }
inline std::string Show(const Dims& shape) { return ShapeText(shape); }
inline std::string Show(const Scalar& number) { return number.ToString(); }
inline std::string Show(std::string_view text) { return std::string(text); }
inline std::string Show(const char* text) { return text; }
inline std::string Show(bool flag) { return flag ? "True" : "False"; }
inline int64_t Show(int64_t number) { return number; }
inline double Show(double number) { return number; }
template <typename T>
auto Show(const std::optional<T>& value) {
  return value ? std::string(absl::StrCat(Show(*value))) : std::string("None");
}

// --- numbers
inline int64_t Min(int64_t a, int64_t b) { return std::min(a, b); }
inline double Min(double a, double b) { return std::min(a, b); }
inline int64_t Max(int64_t a, int64_t b) { return std::max(a, b); }
inline double Max(double a, double b) { return std::max(a, b); }
inline int64_t Abs(int64_t a) { return a < 0 ? scalar_math::Neg(a) : a; }
inline double Abs(double a) { return std::fabs(a); }
inline double Sqrt(double a) { return std::sqrt(a); }
inline bool IsInf(double a) { return std::isinf(a); }
inline Scalar Log(const Scalar& a) {
  return a.is_complex() ? Scalar(std::log(a.ToComplex())) : Scalar(std::log(a.ToDouble()));
}
inline Scalar Conj(const Scalar& a) { return a.is_complex() ? Scalar(std::conj(a.ToComplex())) : a; }
inline Scalar MakeComplex(double real, double imag) { return Scalar(std::complex<double>(real, imag)); }
inline bool IsComplexNumber(const Scalar& a) { return a.is_complex(); }
inline int64_t ToInt(const Scalar& a) { return a.ToInt(); }
inline double ToFloat(const Scalar& a) { return a.ToDouble(); }
inline bool ToBool(const Scalar& a) {
  return a.is_complex() ? a.ToComplex() != 0.0 : a.is_float() ? a.ToDouble() != 0.0 : a.ToBool();
}

// --- lists
// Element `i`, from the end if negative.
template <typename T>
T At(Span<T> list, int64_t i) {
  const int64_t at = i < 0 ? i + list.size() : i;
  MICA_CHECK_INDEX(at >= 0 && at < list.size(), "Index (", i, ") is out of range for a list of (",
                   list.size(), ") values.");
  return list[at];
}
inline int64_t At(const Dims& list, int64_t i) { return At(IntSpan(list), i); }
inline Tensor At(const std::vector<Tensor>& list, int64_t i) { return At(TensorSpan(list), i); }

// Elements from `begin` to before `end`, both from the end if negative, and
// limited to the list, as Python's.
template <typename T>
Span<T> Part(Span<T> list, int64_t begin, int64_t end) {
  const int64_t n = list.size();
  begin = std::clamp<int64_t>(begin < 0 ? begin + n : begin, 0, n);
  end = std::clamp<int64_t>(end < 0 ? end + n : end, begin, n);
  return list.subspan(begin, end - begin);
}
inline Dims Slice(IntSpan list, int64_t begin, int64_t end) { return ToDims(Part(list, begin, end)); }
inline std::vector<Tensor> Slice(TensorSpan list, int64_t begin, int64_t end) {
  return Own(Part(list, begin, end));
}
inline Dims Concat(IntSpan a, IntSpan b) {
  Dims out = ToDims(a);
  out.insert(out.end(), b.begin(), b.end());
  return out;
}
inline std::vector<Tensor> Concat(TensorSpan a, TensorSpan b) {
  std::vector<Tensor> out = Own(a);
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

inline int64_t Product(IntSpan list) {
  int64_t product = 1;
  for (const int64_t value : list) product = scalar_math::Mul(product, value);
  return product;
}
inline int64_t Total(IntSpan list) {
  int64_t sum = 0;
  for (const int64_t value : list) sum = scalar_math::Add(sum, value);
  return sum;
}
// The sum of all values before each.
inline Dims Offsets(IntSpan list) {
  Dims out;
  int64_t sum = 0;
  for (const int64_t value : list) {
    out.push_back(sum);
    sum = scalar_math::Add(sum, value);
  }
  return out;
}
// The place of the first `value`, -1 if there is none.
inline int64_t Find(IntSpan list, int64_t value) {
  const int64_t* at = std::find(list.begin(), list.end(), value);
  return at == list.end() ? -1 : at - list.begin();
}
inline bool Contains(IntSpan list, int64_t value) { return Find(list, value) >= 0; }
inline Dims Filled(int64_t count, int64_t value) {
  MICA_CHECK_MEMORY(count <= int64_t{1} << 27, "A list of (", count, ") values asks for too much memory.");
  return Dims(static_cast<size_t>(std::max<int64_t>(count, 0)), value);
}
// `list` as `count` values: one stands for all, none for `otherwise`.
inline Dims Repeated(IntSpan list, int64_t count, int64_t otherwise) {
  if (list.size() <= 1) return Filled(count, list.empty() ? otherwise : list[0]);
  MICA_CHECK(list.size() == count, "Number of values (", list.size(), ") is neither 1 nor (", count, ").");
  return ToDims(list);
}
inline bool AllNone(TensorSpan list) {
  return std::none_of(list.begin(), list.end(), [](const Tensor& t) { return t.defined(); });
}
// The views of one tensor that one call gives: none of them may be written while gradients are recorded.
inline std::vector<Tensor> ViewsOfOne(std::vector<Tensor> views) {
  for (const Tensor& view : views) {
    TensorExtra* extra = view.impl()->extra;
    if (extra && extra->view_base && extra->view_creation == static_cast<uint8_t>(ViewCreation::kDefault))
      extra->view_creation = static_cast<uint8_t>(ViewCreation::kMultiOutput);
  }
  return views;
}

// --- shapes
inline int64_t WrapDim(int64_t dim, int64_t ndim) { return mica::WrapDim(dim, ndim); }
inline Dims WrapDims(IntSpan dims, int64_t ndim) { return mica::WrapDims(dims, ndim); }
// The wrapped dimensions, all of them where none are given.
inline Dims DimsOrAll(const std::optional<IntSpan>& dims, int64_t ndim) {
  if (dims && !dims->empty()) return mica::WrapDims(*dims, ndim);
  Dims all(static_cast<size_t>(ndim));
  std::iota(all.begin(), all.end(), 0);
  return all;
}
// `sizes` with 1 in the dimensions `dims`.
inline Dims KeptSizes(IntSpan sizes, IntSpan dims) {
  Dims kept = ToDims(sizes);
  for (const int64_t d : dims)
    if (!kept.empty()) kept[static_cast<size_t>(d)] = 1;
  return kept;
}
inline Dims InferSize(IntSpan sizes, int64_t numel) { return mica::InferSize(sizes, numel); }
inline Dims BroadcastShapes(IntSpan a, IntSpan b) { return mica::BroadcastShapes(a, b); }
inline Dims BroadcastShapes(IntSpan a, IntSpan b, std::string_view a_name, std::string_view b_name) {
  return mica::BroadcastShapes(a, b, std::string(a_name).c_str(), std::string(b_name).c_str());
}
inline Dims BroadcastAll(TensorSpan tensors) {
  Dims shape;
  for (const Tensor& t : tensors)
    shape = mica::BroadcastShapes(shape, t.sizes(), "the tensors before", "a tensor");
  return shape;
}
inline bool CanExpandTo(IntSpan from, IntSpan to) { return mica::CanExpandTo(from, to); }
inline int64_t CheckedNumel(IntSpan sizes) { return mica::CheckedNumel(sizes); }

// --- tensors' metadata
inline bool CanView(const Tensor& self, IntSpan sizes) {
  return ComputeStride(self.sizes(), self.strides(), sizes).has_value();
}
inline bool IsContiguous(const Tensor& self, MemoryFormat format) { return self.is_contiguous(format); }
// As torch's suggest_memory_format.
inline MemoryFormat FormatOf(const Tensor& self) {
  if (!HasChannelsLastStrides(self.sizes(), self.strides())) return MemoryFormat::kContiguous;
  return self.ndim() == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d;
}
inline int64_t StorageOffset(const Tensor& self) { return self.storage_offset(); }
inline bool IsMeta(const Tensor& self) { return self.device().is_meta(); }
inline bool IsConj(const Tensor& self) { return self.keys().has(keys::kConjugate); }
inline bool IsNeg(const Tensor& self) { return self.keys().has(keys::kNegative); }
// Whether both are one tensor object; what a body computes from it must not depend on it.
inline bool IsSame(const Tensor& a, const Tensor& b) { return a.is_same(b); }

// --- dtypes
inline std::string_view TypeName(DType dtype) { return ScalarTypeName(dtype); }
inline DType DefaultDType() { return mica::DefaultDType(); }
inline DType DefaultDType(const Scalar& number) { return number.DefaultDType(); }
// The dtype in which a half-precision tensor's statistics are computed.
inline DType StatisticsDType(DType dtype) {
  return mica::IsFloating(dtype) && ItemSize(dtype) < 4 ? DType::kF32 : dtype;
}
inline double Largest(DType dtype) { return LargestNumber(dtype); }
// The step from 1 to the next number, of a complex dtype that of its parts.
inline double Epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    case DType::kF32:
    case DType::kC64:
      return std::numeric_limits<float>::epsilon();
    default:
      return std::numeric_limits<double>::epsilon();
  }
}
// The smallest normal number.
inline double Tiny(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-14;
    case DType::kF64:
    case DType::kC128:
      return std::numeric_limits<double>::min();
    default:
      return std::numeric_limits<float>::min();
  }
}
inline bool IsInteger(DType dtype) { return mica::IsInteger(dtype); }
inline bool IsFloating(DType dtype) { return mica::IsFloating(dtype); }
inline bool IsDifferentiable(DType dtype) { return mica::IsDifferentiable(dtype); }
inline bool Fits(const Scalar& value, DType dtype) { return HoldsNumber(dtype, value); }
inline bool CanCast(DType from, DType to) { return mica::CanCast(from, to); }
inline DType PromoteDTypes(DType a, DType b) { return PromoteTypes(a, b); }
inline DType PromoteTensors(const Tensor& a, const Tensor& b) { return ResultType().Add(a).Add(b).dtype(); }

}  // namespace mica::formula
