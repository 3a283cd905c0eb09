// From a syntax tree of the `compute` language to instructions: names, arity,
// lanes and masks are checked here.
//
// A number is a lane; a comparison, `and`, `or`, `not` and isnan() make a mask;
// `where`, `and`, `or`, `not` take masks. bool(x) and float(m), int(m) lead from
// one to the other; nothing converts silently, except that a mask may be stored.
#pragma once

#include <map>
#include <string>

#include "codegen/diagnostics.h"
#include "codegen/expr/builder.h"
#include "codegen/syntax/ast.h"

namespace mica::codegen {

// What is right in itself but has no meaning in this compute kind.
class KindMistake : public Mistake {
 public:
  using Mistake::Mistake;
};

struct Binding {
  enum class Kind : uint8_t { kTensor, kNumber, kFlag, kSource, kList, kRefused };
  Kind kind = Kind::kSource;
  int number = 0;         // argument number; aux of a source
  int opcode = 0;         // kSource, kList
  bool optional = false;  // kNumber: `given(name)` tells whether it is there
  std::string refusal;    // kRefused: the sentence
};

struct ComputeScope {
  std::map<std::string, Binding> names;
  bool allows_random = false;
};

class ExpressionCompiler {
 public:
  ExpressionCompiler(const PlacedText& text, const ComputeScope& scope, ProgramBuilder* builder)
      : text_(text), scope_(scope), builder_(builder) {}
  // Further names, for values that instructions have made already.
  void Bind(const std::map<std::string, Value>& values) { lets_ = values; }
  Value Compile(const syntax::Node& node);
  // Compiles and stores; a mask is stored as one.
  void CompileInto(const syntax::Node& node, int store_opcode, int aux);
  Location At(size_t offset) const { return text_.At(offset); }

 private:
  Value CompileName(const syntax::Node& node);
  Value CompileUnary(const syntax::Node& node);
  Value CompileBinary(const syntax::Node& node);
  Value CompileCall(const syntax::Node& node);
  Value CompileCast(const syntax::Node& node);
  Value CompileGiven(const syntax::Node& node);
  Value CompileLet(const syntax::Node& node);
  Value Apply(const syntax::Node& node, int opcode, std::vector<Value> operands);
  Value ToMask(const syntax::Node& node, const Value& value);
  void ExpectType(const syntax::Node& node, const Value& value, LaneType type, const std::string& what);

  const PlacedText& text_;
  const ComputeScope& scope_;
  ProgramBuilder* builder_;
  std::map<std::string, Value> lets_;
};

}  // namespace mica::codegen
