// Value and the borrowed MicaValue: both ways, comparison, printing. See value.h.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "schema/lexer.h"
#include "schema/object.h"
#include "schema/value.h"
#include "schema/value_internal.h"
#include "tensor/error.h"

namespace mica {

using Tag = Value::Tag;
static_assert(static_cast<int>(Tag::kDType) == MICA_VALUE_DTYPE);
static_assert(static_cast<int>(Tag::kTensorList) == MICA_VALUE_TENSORS);
static_assert(static_cast<int>(Tag::kGenerator) == MICA_VALUE_GENERATOR);
static_assert(static_cast<int>(Tag::kObject) == MICA_VALUE_OBJECT);

std::string_view TagName(Tag tag) {
  switch (tag) {
    case Tag::kNone:
      return "None";
    case Tag::kTensor:
      return "Tensor";
    case Tag::kInt:
      return "int";
    case Tag::kDouble:
      return "float";
    case Tag::kBool:
      return "bool";
    case Tag::kScalar:
      return "Scalar";
    case Tag::kStr:
      return "str";
    case Tag::kIntList:
      return "int[]";
    case Tag::kDoubleList:
      return "float[]";
    case Tag::kBoolList:
      return "bool[]";
    case Tag::kScalarList:
      return "Scalar[]";
    case Tag::kTensorList:
      return "Tensor[]";
    case Tag::kDType:
      return "ScalarType";
    case Tag::kDevice:
      return "Device";
    case Tag::kLayout:
      return "Layout";
    case Tag::kMemoryFormat:
      return "MemoryFormat";
    case Tag::kGenerator:
      return "Generator";
    case Tag::kObject:
      return "object";
  }
  return "unknown";
}

MicaValue Value::Borrow() const {
  MicaValue value{static_cast<int32_t>(tag_), 0, {}};
  switch (tag_) {
    case Tag::kTensor:
      value.u.tensor = u_.tensor;
      break;
    case Tag::kDouble:
      value.u.f = u_.f;
      break;
    case Tag::kScalar:
      value.u.scalar = BorrowScalar();
      break;
    case Tag::kStr:
      value.u.str = {u_.str->data(), static_cast<int64_t>(u_.str->size())};
      break;
    case Tag::kIntList:
      value.u.ints = {u_.ints->data(), static_cast<int64_t>(u_.ints->size())};
      break;
    case Tag::kDoubleList:
      value.u.floats = {u_.doubles->data(), static_cast<int64_t>(u_.doubles->size())};
      break;
    case Tag::kBoolList:
      value.u.bools = {u_.bools->data(), static_cast<int64_t>(u_.bools->size())};
      break;
    case Tag::kScalarList:
      value.u.scalars = {u_.scalars->abi.data(), static_cast<int64_t>(u_.scalars->abi.size())};
      break;
    case Tag::kTensorList:
      // A Tensor is one pointer to a MicaTensor, so the vector's data is the array.
      value.u.tensors = {reinterpret_cast<MicaTensor* const*>(u_.tensors->data()),
                         static_cast<int64_t>(u_.tensors->size())};
      break;
    case Tag::kDevice:
      value.u.device = u_.device;
      break;
    case Tag::kGenerator:
      value.u.generator = u_.generator;
      break;
    case Tag::kObject:
      value.u.object = u_.object;
      break;
    default:
      value.u.i = u_.i;
  }
  return value;
}

namespace {

std::vector<Tensor> CopyTensors(MicaTensorSpan span) {
  std::vector<Tensor> tensors;
  tensors.reserve(span.size);
  for (int64_t i = 0; i < span.size; ++i) tensors.push_back(Tensor::Borrow(span.data[i]));
  return tensors;
}

std::vector<Scalar> CopyScalars(MicaScalarSpan span) {
  std::vector<Scalar> scalars;
  scalars.reserve(span.size);
  for (int64_t i = 0; i < span.size; ++i) scalars.push_back(Scalar::FromAbi(span.data[i]));
  return scalars;
}

template <typename S>
auto ToVector(S span) {
  return std::vector(span.data, span.data + span.size);
}

// An enumeration's number, checked because it comes from across the border.
template <typename E>
Value FromNumber(int64_t number, int64_t count, const char* what) {
  if (number == -1) return Value();
  MICA_CHECK_VALUE(number >= 0 && number < count, "The number (", number, ") of a borrowed ", what,
                   " is unknown; a number from 0 to ", count - 1, " is expected.");
  return Value(static_cast<E>(number));
}

// The length of a list value, 0 for what is no list.
int64_t ListSize(const MicaValue& value) {
  const bool is_list = value.tag >= MICA_VALUE_INTS && value.tag <= MICA_VALUE_TENSORS;
  return is_list || value.tag == MICA_VALUE_STR ? value.u.ints.size : 0;
}

}  // namespace

Value Value::FromBorrowed(const MicaValue& value) {
  if (ListSize(value) < 0) return Value();
  switch (value.tag) {
    case MICA_VALUE_NONE:
      return Value();
    case MICA_VALUE_TENSOR:
      return Value(Tensor::Borrow(value.u.tensor));
    case MICA_VALUE_INT:
      return Value(value.u.i);
    case MICA_VALUE_FLOAT:
      return Value(value.u.f);
    case MICA_VALUE_BOOL:
      return Value(value.u.i != 0);
    case MICA_VALUE_SCALAR:
      if (value.u.scalar.tag == MICA_SCALAR_NONE) return Value();
      return Value(Scalar::FromAbi(value.u.scalar));
    case MICA_VALUE_STR:
      return Value(std::string(value.u.str.data, value.u.str.size));
    case MICA_VALUE_INTS:
      return Value(ToVector(value.u.ints));
    case MICA_VALUE_FLOATS:
      return Value(ToVector(value.u.floats));
    case MICA_VALUE_BOOLS:
      return Bools(ToVector(value.u.bools));
    case MICA_VALUE_SCALARS:
      return Value(CopyScalars(value.u.scalars));
    case MICA_VALUE_TENSORS:
      return Value(CopyTensors(value.u.tensors));
    case MICA_VALUE_DTYPE:
      return FromNumber<DType>(value.u.i, kDTypeCount, "dtype");
    case MICA_VALUE_DEVICE:
      if (value.u.device.backend < 0) return Value();
      return Value(Device::FromAbi(value.u.device));
    case MICA_VALUE_LAYOUT:
      return FromNumber<Layout>(value.u.i, 1, "layout");
    case MICA_VALUE_MEMORY_FORMAT:
      return FromNumber<MemoryFormat>(value.u.i, kMemoryFormatCount, "memory format");
    case MICA_VALUE_GENERATOR:
      return Value(value.u.generator);
    case MICA_VALUE_OBJECT:
      return Value(value.u.object);
  }
  MICA_THROW(kType, "The tag (", value.tag, ") of a borrowed value is unknown.");
}

std::vector<MicaValue> BorrowAll(Span<Value> values) {
  std::vector<MicaValue> borrowed;
  borrowed.reserve(values.size());
  for (const Value& value : values) borrowed.push_back(value.Borrow());
  return borrowed;
}

namespace {

bool SameDouble(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool SameScalar(const MicaScalar& a, const MicaScalar& b) {
  if (a.tag != b.tag) return false;
  if (a.tag == MICA_SCALAR_FLOAT) return SameDouble(a.u.f, b.u.f);
  if (a.tag == MICA_SCALAR_COMPLEX) return SameDouble(a.u.c[0], b.u.c[0]) && SameDouble(a.u.c[1], b.u.c[1]);
  return a.u.i == b.u.i;
}

template <typename S, typename F>
bool SameElements(S a, S b, F same) {
  return a.size == b.size && std::equal(a.data, a.data + a.size, b.data, same);
}

}  // namespace

bool Value::operator==(const Value& other) const {
  if (tag_ != other.tag_) return false;
  const MicaValue a = Borrow();
  const MicaValue b = other.Borrow();
  switch (tag_) {
    case Tag::kNone:
      return true;
    case Tag::kTensor:
      return a.u.tensor == b.u.tensor;
    case Tag::kDouble:
      return SameDouble(a.u.f, b.u.f);
    case Tag::kScalar:
      return SameScalar(a.u.scalar, b.u.scalar);
    case Tag::kStr:
      return *u_.str == *other.u_.str;
    case Tag::kIntList:
      return *u_.ints == *other.u_.ints;
    case Tag::kDoubleList:
      return SameElements(a.u.floats, b.u.floats, SameDouble);
    case Tag::kBoolList:
      return *u_.bools == *other.u_.bools;
    case Tag::kScalarList:
      return SameElements(a.u.scalars, b.u.scalars, SameScalar);
    case Tag::kTensorList:
      return SameElements(a.u.tensors, b.u.tensors, std::equal_to<>());
    case Tag::kDevice:
      return ToDevice() == other.ToDevice();
    case Tag::kGenerator:
      return a.u.generator == b.u.generator;
    case Tag::kObject:
      return a.u.object == b.u.object;
    default:
      return a.u.i == b.u.i;
  }
}

namespace {

std::string DoubleText(double f) { return Scalar(f).ToString(); }
std::string BoolText(bool b) { return b ? "True" : "False"; }
std::string ScalarText(const MicaScalar& s) {
  return s.tag == MICA_SCALAR_NONE ? "None" : Scalar::FromAbi(s).ToString();
}
std::string TensorText(MicaTensor* t) { return t ? Tensor::Ref(t).ToString() : "None"; }

template <typename S, typename F>
std::string ListText(S list, F text) {
  if (list.size < 0) return "None";
  std::string out = "[";
  for (int64_t i = 0; i < list.size; ++i) absl::StrAppend(&out, i == 0 ? "" : ", ", text(list.data[i]));
  return out + "]";
}

std::string MemoryFormatText(int64_t format) {
  switch (format) {
    case MICA_CONTIGUOUS:
      return "contiguous_format";
    case MICA_PRESERVE:
      return "preserve_format";
    case MICA_CHANNELS_LAST:
      return "channels_last";
    case MICA_CHANNELS_LAST_3D:
      return "channels_last_3d";
    default:
      return absl::StrCat("memory format ", format);
  }
}

}  // namespace

std::string ToString(const MicaValue& value) {
  switch (value.tag) {
    case MICA_VALUE_NONE:
      return "None";
    case MICA_VALUE_TENSOR:
      return TensorText(value.u.tensor);
    case MICA_VALUE_INT:
      return absl::StrCat(value.u.i);
    case MICA_VALUE_FLOAT:
      return DoubleText(value.u.f);
    case MICA_VALUE_BOOL:
      return BoolText(value.u.i != 0);
    case MICA_VALUE_SCALAR:
      return ScalarText(value.u.scalar);
    case MICA_VALUE_STR:
      return value.u.str.size < 0
                 ? "None"
                 : schema::internal::Quote({value.u.str.data, static_cast<size_t>(value.u.str.size)});
    case MICA_VALUE_INTS:
      return ListText(value.u.ints, [](int64_t i) { return absl::StrCat(i); });
    case MICA_VALUE_FLOATS:
      return ListText(value.u.floats, DoubleText);
    case MICA_VALUE_BOOLS:
      return ListText(value.u.bools, BoolText);
    case MICA_VALUE_SCALARS:
      return ListText(value.u.scalars, ScalarText);
    case MICA_VALUE_TENSORS:
      return ListText(value.u.tensors, TensorText);
    case MICA_VALUE_DTYPE:
      if (value.u.i == MICA_DTYPE_NONE) return "None";
      return value.u.i >= 0 && value.u.i < MICA_DTYPE_COUNT ? Name(static_cast<DType>(value.u.i))
                                                            : absl::StrCat("dtype ", value.u.i);
    case MICA_VALUE_DEVICE:
      return value.u.device.backend < 0 ? "None" : Device::FromAbi(value.u.device).ToString();
    case MICA_VALUE_LAYOUT:
      return value.u.i == 0 ? "strided" : absl::StrCat("layout ", value.u.i);
    case MICA_VALUE_MEMORY_FORMAT:
      return MemoryFormatText(value.u.i);
    case MICA_VALUE_GENERATOR:
      return value.u.generator ? "generator" : "None";
    case MICA_VALUE_OBJECT:
      return value.u.object ? absl::StrCat(std::string(TypeNameOf(value.u.object)), " object") : "None";
    default:
      return absl::StrCat("value of unknown tag ", value.tag);
  }
}

std::string Value::ToString() const { return mica::ToString(Borrow()); }

}  // namespace mica
