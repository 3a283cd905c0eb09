// Value: what it owns, its typed reads, and the way to the borrowed form and back.
#include <algorithm>
#include <cmath>
#include <complex>

#include "schema/object.h"
#include "schema/value.h"
#include "tensor/error.h"
#include "test/support/mica_test.h"

namespace mica {
namespace {

using Tag = Value::Tag;

Tensor SmallTensor() { return EmptyTensor({2, 3}, DType::kF32, Device{}); }
uint64_t RefCount(const Tensor& t) { return t.impl()->refs().load(); }

// One value of every tag; the tensor is `t`.
std::vector<Value> OneOfEach(const Tensor& t) {
  static char generator = 0;
  static const MicaObjectType type = {sizeof(type), "test.Thing", [](MicaObject*) {}};
  static MicaObject object = {1, &type};
  return {Value(),
          Value(t),
          Value(-7),
          Value(2.5),
          Value(true),
          Value(Scalar(3)),
          Value(Scalar(0.5)),
          Value(Scalar(false)),
          Value(Scalar(std::complex<double>(1, -2))),
          Value("text"),
          Value(IntSpan{1, 2, 3}),
          Value(std::vector<double>{1.5, -0.0}),
          Value::Bools(std::vector<uint8_t>{1, 0, 1}),
          Value(std::vector<Scalar>{Scalar(1), Scalar(std::complex<double>(2, 3)), Scalar(0.5)}),
          Value(std::vector<Tensor>{t, Tensor(), t}),
          Value(DType::kBF16),
          Value(Device{1, 2}),
          Value(Layout::kStrided),
          Value(MemoryFormat::kChannelsLast),
          Value(reinterpret_cast<MicaGenerator*>(&generator)),
          Value(&object)};
}

TEST_CASE("copies, moves and the borrowed form keep every value", "[value]") {
  const Tensor t = SmallTensor();
  const std::vector<Value> values = OneOfEach(t);
  std::vector<bool> seen(19, false);
  for (const Value& value : values) {
    INFO(value.ToString());
    seen[static_cast<size_t>(value.tag())] = true;
    const Value copy = value;
    CHECK(copy == value);
    Value moved_from = value;
    const Value moved = std::move(moved_from);
    CHECK(moved == value);
    CHECK(moved_from.is_none());
    Value assigned("old");
    assigned = value;
    CHECK(assigned == value);
    const MicaValue borrowed = value.Borrow();
    CHECK(borrowed.tag == static_cast<int32_t>(value.tag()));
    CHECK(Value::FromBorrowed(borrowed) == value);
    CHECK(ToString(borrowed) == value.ToString());
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == 18);  // no value has the tag of a complex result
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < values.size(); ++j) CHECK((values[i] == values[j]) == (i == j));
}

TEST_CASE("tensors are counted and not copied", "[value]") {
  const Tensor t = SmallTensor();
  CHECK(RefCount(t) == 1);
  {
    const std::vector<Value> values = OneOfEach(t);
    CHECK(RefCount(t) == 4);
    const std::vector<MicaValue> borrowed = BorrowAll({values.data(), static_cast<int64_t>(values.size())});
    CHECK(RefCount(t) == 4);
    CHECK(borrowed[1].u.tensor == t.impl());
    CHECK(borrowed[14].u.tensors.size == 3);
    CHECK(borrowed[14].u.tensors.data[0] == t.impl());
    CHECK(borrowed[14].u.tensors.data[1] == nullptr);
  }
  CHECK(RefCount(t) == 1);
  Value value(t);
  CHECK(value.ToTensor().is_same(t));
  const Tensor out = value.MoveTensor();
  CHECK(value.is_none());
  CHECK(RefCount(t) == 2);
  Value list(std::vector<Tensor>{t, t});
  CHECK(list.MoveTensors().size() == 2);
  CHECK(list.is_none());
  CHECK(RefCount(t) == 2);
}

TEST_CASE("an object is counted, and destroyed once, by its own function", "[value]") {
  static int destroyed = 0;
  static const MicaObjectType type = {sizeof(type), "test.Thing", [](MicaObject*) { ++destroyed; }};
  MicaObject object = {1, &type};
  {
    Value value(&object);
    CHECK(object.refcount == 2);
    const Value copy = value;
    CHECK(object.refcount == 3);
    CHECK(copy.ToObject() == &object);
    CHECK(copy.ToString() == "test.Thing object");
    const Value moved = std::move(value);
    CHECK(object.refcount == 3);
    MICA_REQUIRE_ERROR(copy.ToGenerator(), "is of type (object) where (Generator) is expected");
  }
  CHECK(object.refcount == 1);
  CHECK(RetainLiveObject(&object));
  CHECK(ReleaseObject(&object));
  CHECK(destroyed == 0);
  CHECK(ReleaseObject(&object));
  CHECK(destroyed == 1);
  CHECK_FALSE(ReleaseObject(&object));  // one too many
  CHECK_FALSE(RetainLiveObject(&object));
  CHECK(destroyed == 1);
  CHECK(object.refcount == 0);
}

TEST_CASE("absent values are None", "[value]") {
  CHECK(Value(Tensor()).is_none());
  CHECK(Value(static_cast<MicaGenerator*>(nullptr)).is_none());
  CHECK(Value(static_cast<MicaObject*>(nullptr)).is_none());
  CHECK(Value().ToObject() == nullptr);
  CHECK_FALSE(Value().ToOptionalTensor().defined());
  CHECK(Value().ToGenerator() == nullptr);
  MicaValue absent{MICA_VALUE_INTS, 0, {}};
  absent.u.ints = {nullptr, -1};
  CHECK(Value::FromBorrowed(absent).is_none());
  CHECK(ToString(absent) == "None");
  absent = {MICA_VALUE_TENSOR, 0, {}};
  absent.u.tensor = nullptr;
  CHECK(Value::FromBorrowed(absent).is_none());
  absent = {MICA_VALUE_DTYPE, 0, {}};
  absent.u.i = MICA_DTYPE_NONE;
  CHECK(Value::FromBorrowed(absent).is_none());
  absent = {MICA_VALUE_SCALAR, 0, {}};
  absent.u.scalar = {MICA_SCALAR_NONE, 0, {}};
  CHECK(Value::FromBorrowed(absent).is_none());
  absent = {MICA_VALUE_DEVICE, 0, {}};
  absent.u.device = {-1, 0};
  CHECK(Value::FromBorrowed(absent).is_none());
}

TEST_CASE("typed reads convert where nothing is lost", "[value]") {
  CHECK(Value(3).ToInt() == 3);
  CHECK(Value(3).ToDouble() == 3.0);
  CHECK(Value(3).ToScalar().is_int());
  CHECK(Value(2.5).ToScalar().ToDouble() == 2.5);
  CHECK(Value(true).ToScalar().is_bool());
  CHECK(Value(Scalar(std::complex<double>(1, -2))).ToScalar().ToComplex() == std::complex<double>(1, -2));
  CHECK(Value("abc").ToStr() == "abc");
  CHECK(Value(IntSpan{4, 5}).ToInts() == IntSpan{4, 5});
  CHECK(Value(Dims{4, 5}).ToInts() == IntSpan{4, 5});
  CHECK(Value::Bools(std::vector<uint8_t>{7, 0}).ToBools()[0] == 1);
  CHECK(Value(Device{1, 2}).ToDevice() == Device{1, 2});
  CHECK(Value(DType::kI8).ToDType() == DType::kI8);
}

TEST_CASE("a read of another type throws and names both", "[value]") {
  const auto message = [](auto read) {
    try {
      read();
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::kType);
      return e.message();
    }
    return std::string("no error");
  };
  CHECK(message([] { Value(2.5).ToInt(); }) == "The value (2.5) is of type (float) where (int) is expected.");
  CHECK(message([] { Value(1).ToBool(); }) == "The value (1) is of type (int) where (bool) is expected.");
  CHECK(message([] { Value().ToTensor(); }) ==
        "The value (None) is of type (None) where (Tensor) is expected.");
  CHECK(message([] { Value("x").ToInts(); }) ==
        "The value (\"x\") is of type (str) where (int[]) is expected.");
  const MicaValue unknown{99, 0, {}};
  CHECK(message([&] { Value::FromBorrowed(unknown); }) == "The tag (99) of a borrowed value is unknown.");
  MicaValue dtype{MICA_VALUE_DTYPE, 0, {}};
  dtype.u.i = 17;
  CHECK_THROWS_WITH(Value::FromBorrowed(dtype),
                    Catch::Contains("number (17) of a borrowed dtype is unknown"));
}

TEST_CASE("complex scalars of a list are borrowed from the list itself", "[value]") {
  Value list(std::vector<Scalar>{Scalar(std::complex<double>(1, 2))});
  const Value copy = list;
  list = Value();
  const MicaValue borrowed = copy.Borrow();
  REQUIRE(borrowed.u.scalars.size == 1);
  CHECK(borrowed.u.scalars.data[0].u.c[1] == 2);
}

TEST_CASE("values print as Python prints them", "[value]") {
  CHECK(Value().ToString() == "None");
  CHECK(Value(-3).ToString() == "-3");
  CHECK(Value(true).ToString() == "True");
  CHECK(Value(IntSpan{1, 2}).ToString() == "[1, 2]");
  CHECK(Value(std::vector<double>{0.5}).ToString() == "[0.5]");
  CHECK(Value::Bools(std::vector<uint8_t>{1, 0}).ToString() == "[True, False]");
  CHECK(Value("a\"b").ToString() == "\"a\\\"b\"");
  CHECK(Value(DType::kF32).ToString() == "float32");
  CHECK(Value(MemoryFormat::kChannelsLast).ToString() == "channels_last");
  CHECK(Value(SmallTensor()).ToString() == SmallTensor().ToString());
  CHECK(Value(std::vector<Tensor>{Tensor()}).ToString() == "[None]");
}

TEST_CASE("NaN equals itself and the sign of zero does not matter", "[value]") {
  CHECK(Value(std::nan("")) == Value(std::nan("")));
  CHECK(Value(0.0) == Value(-0.0));
  CHECK_FALSE(Value(1) == Value(1.0));
  CHECK_FALSE(Value(1) == Value(true));
}

}  // namespace
}  // namespace mica
