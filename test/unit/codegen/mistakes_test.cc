// Every kind of mistake in the two YAML files ends in one message with file,
// line, column, what is wrong and what was expected, the line and a caret.
#include <vector>

#include "test/unit/codegen/codegen_test.h"

namespace mica::codegen {
namespace {

struct Case {
  const char* name;
  const char* native;
  const char* derivatives;  // "" if none is read
  const char* message;      // the first line, or its beginning
};

// An entry that is right, for what follows it or is derived from it.
#define ADD                                                                      \
  "- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n" \
  "  class: pointwise\n"                                                         \
  "  compute: self + alpha * other\n"                                            \
  "  doc: Adds.\n"
#define MUL                                                   \
  "- func: mul.Tensor(Tensor self, Tensor other) -> Tensor\n" \
  "  class: pointwise\n"                                      \
  "  compute: self * other\n"                                 \
  "  doc: Multiplies.\n"
#define SUM                                                                   \
  "- func: sum.dim(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor\n" \
  "  class: reduction(dims=dim, keepdim=keepdim)\n"                           \
  "  reduce: {init: 0, combine: a + b}\n"                                     \
  "  doc: Sums.\n"
#define UNARY "- func: f(Tensor self, Scalar s, Scalar? o=None, bool flag=False) -> Tensor\n  doc: F.\n"

#define PAIR "- func: pair(Tensor self) -> (Tensor, Tensor)\n  class: custom\n  doc: Two.\n"

const std::vector<Case>& NativeCases() {
  static const std::vector<Case> cases = {
      {"not YAML", "- func: [\n", "", "native.yaml:"},
      {"a description of no argument", ADD "  arguments: {beta: What is scaled.}\n", "",
       "native.yaml:5:3: `arguments` describes beta, which add does not take; expected arguments of its "
       "schema."},
      {"descriptions that are a list", ADD "  arguments: [alpha]\n", "",
       "native.yaml:5:14: `arguments` is no mapping; expected `name: meaning` pairs."},
      {"an object in an operator of Mica's", "- func: f(Tensor self, acme.Scale s) -> Tensor\n  doc: F.\n",
       "", "native.yaml:1:9: Operator (f) of the namespace mica has an object among its types"},
      {"an earlier schema that is none", ADD "  earlier: [add.Tensor(Tensr self) -> Tensor]\n", "",
       "native.yaml:5:24: Type (Tensr) is unknown"},
      {"an earlier schema of another name", ADD "  earlier: [\"add(Tensor self, Tensor other) -> Tensor\"]\n",
       "", "native.yaml:5:14: The earlier schema of mica::add.Tensor has the name (add); expected the same."},
      {"an argument that is gone",
       ADD "  earlier: [\"add.Tensor(Tensor self, Tensor other, int n) -> Tensor\"]\n", "",
       "native.yaml:5:14: The earlier schema of mica::add.Tensor has the argument `n`, which is gone"},
      {"an argument that has moved", ADD "  earlier: [\"add.Tensor(Tensor other, Tensor self) -> Tensor\"]\n",
       "",
       "native.yaml:5:14: The earlier schema of mica::add.Tensor has the argument `self` in another place"},
      {"an argument of another type",
       ADD "  earlier: [\"add.Tensor(Tensor self, Scalar other) -> Tensor\"]\n", "",
       "native.yaml:5:14: The earlier schema of mica::add.Tensor has another type of `other`"},
      {"a new argument without default", MUL "  earlier: [\"mul.Tensor(Tensor self) -> Tensor\"]\n", "",
       "native.yaml:5:14: The earlier schema of mica::mul.Tensor lacks the argument `other`, which has no "
       "default"},
      {"an earlier schema that is the present one",
       MUL "  earlier: [\"mul.Tensor(Tensor self, Tensor other) -> Tensor\"]\n", "",
       "native.yaml:5:14: The earlier schema of mica::mul.Tensor is the present one"},
      {"an earlier schema with other results",
       MUL "  earlier: [\"mul.Tensor(Tensor self, Tensor other) -> (Tensor, Tensor)\"]\n", "",
       "native.yaml:5:14: The earlier schema of mica::mul.Tensor has other results"},
      {"no list", "func: f() -> Tensor\n", "", "native.yaml:1:1: File holds no list"},
      {"no mapping", "- just text\n", "", "native.yaml:1:3: An entry is no mapping; expected"},
      {"unknown key", UNARY "  clas: pointwise\n", "",
       "native.yaml:3:3: Key (clas) is unknown (did you mean `class`?); expected one of"},
      {"key twice", UNARY "  doc: G.\n", "", "native.yaml:3:3: Key (doc) stands twice; expected it once."},
      {"no func", "- class: pointwise\n  doc: F.\n", "", "native.yaml:1:3: Entry has no `func`; expected"},
      {"bad schema", "- func: f(Tensr self) -> Tensor\n  class: custom\n  doc: F.\n", "",
       "native.yaml:1:11: Type (Tensr) is unknown"},
      {"argument twice", "- func: f(Tensor a, Tensor a) -> Tensor\n  class: custom\n  doc: F.\n", "",
       "native.yaml:1:"},
      {"type without C++ form", "- func: f(Dict(str, int) a) -> Tensor\n  class: custom\n  doc: F.\n", "",
       "native.yaml:1:9: Type (Dict(str, int)) of argument `a` has no C++ form; expected Tensor, int"},
      {"result without C++ form", "- func: f(Tensor a) -> (Tensor, int)\n  class: custom\n  doc: F.\n", "",
       "native.yaml:1:9: Result type (int) has no C++ form; expected"},
      {"out schema",
       "- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  class: custom\n  doc: F.\n", "",
       "native.yaml:1:9: Schema of f is an out form; expected the functional form"},
      {"no class", UNARY "", "",
       "native.yaml:1:3: Entry of f has no `class`; expected one of custom, pointwise"},
      {"unknown class", UNARY "  class: pointwize\n", "",
       "native.yaml:3:10: Class (pointwize) is unknown (did you mean `pointwise`?); expected one of"},
      {"class argument unknown",
       SUM "- func: g(Tensor self, int dim) -> Tensor\n  class: scan(dimension=dim)\n  doc: G.\n", "",
       "native.yaml:6:25: Class scan has no argument (dimension)"},
      {"class names no argument",
       "- func: g(Tensor self, int dim) -> Tensor\n  class: scan(dim=dims)\n  doc: G.\n", "",
       "native.yaml:2:19: Name (dims) in `dim` of class scan is no argument of g (did you mean `dim`?); "
       "expected one of self and dim."},
      {"class without dim", "- func: g(Tensor self, int dim) -> Tensor\n  class: scan\n  doc: G.\n", "",
       "native.yaml:2:10: Class scan does not say along which dimension; expected `scan(dim=<argument>)`."},
      {"none is neither",
       "- func: g(Tensor self, int[]? dim) -> Tensor\n  class: reduction(dims=dim, none=some)\n  doc: G.\n",
       "", "native.yaml:2:35: Argument `none` of class reduction is (some); expected all or error."},
      {"no doc", "- func: g(Tensor self) -> Tensor\n  class: pointwise\n  compute: self\n", "",
       "native.yaml:1:3: Entry of g has no `doc`; expected at least one sentence."},
      {"no compute", UNARY "  class: pointwise\n", "",
       "native.yaml:3:3: Entry of f has no `compute`; expected the expression of an element, or `portable:`"},
      {"no reduce", "- func: g(Tensor self, int dim) -> Tensor\n  class: scan(dim=dim)\n  doc: G.\n", "",
       "native.yaml:2:3: Entry of g has no `reduce`; expected"},
      {"no meta", "- func: g(Tensor self) -> Tensor\n  class: core(1)\n  doc: G.\n", "",
       "native.yaml:2:3: Entry of g has no `meta`, and class core has no general one; expected `meta:`"},
      {"unknown form", UNARY "  class: pointwise\n  compute: self\n  forms: [functional, outplace]\n", "",
       "native.yaml:5:23: Form (outplace) is unknown; expected functional, inplace or out."},
      {"form twice", UNARY "  class: pointwise\n  compute: self\n  forms: [functional, out, out]\n", "",
       "native.yaml:5:28: Form (out) stands twice; expected it once."},
      {"no functional form", UNARY "  class: pointwise\n  compute: self\n  forms: [out]\n", "",
       "native.yaml:5:10: `forms` does not list functional; expected it"},
      {"forms of a view",
       "- func: t(Tensor(a) self) -> Tensor(a)\n  class: view\n  view: t\n  forms: [functional, inplace]\n  "
       "doc: T.\n",
       "", "native.yaml:4:23: View t has a form (inplace); expected functional alone"},
      {"form without tensor",
       "- func: g(Tensor self) -> int\n  class: custom\n  forms: [functional, out]\n  doc: G.\n", "",
       "native.yaml:3:23: Form (out) needs results that are tensors; expected functional alone."},
      {"in-place without Tensor",
       "- func: g(Scalar self, Tensor t) -> Tensor\n  class: pointwise\n  forms: [functional, inplace]\n  "
       "compute: self\n  doc: G.\n",
       "", "native.yaml:3:23: Form (inplace) of g needs one result and a Tensor as first argument"},
      {"forms of an in-place schema",
       "- func: g_(Tensor(a!) self) -> Tensor(a!)\n  class: custom\n  forms: [functional]\n  doc: G.\n", "",
       "native.yaml:3:3: `forms` stands beside the in-place schema of g_; expected none"},
      {"out_name without out", "- func: g(Tensor self) -> int\n  class: custom\n  out_name: o\n  doc: G.\n",
       "", "native.yaml:3:3: `out_name` stands where g has no out form; expected `out` in `forms`."},
      {"operator twice", ADD ADD, "",
       "native.yaml:5:3: Operator (mica::add.Tensor) stands twice, first at native.yaml:1:3; expected "
       "another overload name."},
      {"out name twice",
       ADD "- func: add.Other(Tensor self) -> Tensor\n  class: pointwise\n  compute: self\n  doc: A.\n", "",
       "native.yaml:5:3: Operator (mica::add.out) stands twice, first at native.yaml:1:3; expected another "
       "overload name or an `out_name`."},
      {"unknown dtype rule", UNARY "  class: pointwise\n  compute: self\n  dtype: promoted\n", "",
       "native.yaml:5:10: Dtype rule (promoted) is unknown; expected promote, float"},
      {"dtype argument", UNARY "  class: pointwise\n  compute: self\n  dtype: arg(dtype)\n", "",
       "native.yaml:5:14: Name (dtype) in `dtype` is no argument of f"},
      {"unknown kind", UNARY "  class: pointwise\n  compute: self\n  supports: [floats]\n", "",
       "native.yaml:5:14: Dtype kind (floats) is unknown; expected bool, int, float or complex."},
      {"no kind", UNARY "  class: pointwise\n  compute: self\n  supports: []\n", "",
       "native.yaml:5:13: `supports` is empty; expected at least one"},
      {"unknown variant", UNARY "  class: pointwise\n  compute: self\n  variants: functions\n", "",
       "native.yaml:5:13: Variant (functions) is unknown; expected function, method, inplace or numbers."},
      {"method without self",
       "- func: g(Scalar s) -> Tensor\n  class: factory\n  compute: s\n  variants: method\n  doc: G.\n", "",
       "native.yaml:4:13: Variant (method) of g needs a first argument `Tensor self`; expected function "
       "alone."},
      {"name twice", UNARY "  class: pointwise\n  compute: self\n  names: {python: [a, a]}\n", "",
       "native.yaml:5:23: Name (a) stands twice in `python`; expected it once."},
      {"name with a dash", UNARY "  class: pointwise\n  compute: self\n  names: {method: [a-b]}\n", "",
       "native.yaml:5:20: Name (a-b) is no Python identifier"},
      {"no C++ name", UNARY "  class: core(1)\n  meta: a-b\n", "",
       "native.yaml:4:9: Value of `meta` (a-b) is no C++ name; expected"},
      {"no bool", UNARY "  class: pointwise\n  compute: self\n  hot: maybe\n", "",
       "native.yaml:5:8: Value of `hot` is (maybe); expected true or false."},
      {"hot maths", UNARY "  class: pointwise\n  supports: [float]\n  compute: exp(self)\n  hot: true\n", "",
       "native.yaml:6:8: Operator f is hot and calls EXP; expected arithmetic, comparisons, `where`, sqrt "
       "and `i0` alone."},
      {"hot of another class", UNARY "  class: custom\n  meta: f\n  hot: true\n", "",
       "native.yaml:5:8: Operator f is hot; expected class pointwise or factory and"},
      {"autocast", UNARY "  class: pointwise\n  compute: self\n  autocast: half\n", "",
       "native.yaml:5:13: Autocast policy (half) is unknown; expected one of lower, float32"},
      {"autocast of one side", UNARY "  class: pointwise\n  compute: self\n  autocast: {cpu: half}\n", "",
       "native.yaml:5:19: Autocast policy (half) is unknown; expected one of lower, float32"},
      {"composite outside decompose", UNARY "  class: pointwise\n  compute: self\n  composite: f\n", "",
       "native.yaml:5:3: Key (composite) has no place in class pointwise; expected `class: decompose`."},
      {"decompose without body", UNARY "  class: decompose\n", "",
       "native.yaml:3:3: Composite f has neither `body` nor `composite`; expected one of the two."},
      {"decompose with both", UNARY "  class: decompose\n  body: self\n  composite: f\n", "",
       "native.yaml:3:3: Composite f has both `body` and `composite`; expected one of the two."},
      {"view without function", "- func: t(Tensor(a) self) -> Tensor(a)\n  class: view\n  doc: T.\n", "",
       "native.yaml:2:3: View t has no `view`; expected the name of a function of kernels/views/."},
      {"compute of a view",
       "- func: t(Tensor(a) self) -> Tensor(a)\n  class: view\n  view: t\n  compute: self\n  doc: T.\n", "",
       "native.yaml:4:3: Key (compute) has no place in class view; expected none"},
  };
  return cases;
}

const std::vector<Case>& ExpressionCases() {
#define COMPUTE(text) UNARY "  class: pointwise\n  compute: \"" text "\"\n"
  static const std::vector<Case> cases = {
      {"unknown function", COMPUTE("self + expp(self)"), "",
       "native.yaml:4:20: Function (expp) is unknown (did you mean `exp`?); expected a function of the "
       "compute language"},
      {"arity", COMPUTE("exp(self, s)"), "",
       "native.yaml:4:13: Function (exp) gets 2 arguments; expected 1."},
      {"cast arity", COMPUTE("float(self, s)"), "",
       "native.yaml:4:13: Cast (float) gets 2 arguments; expected 1."},
      {"unknown name", COMPUTE("self * sel"), "",
       "native.yaml:4:20: Name (sel) is unknown (did you mean `self`?); expected one of flag, o, s and "
       "self."},
      {"mask where a number belongs", COMPUTE("self + (self > s)"), "",
       "native.yaml:4:21: Operand of `+` is a mask; expected a number; write `float(...)` or `where(...)` "
       "around the mask."},
      {"number where a mask belongs", COMPUTE("where(self, s, self)"), "",
       "native.yaml:4:19: Operand of `where` is a number; expected a mask, such as a comparison or "
       "`bool(...)`."},
      {"not of a number", COMPUTE("not self"), "",
       "native.yaml:4:17: Operand of `not` is a number; expected a mask"},
      {"optional argument", COMPUTE("self * o"), "",
       "native.yaml:4:20: Argument (o) has type optional Scalar, which elements cannot read"},
      {"check without a sentence", COMPUTE("self") "  check: s > 0\n", "",
       "native.yaml:5:15: Found the end of the expression after the condition of a `check`; expected "
       "`else`."},
      {"check of no name", COMPUTE("self") "  check: t > 0 else \"No.\"\n", "",
       "native.yaml:5:10: Name (t) is unknown"},
      {"check of a composite", UNARY "  class: decompose\n  body: self\n  check: s > 0 else \"No.\"\n", "",
       "native.yaml:5:3: Key (check) of f has no meta function to stand before; expected a structured "
       "operator"},
      {"random outside class random", COMPUTE("self * u01()"), "",
       "native.yaml:4:20: Function (u01) draws random numbers; expected it in class `random` only."},
      {"keyword", COMPUTE("exp(x=self)"), "",
       "native.yaml:4:13: Function (exp) gets a keyword argument (x); expected positional ones."},
      {"conditional", COMPUTE("self if flag else s"), "",
       "native.yaml:4:18: `a if c else b` has no place in an element's expression; expected `where(c, a, "
       "b)`."},
      {"list", COMPUTE("[self]"), "", "native.yaml:4:13: A list, string, index or None has no place"},
      {"let again", COMPUTE("let s = self in s"), "",
       "native.yaml:4:13: `let` gives the name (s) again; expected a new name."},
      {"no end", COMPUTE("exp(self"), "",
       "native.yaml:4:21: Found the end of the expression in the arguments of `exp`; expected `)`."},
      {"two values", COMPUTE("self self"), "",
       "native.yaml:4:18: Expression ends before `self`; expected an operator or the end."},
      {"no value", COMPUTE("self + "), "",
       "native.yaml:4:20: Found the end of the expression where a value belongs"},
      {"chained comparison", COMPUTE("bool(0 < self < 1)"), "",
       "native.yaml:4:27: Comparison (<) follows a comparison; expected `and` between the two."},
      {"character", COMPUTE("self $ s"), "",
       "native.yaml:4:18: Character ($) has no meaning in an expression"},
      {"number with letters", COMPUTE("2x"), "",
       "native.yaml:4:14: Letter (x) follows a number; expected an operator."},
      {"large integer", COMPUTE("self + 99999999999999999999"), "",
       "native.yaml:4:20: Integer (99999999999999999999) does not fit 64 bits"},
      {"kind without meaning", COMPUTE("self < s") "  supports: [complex]\n", "",
       "native.yaml:4:18: Operation (<) has no meaning for complex dtypes; expected `supports:` without "
       "them"},
      {"fraction in integers", COMPUTE("self * 0.5") "  supports: [int]\n", "",
       "native.yaml:4:20: Number (0.5) has a fraction, which int dtypes do not hold; expected an integer, or "
       "`dtype: float`."},
      {"kind missing", UNARY "  class: pointwise\n  supports: [int, float]\n  compute: {float: self}\n", "",
       "native.yaml:5:12: `compute` has no expression for int dtypes; expected one, `default:`, or "
       "`supports:` without them."},
      {"unknown kind of compute", UNARY "  class: pointwise\n  compute: {floats: self}\n", "",
       "native.yaml:4:13: Key (floats) is unknown"},
      {"number of results", UNARY "  class: pointwise\n  compute: [self, self]\n", "",
       "native.yaml:4:12: `compute` has 2 expressions; expected 1, one a result of f."},
      {"reduce without init",
       "- func: g(Tensor self) -> Tensor\n  class: reduction(all)\n  reduce: {combine: a + b}\n  doc: G.\n",
       "", "native.yaml:3:11: `reduce` has no `init`; expected the first value of each state."},
      {"reduce without combine",
       "- func: g(Tensor self) -> Tensor\n  class: reduction(all)\n  reduce: {init: 0}\n  doc: G.\n", "",
       "native.yaml:3:11: `reduce` has no `combine`; expected how two parts become one"},
      {"states without names",
       "- func: g(Tensor self) -> Tensor\n  class: reduction(all)\n  reduce: {init: [0, 0], combine: [a, "
       "b]}\n  doc: G.\n",
       "", "native.yaml:3:18: `reduce` has 2 states without names; expected `state: [names]`."},
      {"too few steps",
       "- func: g(Tensor self) -> Tensor\n  class: reduction(all)\n  reduce: {state: [m, n], init: [0, 0], "
       "step: [x], combine: [m, n]}\n  doc: G.\n",
       "", "native.yaml:3:47: `step` has 1 expressions; expected 2, one a state."},
      {"states without finish",
       "- func: g(Tensor self) -> Tensor\n  class: reduction(all)\n  reduce: {state: [m, n], init: [0, 0], "
       "step: [x, x], combine: [m, n]}\n  doc: G.\n",
       "", "native.yaml:3:11: `reduce` has 2 states and no `finish`; expected `finish` with 1 expressions"},
      {"row without map",
       "- func: g(Tensor self, int dim) -> Tensor\n  class: row(dim=dim)\n  stages: []\n  doc: G.\n", "",
       "native.yaml:3:3: Row g has only one of `stages` and `map`; expected both."},
      {"stage without name",
       "- func: g(Tensor self, int dim) -> Tensor\n  class: row(dim=dim)\n  stages: [{reduce: {init: 0, "
       "combine: a + b}}]\n  map: x\n  doc: G.\n",
       "", "native.yaml:3:12: A stage lacks `reduce` or `name`; expected both."},
  };
  return cases;
}

const std::vector<Case>& DerivativeCases() {
#define D "derivatives:\n"
  static const std::vector<Case> cases = {
      {"unknown section", MUL, "derivative: []\n",
       "derivatives.yaml:1:1: Key (derivative) is unknown (did you mean `derivatives`?)"},
      {"no op", MUL, D "- self: grad\n", "derivatives.yaml:2:3: A derivative has no `op`; expected"},
      {"unknown op", MUL, D "- op: mull.Tensor\n  self: grad\n",
       "derivatives.yaml:2:7: Operator (mull.Tensor) is unknown (did you mean `mul.Tensor`?); expected the "
       "functional form"},
      {"out form", MUL, D "- op: mul.out\n  self: grad\n",
       "derivatives.yaml:2:7: Operator (mul.out) is no functional form; expected (mica::mul.Tensor)"},
      {"part of no view", MUL, D "- op: mul.Tensor\n  part: true\n  self: grad\n",
       "derivatives.yaml:3:9: Operator (mica::mul.Tensor) says `part: true` and makes no view; expected it "
       "of "
       "views of one part alone."},
      {"derivative twice", MUL, D "- op: mul.Tensor\n  self: grad\n- op: mul.Tensor\n  other: grad\n",
       "derivatives.yaml:4:3: Derivative of mica::mul.Tensor stands twice, first at derivatives.yaml:2:3; "
       "expected it once."},
      {"not differentiable", UNARY "  class: pointwise\n  compute: self\n  differentiable: false\n",
       D "- op: f\n  self: grad\n",
       "derivatives.yaml:2:3: Operator (mica::f) says `differentiable: false`; expected no derivative"},
      {"unknown input", MUL, D "- op: mul.Tensor\n  seld: grad\n",
       "derivatives.yaml:3:3: Name (seld) in a gradient's key is no argument of mul (did you mean `self`?); "
       "expected one of self and other."},
      {"input is no tensor", UNARY "  class: pointwise\n  compute: self\n", D "- op: f\n  s: grad\n",
       "derivatives.yaml:3:3: Argument (s) of f is a Scalar, which has no gradient; expected an argument "
       "that is a Tensor."},
      {"input twice", MUL, D "- op: mul.Tensor\n  self: grad\n  self, other: grad\n",
       "derivatives.yaml:4:3: Gradient of argument (self) of mul stands twice; expected it once."},
      {"no input", MUL, D "- op: mul.Tensor\n",
       "derivatives.yaml:2:3: Derivative of mica::mul.Tensor names no input; expected"},
      {"argument named grad",
       "- func: g(Tensor grad) -> Tensor\n  class: pointwise\n  compute: grad\n  doc: G.\n",
       D "- op: g\n  grad: grad\n",
       "derivatives.yaml:2:3: Operator (mica::g) has an argument named `grad`, which formulas know as "
       "something else"},
      {"unknown operator", MUL, D "- op: mul.Tensor\n  self: mull(grad, other)\n",
       "derivatives.yaml:3:9: Operator (mull) is unknown (did you mean `mul`?); expected an operator of "
       "native_functions.yaml, a helper or a built-in."},
      {"no overload", MUL, D "- op: mul.Tensor\n  self: mul(grad, \"x\")\n",
       "derivatives.yaml:3:9: No overload of mul takes (Tensor, str): mul.Tensor: its argument `other` is a "
       "Tensor, not a str; expected"},
      {"arity of a formula", MUL, D "- op: mul.Tensor\n  self: mul(grad)\n",
       "derivatives.yaml:3:9: No overload of mul takes (Tensor): mul.Tensor: it lacks the argument `other`; "
       "expected"},
      {"too many arguments", MUL, D "- op: mul.Tensor\n  self: mul(grad, other, self)\n",
       "derivatives.yaml:3:9: No overload of mul takes (Tensor, Tensor, Tensor): mul.Tensor: it takes at "
       "most 2 positional arguments"},
      {"unknown keyword", MUL, D "- op: mul.Tensor\n  self: mul(grad, othr=other)\n",
       "derivatives.yaml:3:9: No overload of mul takes (Tensor, Tensor): mul.Tensor: it has no argument "
       "`othr`"},
      {"unknown name in a formula", MUL, D "- op: mul.Tensor\n  self: grad * othr\n",
       "derivatives.yaml:3:16: Name (othr) is unknown (did you mean `other`?); expected one of grad, other, "
       "output_mask, result and self."},
      {"infix without operator", MUL, D "- op: mul.Tensor\n  self: grad / other\n",
       "derivatives.yaml:3:14: Operator `/` does not fit a Tensor and a Tensor (there is no such operator); "
       "expected"},
      {"wrong result", MUL, D "- op: mul.Tensor\n  self: sizes(grad)\n",
       "derivatives.yaml:3:9: Formula gives a int[]; expected a Tensor."},
      {"too few results", MUL, D "- op: mul.Tensor\n  self, other: grad\n",
       "derivatives.yaml:3:16: Formula gives a Tensor; expected 2 Tensors, one for each of the named "
       "inputs."},
      {"condition", MUL, D "- op: mul.Tensor\n  self: grad if other else self\n",
       "derivatives.yaml:3:17: Condition is a Tensor; expected a bool"},
      {"branches", MUL, D "- op: mul.Tensor\n  self: grad if is_complex(self) else sizes(self)\n",
       "derivatives.yaml:3:14: Branches of `if` are a Tensor and a int[]; expected one type."},
      {"built-in", MUL, D "- op: mul.Tensor\n  self: mul(grad, sizes(self, 0))\n",
       "derivatives.yaml:3:19: Built-in (sizes) gets 2 arguments; expected 1."},
      {"is None of a tensor", MUL, D "- op: mul.Tensor\n  self: grad if self is None else grad\n",
       "derivatives.yaml:3:22: Operands of `is` are a Tensor and a NoneType; expected an optional at the "
       "left of `is None`."},
      {"helper", MUL, "helpers:\n- helper(Tensr a) -> Tensor\nderivatives: []\n",
       "derivatives.yaml:2:3: Helper's schema is wrong: Type (Tensr) is unknown"},
      {"outputs", MUL, D "- op: mul.Tensor\n  output_differentiability: [True, False]\n  self: grad\n",
       "derivatives.yaml:3:29: `output_differentiability` has 2 values; expected 1, one a result of mul."},
      {"a gradient that may be undefined", MUL PAIR, D "- op: pair\n  self: mul(grad1, self)\n",
       "derivatives.yaml:3:13: Formula of pair reads (grad1), which is undefined where that result is not "
       "used; expected it in the place of a `Tensor?`, or a question `grad1 is None`."},
      {"check in a formula", MUL, D "- op: mul.Tensor\n  self: check 1 == 1 else 'No.' in grad\n",
       "derivatives.yaml:3:9: `check` has no place in a gradient; expected it in a `body`."},
      {"tangent without inputs", MUL, D "- op: mul.Tensor\n  self: zeros\n  tangent: self\n",
       "derivatives.yaml:4:12: Tangent of mul stands where all gradients are zero; expected none."},
      {"tangent of no input", MUL, D "- op: mul.Tensor\n  self: grad\n  tangent: mul(other_t, self)\n",
       "derivatives.yaml:4:16: Name (other_t) is unknown (did you mean `other`?); expected one of other, "
       "result, self and self_t."},
      {"term without tangent", ADD MUL,
       D "- op: mul.Tensor\n  self: grad\n  tangent: mul(self_t, other) + mul(self, other)\n",
       "derivatives.yaml:4:33: A term of the tangent of mul reads no tangent of an input; expected one of "
       "self_t in each."},
      {"tangent that is not read", MUL,
       D "- op: mul.Tensor\n  self: grad\n  other: grad\n  tangent: mul(self_t, other)\n",
       "derivatives.yaml:5:12: Tangent of mul does not read (other_t), though `other` has a gradient; "
       "expected "
       "it in a term, or `other: zeros`."},
      {"tangent of another type", MUL, D "- op: mul.Tensor\n  self: grad\n  tangent: sizes(self_t)\n",
       "derivatives.yaml:4:12: Formula gives a int[]; expected a Tensor."},
      {"parts of no composite", MUL, D "- op: mul.Tensor\n  self: grad\n  tangent: parts\n",
       "derivatives.yaml:4:12: Tangent of mul is (parts), but it is not composed of others; expected"},
      {"linear without functional form",
       "- func: g_(Tensor(a!) self) -> Tensor(a!)\n  class: custom\n  doc: G.\n",
       D "- op: g_\n  self: grad\n  tangent: linear\n",
       "derivatives.yaml:4:12: Tangent of g_ is (linear), which needs a functional form with one result that "
       "has a tangent; expected a formula."},
      {"argument named as a tangent",
       "- func: g(Tensor self, Tensor self_t) -> Tensor\n  class: pointwise\n  compute: self * self_t\n  "
       "doc: "
       "G.\n",
       D "- op: g\n  self: grad\n  tangent: self_t\n",
       "derivatives.yaml:2:3: Operator (mica::g) has an argument (self_t), which formulas know as the "
       "tangent "
       "of `self`; expected another name of the argument."},
      {"argument named tangent",
       "- func: g(Tensor tangent) -> Tensor\n  class: pointwise\n  compute: tangent\n  doc: G.\n",
       D "- op: g\n  tangent: grad\n",
       "derivatives.yaml:2:3: Operator (mica::g) has an argument named `tangent`, which formulas know as"},
      {"do in a formula", MUL, D "- op: mul.Tensor\n  self: do mul(grad, grad) in grad\n",
       "derivatives.yaml:3:9: `do` has no place in a gradient; expected it in a `body`."},
  };
  return cases;
}

void RunCases(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.name);
    std::string message;
    try {
      LoadTexts(c.native, c.derivatives);
    } catch (const std::exception& error) {
      message = error.what();
    }
    CHECK_THAT(message, Catch::Matchers::StartsWith(c.message));
    CHECK(message.find("xpected") != std::string::npos);
    // The line itself, and a caret below the column that the message names.
    const size_t line = message.find('\n');
    CHECK(line != std::string::npos);
    if (line == std::string::npos) continue;
    const size_t caret_line = message.find('\n', line + 1);
    CHECK(caret_line != std::string::npos);
    if (caret_line == std::string::npos) continue;
    const size_t colon = message.find(':', message.find(':') + 1);
    const size_t column = std::stoul(message.substr(colon + 1));
    CHECK(message.find('^', caret_line) - caret_line == column + 2);
  }
}

}  // namespace

TEST_CASE("mistakes in entries are told with place and expectation", "[codegen]") { RunCases(NativeCases()); }
TEST_CASE("mistakes in compute expressions point at the byte", "[codegen]") { RunCases(ExpressionCases()); }
TEST_CASE("mistakes in derivatives are told with place and expectation", "[codegen]") {
  RunCases(DerivativeCases());
}

TEST_CASE("the pieces of the mistakes' table are right themselves", "[codegen]") {
  CHECK(LoadTexts(ADD MUL SUM, D "- op: mul.Tensor\n  self: grad * other\n")->entries.size() == 3);
  CHECK(LoadTexts(MUL PAIR, D "- op: pair\n  self: self if grad1 is None else mul(grad1, self)\n")
            ->entries.size() == 2);
}

TEST_CASE("one run reports the mistakes of several entries", "[codegen]") {
  std::string message;
  try {
    LoadTexts(COMPUTE("expp(self)") "- func: g(Tensor self) -> Tensor\n  class: nothing\n  doc: G.\n");
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK_THAT(message,
             Catch::Matchers::Contains("Function (expp)") && Catch::Matchers::Contains("Class (nothing)"));
}

TEST_CASE("an expression over several lines keeps its places", "[codegen]") {
  MICA_REQUIRE_ERROR(LoadTexts(UNARY "  class: pointwise\n  compute: |\n    self +\n      bad\n"),
                     "native.yaml:6:7: Name (bad)");
  MICA_REQUIRE_ERROR(LoadTexts(UNARY "  class: pointwise\n  compute: self +\n    bad\n"),
                     "native.yaml:5:5: Name (bad)");
  MICA_REQUIRE_ERROR(LoadTexts(UNARY "  class: pointwise\n  compute: {float: 'self + bad'}\n"),
                     "native.yaml:4:28: Name (bad)");
}

}  // namespace mica::codegen
