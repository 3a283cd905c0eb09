// forward_<i>.cc: for each derivative with a forward-mode rule a function that
// computes the tangent, the kernels of the functional and in-place forms around it,
// and their registration for the frame kind "jvp".
//
// The texts lean on keys/autograd/forward.h, which shows what a kernel looks like, and
// forward_kernel.h. Views, operators composed of others and out forms get no kernel:
// the layer has one rule for all of each; nor do operators without a rule.
#include <algorithm>
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/emit/shard.h"
#include "codegen/formula/formula.h"
#include "codegen/names.h"
#include "codegen/tangents.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using Kind = TangentRule::Kind;

class ForwardEmitter {
 public:
  ForwardEmitter(const Derivative& d, Printer& p)
      : d_(d), f_(d.entry->primary()), inputs_(TangentInputs(d)), results_(TangentResults(d)), p_(p) {}

  // `Tangent_<name>`: the tangent of the result; of several, an array.
  void EmitTangent();
  void EmitFunctional();
  void EmitInplace(const Function& f);

 private:
  const schema::Type& TypeOf(int i) const { return f_.schema.arguments[static_cast<size_t>(i)].type; }
  const std::string& NameOf(int i) const { return f_.arguments[static_cast<size_t>(i)].name; }
  int count() const { return static_cast<int>(f_.arguments.size()); }
  bool ReadsResult() const;
  bool Reads(int input) const;
  bool HasTangent(int i) const { return std::find(inputs_.begin(), inputs_.end(), i) != inputs_.end(); }
  std::string ResultName(size_t i) const {
    return f_.schema.returns.size() == 1 ? "result" : StrCat("result", i);
  }
  std::string ValueText(int i, const std::string& suffix = "") const;
  std::string TangentText(int i, bool alone) const;
  std::string AnyOf(const std::vector<int>& inputs) const;
  std::string NameText(const FormulaExpr& e, bool alone) const;
  void EmitPointwiseTerm(const GradientRule& rule);
  void EmitReductionTerm();
  void EmitLinearTerm(const std::vector<int>& replaced);
  void EmitFormulaTerms(const FormulaExpr& root, const std::string& target);
  void EmitOpens(const Function& f);
  std::string Call(const Function& f) const;
  std::string TangentCall(const std::vector<std::string>& results, const std::string& self) const;

  const Derivative& d_;
  const Function& f_;
  const std::vector<int> inputs_;
  const std::vector<int> results_;
  Printer& p_;
};

// Calls as EmitFormula writes them, but for the conjugate of a real tensor, which costs
// nothing this way.
EmitOptions OptionsOf(std::function<std::string(const FormulaExpr&)> name) {
  EmitOptions options;
  options.name = std::move(name);
  options.call = [](const FormulaExpr& e, const std::string& arguments) {
    if (e.function->full_name == "mica::conj_physical") return StrCat("Conj(", arguments, ")");
    return StrCat("::", e.function->entry->ns, "::ops::op::", e.function->struct_name, "::call(", arguments,
                  ")");
  };
  return options;
}

bool ForwardEmitter::Reads(int input) const {
  const std::string& name = f_.schema.arguments[static_cast<size_t>(input)].name;
  switch (d_.tangent.kind) {
    case Kind::kPointwise:
    case Kind::kReduction:
      for (const GradientRule& rule : d_.rules)
        if (rule.formula && rule.formula->names.count(name)) return true;
      return false;
    case Kind::kFormula:
      return d_.tangent.formula->names.count(name) != 0;
    case Kind::kMultilinear:
      return true;
    default:
      return !HasTangent(input);
  }
}

bool ForwardEmitter::ReadsResult() const {
  const auto reads = [](const FormulaTree& tree) {
    for (const std::string& name : tree.names)
      if (name.starts_with("result")) return true;
    for (const auto& [name, builtins] : tree.metadata)
      if (name.starts_with("result")) return true;
    return false;
  };
  if (d_.tangent.formula) return reads(*d_.tangent.formula);
  if (d_.tangent.kind == Kind::kReduction) return true;
  if (d_.tangent.kind != Kind::kPointwise) return false;
  for (const GradientRule& rule : d_.rules)
    if (rule.formula && reads(*rule.formula)) return true;
  return false;
}

// An argument's value within a tangent function, where tensors are duals.
std::string ForwardEmitter::ValueText(int i, const std::string& suffix) const {
  const std::string name = NameOf(i) + suffix;
  if (TypeOf(i).is_tensor_list()) return StrCat("Values(", name, ")");
  return TypeOf(i).is_tensor() ? StrCat(name, ".value") : NameOf(i);
}

// `alone`: the term is computed only where this tangent is not zero.
std::string ForwardEmitter::TangentText(int i, bool alone) const {
  if (TypeOf(i).is_tensor_list()) return StrCat("Tangents(", NameOf(i), ")");
  return alone ? StrCat(NameOf(i), ".tangent") : StrCat("TangentOrZeros(", NameOf(i), ")");
}

std::string ForwardEmitter::AnyOf(const std::vector<int>& inputs) const {
  std::vector<std::string> parts;
  for (const int i : inputs) parts.push_back(StrCat("HasTangent(", NameOf(i), ")"));
  return Join(parts, " || ");
}

std::string ForwardEmitter::NameText(const FormulaExpr& e, bool alone) const {
  for (const int i : inputs_)
    if (e.text == TangentName(f_.schema.arguments[static_cast<size_t>(i)].name)) return TangentText(i, alone);
  const int argument = f_.schema.FindArgument(e.text);
  return argument < 0 ? e.text : ValueText(argument);
}

// A diagonal Jacobian J: the gradient is conj(J) grad, so the tangent J t is the
// conjugate of the formula of conj(t).
void ForwardEmitter::EmitPointwiseTerm(const GradientRule& rule) {
  if (rule.kind != GradientRule::Kind::kFormula) return;
  const std::string& name = NameOf(rule.inputs[0]);
  const bool is_complex = d_.entry->programs[4] != nullptr;
  const EmitOptions options = OptionsOf([&](const FormulaExpr& e) {
    if (e.text != "grad") return NameText(e, true);
    return is_complex ? std::string("grad") : StrCat(name, ".tangent");
  });
  p_.Print({{"name", name}}, "if (HasTangent($name$)) {");
  p_.Indent();
  if (is_complex) p_.Print({{"name", name}}, "const Tensor grad = Conj($name$.tangent);");
  const std::string value = EmitFormula(rule.formula->root, options);
  p_.Print({{"value", is_complex ? StrCat("Conj(", value, ")") : value}}, "Add(tangent, $value$);");
  p_.Outdent();
  p_.Line("}");
}

// A result depends on its slice alone: the gradient of ones says by how much on each
// element.
void ForwardEmitter::EmitReductionTerm() {
  const auto rule =
      std::find_if(d_.rules.begin(), d_.rules.end(), [](const GradientRule& r) { return r.formula; });
  const EmitOptions options =
      OptionsOf([&](const FormulaExpr& e) { return e.text == "grad" ? "grad" : NameText(e, true); });
  const Entry& e = *d_.entry;
  const std::string dims = e.dims_arg < 0                 ? "std::nullopt"
                           : TypeOf(e.dims_arg).is_list() ? NameOf(e.dims_arg)
                                                          : StrCat("IntSpan({", NameOf(e.dims_arg), "})");
  const std::string keepdim = e.keepdim_arg < 0 ? "false" : NameOf(e.keepdim_arg);
  p_.Print({{"input", NameOf(rule->inputs[0])}}, "if (HasTangent($input$)) {");
  p_.Indent();
  p_.Print({{"value", EmitFormula(rule->formula->root, options)},
            {"input", NameOf(rule->inputs[0])},
            {"dims", dims},
            {"keepdim", keepdim}},
           "const Tensor grad = ops::OnesLike(result);\n"
           "Add(tangent, WeighedSum($value$, $input$.tangent, $dims$, $keepdim$));");
  p_.Outdent();
  p_.Line("}");
}

// The operator itself, with the tangents of some inputs in their places.
void ForwardEmitter::EmitLinearTerm(const std::vector<int>& replaced) {
  std::vector<std::string> arguments;
  for (int i = 0; i < count(); ++i) {
    const bool is_replaced = std::find(replaced.begin(), replaced.end(), i) != replaced.end();
    arguments.push_back(is_replaced ? TangentText(i, replaced.size() == 1) : ValueText(i));
  }
  std::string call = StrCat("::", d_.entry->ns, "::ops::op::", d_.entry->functional->struct_name, "::call(",
                            Join(arguments, ", "), ")");
  if (f_.schema.returns.size() > 1) call = StrCat("std::get<", results_[0], ">(", call, ")");
  p_.Print({{"any", AnyOf(replaced)}, {"call", call}}, "if ($any$) Add(tangent, $call$);");
}

void ForwardEmitter::EmitFormulaTerms(const FormulaExpr& root, const std::string& target) {
  for (const TangentTerm& term : TangentTerms(root, d_)) {
    const EmitOptions options =
        OptionsOf([&](const FormulaExpr& e) { return NameText(e, term.inputs.size() == 1); });
    p_.Print({{"any", AnyOf(term.inputs)},
              {"add", term.subtracted ? "Subtract" : "Add"},
              {"target", target},
              {"value", EmitFormula(*term.expr, options)}},
             "if ($any$) $add$($target$, $value$);");
  }
}

void ForwardEmitter::EmitTangent() {
  std::vector<std::string> parameters;
  for (int i = 0; i < count(); ++i) {
    const std::string& type = f_.arguments[static_cast<size_t>(i)].type;
    parameters.push_back(StrCat("[[maybe_unused]] ",
                                TypeOf(i).is_tensor_list() ? "const std::vector<Dual>&"
                                : TypeOf(i).is_tensor()    ? "const Dual&"
                                                           : type,
                                " ", NameOf(i)));
  }
  if (ReadsResult())
    for (size_t i = 0; i < f_.schema.returns.size(); ++i)
      parameters.push_back(StrCat("[[maybe_unused]] const Tensor& ", ResultName(i)));
  const size_t results = results_.size();
  const std::string type = results == 1 ? "Tensor" : StrCat("std::array<Tensor, ", results, ">");
  p_.Print({{"type", type}, {"name", f_.struct_name}, {"parameters", Join(parameters, ", ")}},
           "$type$ Tangent_$name$($parameters$) {\n  $type$ tangent;");
  p_.Indent();
  if (d_.tangent.kind == Kind::kPointwise) {
    for (const GradientRule& rule : d_.rules) EmitPointwiseTerm(rule);
  } else if (d_.tangent.kind == Kind::kReduction) {
    EmitReductionTerm();
  } else if (d_.tangent.kind == Kind::kLinear) {
    EmitLinearTerm(inputs_);
  } else if (d_.tangent.kind == Kind::kMultilinear) {
    for (const int input : inputs_) EmitLinearTerm({input});
  } else {
    const FormulaExpr& root = d_.tangent.formula->root;
    const bool parts = root.kind == FormulaExpr::Kind::kTuple;
    for (size_t i = 0; parts && i < results; ++i)
      EmitFormulaTerms(root.operands[i], StrCat("tangent[", i, "]"));
    if (!parts) EmitFormulaTerms(root, "tangent");
  }
  p_.Line("return tangent;");
  p_.Outdent();
  p_.Line("}");
}

// Every argument that holds tensors, as `<name>_d`.
void ForwardEmitter::EmitOpens(const Function& f) {
  p_.Print({{"name", CppString(f.full_name)}}, "Level level($name$);");
  for (int i = 0; i < count(); ++i) {
    if (!TypeOf(i).has_tensor()) continue;
    const bool written = f.form == OpForm::kInplace && i == 0;
    p_.Print({{"type", TypeOf(i).is_tensor_list() ? "std::vector<Dual>" : "Dual"},
              {"name", NameOf(i)},
              {"open", written ? "OpenWritten" : "Open"}},
             "const $type$ $name$_d = level.$open$($name$);");
  }
}

std::string ForwardEmitter::Call(const Function& f) const {
  std::vector<std::string> arguments;
  for (int i = 0; i < count(); ++i)
    arguments.push_back(TypeOf(i).has_tensor() ? ValueText(i, "_d") : NameOf(i));
  return StrCat("::", d_.entry->ns, "::ops::op::", f.struct_name, "::call(", Join(arguments, ", "), ")");
}

std::string ForwardEmitter::TangentCall(const std::vector<std::string>& results,
                                        const std::string& self) const {
  std::vector<std::string> arguments;
  for (int i = 0; i < count(); ++i)
    arguments.push_back(i == 0 && !self.empty()  ? self
                        : TypeOf(i).has_tensor() ? StrCat(NameOf(i), "_d")
                                                 : NameOf(i));
  if (ReadsResult()) arguments.insert(arguments.end(), results.begin(), results.end());
  return StrCat("Tangent_", f_.struct_name, "(", Join(arguments, ", "), ")");
}

void ForwardEmitter::EmitFunctional() {
  p_.Print({{"ret", f_.return_type}, {"name", f_.struct_name}, {"params", f_.Parameters(false)}},
           "$ret$ $name$(KeySet, $params$) {");
  p_.Indent();
  EmitOpens(f_);
  p_.Print({{"ret", f_.return_type}, {"call", Call(f_)}}, "$ret$ result = $call$;");
  const size_t returns = f_.schema.returns.size();
  std::vector<std::string> results;
  for (size_t i = 0; i < returns; ++i)
    results.push_back(returns == 1 ? "result" : StrCat("std::get<", i, ">(result)"));
  const bool zero = d_.tangent.kind == Kind::kZero;
  const std::string tangent_type =
      results_.size() == 1 ? "Tensor" : StrCat("std::array<Tensor, ", results_.size(), ">");
  if (!zero)
    p_.Print({{"type", tangent_type}, {"call", TangentCall(results, "")}},
             "$type$ tangent;\nif (level.any()) tangent = $call$;");
  std::vector<std::string> closed;
  size_t next = 0;
  for (size_t i = 0; i < returns; ++i) {
    const bool has = !zero && next < results_.size() && results_[next] == static_cast<int>(i);
    const std::string tangent = results_.size() == 1 ? "tangent" : StrCat("tangent[", next, "]");
    closed.push_back(StrCat("level.Close(std::move(", results[i], ")",
                            has ? StrCat(", std::move(", tangent, ")") : "", ")"));
    next += has;
  }
  p_.Print({{"closed", returns == 1 ? closed[0] : StrCat("{", Join(closed, ", "), "}")}}, "return $closed$;");
  p_.Outdent();
  p_.Line("}\n");
}

void ForwardEmitter::EmitInplace(const Function& f) {
  p_.Print({{"name", f.struct_name}, {"params", f.Parameters(false)}}, "void $name$(KeySet, $params$) {");
  p_.Indent();
  EmitOpens(f);
  const std::string& self = NameOf(0);
  const bool late = ReadsResult(), zero = d_.tangent.kind == Kind::kZero;
  const std::string self_d = self + "_d";
  // The old value, which the write takes from under formulas of this level and of outer ones.
  const bool reads = !zero && Reads(0);
  if (reads)
    p_.Print({{"self", self_d},
              {"old", late ? StrCat("level.any() ? ops::Clone(", self_d, ".value) : ", self_d, ".value")
                           : StrCat("level.Kept(", self_d, ".value)")}},
             "const Dual before = {$old$, $self$.tangent};");
  const std::string tangent = TangentCall({StrCat(self_d, ".value")}, reads ? std::string("before") : self_d);
  if (!zero) p_.Line("Tensor tangent;");
  if (!zero && !late) p_.Print({{"tangent", tangent}}, "if (level.any()) tangent = $tangent$;");
  p_.Print({{"call", Call(f)}}, "$call$;");
  if (!zero && late) p_.Print({{"tangent", tangent}}, "if (level.any()) tangent = $tangent$;");
  p_.Print({{"self", self}, {"tangent", zero ? "Tensor()" : "std::move(tangent)"}},
           "level.Write($self$, $tangent$);");
  p_.Outdent();
  p_.Line("}\n");
}

void CollectHeaders(const FormulaExpr& e, std::set<std::string>* headers) {
  if (e.kind == FormulaExpr::Kind::kHelper && e.helper->formula)
    headers->insert("kernels/generated_composites");
  if (e.kind == FormulaExpr::Kind::kCall) headers->insert("ops/" + e.function->entry->base_name);
  for (const FormulaExpr& operand : e.operands) CollectHeaders(operand, headers);
}

// The composite itself, whose parts meet the frame.
void EmitParts(const Derivative& d, Shard& shard) {
  const Entry& entry = *d.entry;
  const bool generated = entry.composite.empty();
  shard.headers.insert(generated ? "kernels/generated_composites" : "kernels/composite_declarations");
  shard.registration.Print(
      {{"name", CppString(entry.functional->full_name)},
       {"function", generated ? StrCat("composites::", entry.functional->struct_name)
                              : StrCat("composite::", entry.composite)},
       {"file", CppString(d.location.file ? d.location.file->name : "")},
       {"line", StrCat(d.location.line)}},
      "scope.AddKernel($name$, \"jvp\", CompositeKernel<&::mica::$function$>::Get(), nullptr, "
      "{$file$, $line$});");
}

void EmitRule(const Derivative& d, Shard& shard) {
  const Entry& entry = *d.entry;
  if (d.tangent.kind == Kind::kParts) return EmitParts(d, shard);
  shard.headers.insert("ops/" + entry.base_name);
  if (d.tangent.formula) CollectHeaders(d.tangent.formula->root, &shard.headers);
  if (d.tangent.kind == Kind::kPointwise || d.tangent.kind == Kind::kReduction)
    for (const GradientRule& rule : d.rules)
      if (rule.formula) CollectHeaders(rule.formula->root, &shard.headers);
  shard.code.Comment(entry.primary().schema_text);
  ForwardEmitter emitter(d, shard.code);
  if (d.tangent.kind != Kind::kZero) emitter.EmitTangent();
  if (entry.functional) {
    emitter.EmitFunctional();
    shard.Register(d, *entry.functional, "jvp");
  }
  if (entry.inplace) {
    emitter.EmitInplace(*entry.inplace);
    shard.Register(d, *entry.inplace, "jvp");
  }
}

}  // namespace

bool HasForwardKernel(const Derivative& d) {
  return d.entry->differentiable && d.tangent.kind != Kind::kGeneric && d.entry->op_class != OpClass::kView;
}

void EmitForward(const Model& model, OutputFolder& out) {
  std::vector<Shard> shards(kForwardShards);
  for (const auto& derivative : model.derivatives) {
    if (!HasForwardKernel(*derivative)) continue;
    EmitRule(*derivative, shards[static_cast<size_t>(ShardOf(derivative->entry->base_name, kForwardShards))]);
  }
  WriteShards({.name = "forward",
               .what = "Forward-mode kernels",
               .header = "keys/autograd/forward_kernel.h",
               .name_space = "mica::autograd::forward",
               .register_shard = "RegisterRules"},
              shards, out);
}

}  // namespace mica::codegen
