// FormulaChecker: from a syntax tree to a typed FormulaExpr. Internal to
// ParseFormula; split in check.cc (names, calls, infix) and convert.cc
// (conversions and overload resolution).
#pragma once

#include <optional>

#include "mica/codegen/formula/formula.h"
#include "mica/codegen/syntax/ast.h"

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

 private:
  FormulaExpr CheckName(const syntax::Node& node);
  FormulaExpr CheckUnary(const syntax::Node& node);
  FormulaExpr CheckBinary(const syntax::Node& node);
  FormulaExpr CheckTensorInfix(const syntax::Node& node, FormulaExpr a, FormulaExpr b);
  FormulaExpr CheckCall(const syntax::Node& node);
  std::optional<FormulaExpr> CheckBuiltin(const syntax::Node& node);
  FormulaExpr CheckIf(const syntax::Node& node);
  FormulaExpr CheckSubscript(const syntax::Node& node);
  FormulaExpr CheckList(const syntax::Node& node);
  std::vector<Candidate> CandidatesOf(std::string_view name) const;
  std::optional<Conversion> Resolve(const std::vector<Candidate>& candidates,
                                    const std::vector<CallArgument>& arguments, std::string* why) const;
  std::vector<std::string> KnownFunctions() const;
  FormulaExpr Make(FormulaExpr::Kind kind, schema::Type type, std::string text, const syntax::Node& node,
                   std::vector<FormulaExpr> operands = {}) const;

  const PlacedText& text_;
  const Model& model_;
  const FormulaScope& scope_;
};

}  // namespace mica::codegen
