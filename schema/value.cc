// Owning, copying and typed reads. See value.h; the borrowed form is in borrow.cc.
#include "schema/value.h"

#include <utility>

#include "schema/object.h"
#include "schema/value_internal.h"
#include "tensor/error.h"

namespace mica {

using Tag = Value::Tag;

Value::ScalarList::ScalarList(std::vector<Scalar> v) : values(std::move(v)) {
  abi.reserve(values.size());
  for (const Scalar& scalar : values) abi.push_back(scalar.ToAbi());
}

Value::Value(Tensor tensor) : tag_(tensor.defined() ? Tag::kTensor : Tag::kNone) {
  if (tensor.defined()) u_.tensor = tensor.release();
}

Value::Value(const Scalar& scalar) : tag_(Tag::kScalar), scalar_tag_(scalar.tag()) {
  switch (scalar.tag()) {
    case Scalar::Tag::kComplex: {
      const std::complex<double> c = scalar.ToComplex();
      u_.c[0] = c.real();
      u_.c[1] = c.imag();
      break;
    }
    case Scalar::Tag::kFloat:
      u_.f = scalar.ToDouble();
      break;
    case Scalar::Tag::kBool:
      u_.i = scalar.ToBool();
      break;
    default:
      u_.i = scalar.ToInt();
  }
}

Value::Value(std::string text) : tag_(Tag::kStr) { u_.str = new std::string(std::move(text)); }
Value::Value(IntSpan ints) : Value(std::vector<int64_t>(ints.begin(), ints.end())) {}
Value::Value(std::vector<int64_t> ints) : tag_(Tag::kIntList) { u_.ints = new auto(std::move(ints)); }
Value::Value(std::vector<double> doubles) : tag_(Tag::kDoubleList) {
  u_.doubles = new auto(std::move(doubles));
}
Value::Value(std::vector<Scalar> scalars) : tag_(Tag::kScalarList) {
  u_.scalars = new ScalarList(std::move(scalars));
}
Value::Value(std::vector<Tensor> tensors) : tag_(Tag::kTensorList) {
  u_.tensors = new auto(std::move(tensors));
}
Value::Value(MicaGenerator* generator) : tag_(generator ? Tag::kGenerator : Tag::kNone) {
  u_.generator = generator;
}
Value::Value(MicaObject* object) : tag_(object ? Tag::kObject : Tag::kNone) {
  RetainObject(object);
  u_.object = object;
}

Value Value::Bools(std::vector<uint8_t> bools) {
  for (uint8_t& b : bools) b = b != 0;
  Value value;
  value.u_.bools = new auto(std::move(bools));
  value.tag_ = Tag::kBoolList;
  return value;
}

Value Value::Bools(BoolSpan bools) { return Bools(std::vector<uint8_t>(bools.begin(), bools.end())); }

Value::Value(const Value& other) : scalar_tag_(other.scalar_tag_), u_(other.u_) {
  switch (other.tag_) {
    case Tag::kTensor:
      u_.tensor->Retain();
      break;
    case Tag::kStr:
      u_.str = new std::string(*other.u_.str);
      break;
    case Tag::kIntList:
      u_.ints = new auto(*other.u_.ints);
      break;
    case Tag::kDoubleList:
      u_.doubles = new auto(*other.u_.doubles);
      break;
    case Tag::kBoolList:
      u_.bools = new auto(*other.u_.bools);
      break;
    case Tag::kScalarList:
      u_.scalars = new ScalarList(other.u_.scalars->values);
      break;
    case Tag::kTensorList:
      u_.tensors = new auto(*other.u_.tensors);
      break;
    case Tag::kObject:
      RetainObject(u_.object);
      break;
    default:
      break;
  }
  tag_ = other.tag_;
}

Value& Value::operator=(Value&& other) noexcept {
  std::swap(tag_, other.tag_);
  std::swap(scalar_tag_, other.scalar_tag_);
  std::swap(u_, other.u_);
  return *this;
}

void Value::Destroy() {
  switch (tag_) {
    case Tag::kTensor:
      u_.tensor->Release();
      break;
    case Tag::kStr:
      delete u_.str;
      break;
    case Tag::kIntList:
      delete u_.ints;
      break;
    case Tag::kDoubleList:
      delete u_.doubles;
      break;
    case Tag::kBoolList:
      delete u_.bools;
      break;
    case Tag::kScalarList:
      delete u_.scalars;
      break;
    case Tag::kTensorList:
      delete u_.tensors;
      break;
    case Tag::kObject:
      ReleaseObject(u_.object);
      break;
    default:
      break;
  }
}

void Value::Expect(Tag tag) const {
  if (__builtin_expect(tag_ == tag, 1)) return;
  MICA_THROW(kType, "The value (", ToString(), ") is of type (", std::string(TagName(tag_)), ") where (",
             std::string(TagName(tag)), ") is expected.");
}

const Tensor& Value::ToTensor() const {
  Expect(Tag::kTensor);
  return reinterpret_cast<const Tensor&>(u_.tensor);  // a Tensor is its one pointer
}

Tensor Value::ToOptionalTensor() const { return is_none() ? Tensor() : ToTensor(); }

int64_t Value::ToInt() const {
  Expect(Tag::kInt);
  return u_.i;
}

double Value::ToDouble() const {
  if (tag_ == Tag::kInt) return static_cast<double>(u_.i);
  Expect(Tag::kDouble);
  return u_.f;
}

bool Value::ToBool() const {
  Expect(Tag::kBool);
  return u_.i != 0;
}

Scalar Value::ToScalar() const {
  if (tag_ == Tag::kInt) return Scalar(u_.i);
  if (tag_ == Tag::kDouble) return Scalar(u_.f);
  if (tag_ == Tag::kBool) return Scalar(u_.i != 0);
  Expect(Tag::kScalar);
  return Scalar::FromAbi(BorrowScalar());
}

MicaScalar Value::BorrowScalar() const {
  MicaScalar scalar{static_cast<int32_t>(scalar_tag_), 0, {}};
  if (scalar_tag_ == Scalar::Tag::kComplex)
    scalar.u.c = u_.c;
  else if (scalar_tag_ == Scalar::Tag::kFloat)
    scalar.u.f = u_.f;
  else
    scalar.u.i = u_.i;
  return scalar;
}

const std::string& Value::ToStr() const {
  Expect(Tag::kStr);
  return *u_.str;
}

IntSpan Value::ToInts() const {
  Expect(Tag::kIntList);
  return *u_.ints;
}

FloatSpan Value::ToDoubles() const {
  Expect(Tag::kDoubleList);
  return *u_.doubles;
}

BoolSpan Value::ToBools() const {
  Expect(Tag::kBoolList);
  return *u_.bools;
}

Span<Scalar> Value::ToScalars() const {
  Expect(Tag::kScalarList);
  return u_.scalars->values;
}

TensorSpan Value::ToTensors() const {
  Expect(Tag::kTensorList);
  return *u_.tensors;
}

DType Value::ToDType() const {
  Expect(Tag::kDType);
  return static_cast<DType>(u_.i);
}

Device Value::ToDevice() const {
  Expect(Tag::kDevice);
  return Device::FromAbi(u_.device);
}

Layout Value::ToLayout() const {
  Expect(Tag::kLayout);
  return static_cast<Layout>(u_.i);
}

MemoryFormat Value::ToMemoryFormat() const {
  Expect(Tag::kMemoryFormat);
  return static_cast<MemoryFormat>(u_.i);
}

MicaGenerator* Value::ToGenerator() const {
  if (is_none()) return nullptr;
  Expect(Tag::kGenerator);
  return u_.generator;
}

MicaObject* Value::ToObject() const {
  if (is_none()) return nullptr;
  Expect(Tag::kObject);
  return u_.object;
}

Tensor Value::MoveTensor() {
  Expect(Tag::kTensor);
  tag_ = Tag::kNone;
  return Tensor::Steal(u_.tensor);
}

std::vector<Tensor> Value::MoveTensors() {
  Expect(Tag::kTensorList);
  std::vector<Tensor> tensors = std::move(*u_.tensors);
  *this = Value();
  return tensors;
}

}  // namespace mica
