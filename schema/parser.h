// The recursive-descent parser of schemas. Internal: use Parse and ParseType of
// schema.h.
//
// Every Read* returns false after the first error, which Fail keeps with its
// place; nothing is read after it. Types are in type_parser.cc, default literals
// in literal_parser.cc, the declaration in parser.cc.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "schema/lexer.h"
#include "schema/schema.h"

namespace mica::schema::internal {

class Parser {
 public:
  Parser(std::string_view text, const Source& source) : lexer_(text, source) {}

  bool ReadSchema(FunctionSchema* schema);
  bool ReadWholeType(Type* type) { return ReadType(type, 1) && ReadEnd(); }
  absl::Status status() const { return absl::InvalidArgumentError(error_); }

 private:
  // Declaration.
  bool ReadName(FunctionSchema* schema);
  bool ReadArguments(FunctionSchema* schema);
  bool ReadArgument(Argument* argument);
  bool ReadReturns(FunctionSchema* schema);
  bool ReadReturn(Return* result);
  bool ReadEnd();

  // Types. `depth` is that of the node to be read, 1 for the root.
  bool ReadType(Type* type, int depth);
  bool ReadBase(Type* type, int depth);
  bool ReadNamed(Type* type, int depth);
  bool ReadElements(Type* type, int depth, size_t min, size_t max);
  bool ReadSuffixes(Type* type, int depth, const Token& begin);
  bool ReadListSize(int32_t* size);
  bool ReadAlias(Type* type);
  bool ReadAliasSets(std::vector<std::string>* sets);
  bool FailUnknownType(const Token& token);

  // Defaults.
  bool ReadDefault(const Type& type, Literal* literal);
  bool ReadListDefault(const Type& list, Literal* literal);
  bool ReadSingle(const Type& type, Literal* literal);
  bool ReadNumber(TypeKind kind, Literal* literal);
  bool ReadNameLiteral(TypeKind kind, Literal* literal);

  // Tokens.
  const Token& peek() const { return lexer_.peek(); }
  bool Take(char symbol);
  bool Take(TokenKind kind);
  bool Expect(char symbol, std::string_view what);
  // `what` completes "... where <what> is expected".
  bool FailExpected(std::string_view what);
  bool Fail(const Token& token, std::string_view message);

  Lexer lexer_;
  std::string error_;
};

}  // namespace mica::schema::internal
