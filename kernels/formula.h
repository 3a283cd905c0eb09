// The functions of the formula language (codegen/formula/functions.cc): what
// generated composites and gradients call besides operators. Those that know nothing of the
// tensors' inside are plugins' too (mica/formula_lists.inc).
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

#include <mica/formula_lists.inc>

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
inline Dims WrapDims(IntSpan dims, int64_t ndim) { return mica::WrapDims(dims, ndim); }
// The wrapped dimensions, all of them where none are given.
inline Dims DimsOrAll(const std::optional<IntSpan>& dims, int64_t ndim) {
  if (dims && !dims->empty()) return mica::WrapDims(*dims, ndim);
  Dims all(static_cast<size_t>(ndim));
  std::iota(all.begin(), all.end(), 0);
  return all;
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
inline bool IsCpu(const Tensor& self) { return self.device().is_cpu(); }
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
