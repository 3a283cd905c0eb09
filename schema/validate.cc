// What an operator's schema must hold beyond the grammar. See schema.h.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "schema/schema.h"

namespace mica::schema {
namespace {

class Validator {
 public:
  Validator(const FunctionSchema& schema, const Source& source) : schema_(schema), source_(source) {}

  absl::Status Run() {
    CheckArguments();
    CheckReturns();
    CheckForm();
    return error_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(error_);
  }

 private:
  void CheckArguments() {
    absl::flat_hash_set<std::string> names;
    const Argument* defaulted = nullptr;
    for (const Argument& argument : schema_.arguments) {
      if (!names.insert(argument.name).second)
        Fail(argument.position, absl::StrCat("Argument name (", argument.name, ") stands twice."));
      if (argument.alias() && !argument.type.object_name().empty())
        Fail(argument.position,
             absl::StrCat("Argument (", argument.name,
                          ") is an object and has an alias annotation; an object is shared by all who hold "
                          "it, and annotations are for Tensors."));
      if (argument.kwarg_only) continue;
      if (argument.default_value)
        defaulted = &argument;
      else if (defaulted)
        Fail(argument.position,
             absl::StrCat("Positional argument (", argument.name, ") has no default but follows argument (",
                          defaulted->name, "), which has one."));
    }
  }

  void CheckReturns() {
    absl::flat_hash_set<std::string> known = {"*"};
    for (const Argument& argument : schema_.arguments) {
      if (const Alias* alias = argument.alias()) {
        known.insert(alias->before.begin(), alias->before.end());
        known.insert(alias->after.begin(), alias->after.end());
      }
    }
    absl::flat_hash_set<std::string> names;
    for (const Return& result : schema_.returns) {
      if (result.alias() && !result.type.object_name().empty())
        Fail(result.position, "The result is an object and has an alias annotation, which is for Tensors.");
      if (!result.name.empty() && !names.insert(result.name).second)
        Fail(result.position, absl::StrCat("Result name (", result.name, ") stands twice."));
      if (!result.alias()) continue;
      for (const std::string& set : result.alias()->before)
        if (!known.contains(set))
          Fail(result.position,
               absl::StrCat("The result is in alias set (", set, "), which no argument is in."));
    }
  }

  void CheckForm() {
    const bool named_inplace = absl::EndsWith(schema_.name, "_") && !absl::EndsWith(schema_.name, "__");
    if (named_inplace && !schema_.is_inplace())
      Fail(
          {},
          absl::StrCat(
              "Operator (", schema_.FullName(),
              ") is in-place by its name; its first argument is expected to be written: `Tensor(a!) self`."));
    const bool named_out = schema_.overload == "out" || absl::EndsWith(schema_.overload, "_out");
    if (named_out && !schema_.is_out())
      Fail({}, absl::StrCat("Operator (", schema_.FullName(),
                            ") is an out form by its name; a keyword-only `Tensor(a!) out` is expected."));
  }

  // The first mistake is the one that is told.
  void Fail(Position at, const std::string& message) {
    if (!error_.empty()) return;
    if (at.line == 0) at = {source_.line, source_.column};
    error_ = source_.file.empty()
                 ? absl::StrCat("line ", at.line, ", column ", at.column, ": ", message)
                 : absl::StrCat(std::string(source_.file), ":", at.line, ":", at.column, ": ", message);
    absl::StrAppend(&error_, "\n  ", ToString(schema_));
  }

  const FunctionSchema& schema_;
  const Source& source_;
  std::string error_;
};

}  // namespace

absl::Status Validate(const FunctionSchema& schema, const Source& source) {
  return Validator(schema, source).Run();
}

}  // namespace mica::schema
