// Reads one schema a line from stdin and writes its canonical print a line, or
// "error: <message>" with its newlines as " | ". test/operators/test_schema_roundtrip_torch.py
// compares the answers with what torch prints.
//
// It also holds every schema to the second half of the contract, that the print
// parses to an equal schema; a line that fails this is an error.
#include <iostream>
#include <string>

#include "absl/strings/str_replace.h"
#include "schema/schema.h"

namespace {

std::string Answer(const std::string& line) {
  const auto schema = mica::schema::Parse(line);
  if (!schema.ok()) return "error: " + absl::StrReplaceAll(schema.status().message(), {{"\n", " | "}});
  const std::string text = mica::schema::ToString(*schema);
  const auto again = mica::schema::Parse(text);
  if (!again.ok() || !(*again == *schema)) return "error: the print (" + text + ") parses to another schema";
  return text;
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) std::cout << Answer(line) << '\n';
  return 0;
}
