// Printing, comparison, hash and queries of schemas. See schema.h.
#include "schema/schema.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "schema/lexer.h"

namespace mica::schema {
namespace {

// As torch prints a default: 17 significant digits, and a dot where nothing else
// says that it is a float. std::to_chars knows no locale.
std::string FloatText(double f) {
  if (std::isnan(f)) return "nan";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), f, std::chars_format::general, 17).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".ein") == std::string::npos) text += '.';
  return text;
}

// True where `a` and `b` share an alias set that is not the wildcard.
bool ShareNamedSet(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (const std::string& set : a)
    for (const std::string& other : b)
      if (set == other && set != "*") return true;
  return false;
}

}  // namespace

bool Literal::operator==(const Literal& o) const {
  if (kind != o.kind || b != o.b || i != o.i || text != o.text || items != o.items) return false;
  return std::bit_cast<uint64_t>(f) == std::bit_cast<uint64_t>(o.f) || (std::isnan(f) && std::isnan(o.f));
}

std::string Literal::ToString() const {
  switch (kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return b ? "True" : "False";
    case Kind::kInt:
      return absl::StrCat(i);
    case Kind::kFloat:
      return FloatText(f);
    case Kind::kStr:
      return internal::Quote(text);
    case Kind::kName:
      return text;
    case Kind::kList:
      break;
  }
  std::string list = "[";
  for (size_t n = 0; n < items.size(); ++n) absl::StrAppend(&list, n == 0 ? "" : ", ", items[n].ToString());
  return list + "]";
}

bool Argument::operator==(const Argument& o) const {
  return name == o.name && type == o.type && default_value == o.default_value && kwarg_only == o.kwarg_only;
}

std::string Argument::ToString() const {
  std::string text = absl::StrCat(type.ToString(), " ", name);
  if (default_value) absl::StrAppend(&text, "=", default_value->ToString());
  return text;
}

bool Return::operator==(const Return& o) const { return name == o.name && type == o.type; }

std::string Return::ToString() const { return absl::StrCat(type.ToString(), name.empty() ? "" : " ", name); }

std::string FunctionSchema::FullName() const {
  return absl::StrCat(ns, ns.empty() ? "" : "::", name, overload.empty() ? "" : ".", overload);
}

int FunctionSchema::NumPositional() const {
  int n = 0;
  for (const Argument& argument : arguments) n += !argument.kwarg_only;
  return n;
}

int FunctionSchema::FindArgument(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument) return static_cast<int>(i);
  return -1;
}

int FunctionSchema::ReturnsAliasOfArgument(int i) const {
  const Alias* result = returns[i].alias();
  if (!result) return -1;
  for (size_t n = 0; n < arguments.size(); ++n) {
    const Alias* argument = arguments[n].alias();
    if (argument && ShareNamedSet(result->before, argument->sets_after())) return static_cast<int>(n);
    if (argument && ShareNamedSet(result->before, argument->before)) return static_cast<int>(n);
  }
  return -1;
}

bool FunctionSchema::is_mutable() const {
  for (const Argument& argument : arguments)
    if (argument.is_mutable()) return true;
  return false;
}

bool FunctionSchema::is_view() const {
  if (is_mutable()) return false;
  for (size_t i = 0; i < returns.size(); ++i)
    if (ReturnsAliasOfArgument(static_cast<int>(i)) >= 0) return true;
  return false;
}

bool FunctionSchema::is_out() const {
  for (const Argument& argument : arguments)
    if (IsOut(argument)) return true;
  return false;
}

bool FunctionSchema::is_inplace() const {
  return absl::EndsWith(name, "_") && !absl::EndsWith(name, "__") && !arguments.empty() &&
         !arguments[0].kwarg_only && arguments[0].is_mutable();
}

bool IsOut(const Argument& argument) {
  return argument.kwarg_only && argument.is_mutable() &&
         (argument.type.is_tensor() || argument.type.is_tensor_list());
}

std::string ToString(const FunctionSchema& schema) {
  std::string text = schema.FullName() + "(";
  std::string_view separator = "";
  const auto add = [&](const std::string& item) {
    text += separator;
    text += item;
    separator = ", ";
  };
  bool kwarg_only = false;
  for (const Argument& argument : schema.arguments) {
    if (argument.kwarg_only && !kwarg_only) add("*");
    kwarg_only |= argument.kwarg_only;
    add(argument.ToString());
  }
  if (schema.is_vararg) add("...");
  text += ") -> ";
  if (schema.returns.empty() && schema.is_varret) return text + "...";
  // A single result stands bare unless it begins like a list of results.
  if (schema.returns.size() == 1 && !schema.is_varret) {
    const std::string only = schema.returns[0].ToString();
    return only[0] == '(' ? absl::StrCat(text, "(", only, ")") : text + only;
  }
  text += "(";
  separator = "";
  for (const Return& result : schema.returns) add(result.ToString());
  if (schema.is_varret) add("...");
  return text + ")";
}

uint64_t Hash(const FunctionSchema& schema) { return HashText(ToString(schema)); }

}  // namespace mica::schema
