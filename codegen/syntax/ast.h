// The syntax tree that both small languages share: `compute` expressions
// (expr/) and derivative formulas and `body:` (formula/).
//
// It is untyped. Each language walks it, refuses the node kinds that it does not
// have, and reports at `offset` of the text it came from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mica::codegen::syntax {

enum class NodeKind : uint8_t {
  kInt,    // i
  kFloat,  // f
  kBool,   // i
  kNone,
  kString,     // text
  kName,       // text; "a.m" stays one name
  kUnary,      // text: - + ~ not; children[0]
  kBinary,     // text: + - * / // % ** & | ^ << >> == != < <= > >= and or
  kCall,       // text: the callee's name; children: arguments; keywords: their names ("" if positional)
  kSubscript,  // children[0][children[1]]
  kSlice,      // children[0][children[1]:children[2]]; a bound that is not written is kNone
  kList,       // children
  kFor,        // [children[0] for text in children[1] if children[2]]; without `if` two children
  kIf,         // children[1] if children[0] else children[2]: children = {condition, then, else}
  kLet,        // let text = children[0] in children[1]
  kCheck,  // check children[0] else children[1] in children[2]; text: the kind, "" or "index" and its like
  kDo,     // do children[0] if children[2] in children[1]; without `if` two children
};

struct Node {
  NodeKind kind = NodeKind::kNone;
  size_t offset = 0;  // of the byte that stands for the node (an operator's sign)
  size_t begin = 0;   // of its first byte
  int64_t i = 0;
  double f = 0;
  std::string text;
  std::vector<Node> children;
  std::vector<std::string> keywords;
};

}  // namespace mica::codegen::syntax
