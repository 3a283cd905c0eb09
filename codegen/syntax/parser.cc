// Recursive descent, one function a precedence level; the binary levels share
// a table.
#include "codegen/syntax/parser.h"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <span>

#include "codegen/syntax/lexer.h"
#include "codegen/text.h"

namespace mica::codegen::syntax {
namespace {

constexpr int kMaxDepth = 100;

// Binary operators from loosest to tightest, between `not` and unary.
using Level = std::initializer_list<std::string_view>;
const Level kLevels[] = {
    {"==", "!=", "<", "<=", ">", ">="}, {"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%"}};
constexpr int kLevelCount = 7;

class Parser {
 public:
  Parser(const PlacedText& text, size_t begin, size_t end) : lexer_(text, begin, end) {}

  Node ReadAll() { return AtEnd(ReadExpression()); }
  Node ReadCheckAlone() {
    Node rest;
    rest.kind = NodeKind::kInt;
    return AtEnd(ReadCheckBefore(0, "", [&] { return std::move(rest); }));
  }

 private:
  Node AtEnd(Node node) {
    if (lexer_.peek().kind != TokenKind::kEnd)
      lexer_.Fail(lexer_.peek().offset,
                  StrCat("Expression ends before ", lexer_.Found(), "; expected an operator or the end."));
    return node;
  }

  struct Depth {
    explicit Depth(Parser& p) : parser(p) {
      if (++p.depth_ > kMaxDepth)
        p.lexer_.Fail(p.lexer_.peek().offset,
                      StrCat("Expression nests deeper than ", kMaxDepth, " levels; expected a flatter one."));
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  static Node Make(NodeKind kind, size_t offset, std::string_view text, std::vector<Node> children) {
    Node node;
    node.kind = kind;
    node.offset = offset;
    node.begin = children.empty() ? offset : std::min(offset, children[0].begin);
    node.text = text;
    node.children = std::move(children);
    return node;
  }
  template <typename... N>
  static std::vector<Node> List(N&&... nodes) {
    std::vector<Node> list;
    (list.push_back(std::forward<N>(nodes)), ...);
    return list;
  }

  void Expect(std::string_view symbol, std::string_view where) {
    if (!lexer_.TakeSymbol(symbol))
      lexer_.Fail(lexer_.peek().offset,
                  StrCat("Found ", lexer_.Found(), " ", where, "; expected `", symbol, "`."));
  }

  Node ReadExpression() {
    Depth depth(*this);
    const size_t offset = lexer_.peek().offset;
    if (lexer_.TakeWord("let")) {
      const Token name = ReadName("after `let`");
      Expect("=", "after the name of a `let`");
      Node value = ReadExpression();
      ExpectIn(StrCat("the value of `", name.text, "`"));
      return Make(NodeKind::kLet, offset, name.text, List(std::move(value), ReadExpression()));
    }
    if (lexer_.TakeWord("do")) {
      std::vector<Node> parts = List(ReadPostfix());
      Node condition;
      const bool conditional = lexer_.TakeWord("if");
      if (conditional) condition = ReadOr();
      ExpectIn("the call of a `do`");
      parts.push_back(ReadExpression());
      if (conditional) parts.push_back(std::move(condition));
      return Make(NodeKind::kDo, offset, "do", std::move(parts));
    }
    for (const std::string_view word : {"check", "check.index", "check.value", "check.type",
                                        "check.implemented", "check.memory", "check.linalg"})
      if (lexer_.TakeWord(word)) return ReadCheck(offset, word.substr(std::min<size_t>(word.size(), 6)));
    Node value = ReadOr();
    const size_t at = lexer_.peek().offset;
    if (!lexer_.TakeWord("if")) return value;
    Node condition = ReadOr();
    if (!lexer_.TakeWord("else"))
      lexer_.Fail(lexer_.peek().offset,
                  StrCat("Found ", lexer_.Found(), " after a condition; expected `else`."));
    const size_t begin = value.begin;
    Node node = Make(NodeKind::kIf, at, "if", List(std::move(condition), std::move(value), ReadExpression()));
    node.begin = begin;
    return node;
  }

  Token ReadName(std::string_view where) {
    const Token name = lexer_.Next();
    if (name.kind != TokenKind::kName)
      lexer_.Fail(name.offset, StrCat("Found `", name.text, "` ", where, "; expected a name."));
    return name;
  }
  void ExpectIn(const std::string& after) {
    if (!lexer_.TakeWord("in"))
      lexer_.Fail(lexer_.peek().offset,
                  StrCat("Found ", lexer_.Found(), " after ", after, "; expected `in`."));
  }

  Node ReadCheck(size_t offset, std::string_view kind) {
    return ReadCheckBefore(offset, kind, [this] {
      ExpectIn("the message of a `check`");
      return ReadExpression();
    });
  }
  template <typename ReadRest>
  Node ReadCheckBefore(size_t offset, std::string_view kind, ReadRest&& read_rest) {
    Node condition = ReadOr();
    if (!lexer_.TakeWord("else"))
      lexer_.Fail(lexer_.peek().offset,
                  StrCat("Found ", lexer_.Found(), " after the condition of a `check`; expected `else`."));
    Node message = ReadPrimary();
    if (message.kind != NodeKind::kString)
      lexer_.Fail(message.begin, "The message of a `check` is no string; expected a sentence in quotes.");
    return Make(NodeKind::kCheck, offset, kind, List(std::move(condition), std::move(message), read_rest()));
  }

  Node ReadOr() {
    Node left = ReadAnd();
    for (size_t at = lexer_.peek().offset; lexer_.TakeWord("or"); at = lexer_.peek().offset)
      left = Make(NodeKind::kBinary, at, "or", List(std::move(left), ReadAnd()));
    return left;
  }
  Node ReadAnd() {
    Node left = ReadNot();
    for (size_t at = lexer_.peek().offset; lexer_.TakeWord("and"); at = lexer_.peek().offset)
      left = Make(NodeKind::kBinary, at, "and", List(std::move(left), ReadNot()));
    return left;
  }
  Node ReadNot() {
    Depth depth(*this);
    const size_t at = lexer_.peek().offset;
    if (lexer_.TakeWord("not")) return Make(NodeKind::kUnary, at, "not", List(ReadNot()));
    Node left = ReadBinary(0);
    const size_t is = lexer_.peek().offset;
    if (!lexer_.TakeWord("is")) return left;
    const bool negated = lexer_.TakeWord("not");
    return Make(NodeKind::kBinary, is, negated ? "is not" : "is", List(std::move(left), ReadBinary(0)));
  }

  Node ReadBinary(int level) {
    if (level == kLevelCount) return ReadUnary();
    Node left = ReadBinary(level + 1);
    for (bool first = true;; first = false) {
      const Token op = lexer_.peek();
      bool found = false;
      for (const std::string_view symbol : kLevels[level])
        found = found || (op.kind == TokenKind::kSymbol && op.text == symbol);
      if (!found) return left;
      if (level == 0 && !first)
        lexer_.Fail(op.offset, StrCat("Comparison (", op.text,
                                      ") follows a comparison; expected `and` between the two."));
      lexer_.Next();
      left = Make(NodeKind::kBinary, op.offset, op.text, List(std::move(left), ReadBinary(level + 1)));
    }
  }

  Node ReadUnary() {
    Depth depth(*this);
    const Token op = lexer_.peek();
    for (const std::string_view symbol : {"-", "+", "~"})
      if (lexer_.TakeSymbol(symbol)) return Make(NodeKind::kUnary, op.offset, symbol, List(ReadUnary()));
    Node base = ReadPostfix();
    const size_t at = lexer_.peek().offset;
    if (!lexer_.TakeSymbol("**")) return base;
    return Make(NodeKind::kBinary, at, "**", List(std::move(base), ReadUnary()));
  }

  Node ReadPostfix() {
    Node node = ReadPrimary();
    while (true) {
      const size_t at = lexer_.peek().offset;
      if (lexer_.TakeSymbol("[")) {
        node = ReadSubscript(at, std::move(node));
      } else if (node.kind == NodeKind::kName && lexer_.TakeSymbol("(")) {
        node = ReadCall(std::move(node));
      } else {
        return node;
      }
    }
  }

  // What follows `[`: an index, or a slice.
  Node ReadSubscript(size_t at, Node base) {
    const auto is_symbol = [&](std::string_view s) {
      return lexer_.peek().kind == TokenKind::kSymbol && lexer_.peek().text == s;
    };
    const auto none = [&] { return Make(NodeKind::kNone, lexer_.peek().offset, "None", {}); };
    Node begin = is_symbol(":") ? none() : ReadExpression();
    if (!lexer_.TakeSymbol(":")) {
      Expect("]", "after an index");
      return Make(NodeKind::kSubscript, at, "[]", List(std::move(base), std::move(begin)));
    }
    Node end = is_symbol("]") ? none() : ReadExpression();
    Expect("]", "after a slice");
    return Make(NodeKind::kSlice, at, "[:]", List(std::move(base), std::move(begin), std::move(end)));
  }

  // What follows `[`: items, or one item for each of another list.
  Node ReadList(size_t at) {
    Node list = Make(NodeKind::kList, at, "[]", {});
    if (lexer_.TakeSymbol("]")) return list;
    do list.children.push_back(ReadExpression());
    while (lexer_.TakeSymbol(","));
    if (list.children.size() == 1 && lexer_.TakeWord("for")) {
      list.kind = NodeKind::kFor;
      list.text = ReadName("after `for`").text;
      ExpectIn("the name of a `for`");
      list.children.push_back(ReadOr());
      if (lexer_.TakeWord("if")) list.children.push_back(ReadOr());
    }
    Expect("]", "in a list");
    return list;
  }

  Node ReadCall(Node callee) {
    Node call = Make(NodeKind::kCall, callee.offset, callee.text, {});
    if (lexer_.TakeSymbol(")")) return call;
    do {
      if (lexer_.peek().kind == TokenKind::kSymbol && lexer_.peek().text == ")" && !call.children.empty())
        break;
      Node value = ReadExpression();
      std::string keyword;
      const size_t at = lexer_.peek().offset;
      if (lexer_.TakeSymbol("=")) {
        if (value.kind != NodeKind::kName)
          lexer_.Fail(at, "Found `=` after a value; expected a keyword's name before it.");
        keyword = value.text;
        value = ReadExpression();
      } else if (!call.keywords.empty() && !call.keywords.back().empty()) {
        lexer_.Fail(value.begin, "A positional argument follows a keyword argument; expected `name=value`.");
      }
      call.children.push_back(std::move(value));
      call.keywords.push_back(std::move(keyword));
    } while (lexer_.TakeSymbol(","));
    Expect(")", StrCat("in the arguments of `", call.text, "`"));
    return call;
  }

  Node ReadPrimary() {
    const Token token = lexer_.peek();
    if (lexer_.TakeSymbol("(")) {
      Node node = ReadExpression();
      Expect(")", "after an expression in parentheses");
      return node;
    }
    if (lexer_.TakeSymbol("[")) return ReadList(token.offset);
    Node node = Make(NodeKind::kName, token.offset, token.text, {});
    switch (token.kind) {
      case TokenKind::kName:
        for (const std::string_view word :
             {"if", "else", "in", "and", "or", "not", "is", "let", "for", "do", "check"})
          if (token.text == word)
            lexer_.Fail(token.offset, StrCat("Found `", token.text,
                                             "` where a value belongs; expected a name, a number or `(`."));
        if (token.text == "None") node.kind = NodeKind::kNone;
        if (token.text == "True" || token.text == "true" || token.text == "False" || token.text == "false") {
          node.kind = NodeKind::kBool;
          node.i = token.text[0] == 'T' || token.text[0] == 't';
        }
        break;
      case TokenKind::kInt:
        node.kind = NodeKind::kInt;
        if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), node.i).ec !=
            std::errc())
          lexer_.Fail(token.offset, StrCat("Integer (", token.text,
                                           ") does not fit 64 bits; expected at most 9223372036854775807."));
        node.f = static_cast<double>(node.i);
        break;
      case TokenKind::kFloat: {
        node.kind = NodeKind::kFloat;
        char* end = nullptr;
        node.f = std::strtod(node.text.c_str(), &end);
        if (*end != '\0')
          lexer_.Fail(token.offset,
                      StrCat("Number (", token.text, ") is malformed; expected digits such as `1.5e-3`."));
        break;
      }
      case TokenKind::kString:
        node.kind = NodeKind::kString;
        break;
      default:
        lexer_.Fail(token.offset, StrCat("Found ", lexer_.Found(),
                                         " where a value belongs; expected a name, a number or `(`."));
    }
    lexer_.Next();
    return node;
  }

  Lexer lexer_;
  int depth_ = 0;
};

}  // namespace

Node Parse(const PlacedText& text) { return ParsePart(text, 0, text.text().size()); }
Node ParseCheck(const PlacedText& text) { return Parser(text, 0, text.text().size()).ReadCheckAlone(); }
Node ParsePart(const PlacedText& text, size_t begin, size_t end) {
  return Parser(text, begin, end).ReadAll();
}

}  // namespace mica::codegen::syntax
