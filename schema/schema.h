// FunctionSchema: an operator's name, arguments and results, and the one parser
// that reads it, at build time (mica-gen) and at run time (registration).
//
//   mica::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
//
// Parse takes linear time, recurses at most kMaxTypeDepth deep, and answers any
// text with a schema or with a sentence that has line, column, what was found,
// what was expected, and the line with a caret. ToString prints torch's canonical
// form: Parse(ToString(s)) equals s. Comparison ignores positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schema/types.h"

namespace mica::schema {

// Where something stands in the text, counted from 1; (0, 0) where it was made
// by hand. Columns count characters.
struct Position {
  int line = 0;
  int column = 0;
};

// A default as it is written. Default() in default.h evaluates it.
struct Literal {
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kStr, kName, kList };
  Kind kind = Kind::kNone;
  bool b = false;
  int64_t i = 0;
  double f = 0;
  std::string text;            // kStr: the characters; kName: `contiguous_format`, `float`, `Mean`
  std::vector<Literal> items;  // kList; never lists again

  bool operator==(const Literal&) const;  // NaN equals NaN, -0. differs from 0.
  std::string ToString() const;           // "1.", "[0, 1]", "\"none\"", "None"
};

struct Argument {
  std::string name;
  Type type;
  std::optional<Literal> default_value;
  bool kwarg_only = false;
  Position position;  // of its type's first character

  bool operator==(const Argument&) const;
  const Alias* alias() const { return type.find_alias(); }
  bool is_mutable() const { return alias() && alias()->is_write; }
  // The n of `int[n]` and `int[n]?`, 0 if none.
  int32_t list_size() const { return type.unwrapped().list_size; }
  std::string ToString() const;  // "Scalar alpha=1"
};

struct Return {
  std::string name;  // often empty
  Type type;
  Position position;

  bool operator==(const Return&) const;
  const Alias* alias() const { return type.find_alias(); }
  std::string ToString() const;
};

struct FunctionSchema {
  std::string ns;        // "mica"; may be empty
  std::string name;      // "add"
  std::string overload;  // "Tensor"; may be empty
  std::vector<Argument> arguments;
  std::vector<Return> returns;
  bool is_vararg = false;  // `(...)`, after the named arguments
  bool is_varret = false;  // `-> ...`

  bool operator==(const FunctionSchema&) const = default;

  std::string FullName() const;                       // "mica::add.Tensor"
  int NumPositional() const;                          // arguments before `*`
  int FindArgument(std::string_view argument) const;  // index, -1 if there is none
  // The argument that result `i` aliases: the first that shares a named set with
  // it, wildcards aside; -1 if there is none.
  int ReturnsAliasOfArgument(int i) const;
  bool is_mutable() const;  // writes an argument
  bool is_view() const;     // a result aliases an argument, nothing is written
  bool is_out() const;      // has an out argument
  bool is_inplace() const;  // `add_`: writes its first argument, which is positional
};

inline bool IsMutable(const Argument& a) { return a.is_mutable(); }
// An out argument: keyword-only, Tensor or a list of them, written: `*, Tensor(a!) out`.
bool IsOut(const Argument& argument);

// Where `text` begins in its file, for messages.
struct Source {
  std::string_view file = {};  // empty: the message begins with "line 1, column 5"
  int line = 1;
  int column = 1;
};

// The schema that `text` says, all of it. The error (kInvalidArgument) reads
//   native_functions.yaml:12:18: Type (Tensr) is unknown; expected a type such as ...
//     add.Tensor(Tensr self) -> Tensor
//                ^
absl::StatusOr<FunctionSchema> Parse(std::string_view text, const Source& source = {});
// A type alone: "Tensor(a!)[]".
absl::StatusOr<Type> ParseType(std::string_view text, const Source& source = {});

// What the grammar allows and an operator does not: argument names that stand
// twice, a positional argument without default after one with, an in-place or out
// name whose alias annotations say otherwise. Torch registers some such schemas,
// so Parse accepts them.
absl::Status Validate(const FunctionSchema& schema, const Source& source = {});

// The canonical text, on one line.
std::string ToString(const FunctionSchema& schema);

// FNV-1a of 64 bits; the ABI's schema hash is that of the canonical text.
constexpr uint64_t HashText(std::string_view text) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * UINT64_C(0x100000001b3);
  return h;
}
uint64_t Hash(const FunctionSchema& schema);

}  // namespace mica::schema
