// The model: every operator and gradient formula, read, completed and checked.
//
// load_native.cc and load_derivatives.cc build it, emit/ reads it, nothing
// changes it afterwards. An Entry is one item of native_functions.yaml; a
// Function is one of its forms (functional, in-place, out), and what the
// dispatcher calls an operator. Pointers into the model stay good as long as it
// lives. Entries stand in the file's order; so do the emitted texts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/diagnostics.h"
#include "codegen/program.h"
#include "schema/operator_class.h"
#include "schema/schema.h"

namespace mica::codegen {

struct Entry;
struct Derivative;

// An argument's C++ side. `type` is the parameter type of the generated function
// and of the operator's Signature ("const Tensor&", "std::optional<int64_t>").
struct CppArgument {
  std::string name;  // a valid C++ identifier; `name_` for keywords
  std::string type;
  std::string default_value;  // C++ text, "" if none
};

// One operator of the dispatcher: one form of an entry.
struct Function {
  const Entry* entry = nullptr;
  OpForm form = OpForm::kFunctional;
  schema::FunctionSchema schema;       // complete, namespace filled in
  std::string full_name;               // "mica::add.Tensor", "mica::add_.Tensor", "mica::add.out"
  std::string schema_text;             // canonical, without the namespace
  std::string struct_name;             // "add_Tensor", "add__Tensor", "add_out": mica::ops::op::<this>
  std::string cpp_name;                // "add", "add_", "add_out": the free function in mica::ops
  std::vector<CppArgument> arguments;  // in the schema's order, out arguments last
  std::string return_type;             // of Signature: "Tensor"; "void" for in-place and out
  std::string signature;               // "Tensor(const Tensor&, const Tensor&, const Scalar&)"
  uint64_t written_args = 0;           // bit i: argument i is `(a!)`
  struct Earlier {
    std::string schema_text, signature;
  };
  std::vector<Earlier> earlier;  // of schemas that this form had before
  // C++ parameter list with names, "const Tensor& self, ..."; with defaults if asked.
  std::string Parameters(bool with_defaults) const;
  std::string ArgumentNames() const;  // "self, other, alpha"
};

// `names:` of an entry.
struct Names {
  std::vector<std::string> python;             // further function names in `mica`
  std::vector<std::string> methods;            // further method names
  std::map<std::string, std::string> modules;  // "nn.functional" -> name there
};

struct Entry {
  Location location;                                 // of the item in the YAML file
  std::string func;                                  // the schema as written
  std::string ns;                                    // "mica", or a vendor's
  std::string base_name;                             // "add"; "copy_" where only the in-place form exists
  std::string overload;                              // of the functional form
  std::vector<std::unique_ptr<Function>> functions;  // in the order functional, in-place, out
  const Function* functional = nullptr;              // NULL where only the in-place form exists
  const Function* inplace = nullptr;
  const Function* out = nullptr;
  const Function& primary() const { return functional ? *functional : *inplace; }

  OpClass op_class = OpClass::kCustom;
  DTypeRule dtype_rule = DTypeRule::kSame;
  int fixed_dtype = -1;   // number of the DType, for kFixed
  int dtype_arg = -1;     // argument number, for kArgument
  uint16_t supports = 0;  // bit k: DTypeKind k
  std::string hint;
  std::string doc;
  std::map<std::string, std::string> arguments;  // what arguments mean, where their names do not tell
  std::string example;            // Python statements for the reference page; empty: made of sample inputs
  std::string autocast = "none";  // of accelerators, and of a plugin's operators everywhere
  std::string autocast_cpu = "none";
  std::string batch_rule;  // by hand: a function of the layer ("refused", "kernel"); a plugin's is kept
  bool is_base = false;    // of --base: Mica's own operators beside a plugin's
  bool hot = false;
  bool fills = false;  // an `out` of as many elements is filled in its own shape
  bool differentiable = true;
  bool structured = false;       // the backend's kernel is the out form
  bool python_function = false;  // variants
  bool python_method = false;
  bool python_inplace = false;  // the in-place form is a function too, though it takes more than the tensor
  bool python_numbers = false;  // a number may stand for the first tensor: add(2, x)
  std::string python_module;    // "" is `mica` itself; "nn.functional", "linalg", ...
  Names names;

  // Hand-written C++ functions of kernels/, "" if none: mica::meta::<meta>, ...
  std::string meta, portable, composite, view;
  bool generic_meta = false;  // `meta` names the class's own (mica::meta::GenericPointwise)
  PlacedText shape;           // a plugin's operator: its result on the meta device
  std::shared_ptr<const struct FormulaTree> shape_formula;  // of `shape`, checked
  // `check:`, what must hold of the arguments: `condition else "sentence"`; and the same, checked.
  std::vector<PlacedText> checks;
  std::vector<std::shared_ptr<const struct FormulaTree>> check_formulas;
  PlacedText body;                                    // class decompose: the formula; empty if in C++
  std::shared_ptr<const struct FormulaTree> formula;  // of `body`, checked

  // What the class's arguments say; argument numbers, -1 if none.
  int dims_arg = -1;
  int keepdim_arg = -1;
  bool reduce_all = false;  // reduction(all)
  bool none_is_all = true;
  bool trailing_dims = false;             // row(dims=normalized_shape)
  bool none_is_flat = false;              // gather(none=flat)
  int bounds = 0;                         // gather, scatter: MICA_BOUNDS_...
  std::optional<int> fixed_dim;           // gather(dim=0)
  int join = -1;                          // fold: MICA_JOIN_...
  std::string equation;                   // contraction("ij,jk->ik")
  std::vector<int> view_dim_args;         // view(dims=[dim0, dim1])
  std::map<std::string, int> class_args;  // window(kernel=...), by key
  std::string class_text;                 // "reduction(dims=dim, keepdim=keepdim)"

  // By DTypeKind (bool, unsigned, signed, floating, complex); NULL where none.
  // Kinds that share an expression share the program.
  std::shared_ptr<const Program> programs[5];
  bool has_program() const;

  const Derivative* derivative = nullptr;  // from derivatives.yaml, NULL if none
  int num_outputs() const;                 // Tensor results of the primary form
};

// One gradient rule: the listed inputs get `formula` (a tuple of as many values
// if there are several).
struct GradientRule {
  enum class Kind : uint8_t { kFormula, kNone, kZeros };
  Kind kind = Kind::kFormula;
  std::vector<int> inputs;  // argument numbers of the functional form
  PlacedText text;
  std::shared_ptr<const struct FormulaTree> formula;  // checked; formula/formula.h
};

// The forward-mode rule: how the results change with the inputs. Inputs with a
// gradient formula have tangents; those that say `zeros` do not count.
struct TangentRule {
  enum class Kind : uint8_t {
    kGeneric,      // no rule: the layer takes the vjp of the vjp
    kZero,         // nothing changes: all gradients are zero
    kPointwise,    // the gradient formulas themselves, one input after the other
    kReduction,    // the gradient formula of ones is what a result owes each element of its slice
    kLinear,       // the operator of all inputs' tangents
    kMultilinear,  // summed over the inputs: the operator with this one's tangent in its place
    kParts,        // the operators that it is composed of have tangents
    kFormula,      // `tangent:`
  };
  Kind kind = Kind::kGeneric;
  bool from_class = false;
  PlacedText text;                                    // of `tangent:`, empty if not given
  std::shared_ptr<const struct FormulaTree> formula;  // checked, for kFormula
};

struct Derivative {
  Location location;
  const Entry* entry = nullptr;
  std::vector<GradientRule> rules;
  std::vector<bool> output_differentiability;  // one per Tensor result
  std::string node;                            // what grad_fn shows; empty: by the operator's name
  bool keeps_saved = false;                    // what it saves stays after a backward
  bool is_part = false;                        // a view of one part: its gradient can be added there
  TangentRule tangent;
};

// What formulas call besides operators: a function of the language (formula/functions.h),
// or a definition of the YAML file, `- def: schema` with a `body:`, which becomes a C++
// function.
struct Helper {
  Location location;
  schema::FunctionSchema schema;
  std::string cpp_name;                               // "::mica::composites::reduce_loss"
  PlacedText body;                                    // of a definition
  std::shared_ptr<const struct FormulaTree> formula;  // of `body`, checked
};

struct Model {
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<std::unique_ptr<Helper>> helpers;  // of both files
  std::vector<std::unique_ptr<Derivative>> derivatives;
  std::map<std::string, std::string> arguments;  // what an argument of a name means, where no entry says it

  // By full name without namespace for `mica` ("add.Tensor"), with it for others.
  const Function* Find(std::string_view name) const;
  // All functions of one base name ("add", "add_"), in the file's order.
  std::vector<const Function*> Overloads(std::string_view base_name) const;
  std::vector<const Helper*> Helpers(std::string_view name) const;
  // All base names of functions, sorted.
  std::vector<std::string> BaseNames() const;

  std::unordered_map<std::string, const Function*> by_name;
  std::unordered_map<std::string, std::vector<const Function*>> by_base;
};

// Reads the files; throws Mistakes as one std::runtime_error whose text holds all
// of them. `derivatives` may be empty. `base` holds operators that a plugin's own
// formulas call, from which nothing is made; it may be NULL.
std::unique_ptr<const Model> LoadModel(std::shared_ptr<const SourceFile> native,
                                       std::shared_ptr<const SourceFile> derivatives,
                                       std::shared_ptr<const SourceFile> base = nullptr);

}  // namespace mica::codegen
