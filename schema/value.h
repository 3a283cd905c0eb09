// Value: one owned argument or result of an operator, whatever its type.
//
// Used where calls are recorded, replayed or bound from another language. A call
// that only passes through takes the borrowed MicaValue of abi.h instead; Borrow()
// and FromBorrowed() lead from one to the other. Do not use it on a hot path: lists
// and strings cost an allocation, and copying a Value copies them.
//
// Always holds: 24 bytes; an undefined Tensor alone becomes None, inside a list it
// stays (the element None of `Tensor?[]`). A Generator is an opaque pointer that
// is not owned: its device keeps it. An object is owned: a Value has a reference.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <mica/abi.h>
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/scalar.h"
#include "tensor/span.h"
#include "tensor/tensor.h"

namespace mica {

class Value {
 public:
  // The numbers are those of MICA_VALUE_* in abi.h.
  enum class Tag : int32_t {
    kNone = 0,
    kTensor,
    kInt,
    kDouble,
    kBool,
    kScalar,
    kStr,
    kIntList,
    kDoubleList,
    kBoolList,
    kScalarList,
    kTensorList,
    kDType,
    kDevice,
    kLayout,
    kMemoryFormat,
    kGenerator,
    kObject = 18,
  };

  Value() = default;
  Value(std::nullptr_t) {}
  Value(Tensor tensor);
  template <std::same_as<bool> T>
  Value(T b) : tag_(Tag::kBool) {
    u_.i = b;
  }
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Value(T i) : tag_(Tag::kInt) {
    u_.i = static_cast<int64_t>(i);
  }
  template <std::floating_point T>
  Value(T f) : tag_(Tag::kDouble) {
    u_.f = f;
  }
  Value(const Scalar& scalar);
  Value(std::string text);
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(IntSpan ints);
  Value(const Dims& ints) : Value(IntSpan(ints)) {}
  Value(std::vector<int64_t> ints);
  Value(std::vector<double> doubles);
  Value(std::vector<Scalar> scalars);
  Value(std::vector<Tensor> tensors);
  Value(DType dtype) : tag_(Tag::kDType) { u_.i = static_cast<int64_t>(dtype); }
  Value(Device device) : tag_(Tag::kDevice) { u_.device = device.ToAbi(); }
  Value(Layout layout) : tag_(Tag::kLayout) { u_.i = static_cast<int64_t>(layout); }
  Value(MemoryFormat format) : tag_(Tag::kMemoryFormat) { u_.i = static_cast<int64_t>(format); }
  Value(MicaGenerator* generator);  // NULL gives None
  Value(MicaObject* object);        // the same; takes a reference of its own
  // A bool list: one byte an element, 0 or 1 (other bytes become 1).
  static Value Bools(std::vector<uint8_t> bools);
  static Value Bools(BoolSpan bools);

  Value(const Value& other);
  Value(Value&& other) noexcept : tag_(other.tag_), scalar_tag_(other.scalar_tag_), u_(other.u_) {
    other.tag_ = Tag::kNone;
  }
  Value& operator=(const Value& other) {
    Value copy(other);
    return *this = std::move(copy);
  }
  Value& operator=(Value&& other) noexcept;
  ~Value() {
    if (OwnsMemory()) Destroy();
  }

  Tag tag() const { return tag_; }
  bool is(Tag tag) const { return tag_ == tag; }
  bool is_none() const { return tag_ == Tag::kNone; }
  bool is_tensor() const { return tag_ == Tag::kTensor; }

  // Typed reads. Another tag throws a kType Error that names what is there and
  // what was asked. ToInt reads int; ToDouble int too; ToScalar int, double, bool
  // too. Spans and references live as long as this Value.
  const Tensor& ToTensor() const;
  Tensor ToOptionalTensor() const;  // None gives an undefined Tensor
  int64_t ToInt() const;
  double ToDouble() const;
  bool ToBool() const;
  Scalar ToScalar() const;
  const std::string& ToStr() const;
  IntSpan ToInts() const;
  FloatSpan ToDoubles() const;
  BoolSpan ToBools() const;
  Span<Scalar> ToScalars() const;
  TensorSpan ToTensors() const;
  DType ToDType() const;
  Device ToDevice() const;
  Layout ToLayout() const;
  MemoryFormat ToMemoryFormat() const;
  MicaGenerator* ToGenerator() const;  // None gives NULL
  MicaObject* ToObject() const;        // the same; borrowed
  // The tensors out of it, and this becomes None.
  Tensor MoveTensor();
  std::vector<Tensor> MoveTensors();

  // The borrowed form; it points into this Value, which must not move meanwhile.
  MicaValue Borrow() const;
  // Copies what `value` points at; an unknown tag throws a kType Error. Lists of
  // length -1 and NULL tensors are None.
  static Value FromBorrowed(const MicaValue& value);

  // The same kind and value; tensors by identity, NaN equal to NaN.
  bool operator==(const Value& other) const;

  // For messages and explain: "None", "3", "[1, 2]", "float32[2, 3] on cpu".
  std::string ToString() const;

 private:
  struct ScalarList;

  bool OwnsMemory() const {
    return tag_ == Tag::kTensor || (tag_ >= Tag::kStr && tag_ <= Tag::kTensorList) || tag_ == Tag::kObject;
  }
  void Destroy();
  void Expect(Tag tag) const;
  MicaScalar BorrowScalar() const;

  Tag tag_ = Tag::kNone;
  Scalar::Tag scalar_tag_ = Scalar::Tag::kNone;  // kScalar alone
  union Payload {
    int64_t i;
    double f;
    double c[2];
    TensorImpl* tensor;
    MicaDevice device;
    MicaGenerator* generator;
    MicaObject* object;
    std::string* str;
    std::vector<int64_t>* ints;
    std::vector<double>* doubles;
    std::vector<uint8_t>* bools;
    ScalarList* scalars;
    std::vector<Tensor>* tensors;
  } u_ = {0};
};
static_assert(sizeof(Value) == 24);

// "Tensor", "int", "float", "int[]": the tag in the schema's words.
std::string_view TagName(Value::Tag tag);

// The borrowed forms of `values`; they point into them.
std::vector<MicaValue> BorrowAll(Span<Value> values);
// ToString of a borrowed value, without owning it.
std::string ToString(const MicaValue& value);

}  // namespace mica
