// plugin/: a plugin's own operators, from its own YAML, for a build against the
// installed SDK alone.
//
//   operators.h, operators.cc  what the plugin's init calls: RegisterOperators
//   operators.py, operators.pyi  the operators as typed Python functions
// Shape functions (`shape:`), decompositions (`body:`) and gradients call Mica's
// operators through the host (sdk/include/mica/formula.h). Kernels are the plugin's
// own, registered boxed with mica::plugin::Registrar.
#include <algorithm>
#include <set>

#include "codegen/emit/autograd_plan.h"
#include "codegen/emit/emitters.h"
#include "codegen/emit/python.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using Kind = FormulaExpr::Kind;
using schema::TypeKind;

// The functions of the formula language that the SDK's headers have (mica/formula_lists.inc, mica/formula.h).
bool IsInSdk(const std::string& cpp_name) {
  static const std::set<std::string> names = {
      "Min",         "Max",      "Abs",      "Sqrt",   "IsInf",   "Log",     "Conj",
      "MakeComplex", "ToInt",    "ToFloat",  "ToBool", "Product", "Total",   "IsComplexNumber",
      "Offsets",     "Find",     "Contains", "Filled", "WrapDim", "AllNone", "IsDifferentiable",
      "Repeated",    "KeptSizes"};
  const std::string prefix = "::mica::formula::";
  return std::string_view(cpp_name).starts_with(prefix) && names.count(cpp_name.substr(prefix.size())) != 0;
}

class PluginEmitter {
 public:
  explicit PluginEmitter(Printer& p) : p_(p) {
    options_.name = [](const FormulaExpr& name) { return CppIdentifier(name.text); };
    options_.call = [](const FormulaExpr& call, const std::string& arguments) {
      return StrCat("op_", call.function->struct_name, "().Call<", call.function->return_type, ">(",
                    arguments, ")");
    };
  }

  // Accessors of the operators that these formulas call, each printed once.
  void EmitCalled(const FormulaExpr& e) {
    if (e.kind == Kind::kHelper && !IsInSdk(e.helper->cpp_name))
      throw Mistake(e.location, StrCat("Function (", e.helper->schema.name,
                                       ") is not in the SDK; expected operators and the functions of "
                                       "<mica/formula.h> in a plugin's formula."));
    if (e.kind == Kind::kCall && called_.insert(e.function->full_name).second) {
      for (const schema::Return& r : e.function->schema.returns)
        if ((r.type.is_list() && !r.type.is_tensor_list()) || !r.type.object_name().empty())
          throw Mistake(e.location,
                        StrCat("Operator (", e.function->full_name, ") gives a ", TypeText(r.type),
                               ", which the SDK's calls do not take; expected operators that "
                               "give Tensors, lists of them, or numbers."));
      for (const schema::Return& r : e.function->schema.returns)
        minor_ = std::max(minor_, int{r.type.is_tensor_list()});
      p_.Print({{"name", e.function->struct_name}, {"full", CppString(e.function->full_name)}},
               "const Operator& op_$name$() {\n  static const Operator op($full$);\n  return op;\n}");
    }
    for (const FormulaExpr& operand : e.operands) EmitCalled(operand);
  }

  void EmitArguments(const Function& f) {
    for (size_t i = 0; i < f.arguments.size(); ++i) {
      const schema::Argument& a = f.schema.arguments[i];
      p_.Print({{"constant", CppConstantType(a.type)},
                {"type", CppValueType(a.type)},
                {"name", f.arguments[i].name},
                {"i", StrCat(i)}},
               "[[maybe_unused]] $constant$ $name$ = Argument<$type$>(args_[$i$]);");
    }
  }

  // A boxed function that gives a formula's value: a shape function or a body.
  void EmitBoxed(const Function& f, const char* what, const FormulaTree& tree) {
    for (const schema::Return& r : f.schema.returns)
      if (!r.type.is(TypeKind::kTensor))
        throw Mistake(f.entry->location,
                      StrCat("Operator (", f.full_name, ") gives a ", TypeText(r.type),
                             ", which no formula of a plugin makes; expected Tensors, or kernels without a `",
                             what, "`."));
    EmitCalled(tree.root);
    p_.Print(
        {{"name", f.struct_name}, {"what", what}},
        "MicaStatus $name$_$what$(const MicaCall*, const MicaValue* args_, int64_t, MicaValue* results_, "
        "int64_t) {\n  return mica::plugin::CatchAll([&] {");
    p_.Indent();
    p_.Indent();
    EmitArguments(f);
    const std::string type = CppReturnType(f.schema);
    std::string statements = EmitStatements(tree.root, options_, true, 2);
    statements.pop_back();
    p_.Print({{"type", type}, {"statements", statements}},
             "$type$ value_ = [&]() -> $type$ {\n$statements$\n}();");
    const size_t count = f.schema.returns.size();
    for (size_t i = 0; i < count; ++i)
      p_.Print({{"i", StrCat(i)}, {"value", count == 1 ? "value_" : StrCat("std::get<", i, ">(value_)")}},
               "results_[$i$] = Tagged(MICA_VALUE_TENSOR);\nresults_[$i$].u.tensor = $value$.release();");
    p_.Outdent();
    p_.Outdent();
    p_.Line("  });\n}");
  }

  void EmitBackward(const Derivative& d);

  // The minor version of mica.operators that what was emitted needs.
  int minor() const { return minor_; }

 private:
  Printer& p_;
  EmitOptions options_;
  int minor_ = 0;
  std::set<std::string> called_;
};

bool GetsGradient(const Function& f, int argument) {
  for (const GradientRule& rule : f.entry->derivative->rules)
    if (rule.kind != GradientRule::Kind::kNone &&
        std::find(rule.inputs.begin(), rule.inputs.end(), argument) != rule.inputs.end())
      return true;
  return false;
}

// The place of an argument among `wanted_` and `gradients_`, where a list that gets gradients has many.
std::string EntryOf(const Function& f, int argument) {
  std::string at = StrCat(argument);
  for (int i = 0; i < argument; ++i)
    if (f.schema.arguments[i].type.is_list() && GetsGradient(f, i))
      at += StrCat(" - 1 + ", f.arguments[i].name, ".size()");
  return at == StrCat(argument) ? at : StrCat("(", at, ")");
}

// Whether the argument's gradient is wanted, or that of a tensor of it.
std::string WantedText(const Function& f, int argument) {
  const std::string at = EntryOf(f, argument);
  if (!f.schema.arguments[argument].type.is_list()) return StrCat("wanted_[", at, "]");
  return StrCat("AnyOf(wanted_ + ", at, ", ", f.arguments[argument].name, ".size())");
}

void PluginEmitter::EmitBackward(const Derivative& d) {
  const Function& f = d.entry->primary();
  for (const GradientRule& rule : d.rules)
    if (rule.formula) EmitCalled(rule.formula->root);
  p_.Print({{"name", f.struct_name}},
           "MicaStatus $name$_backward(void*, const MicaValue* args_, int64_t, [[maybe_unused]] MicaTensor* "
           "const* "
           "results_,\n    MicaTensor* const* grads_, int64_t, const uint8_t* wanted_, MicaTensor** "
           "gradients_) {\n"
           "  return mica::plugin::CatchAll([&] {");
  p_.Indent();
  p_.Indent();
  EmitArguments(f);
  const size_t count = f.schema.returns.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string number = count == 1 ? "" : StrCat(i);
    p_.Print({{"n", number}, {"i", StrCat(i)}},
             "[[maybe_unused]] const Tensor grad$n$ = Tensor::Borrow(grads_[$i$]);\n"
             "[[maybe_unused]] const Tensor result$n$ = Tensor::Borrow(results_[$i$]);");
  }
  size_t first = 0;
  while (first + 1 < count && !d.output_differentiability[first]) ++first;
  if (count > 1) p_.Print({{"i", StrCat(first)}}, "[[maybe_unused]] const Tensor& grad = grad$i$;");
  for (const GradientRule& rule : d.rules) {
    if (rule.kind != GradientRule::Kind::kFormula) continue;
    std::vector<std::string> wanted;
    for (const int i : rule.inputs) wanted.push_back(WantedText(f, i));
    p_.Print({{"wanted", Join(wanted, " || ")}}, "if ($wanted$) {");
    p_.Indent();
    if (rule.formula->names.count("output_mask"))
      p_.Print({{"wanted", Join(wanted, ", ")}, {"n", StrCat(wanted.size())}},
               "const uint8_t mask_[] = {$wanted$};\nconst BoolSpan output_mask(mask_, $n$);");
    p_.Print({{"value", EmitFormula(rule.formula->root, options_)}}, "auto value_ = $value$;");
    for (size_t k = 0; k < rule.inputs.size(); ++k)
      p_.Print({{"at", EntryOf(f, rule.inputs[k])},
                {"value", rule.inputs.size() == 1 ? "value_" : StrCat("std::get<", k, ">(value_)")},
                {"count", f.schema.arguments[rule.inputs[k]].type.is_tensor_list()
                              ? StrCat(f.arguments[rule.inputs[k]].name, ".size(), ")
                              : ""}},
               "GiveGradient($value$, $count$wanted_ + $at$, gradients_ + $at$);");
    p_.Outdent();
    p_.Line("}");
  }
  p_.Outdent();
  p_.Outdent();
  p_.Line("  });\n}");
}

std::string Bits(uint64_t bits) { return StrCat("UINT64_C(", bits, ")"); }

bool HoldsTensors(const schema::Type& type) { return type.is_tensor() || type.is_tensor_list(); }

// Which arguments get gradients, and which tensors the formulas read.
struct Kept {
  uint64_t differentiable = 0, differentiable_results = 0, arguments = 0, results = 0;
  explicit Kept(const Derivative* d) {
    if (!d) return;
    const Function& f = d->entry->primary();
    for (const schema::Return& r : f.schema.returns)
      if (!r.type.is(TypeKind::kTensor))
        throw Mistake(d->location, StrCat("Operator (", f.full_name, ") has a gradient and gives a ",
                                          TypeText(r.type), "; expected Tensors alone as its results."));
    for (size_t r = 0; r < d->output_differentiability.size(); ++r)
      differentiable_results |= uint64_t{d->output_differentiability[r]} << r;
    const auto read = [&](const std::string& name) {
      const int argument = f.schema.FindArgument(name), result = NumberedName(name, "result");
      if (argument >= 0 && HoldsTensors(f.schema.arguments[argument].type))
        arguments |= uint64_t{1} << argument;
      if (argument < 0 && result >= 0) results |= uint64_t{1} << result;
    };
    for (const GradientRule& rule : d->rules) {
      if (rule.kind == GradientRule::Kind::kNone) continue;
      for (const int i : rule.inputs) differentiable |= uint64_t{1} << i;
      if (!rule.formula) continue;
      for (const std::string& name : rule.formula->names) read(name);
      for (const auto& [name, builtins] : rule.formula->metadata) read(name);
    }
  }
};

// What a record says of the further forms, and of a class that runs from data; the programs' tables go to
// `tables`.
std::string ClassText(const Entry& e, Printer& tables) {
  const auto schema = [&](const Function* f) {
    return f ? CppString(StrCat(e.ns, "::", f->schema_text)) : std::string("nullptr");
  };
  if (!e.has_program())
    return StrCat("nullptr, nullptr, ", schema(e.functional ? e.inplace : nullptr), ", ", schema(e.out),
                  ", 0, 0, -1, -1, -1, 0, 0, 0");
  const std::string name = StrCat("programs_", e.primary().struct_name);
  const std::string programs = EmitPrograms(e, tables);
  tables.Print({{"name", name}, {"programs", programs}}, "const MicaProgram* const $name$[] = {$programs$};");
  return StrCat(CppString(Name(e.op_class)), ", ", name, ",\n    ", schema(e.inplace), ", ", schema(e.out),
                ",\n    ", static_cast<int>(e.dtype_rule), ", ", e.fixed_dtype, ", ", e.dtype_arg, ", ",
                e.dims_arg, ", ", e.keepdim_arg, ", ", e.none_is_all ? 1 : 0, ", ", e.supports, ", 0");
}

// The schemas that all forms had before; their table goes to `tables`.
std::string EarlierText(const Entry& e, Printer& tables) {
  std::vector<std::string> texts;
  for (const auto& f : e.functions)
    for (const Function::Earlier& earlier : f->earlier)
      texts.push_back(CppString(StrCat(e.ns, "::", earlier.schema_text)));
  if (texts.empty()) return "nullptr";
  const std::string name = StrCat("earlier_", e.primary().struct_name);
  tables.Print({{"name", name}, {"texts", Join(texts, ",\n    ")}},
               "const char* const $name$[] = {\n    $texts$, nullptr};");
  return name;
}

void EmitRecord(const Entry& e, Printer& tables, Printer& p) {
  const Function& f = e.primary();
  const Kept kept(e.derivative);
  const auto function = [&](bool has, const char* what) {
    return has ? StrCat("&", f.struct_name, "_", what) : std::string("nullptr");
  };
  const bool backward = e.derivative && kept.differentiable != 0;
  p.Print({{"schema", CppString(StrCat(e.ns, "::", f.schema_text))},
           {"doc", CppString(e.doc)},
           {"file", CppString(e.location.file->name)},
           {"line", StrCat(e.location.line)},
           {"autocast", CppString(e.autocast)},
           {"batch", CppString(e.batch_rule)},
           {"shape", function(!e.shape.text().empty(), "shape")},
           {"composite", function(!e.body.text().empty(), "body")},
           {"backward", function(backward, "backward")},
           {"differentiable", Bits(backward ? kept.differentiable : 0)},
           {"outputs", Bits(kept.differentiable_results)},
           {"args", Bits(kept.arguments)},
           {"results", Bits(kept.results)},
           {"class", ClassText(e, tables)},
           {"earlier", EarlierText(e, tables)}},
          "define({sizeof(MicaOperatorRecord), $schema$,\n    $doc$, $file$, $line$, $autocast$, $batch$,\n"
          "    $shape$, $composite$, $backward$, $differentiable$, $outputs$,\n    $args$, $results$, "
          "nullptr,\n    $class$, $earlier$});");
}

void CheckEntry(const Entry& e) {
  if (e.derivative && !e.derivative->tangent.text.text().empty())
    throw Mistake(e.derivative->tangent.text.At(0),
                  StrCat("Operator (", e.primary().full_name,
                         ") of a plugin has a `tangent`; expected its "
                         "gradients alone, from which the host makes its forward mode."));
  const bool decompose = e.op_class == OpClass::kDecompose && !e.body.text().empty();
  const bool from_data = e.generic_meta && e.has_program() && e.functional;
  const bool known = e.op_class == OpClass::kPointwise || e.op_class == OpClass::kReduction ||
                     e.op_class == OpClass::kScan || e.op_class == OpClass::kRow;
  if (decompose || (from_data && known)) return;
  if (e.op_class == OpClass::kCustom) {
    if (e.functional && e.inplace && !e.out)
      throw Mistake(e.location,
                    StrCat("Operator (", e.primary().full_name,
                           ") of a plugin has the form inplace and "
                           "not out; expected `forms: [functional, inplace, out]`, since the kernel of "
                           "the out form serves all."));
    return;
  }
  throw Mistake(e.location,
                StrCat("Operator (", e.primary().full_name, ") of a plugin has class ", Name(e.op_class),
                       "; expected pointwise, reduction, scan or row from data, custom with kernels of the "
                       "plugin's own, or decompose with a `body`."));
}

// The minor version of mica.operators that the record needs.
int NeededMinor(const Entry& e) {
  const bool has_forms = !e.has_program() && e.functional && e.functions.size() > 1;
  bool has_lists = false;
  for (size_t i = 0; e.derivative && i < e.primary().schema.arguments.size(); ++i)
    has_lists |=
        e.primary().schema.arguments[i].type.is_list() && GetsGradient(e.primary(), static_cast<int>(i));
  return has_forms || has_lists ? 1 : 0;
}

void EmitPython(const std::vector<const Entry*>& entries, const std::string& ns, OutputFolder& out) {
  Printer module, stub;
  module.Print({{"ns", ns}}, "\"\"\"The operators of $ns$. Made by mica-gen; changes here are lost.\"\"\"\n");
  module.Line("import mica\n");
  stub.Line(
      "from collections.abc import Sequence\n\nfrom mica import Generator, Tensor\nfrom mica import device "
      "as "
      "_device\nfrom mica import dtype as _dtype\n\nNumber = bool | int | float | complex\n_bool = "
      "bool\n_float = "
      "float\n_int = int\n_str = str\n");
  std::set<std::string> names;
  for (const Entry* e : entries) {
    const Function& f = e->primary();
    if (names.insert(f.schema.name).second)
      module.Print({{"name", f.schema.name}, {"ns", ns}}, "$name$ = mica.ops.$ns$.$name$");
    stub.Print({{"name", f.schema.name}, {"parameters", StubParameters(f)}, {"result", StubResult(f)}},
               "def $name$($parameters$) -> $result$: ...");
  }
  out.Write("plugin/operators.py", module.text());
  out.Write("plugin/operators.pyi", stub.text());
}

}  // namespace

void EmitPlugin(const Model& model, OutputFolder& out) {
  std::vector<const Entry*> entries;
  for (const auto& entry : model.entries)
    if (!entry->is_base) entries.push_back(entry.get());
  if (entries.empty()) return;
  const std::string ns = entries[0]->ns;
  Printer functions, records;
  int minor = 0;
  PluginEmitter emitter(functions);
  for (const Entry* e : entries) {
    CheckEntry(*e);
    if (e->ns != ns)
      throw Mistake(e->location, StrCat("Namespace (", e->ns, ") differs from (", ns,
                                        ") of the operators before; expected one namespace a file."));
    if (e->shape_formula) emitter.EmitBoxed(e->primary(), "shape", *e->shape_formula);
    if (e->formula) emitter.EmitBoxed(e->primary(), "body", *e->formula);
    if (e->derivative && Kept(e->derivative).differentiable != 0) emitter.EmitBackward(*e->derivative);
    EmitRecord(*e, functions, records);
    minor = std::max(minor, NeededMinor(*e));
  }
  const std::string banner = GeneratedBanner(StrCat("The operators of ", ns, "."));
  out.Write("plugin/operators.h",
            StrCat(banner, "#pragma once\n\n#include <mica/plugin.h>\n\nnamespace ", ns,
                   " {\n\n// Defines the operators; to be called by the plugin's init.\nvoid "
                   "RegisterOperators(const MicaRegistrar* registrar);\n\n}  // namespace ",
                   ns, "\n"));
  Printer source;
  source.Print(
      {{"ns", ns}},
      "#include \"operators.h\"\n\n#include <mica/formula.h>\n\nnamespace $ns$ {\nnamespace {\n\nusing "
      "namespace mica::formula;\n");
  source.Line(functions.text());
  source.Print(
      {{"minor", StrCat(std::max(minor, emitter.minor()))}},
      "}  // namespace\n\nvoid RegisterOperators(const MicaRegistrar* registrar) {\n  const auto* extension "
      "= "
      "static_cast<const MicaOperatorsExtension*>(\n      "
      "mica::plugin::Host()->extension(mica::plugin::Str(MICA_OPERATORS_EXTENSION), $minor$));\n  "
      "MICA_PLUGIN_CHECK(extension, MICA_ERROR_NOT_IMPLEMENTED, \"This Mica has no extension mica.operators; "
      "a "
      "later one is needed.\");\n  const auto define = [&](const MicaOperatorRecord& record) {\n    "
      "mica::plugin::Check(extension->define(registrar->context, &record));\n  };");
  source.Indent();
  source.Line(records.text());
  source.Outdent();
  source.Print({{"ns", ns}}, "}\n\n}  // namespace $ns$");
  out.Write("plugin/operators.cc", banner + source.text());
  EmitPython(entries, ns, out);
}

}  // namespace mica::codegen
