// See default.h.
#include "schema/default.h"

#include "tensor/error.h"

namespace mica::schema {
namespace {

DType DTypeOfNumber(const Argument& argument, int64_t number) {
  const std::optional<DType> dtype = DTypeFromTorchNumber(number);
  MICA_CHECK_VALUE(dtype, "Default (", number, ") of argument (", argument.name,
                   ") is the number of no dtype.");
  return *dtype;
}

int64_t IntOf(const Argument& argument, const Literal& literal) {
  if (literal.kind == Literal::Kind::kInt) return literal.i;
  if (literal.kind == Literal::Kind::kName && literal.text == "Mean") return 1;
  if (literal.kind == Literal::Kind::kName && literal.text == "Sum") return 2;
  MICA_THROW(kValue, "Default (", literal.ToString(), ") of argument (", argument.name, ") is no int.");
}

double DoubleOf(const Literal& literal) {
  return literal.kind == Literal::Kind::kFloat ? literal.f : static_cast<double>(literal.i);
}

Scalar ScalarOf(const Literal& literal) {
  if (literal.kind == Literal::Kind::kFloat) return Scalar(literal.f);
  if (literal.kind == Literal::Kind::kBool) return Scalar(literal.b);
  return Scalar(literal.i);
}

MemoryFormat MemoryFormatOf(const Argument& argument, const Literal& literal) {
  if (literal.text == "preserve_format") return MemoryFormat::kPreserve;
  if (literal.text == "channels_last") return MemoryFormat::kChannelsLast;
  if (literal.text == "channels_last_3d") return MemoryFormat::kChannelsLast3d;
  if (literal.kind == Literal::Kind::kName) return MemoryFormat::kContiguous;
  MICA_CHECK_VALUE(literal.i >= 0 && literal.i < kMemoryFormatCount, "Default (", literal.i,
                   ") of argument (", argument.name,
                   ") is the number of no memory format; 0, 1, 2 or 3 is expected.");
  return static_cast<MemoryFormat>(literal.i);
}

// A literal of a type that Value has no place for, such as `complex`.
[[noreturn]] void ThrowNoValue(const Argument& argument) {
  MICA_THROW(kNotImplemented, "Default (", argument.default_value->ToString(), ") of argument (",
             argument.name, ") has type (", argument.type.ToString(), "), which no Value holds.");
}

Value SingleOf(const Argument& argument, TypeKind kind, const Literal& literal) {
  switch (kind) {
    case TypeKind::kInt:
    case TypeKind::kSymInt:
      return Value(IntOf(argument, literal));
    case TypeKind::kFloat:
    case TypeKind::kSymFloat:
      return Value(DoubleOf(literal));
    case TypeKind::kBool:
    case TypeKind::kSymBool:
      return Value(literal.b);
    case TypeKind::kScalar:
    case TypeKind::kComplex:
      return Value(ScalarOf(literal));
    case TypeKind::kStr:
    case TypeKind::kDimname:
      return Value(literal.text);
    case TypeKind::kDevice:
      return Value(Device::Parse(literal.text));
    case TypeKind::kScalarType:
      if (literal.kind == Literal::Kind::kInt) return Value(DTypeOfNumber(argument, literal.i));
      return Value(DTypeFromName(literal.text).value());
    case TypeKind::kLayout:
      return Value(Layout::kStrided);
    case TypeKind::kMemoryFormat:
      return Value(MemoryFormatOf(argument, literal));
    default:
      ThrowNoValue(argument);
  }
}

template <typename T, typename F>
std::vector<T> MapItems(const std::vector<Literal>& items, F f) {
  std::vector<T> out;
  out.reserve(items.size());
  for (const Literal& item : items) out.push_back(f(item));
  return out;
}

Value ListOf(const Argument& argument, const Type& list, const std::vector<Literal>& items) {
  switch (list.elements[0].kind) {
    case TypeKind::kInt:
    case TypeKind::kSymInt:
      return Value(MapItems<int64_t>(items, [&](const Literal& l) { return IntOf(argument, l); }));
    case TypeKind::kFloat:
    case TypeKind::kSymFloat:
      return Value(MapItems<double>(items, DoubleOf));
    case TypeKind::kBool:
    case TypeKind::kSymBool:
      return Value::Bools(MapItems<uint8_t>(items, [](const Literal& l) { return uint8_t{l.b}; }));
    case TypeKind::kScalar:
      return Value(MapItems<Scalar>(items, ScalarOf));
    default:
      break;
  }
  if (items.empty() && list.is_tensor_list()) return Value(std::vector<Tensor>());
  ThrowNoValue(argument);
}

}  // namespace

Value Default(const Argument& argument) {
  MICA_CHECK_VALUE(argument.default_value, "Argument (", argument.name, ") has no default.");
  const Literal& literal = *argument.default_value;
  const Type& type = argument.type.unwrapped();
  if (literal.kind == Literal::Kind::kNone) return Value();
  if (!type.is(TypeKind::kList)) return SingleOf(argument, type.kind, literal);
  if (literal.kind == Literal::Kind::kList) return ListOf(argument, type, literal.items);
  return ListOf(argument, type, std::vector<Literal>(type.list_size, literal));
}

}  // namespace mica::schema
