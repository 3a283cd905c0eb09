// The declaration: name, arguments, results. See parser.h.
#include "schema/parser.h"

#include <utility>

namespace mica::schema::internal {

bool Parser::Take(char symbol) {
  if (!peek().is(symbol)) return false;
  lexer_.Next();
  return true;
}

bool Parser::Take(TokenKind kind) {
  if (!peek().is(kind)) return false;
  lexer_.Next();
  return true;
}

bool Parser::Expect(char symbol, std::string_view what) { return Take(symbol) || FailExpected(what); }

bool Parser::FailExpected(std::string_view what) {
  const Token& token = peek();
  if (token.is(TokenKind::kError)) return Fail(token, token.text);
  const std::string expected(what);
  if (token.is(TokenKind::kEnd))
    return Fail(token, absl::StrCat("The schema ends where ", expected, " is expected."));
  return Fail(token, absl::StrCat("The schema has (", std::string(token.text.substr(0, 40)), ") where ",
                                  expected, " is expected."));
}

bool Parser::Fail(const Token& token, std::string_view message) {
  if (error_.empty()) error_ = lexer_.Describe(token, message);
  return false;
}

bool Parser::ReadSchema(FunctionSchema* schema) {
  return ReadName(schema) && ReadArguments(schema) && ReadReturns(schema) && ReadEnd();
}

bool Parser::ReadEnd() { return peek().is(TokenKind::kEnd) || FailExpected("the end of the schema"); }

bool Parser::ReadName(FunctionSchema* schema) {
  if (!peek().is(TokenKind::kIdentifier)) return FailExpected("the operator's name");
  schema->name = lexer_.Next().text;
  if (Take(TokenKind::kScope)) {
    if (!peek().is(TokenKind::kIdentifier)) return FailExpected("the operator's name after its namespace");
    schema->ns = std::exchange(schema->name, std::string(lexer_.Next().text));
  }
  if (Take('.')) {
    const Token token = peek();
    if (!Take(TokenKind::kIdentifier)) return FailExpected("the overload's name");
    schema->overload = token.text;
    if (schema->overload == "default")
      return Fail(token, "Overload name (default) stands for the overload without a name; leave it out.");
  }
  return true;
}

bool Parser::ReadArguments(FunctionSchema* schema) {
  if (!Expect('(', "`(` and the arguments")) return false;
  if (Take(')')) return true;
  bool kwarg_only = false;
  do {
    if (schema->is_vararg) return FailExpected("`)` (`...` stands last)");
    const Token token = peek();
    if (Take(TokenKind::kDots)) {
      schema->is_vararg = true;
    } else if (Take('*')) {
      if (kwarg_only)
        return Fail(token, "The arguments have a second `*`; one makes all that follow keyword-only.");
      kwarg_only = true;
      if (!peek().is(',')) return FailExpected("`,` and a keyword-only argument");
    } else {
      schema->arguments.emplace_back().kwarg_only = kwarg_only;
      if (!ReadArgument(&schema->arguments.back())) return false;
    }
  } while (Take(','));
  return Expect(')', "`,` or `)` after an argument");
}

bool Parser::ReadArgument(Argument* argument) {
  argument->position = peek().position;
  if (!ReadType(&argument->type, 1)) return false;
  if (!peek().is(TokenKind::kIdentifier)) return FailExpected("the argument's name");
  argument->name = lexer_.Next().text;
  if (!Take('=')) return true;
  return ReadDefault(argument->type, &argument->default_value.emplace());
}

bool Parser::ReadReturns(FunctionSchema* schema) {
  if (!Take(TokenKind::kArrow)) return FailExpected("`->` and the results");
  if (Take(TokenKind::kDots)) {
    schema->is_varret = true;
    return true;
  }
  if (!Take('(')) return ReadReturn(&schema->returns.emplace_back());
  if (Take(')')) return true;
  do {
    if (schema->is_varret) return FailExpected("`)` (`...` stands last)");
    if (Take(TokenKind::kDots)) {
      schema->is_varret = true;
    } else if (!ReadReturn(&schema->returns.emplace_back())) {
      return false;
    }
  } while (Take(','));
  return Expect(')', "`,` or `)` after a result");
}

bool Parser::ReadReturn(Return* result) {
  result->position = peek().position;
  if (!ReadType(&result->type, 1)) return false;
  if (peek().is(TokenKind::kIdentifier)) result->name = lexer_.Next().text;
  return true;
}

}  // namespace mica::schema::internal

namespace mica::schema {

absl::StatusOr<FunctionSchema> Parse(std::string_view text, const Source& source) {
  internal::Parser parser(text, source);
  FunctionSchema schema;
  if (!parser.ReadSchema(&schema)) return parser.status();
  return schema;
}

absl::StatusOr<Type> ParseType(std::string_view text, const Source& source) {
  internal::Parser parser(text, source);
  Type type;
  if (!parser.ReadWholeType(&type)) return parser.status();
  return type;
}

}  // namespace mica::schema
