#include "dispatcher/tables/signature_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <mica/signature.h>

namespace mica {
namespace {

// The signature of the function that a schema asks for, as a record would say it.
std::string Expected(std::string_view schema) {
  std::string letters;
  plugin::SchemaItems items(plugin::ArgumentsOf(schema));
  while (!items.empty()) {
    const std::string_view item = items.Next();
    if (item != "*") letters += plugin::LetterOf(item);
  }
  const char result = plugin::ResultLetterOf(schema);
  return letters + (result == 'r' ? std::string("r>v") : std::string(">") + result);
}

const char* TypeOf(char letter) {
  static constexpr std::pair<char, const char*> kTypes[] = {
      {'t', "MicaTensor*"},   {'T', "MicaTensorSpan"}, {'i', "int64_t"},
      {'j', "MicaOptInt"},    {'f', "double"},         {'g', "MicaOptFloat"},
      {'b', "int32_t"},       {'s', "MicaScalar"},     {'I', "MicaIntSpan"},
      {'F', "MicaFloatSpan"}, {'B', "MicaBoolSpan"},   {'S', "MicaScalarSpan"},
      {'d', "MicaDevice"},    {'z', "MicaStr"},        {'G', "MicaGenerator*"},
      {'O', "MicaObject*"},   {'r', "MicaValue*"},     {'v', "void"}};
  for (const auto& [of, type] : kTypes)
    if (of == letter) return type;
  return "another type";
}

// "(MicaTensor*, MicaScalar) -> void"
std::string Shown(std::string_view signature) {
  const size_t arrow = signature.find('>');
  const std::string_view parameters = signature.substr(0, arrow);
  const char result = arrow + 1 < signature.size() ? signature[arrow + 1] : '?';
  const auto add = [](std::string* out, char letter) { out->append(TypeOf(letter)); };
  return absl::StrCat("(", absl::StrJoin(parameters, ", ", add), ") -> ", TypeOf(result));
}

}  // namespace

std::string SignatureMismatch(std::string_view signature, std::string_view schema, std::string_view behind) {
  const std::string expected = Expected(schema);
  if (signature == expected) return "";
  return absl::StrCat("is a function ", Shown(signature), " behind ", std::string(behind),
                      ", where the schema ", std::string(schema), " asks for ", Shown(expected), ".");
}

}  // namespace mica
