// Formulas: the language of derivatives.yaml and of `body:`, checked against the
// operators that exist.
//
//   grad * conj(self) if is_complex(self) else grad * self
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

#include "mica/codegen/model.h"

namespace mica::codegen {

struct FormulaExpr {
  enum class Kind {
    kName,        // text: the name
    kLiteral,     // text: C++ text of its value
    kNone,        // an absent optional of `type`
    kCall,        // function: operands are all its arguments, in order
    kHelper,      // helper: the same
    kBuiltin,     // text: sizes ndim numel dtype device is_complex size itemsize; operands
    kMetadata,    // the same over a Tensor's name (operands[0]): only its metadata is needed
    kConvert,     // operands[0] to `type`
    kArithmetic,  // text: + - * / // % ** neg, on numbers; operands
    kCompare,     // text: == != < <= > >= ; on numbers, strings, dtypes
    kLogical,     // text: and or not; on bools
    kIsNone,      // operands[0] is None; text "is" or "is not"
    kIf,          // operands: condition, then, else
    kList,        // operands of one type; `type` is the list
    kTuple,       // operands: several results of a rule that names several inputs
    kElement,     // operands[0] (a tuple or a list) at number `index`
  };
  Kind kind = Kind::kNone;
  schema::Type type;  // of a tuple: TypeKind::kTuple
  std::string text;
  const Function* function = nullptr;
  const Helper* helper = nullptr;
  int index = 0;
  std::vector<FormulaExpr> operands;
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
};

FormulaTree ParseFormula(const PlacedText& text, const Model& model, const FormulaScope& scope);

struct EmitOptions {
  // C++ text of a name; `expr.type` is its schema type, and the text must convert
  // to CppParameterType(expr.type).
  std::function<std::string(const FormulaExpr& name)> name;
  // C++ text of a metadata built-in over a name: `sizes(self)`. NULL: computed
  // from the name's text.
  std::function<std::string(const FormulaExpr& builtin)> metadata;
};

// One C++ expression of the type that CppValueType(root.type) says. Operators are
// called as ::mica::ops::op::mul_Tensor::call(...), helpers as
// ::mica::autograd::helper(...).
std::string EmitFormula(const FormulaExpr& expr, const EmitOptions& options);

}  // namespace mica::codegen
