// libFuzzer target of the schema parser: whatever Parse accepts prints to a text
// that parses to an equal schema and prints the same; whatever it refuses has a
// place in its message; Validate and Hash take every accepted schema.
//
// `./dev test` runs it for a minute. By hand, with the preset that has MICA_FUZZ:
//   schema_fuzz -max_total_time=60 -max_len=512 -dict=test/fuzz/schema.dict corpus/
// A crash leaves its input in a file `crash-*`; give that file as the argument to
// see it again.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "schema/default.h"
#include "schema/schema.h"
#include "tensor/error.h"

namespace {

void Require(bool condition, const char* what, std::string_view text) {
  if (condition) return;
  std::fprintf(stderr, "%s: %.*s\n", what, static_cast<int>(text.size()), text.data());
  std::abort();
}

// Evaluating a default may fail (an unknown device), never crash.
void EvaluateDefaults(const mica::schema::FunctionSchema& schema) {
  for (const mica::schema::Argument& argument : schema.arguments) {
    if (!argument.default_value) continue;
    try {
      static_cast<void>(mica::schema::Default(argument).ToString());
    } catch (const mica::Error& error) {
      Require(error.kind() != mica::ErrorKind::kInternal, "internal error", error.message());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto schema = mica::schema::Parse(text);
  if (!schema.ok()) {
    Require(schema.status().message().find("column ") != absl::string_view::npos,
            "an error without its place", text);
    return 0;
  }
  const std::string printed = mica::schema::ToString(*schema);
  const auto again = mica::schema::Parse(printed);
  Require(again.ok(), "the print does not parse", printed);
  Require(*again == *schema, "the print parses to another schema", printed);
  Require(mica::schema::ToString(*again) == printed, "the print is not stable", printed);
  Require(mica::schema::Hash(*again) == mica::schema::Hash(*schema), "the hash is not stable", printed);
  for (size_t i = 0; i < schema->returns.size(); ++i)
    Require(schema->ReturnsAliasOfArgument(static_cast<int>(i)) < static_cast<int>(schema->arguments.size()),
            "an alias of no argument", printed);
  static_cast<void>(mica::schema::Validate(*schema));
  EvaluateDefaults(*schema);
  return 0;
}
