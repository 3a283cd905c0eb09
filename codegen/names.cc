// The table of schema types in C++, and C++ literals.
#include "codegen/names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "codegen/text.h"
#include "tensor/dtype.h"

namespace mica::codegen {
namespace {

using schema::Literal;
using schema::Type;
using schema::TypeKind;

constexpr std::array<std::string_view, 96> kKeywords = {
    "alignas",     "alignof",   "and",        "and_eq",    "asm",      "auto",         "bitand",
    "bitor",       "bool",      "break",      "case",      "catch",    "char",         "char8_t",
    "char16_t",    "char32_t",  "class",      "compl",     "concept",  "const",        "consteval",
    "constexpr",   "constinit", "const_cast", "continue",  "co_await", "co_return",    "co_yield",
    "decltype",    "default",   "delete",     "do",        "double",   "dynamic_cast", "else",
    "enum",        "explicit",  "export",     "extern",    "false",    "float",        "for",
    "friend",      "goto",      "if",         "inline",    "int",      "long",         "mutable",
    "namespace",   "new",       "noexcept",   "not",       "not_eq",   "nullptr",      "operator",
    "or",          "or_eq",     "private",    "protected", "public",   "register",     "reinterpret_cast",
    "requires",    "return",    "short",      "signed",    "sizeof",   "static",       "static_assert",
    "static_cast", "struct",    "switch",     "template",  "this",     "thread_local", "throw",
    "true",        "try",       "typedef",    "typeid",    "typename", "union",        "unsigned",
    "using",       "virtual",   "void",       "volatile",  "wchar_t",  "while",        "xor",
    "xor_eq",      "NAN",       "INFINITY",   "std",       "mica"};

// Spellings of one kind: as a parameter, optional, in a list (as a parameter),
// owned in a list.
struct Spelling {
  TypeKind kind;
  const char* parameter;
  const char* optional;
  const char* list;
  const char* value;       // owned
  const char* list_value;  // owned list
};
constexpr Spelling kSpellings[] = {
    {TypeKind::kTensor, "const Tensor&", "const Tensor&", "TensorSpan", "Tensor", "std::vector<Tensor>"},
    {TypeKind::kInt, "int64_t", "std::optional<int64_t>", "IntSpan", "int64_t", "Dims"},
    {TypeKind::kSymInt, "int64_t", "std::optional<int64_t>", "IntSpan", "int64_t", "Dims"},
    {TypeKind::kFloat, "double", "std::optional<double>", "FloatSpan", "double", "std::vector<double>"},
    {TypeKind::kBool, "bool", "std::optional<bool>", "BoolSpan", "bool", "std::vector<uint8_t>"},
    {TypeKind::kScalar, "const Scalar&", "const std::optional<Scalar>&", "ScalarSpan", "Scalar",
     "std::vector<Scalar>"},
    {TypeKind::kStr, "std::string_view", "std::optional<std::string_view>", "", "std::string", ""},
    {TypeKind::kScalarType, "DType", "std::optional<DType>", "", "DType", ""},
    {TypeKind::kLayout, "Layout", "std::optional<Layout>", "", "Layout", ""},
    {TypeKind::kMemoryFormat, "MemoryFormat", "std::optional<MemoryFormat>", "", "MemoryFormat", ""},
    {TypeKind::kDevice, "Device", "std::optional<Device>", "", "Device", ""},
    {TypeKind::kGenerator, "Generator*", "Generator*", "", "Generator*", ""},
    {TypeKind::kClass, "MicaObject*", "MicaObject*", "", "MicaObject*", ""},
};

const Spelling* Find(TypeKind kind) {
  for (const Spelling& s : kSpellings)
    if (s.kind == kind) return &s;
  return nullptr;
}

const Type& ElementOf(const Type& list) { return list.unwrapped().elements[0].unwrapped(); }

std::string LiteralText(const Type& type, const Literal& literal);

std::string ListText(const Type& type, const Literal& literal) {
  const Type& element = ElementOf(type);
  const std::string span = Find(element.kind) ? Find(element.kind)->list : "";
  // A list with a size takes one value for all: `int[2] stride=1` is [1, 1].
  const bool is_single = literal.kind != Literal::Kind::kList;
  const int count =
      is_single ? std::max(1, type.unwrapped().list_size) : static_cast<int>(literal.items.size());
  if (count == 0) return StrCat(span, "()");
  std::string text = StrCat(span, "({");
  for (int i = 0; i < count; ++i)
    StrAppend(&text, i ? ", " : "", LiteralText(element, is_single ? literal : literal.items[i]));
  return StrCat(text, "})");
}

std::string NameText(TypeKind kind, std::string_view name) {
  if (kind == TypeKind::kScalarType) return CppDType(name);
  if (kind == TypeKind::kLayout) return "Layout::kStrided";
  if (kind == TypeKind::kMemoryFormat) return CppMemoryFormat(name);
  // `int reduction=Mean`, as torch spells it.
  if (name == "Mean") return "1";
  return name == "Sum" ? "2" : "0";
}

// torch prints the defaults of enumerations as its own numbers.
std::string NumberText(TypeKind kind, int64_t number) {
  if (kind == TypeKind::kScalarType) {
    const std::optional<DType> dtype = DTypeFromTorchNumber(number);
    return dtype ? CppDType(Name(*dtype)) : "";
  }
  if (kind == TypeKind::kLayout) return "Layout::kStrided";
  return NameText(kind, number == 1   ? "preserve_format"
                        : number == 2 ? "channels_last"
                        : number == 3 ? "channels_last_3d"
                                      : "contiguous_format");
}

bool IsEnumeration(TypeKind kind) {
  return kind == TypeKind::kScalarType || kind == TypeKind::kLayout || kind == TypeKind::kMemoryFormat;
}

std::string LiteralText(const Type& type, const Literal& literal) {
  const TypeKind kind = type.unwrapped().kind;
  if (literal.kind == Literal::Kind::kNone) {
    if (kind == TypeKind::kTensor) return "Tensor()";
    return IsPointer(type) ? "nullptr" : "std::nullopt";
  }
  if (kind == TypeKind::kList) return ListText(type, literal);
  if (literal.kind == Literal::Kind::kInt && IsEnumeration(kind)) return NumberText(kind, literal.i);
  std::string text;
  switch (literal.kind) {
    case Literal::Kind::kBool:
      text = literal.b ? "true" : "false";
      break;
    case Literal::Kind::kInt:
      text = kind == TypeKind::kFloat ? CppDouble(static_cast<double>(literal.i)) : StrCat(literal.i);
      break;
    case Literal::Kind::kFloat:
      text = CppDouble(literal.f);
      break;
    case Literal::Kind::kStr:
      text = CppString(literal.text);
      break;
    case Literal::Kind::kName:
      text = NameText(kind, literal.text);
      break;
    default:
      break;
  }
  if (kind == TypeKind::kDevice) return StrCat("Device::Parse(", text, ")");
  return kind == TypeKind::kScalar ? StrCat("Scalar(", text, ")") : text;
}

}  // namespace

std::string CppIdentifier(std::string_view name) {
  const bool is_keyword = std::find(kKeywords.begin(), kKeywords.end(), name) != kKeywords.end();
  return StrCat(name, is_keyword ? "_" : "");
}

std::string CppParameterType(const Type& type) {
  if (type.is_list()) {
    const Spelling* s = Find(ElementOf(type).kind);
    if (!s || !*s->list) return "";
    return type.is_optional() ? StrCat("std::optional<", s->list, ">") : s->list;
  }
  const Spelling* s = Find(type.unwrapped().kind);
  if (!s) return "";
  return type.is_optional() ? s->optional : s->parameter;
}

bool IsPointer(const Type& type) {
  return type.unwrapped().is(TypeKind::kGenerator) || type.unwrapped().is(TypeKind::kClass);
}

std::string CppValueType(const Type& type) {
  if (type.is(TypeKind::kTuple)) {
    std::string text = "std::tuple<";
    for (size_t i = 0; i < type.elements.size(); ++i)
      StrAppend(&text, i ? ", " : "", CppValueType(type.elements[i]));
    return text + ">";
  }
  const Spelling* s = Find(type.is_list() ? ElementOf(type).kind : type.unwrapped().kind);
  if (!s) return "";
  const std::string value = type.is_list() ? s->list_value : s->value;
  const bool none_inside = !type.is_list() && (type.is_tensor() || IsPointer(type));
  return type.is_optional() && !none_inside ? StrCat("std::optional<", value, ">") : value;
}

std::string CppConstantType(const Type& type) {
  return IsPointer(type) ? StrCat(CppValueType(type), " const") : StrCat("const ", CppValueType(type));
}

std::string CppReturnType(const schema::FunctionSchema& schema) {
  if (schema.returns.empty()) return "void";
  if (schema.returns.size() == 1) return CppValueType(schema.returns[0].type);
  std::string text = "std::tuple<";
  for (size_t i = 0; i < schema.returns.size(); ++i)
    StrAppend(&text, i ? ", " : "", CppValueType(schema.returns[i].type));
  return text + ">";
}

std::string CppDefault(const schema::Argument& argument) {
  return argument.default_value ? LiteralText(argument.type, *argument.default_value) : "";
}

std::string CppMemoryFormat(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kFormats[] = {
      {"contiguous_format", "MemoryFormat::kContiguous"},
      {"preserve_format", "MemoryFormat::kPreserve"},
      {"channels_last", "MemoryFormat::kChannelsLast"},
      {"channels_last_3d", "MemoryFormat::kChannelsLast3d"}};
  for (const auto& [format, text] : kFormats)
    if (format == name) return text;
  return "";
}

std::string CppDType(std::string_view name) {
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype) return "";
  static constexpr const char* kEnumerators[] = {
#define X(type, enumerator, ...) #enumerator,
      MICA_FORALL_DTYPES(X)
#undef X
  };
  return StrCat("DType::", kEnumerators[static_cast<int>(*dtype)]);
}

std::string CppString(std::string_view text) {
  std::string out = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\%03o", c);
      out += escape;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

std::string CppDouble(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  char text[40];
  for (int precision = 1; precision <= 17; ++precision) {
    std::snprintf(text, sizeof text, "%.*g", precision, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  std::string out = text;
  if (out.find_first_of(".e") == std::string::npos) out += '.';
  return out;
}

std::string TypeText(const Type& type) { return type.ToString(/*with_alias=*/false); }

}  // namespace mica::codegen
