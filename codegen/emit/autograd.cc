// autograd_<i>.cc: for each derivative one node class and the kernels of its
// functional and in-place forms, and their registration at the layer Autograd.
//
// The texts lean on keys/autograd/kernel.h, which shows what a kernel looks like.
// Out forms get no kernel: the layer refuses them by one boxed function.
#include <map>
#include <set>

#include "codegen/emit/autograd_plan.h"
#include "codegen/emit/emitters.h"
#include "codegen/emit/shard.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using Kind = SavedName::Kind;

// Whose kernels stand in keys/autograd/hand_kernels.cc.
bool IsHandWritten(const Entry& e) {
  return e.ns == "mica" &&
         (e.base_name == "as_strided" || e.base_name == "as_strided_" || e.base_name == "detach");
}

// "native_layer_norm" -> "NativeLayerNorm", "avg_pool2d" -> "AvgPool2D"
std::string CamelCase(std::string_view name) {
  std::string out;
  bool upper = true;
  for (const char c : name) {
    const bool letter = c >= 'a' && c <= 'z';
    if (c != '_') out += upper && letter ? static_cast<char>(c - 'a' + 'A') : c;
    upper = !letter;
  }
  return out;
}

int CountReads(const FormulaExpr& e, const std::string& name) {
  int count = e.kind == FormulaExpr::Kind::kName && e.text == name;
  for (const FormulaExpr& operand : e.operands) count += CountReads(operand, name);
  return count;
}

class DerivativeEmitter {
 public:
  DerivativeEmitter(const DerivativePlan& plan, std::string node, Printer& p)
      : plan_(plan), d_(*plan.derivative), f_(d_.entry->primary()), node_(std::move(node)), p_(p) {}

  void EmitNode();
  void EmitFunctional();
  void EmitInplace(const Function& f);

 private:
  const CppArgument& Argument(int i) const { return f_.arguments[static_cast<size_t>(i)]; }
  const schema::Type& TypeOf(int i) const { return f_.schema.arguments[static_cast<size_t>(i)].type; }
  std::string Member(const SavedName& s) const;
  void EmitMember(const SavedName& s);
  void EmitRelease();
  void EmitPart();
  void EmitVisit();
  void EmitGrads();
  void EmitRule(const GradientRule& rule);
  void EmitUnpack(const GradientRule& rule);
  bool IsReadInPlace(const std::string& name, const GradientRule& rule) const;
  std::string ValueText(const FormulaExpr& name, const GradientRule& rule) const;
  std::string MetadataText(const FormulaExpr& e, const GradientRule& rule, const EmitOptions& options) const;
  std::string Wants(const std::vector<int>& arguments) const;
  std::string HasEdges(const std::set<int>& edges) const;
  std::string InputNames(const char* prefix) const;
  void EmitLinks();
  void EmitSaves(bool in_place);
  void EmitSaveResults(const std::string& result);
  bool IsTuple() const { return f_.schema.returns.size() > 1; }

  const DerivativePlan& plan_;
  const Derivative& d_;
  const Function& f_;
  const std::string node_;
  Printer& p_;
};

std::string DerivativeEmitter::Member(const SavedName& s) const {
  const std::string base = s.argument >= 0 ? Argument(s.argument).name : s.name;
  return StrCat(base, s.kind == Kind::kInfo ? "_info_" : s.kind == Kind::kInfos ? "_infos_" : "_");
}

void DerivativeEmitter::EmitMember(const SavedName& s) {
  std::string type;
  switch (s.kind) {
    case Kind::kTensor:
    case Kind::kResult:
      type = "SavedTensor";
      break;
    case Kind::kTensors:
      type = "SavedTensors";
      break;
    case Kind::kInfo:
      type = "OutputInfo";
      break;
    case Kind::kInfos:
      type = "SavedLooks";
      break;
    case Kind::kValue:
      type = CppValueType(TypeOf(s.argument));
      break;
  }
  p_.Print({{"type", type}, {"member", Member(s)}}, "$type$ $member${};");
}

// The members that hold tensors, for ReleaseSaved.
void DerivativeEmitter::EmitRelease() {
  if (d_.keeps_saved) return;
  std::vector<std::string> resets;
  for (const SavedName& s : plan_.saved)
    if (s.kind == Kind::kTensor || s.kind == Kind::kTensors || s.kind == Kind::kResult)
      resets.push_back(StrCat(Member(s), ".Reset();"));
  if (resets.empty()) return;
  p_.Print({{"resets", Join(resets, "\n  ")}}, "void ReleaseSaved() override {\n  $resets$\n}");
}

// The view again, of the sum that the engine holds for the input.
void DerivativeEmitter::EmitPart() {
  std::vector<std::string> arguments = {"whole"};
  for (size_t i = 1; i < f_.arguments.size(); ++i) {
    const SavedName* value = plan_.Find(Kind::kValue, f_.arguments[i].name);
    if (!value)
      throw Mistake(d_.location, StrCat("Argument (", f_.arguments[i].name, ") of ", f_.full_name,
                                        " is not saved, since no gradient reads it; expected that `part` "
                                        "can call the view again."));
    arguments.push_back(Member(*value));
  }
  p_.Print({{"ns", d_.entry->ns}, {"function", f_.struct_name}, {"arguments", Join(arguments, ", ")}},
           "Tensor PartOf(const Tensor& whole) const override {\n"
           "  return ::$ns$::ops::op::$function$::call($arguments$);\n}");
}

// What is saved, by its name: for grad_fn._saved_<name>.
void DerivativeEmitter::EmitVisit() {
  std::vector<std::string> visits;
  for (const SavedName& s : plan_.saved) {
    if (s.kind == Kind::kInfos) continue;
    const std::string name =
        s.argument >= 0 ? f_.schema.arguments[static_cast<size_t>(s.argument)].name : s.name;
    visits.push_back(StrCat("visit(", CppString(s.kind == Kind::kInfo ? StrCat(name, "_sym_sizes") : name),
                            ", ", Member(s), ");"));
  }
  if (visits.empty()) return;
  p_.Print({{"visits", Join(visits, "\n  ")}},
           "void VisitSaved(SavedVisitor& visit) override {\n  $visits$\n}");
}

// Locals for the incoming gradients that the formulas name. Of several results, some may be undefined:
// the formulas ask (load_derivatives.cc holds them to it).
void DerivativeEmitter::EmitGrads() {
  std::set<std::string> names;
  for (const GradientRule& rule : d_.rules) {
    if (rule.kind != GradientRule::Kind::kFormula) continue;
    for (const std::string& name : rule.formula->names)
      if (NumberedName(name, "grad") >= 0 || name == "grads") names.insert(name);
    for (const auto& [name, builtins] : rule.formula->metadata)
      if (NumberedName(name, "grad") >= 0) names.insert(name);
  }
  for (const std::string& name : names) {
    if (f_.schema.FindArgument(name) >= 0) continue;
    if (name == "grads") {
      p_.Line(
          "std::vector<Tensor> grad_list(static_cast<size_t>(num_outputs()));\n"
          "for (int i = 0; i < num_outputs(); ++i) grad_list[static_cast<size_t>(i)] = GradOrZeros(*this, "
          "grads, i);");
      continue;
    }
    int number = NumberedName(name, "grad");
    if (name == "grad")
      while (!d_.output_differentiability[static_cast<size_t>(number)]) ++number;
    p_.Print({{"name", name}, {"number", StrCat(number)}}, "const Tensor& $name$ = grads[$number$];");
  }
}

std::string DerivativeEmitter::Wants(const std::vector<int>& arguments) const {
  std::vector<std::string> parts;
  for (const int argument : arguments) {
    const GradientInput& input = *plan_.InputOf(argument);
    parts.push_back(input.is_list ? StrCat("WantsAny(*this, ", input.edge, ")")
                                  : StrCat("Wants(", input.edge, ")"));
  }
  return Join(parts, " || ");
}

// Unpacked where it is read: a tensor that one place reads as a value, so that the
// branch of an `if` that is not taken asks nothing of it.
bool DerivativeEmitter::IsReadInPlace(const std::string& name, const GradientRule& rule) const {
  return !rule.formula->metadata.count(name) && CountReads(rule.formula->root, name) == 1;
}

void DerivativeEmitter::EmitUnpack(const GradientRule& rule) {
  for (const SavedName& s : plan_.saved) {
    if (!rule.formula->names.count(s.name)) continue;
    if (s.kind != Kind::kTensors && IsReadInPlace(s.name, rule)) continue;
    const std::string local = s.argument >= 0 ? Argument(s.argument).name : s.name;
    if (s.kind == Kind::kTensor || s.kind == Kind::kResult)
      p_.Print({{"local", local}, {"member", Member(s)}}, "const Tensor $local$ = $member$.Unpack(this);");
    if (s.kind == Kind::kTensors)
      p_.Print({{"local", local}, {"member", Member(s)}},
               "const std::vector<Tensor> $local$ = $member$.Unpack(this);");
  }
}

std::string DerivativeEmitter::ValueText(const FormulaExpr& name, const GradientRule& rule) const {
  if (name.text == "output_mask" && f_.schema.FindArgument(name.text) < 0)
    return StrCat("BoolSpan(output_mask, ", rule.inputs.size(), ")");
  if (name.text == "grads") return "grad_list";
  const int argument = f_.schema.FindArgument(name.text);
  const SavedName* saved = plan_.Find(argument < 0 ? Kind::kResult : Kind::kTensor, name.text);
  if (saved && IsReadInPlace(name.text, rule)) return StrCat(Member(*saved), ".Unpack(this)");
  if (argument < 0) return name.text;
  const SavedName* value = plan_.Find(Kind::kValue, name.text);
  return value ? Member(*value) : Argument(argument).name;
}

std::string DerivativeEmitter::MetadataText(const FormulaExpr& e, const GradientRule& rule,
                                            const EmitOptions& options) const {
  const std::string& name = e.operands[0].text;
  const std::string dim = e.text == "size" ? EmitFormula(e.operands[1], options) : "";
  const int argument = f_.schema.FindArgument(name);
  if (e.text == "elements") {
    const SavedName* s = plan_.Find(Kind::kInfos, name);
    return s && !rule.formula->names.count(name) ? Member(*s) : Argument(argument).name;
  }
  std::string info;
  bool is_tensor = false;  // a local tensor, not an OutputInfo
  if (const SavedName* s = plan_.Find(Kind::kInfo, name); s && !rule.formula->names.count(name)) {
    info = Member(*s);
  } else if (rule.formula->names.count(name) || (argument < 0 && NumberedName(name, "grad") >= 0)) {
    info = argument >= 0 ? Argument(argument).name : name;
    is_tensor = true;
  } else if (argument >= 0) {
    info = StrCat("this->input(", plan_.InputOf(argument)->edge, ")");
  } else {
    info = StrCat("this->output(", NumberedName(name, "result"), ")");
  }
  const std::string call = is_tensor ? "()" : "";
  if (e.text == "sizes" || e.text == "numel") return StrCat(info, ".", e.text, "()");
  if (e.text == "size") return StrCat(info, ".size(", dim, ")");
  if (e.text == "ndim") return StrCat("static_cast<int64_t>(", info, ".ndim", call, ")");
  if (e.text == "is_complex") return StrCat("IsComplex(", info, ".dtype", call, ")");
  if (e.text == "is_floating_point") return StrCat("IsFloating(", info, ".dtype", call, ")");
  if (e.text == "itemsize") return StrCat("ItemSize(", info, ".dtype", call, ")");
  if (e.text == "dtype" || e.text == "device") return StrCat(info, ".", e.text, call);
  throw Mistake(e.location,
                StrCat("Built-in (", e.text,
                       ") over a name is not known to the autograd emitter; expected sizes, size, ndim, "
                       "numel, dtype, device, itemsize, is_complex or is_floating_point."));
}

void DerivativeEmitter::EmitRule(const GradientRule& rule) {
  if (rule.kind == GradientRule::Kind::kNone) return;
  const GradientInput& first = *plan_.InputOf(rule.inputs[0]);
  const std::string edge = StrCat(first.edge);
  if (rule.kind == GradientRule::Kind::kZeros) {
    if (first.is_list)
      p_.Print({{"edge", edge}},
               "for (int i = $edge$; i < num_next(); ++i)\n  if (Wants(i)) out[i] = ZerosFor(*this, i);");
    else
      p_.Print({{"edge", edge}}, "if (Wants($edge$)) out[$edge$] = ZerosFor(*this, $edge$);");
    return;
  }
  p_.Print({{"wants", Wants(rule.inputs)}}, "if ($wants$) {");
  p_.Indent();
  EmitUnpack(rule);
  if (rule.formula->names.count("output_mask") && f_.schema.FindArgument("output_mask") < 0) {
    std::vector<std::string> mask;
    for (const int argument : rule.inputs)
      mask.push_back(StrCat("Wants(", plan_.InputOf(argument)->edge, ")"));
    p_.Print({{"mask", Join(mask, ", ")}}, "const uint8_t output_mask[] = {$mask$};");
  }
  EmitOptions options;
  options.name = [&](const FormulaExpr& e) { return ValueText(e, rule); };
  options.metadata = [&](const FormulaExpr& e) { return MetadataText(e, rule, options); };
  const std::string value = EmitFormula(rule.formula->root, options);
  if (first.is_list) {
    p_.Print({{"value", value}, {"edge", edge}}, "PutList($value$, *this, $edge$, out);");
  } else if (rule.inputs.size() == 1) {
    p_.Print({{"value", value}, {"edge", edge}}, "out[$edge$] = $value$;");
  } else {
    std::vector<std::string> targets;
    for (const int argument : rule.inputs)
      targets.push_back(StrCat("out[", plan_.InputOf(argument)->edge, "]"));
    p_.Print({{"value", value}, {"targets", Join(targets, ", ")}}, "std::tie($targets$) = $value$;");
  }
  p_.Outdent();
  p_.Line("}");
}

void DerivativeEmitter::EmitNode() {
  p_.Print({{"node", node_}}, "class $node$ final : public Node {\n public:");
  p_.Indent();
  for (const SavedName& s : plan_.saved) EmitMember(s);
  p_.Print({{"shown", d_.node.empty() ? node_ : d_.node}},
           "const char* name() const override { return \"$shown$\"; }");
  p_.Line("void Apply([[maybe_unused]] const Tensor* grads, Tensor* out) override {");
  p_.Indent();
  EmitGrads();
  for (const GradientRule& rule : d_.rules) EmitRule(rule);
  p_.Outdent();
  p_.Line("}");
  EmitRelease();
  if (d_.is_part) EmitPart();
  EmitVisit();
  p_.Outdent();
  p_.Line("};\n");
}

std::string DerivativeEmitter::InputNames(const char* prefix) const {
  std::vector<std::string> names;
  for (const GradientInput& input : plan_.inputs)
    if (*prefix == 0 || !input.is_list) names.push_back(StrCat(prefix, Argument(input.argument).name));
  return Join(names, ", ");
}

void DerivativeEmitter::EmitLinks() {
  p_.Print({{"node", node_}}, "auto backward = MakeNode<$node$>();");
  const GradientInput& last = plan_.inputs.back();
  const std::string list = last.is_list ? StrCat(", ", Argument(last.argument).name) : "";
  p_.Print({{"inputs", InputNames("&")}, {"list", list}}, "Link(*backward, {$inputs$}$list$);");
}

// The condition under which what these edges' formulas read is saved; "" if it
// always holds since one of the edges must exist.
std::string DerivativeEmitter::HasEdges(const std::set<int>& edges) const {
  if (edges.size() == plan_.inputs.size()) return "";
  std::vector<std::string> parts;
  for (const int edge : edges)
    parts.push_back(StrCat(
        plan_.inputs[static_cast<size_t>(edge)].is_list ? "HasEdges(*backward, " : "HasEdge(*backward, ",
        edge, ")"));
  return StrCat("if (", Join(parts, " || "), ") ");
}

void DerivativeEmitter::EmitSaves(bool in_place) {
  for (const SavedName& s : plan_.saved) {
    if (s.kind == Kind::kResult) continue;
    const std::string& argument = Argument(s.argument).name;
    const schema::Type& type = TypeOf(s.argument);
    std::string save;
    if (s.kind == Kind::kTensor) {
      // What the operator overwrites is saved as a copy, with its history.
      save = StrCat(Member(s), ".Save(",
                    in_place && s.argument == 0 ? StrCat("ops::Clone(", argument, ")") : argument, ")");
    } else if (s.kind == Kind::kTensors) {
      save = StrCat(Member(s), ".Save(", argument, ")");
    } else if (s.kind == Kind::kInfo || s.kind == Kind::kInfos) {
      save = StrCat(Member(s), ".Set(", argument, ")");
    } else {
      const std::string owned = CppValueType(type.unwrapped());
      const bool same = !type.is_list() && !type.unwrapped().is(schema::TypeKind::kStr);
      const std::string from = type.is_optional() ? StrCat("(*", argument, ")") : argument;
      const std::string made = same             ? argument
                               : type.is_list() ? StrCat(owned, "(", from, ".begin(), ", from, ".end())")
                                                : StrCat(owned, "(", from, ")");
      const std::string guard = !same && type.is_optional() ? StrCat("if (", argument, ") ") : "";
      p_.Print({{"guard", guard}, {"member", Member(s)}, {"made", made}},
               "$guard$backward->$member$ = $made$;");
      continue;
    }
    p_.Print({{"if", HasEdges(s.edges)}, {"save", save}}, "$if$backward->$save$;");
  }
}

void DerivativeEmitter::EmitSaveResults(const std::string& result) {
  for (const SavedName& s : plan_.saved) {
    if (s.kind != Kind::kResult) continue;
    const std::string value = IsTuple() ? StrCat("std::get<", s.result, ">(", result, ")") : result;
    p_.Print(
        {{"if", HasEdges(s.edges)}, {"member", Member(s)}, {"value", value}, {"number", StrCat(s.result)}},
        "$if$backward->$member$.SaveOutput($value$, $number$);");
  }
}

void DerivativeEmitter::EmitFunctional() {
  const std::string call = StrCat("::", d_.entry->ns, "::ops::op::", f_.struct_name,
                                  "::redispatch(Below(keys), ", f_.ArgumentNames(), ")");
  p_.Print({{"ret", f_.return_type}, {"name", f_.struct_name}, {"params", f_.Parameters(false)}},
           "$ret$ $name$(KeySet keys, $params$) {");
  p_.Indent();
  if (d_.entry->op_class == OpClass::kView && !plan_.returns_list) {
    p_.Print(
        {{"inputs", InputNames("")}, {"call", call}},
        "if (!Recording($inputs$)) {\n  Tensor view = $call$;\n  KeepUnrecorded(view);\n  return view;\n}");
  } else {
    p_.Print({{"inputs", InputNames("")}, {"call", call}}, "if (!Recording($inputs$)) return $call$;");
  }
  EmitLinks();
  EmitSaves(false);
  p_.Print({{"ret", f_.return_type}, {"call", call}},
           "$ret$ result;\n{\n  const BelowAutograd below;\n  result = $call$;\n}");
  EmitSaveResults("result");
  if (plan_.returns_list) {
    p_.Line("for (Tensor& t : result) SetHistory(t, *backward);");
  } else if (IsTuple()) {
    for (size_t i = 0; i < f_.schema.returns.size(); ++i) {
      p_.Print({{"i", StrCat(i)}}, d_.output_differentiability[i]
                                       ? "SetHistory(std::get<$i$>(result), *backward);"
                                       : "backward->AddOutput(Tensor());");
    }
  } else {
    p_.Line("SetHistory(result, *backward);");
  }
  p_.Line("return result;");
  p_.Outdent();
  p_.Line("}\n");
}

void DerivativeEmitter::EmitInplace(const Function& f) {
  const std::string call = StrCat("::", d_.entry->ns, "::ops::op::", f.struct_name,
                                  "::redispatch(Below(keys), ", f.ArgumentNames(), ");");
  const std::string name = CppString(f.full_name);
  const std::string& self = f.arguments[0].name;
  p_.Print({{"name", f.struct_name}, {"params", f.Parameters(false)}},
           "void $name$(KeySet keys, $params$) {");
  p_.Indent();
  p_.Print({{"inputs", InputNames("")}, {"call", call}, {"self", self}, {"name", name}},
           "if (!Recording($inputs$)) return $call$\nCheckInplace($self$, $name$);");
  EmitLinks();
  EmitSaves(true);
  p_.Print({{"call", call}}, "{\n  const BelowAutograd below;\n  $call$\n}");
  EmitSaveResults(self);
  p_.Print({{"self", self}}, "RebaseHistory($self$, *backward);");
  p_.Outdent();
  p_.Line("}\n");
}

}  // namespace

void EmitAutograd(const Model& model, OutputFolder& out) {
  std::vector<Shard> shards(kAutogradShards);
  std::map<std::string, int> taken;  // node names get a number, as in torch
  for (const auto& derivative : model.derivatives) {
    const Entry& entry = *derivative->entry;
    if (IsHandWritten(entry)) continue;
    const DerivativePlan plan = MakePlan(*derivative);
    if (plan.inputs.empty()) continue;
    Shard& shard = shards[static_cast<size_t>(ShardOf(entry.base_name, kAutogradShards))];
    const std::string stem = StrCat(CamelCase(entry.base_name), "Backward");
    // One that shows another's name takes no number, which the C++ class needs none the less.
    const std::string number =
        derivative->node.empty() ? StrCat(taken[stem]++) : StrCat("Of", entry.primary().schema.overload);
    DerivativeEmitter emitter(plan, StrCat(stem, number), shard.code);
    shard.headers.insert(StrCat("ops/", entry.base_name));
    for (const Function* f : plan.called) shard.headers.insert(StrCat("ops/", f->entry->base_name));
    shard.code.Comment(entry.primary().schema_text);
    emitter.EmitNode();
    if (entry.functional) {
      emitter.EmitFunctional();
      shard.Register(*derivative, *entry.functional, "Autograd");
    }
    if (entry.inplace) {
      emitter.EmitInplace(*entry.inplace);
      shard.Register(*derivative, *entry.inplace, "Autograd");
    }
  }
  for (Shard& shard : shards)
    if (shard.code.text().find("::mica::composites::") != std::string::npos)
      shard.headers.insert("kernels/generated_composites");
  WriteShards({.name = "autograd",
               .what = "Nodes and kernels of the autograd layer",
               .header = "keys/autograd/kernel.h",
               .name_space = "mica::autograd",
               .register_shard = "RegisterShard"},
              shards, out);
}

}  // namespace mica::codegen
