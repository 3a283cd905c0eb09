// FormulaChecker: from a syntax tree to a typed FormulaExpr. Internal to
// ParseFormula; split in check.cc (names, infix), calls.cc, statements.cc (`let`,
// `for`, `check`, `do`) and convert.cc (conversions and overload resolution).
#pragma once

#include <optional>

#include "codegen/formula/formula.h"
#include "codegen/syntax/ast.h"

namespace mica::codegen {

// A value converted to a type, and how far that is: 0 is exact; the overload with
// the least sum wins, and the earlier one among equals.
struct Conversion {
  FormulaExpr expr;
  int cost = 0;
};
std::optional<Conversion> Convert(const FormulaExpr& expr, const schema::Type& target);

struct CallArgument {
  FormulaExpr expr;
  std::string keyword;  // "" if positional
};

// One callable, an operator's functional form or a helper.
struct Candidate {
  const schema::FunctionSchema* schema = nullptr;
  const Function* function = nullptr;
  const Helper* helper = nullptr;
};
// `expr` with all operands in place, and the cost; or why it does not fit.
std::optional<Conversion> TryCall(const Candidate& candidate, const std::vector<CallArgument>& arguments,
                                  std::string* why);

class FormulaChecker {
 public:
  FormulaChecker(const PlacedText& text, const Model& model, const FormulaScope& scope)
      : text_(text), model_(model), scope_(scope) {}
  FormulaExpr Check(const syntax::Node& node);
  // The whole formula, whose value must be an `expected`.
  FormulaExpr CheckRoot(const syntax::Node& node, const schema::Type& expected);

 private:
  FormulaExpr CheckName(const syntax::Node& node);
  FormulaExpr CheckUnary(const syntax::Node& node);
  FormulaExpr CheckBinary(const syntax::Node& node);
  FormulaExpr CheckTensorInfix(const syntax::Node& node, FormulaExpr a, FormulaExpr b);
  FormulaExpr CheckCall(const syntax::Node& node);
  FormulaExpr CheckOperatorCall(const syntax::Node& node, OpForm form);
  std::optional<FormulaExpr> CheckBuiltin(const syntax::Node& node);
  FormulaExpr CheckIf(const syntax::Node& node);
  FormulaExpr CheckSubscript(const syntax::Node& node);
  FormulaExpr CheckList(const syntax::Node& node);
  FormulaExpr CheckListInfix(const syntax::Node& node, FormulaExpr a, FormulaExpr b) const;
  FormulaExpr CheckSlice(const syntax::Node& node);
  FormulaExpr CheckFor(const syntax::Node& node);
  FormulaExpr CheckRange(const syntax::Node& node);
  FormulaExpr CheckBool(const syntax::Node& node, const char* what);
  // With `expected` as the root of the formula, whose value is what follows `in`.
  FormulaExpr CheckLet(const syntax::Node& node, const schema::Type* expected);
  FormulaExpr CheckCheck(const syntax::Node& node, const schema::Type* expected);
  FormulaExpr CheckDo(const syntax::Node& node, const schema::Type* expected);
  FormulaExpr CheckRest(const syntax::Node& node, const schema::Type* expected);
  FormulaExpr Fit(FormulaExpr value, const schema::Type& expected, const syntax::Node& node) const;
  void Declare(const syntax::Node& node, const schema::Type& type);
  std::vector<Candidate> CandidatesOf(std::string_view name, OpForm form = OpForm::kFunctional) const;
  std::optional<Conversion> Resolve(const std::vector<Candidate>& candidates,
                                    const std::vector<CallArgument>& arguments, std::string* why) const;
  bool HandsOnItsOwn(const std::vector<CallArgument>& arguments) const;
  std::vector<std::string> KnownFunctions() const;
  FormulaExpr Make(FormulaExpr::Kind kind, schema::Type type, std::string text, const syntax::Node& node,
                   std::vector<FormulaExpr> operands = {}) const;

  const PlacedText& text_;
  const Model& model_;
  const FormulaScope& scope_;
  std::map<std::string, schema::Type> locals_;  // what `let` and `for` have given so far
};

}  // namespace mica::codegen
