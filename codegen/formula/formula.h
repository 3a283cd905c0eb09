// Formulas: the language of derivatives.yaml and of `body:`, checked against the
// operators that exist.
//
//   grad * conj_physical(self) if is_complex(self) else grad * self
//   let n = size(self, dim) in
//   check n % 2 == 0 else "Size ({n}) of dimension ({dim}) is odd; expected two halves." in
//   narrow(self, dim, 0, n // 2) * sigmoid(narrow(self, dim, n // 2, n // 2))
//
// ParseFormula reads and type-checks one text in a scope of named values; what
// it returns is a tree of typed expressions in which every call is resolved to
// one operator form, one helper, or one built-in, with all arguments in place
// (defaults filled in, conversions made). EmitFormula prints it as one C++
// expression. A user of names (autograd: saved values) gives the C++ text of
// each name and of each metadata built-in through the callbacks of EmitOptions.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/model.h"

namespace mica::codegen {

struct FormulaExpr {
  enum class Kind {
    kName,      // text: the name
    kLocal,     // text: a name that `let` or `for` gave
    kLiteral,   // text: C++ text of its value
    kNone,      // an absent optional of `type`
    kCall,      // function: operands are all its arguments, in order
    kHelper,    // helper: the same; an operator, a definition or a function of the language
    kBuiltin,   // text: sizes ndim numel dtype device is_complex size itemsize; operands
    kMetadata,  // the same over a Tensor's name (operands[0]): only its metadata is needed; text "elements":
                // of a list of Tensors, what a kFor walks that reads nothing else of them
    kConvert,   // operands[0] to `type`
    kArithmetic,  // text: + - * / // % ** neg, on numbers; operands
    kCompare,     // text: == != < <= > >= ; on numbers, strings, dtypes
    kLogical,     // text: and or not; on bools
    kIsNone,      // operands[0] is None; text "is" or "is not"
    kIf,          // operands: condition, then, else
    kList,        // operands of one type; `type` is the list
    kTuple,       // operands: several results of a rule that names several inputs
    kElement,     // operands[0] at number `index` (a tuple) or operands[1] (a list; text "list")
    kSlice,       // operands: a list, begin, end (kNone where not written)
    kConcat,      // operands: two lists
    kFor,         // operands: item, list, condition (may lack); text: the item's name
    kRange,       // operands: begin, end, step; what a kFor may walk instead of a list
    kLet,         // operands: value, rest; text: the name
    kCheck,       // operands: condition, values of the message, rest; text: the macro; `pieces`
    kDo,          // operands: an operator's call, its condition (may lack), rest
  };
  Kind kind = Kind::kNone;
  schema::Type type;  // of a tuple: TypeKind::kTuple
  std::string text;
  const Function* function = nullptr;
  const Helper* helper = nullptr;
  int index = 0;
  std::vector<FormulaExpr> operands;
  std::vector<std::string> pieces;  // kCheck: the message around its values, one more than they
  Location location;
};

struct FormulaTree {
  FormulaExpr root;
  std::string source;
  std::set<std::string> names;                            // used as values: to be saved
  std::map<std::string, std::set<std::string>> metadata;  // name -> built-ins used on it alone
};

struct FormulaScope {
  std::map<std::string, schema::Type> names;
  // What the value must be: Tensor, or a tuple of `count` Tensors.
  schema::Type expected;
  // A `body:`, which may also check and do (call in-place operators).
  bool is_body = false;
  // The operator whose body it is. A call of it with its own arguments, which would
  // never end, means another overload: f.Scalar(self, other) as f(self, other).
  const schema::FunctionSchema* own = nullptr;
};

FormulaTree ParseFormula(const PlacedText& text, const Model& model, const FormulaScope& scope);
// Of `check:`, whose value is nothing.
FormulaTree ParseCheckFormula(const PlacedText& text, const Model& model, FormulaScope scope);

struct EmitOptions {
  // C++ text of a name; `expr.type` is its schema type, and the text must convert
  // to CppParameterType(expr.type).
  std::function<std::string(const FormulaExpr& name)> name;
  // C++ text of a metadata built-in over a name: `sizes(self)`. NULL: computed
  // from the name's text.
  std::function<std::string(const FormulaExpr& builtin)> metadata;
  // C++ text of an operator's call, given that of its arguments. NULL: the call of
  // libmica's C++ function.
  std::function<std::string(const FormulaExpr& call, const std::string& arguments)> call;
  // Statements in the place of `return value;`, given the value's text. NULL: that.
  std::function<std::string(const FormulaExpr& value, const std::string& text)> result;
};

// One C++ expression of the type that CppValueType(root.type) says. Operators are
// called as ::mica::ops::op::mul_Tensor::call(...), helpers as
// ::mica::composites::helper(...).
std::string EmitFormula(const FormulaExpr& expr, const EmitOptions& options);
// The statements of a function that returns the value (or, of an in-place
// operator, returns nothing): `let`, `check`, `do` and the last `if` become ones
// of C++, each line indented by `indent` blanks.
// The statement of a kCheck, without what comes after it.
std::string EmitCheck(const FormulaExpr& check, const EmitOptions& options);
// The text of a call's arguments.
std::string EmitArguments(const FormulaExpr& call, const EmitOptions& options);
std::string EmitStatements(const FormulaExpr& expr, const EmitOptions& options, bool returns, int indent);

}  // namespace mica::codegen
