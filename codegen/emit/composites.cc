// composites_<i>.cc: composites that nobody writes by hand, and their
// declarations in kernels/generated_composites.h.
//
// A `body:` becomes one expression over operators. The last call of a body writes into
// `out`, or into `self` where it has it as first argument and an in-place form. Where a
// gradient may be recorded, where a body ends otherwise and where there is none, the
// in-place and out forms compute the functional form and copy: out= is resized first, as
// other out forms are. An out form lends the outputs' memory meanwhile (tensor/loan.h), so
// that a result which comes to lie there need not be copied.
#include <algorithm>

#include "codegen/emit/emitters.h"
#include "codegen/formula/formula.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

std::string Trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// What is written has the dtype, unless another is asked for: the text of an out form's
// `dtype`, or "" where that is the argument alone.
std::string AskedDType(const Function& f) {
  const int dtype = f.schema.FindArgument("dtype");
  if (f.form != OpForm::kOut || dtype < 0 ||
      !f.schema.arguments[static_cast<size_t>(dtype)].type.is_optional())
    return "";
  const std::string& out = f.arguments[f.entry->functional->arguments.size()].name;
  const std::string& name = f.arguments[static_cast<size_t>(dtype)].name;
  const std::string asked = StrCat("std::optional<DType>(", name, ".value_or(", out, ".dtype()))");
  if (!f.schema.arguments[0].type.is(schema::TypeKind::kTensor)) return asked;
  // A real `out` of complex numbers (a norm) does not make them real before.
  return StrCat("(IsComplex(", f.arguments[0].name, ".dtype()) && !IsComplex(", out, ".dtype()) ? ", name,
                " : ", asked, ")");
}

// The functional form's call; an in-place form gives what stands for `self`.
std::string FunctionalCall(const Function& f, const std::string& self) {
  const Function& functional = *f.entry->functional;
  std::vector<std::string> names;
  for (size_t i = 0; i < functional.arguments.size(); ++i)
    names.push_back(i == 0 && !self.empty() ? self : f.arguments[i].name);
  const std::string asked = AskedDType(f);
  if (!asked.empty()) names[static_cast<size_t>(f.schema.FindArgument("dtype"))] = asked;
  return StrCat("::", f.entry->ns, "::ops::op::", functional.struct_name, "::call(", Join(names, ", "), ")");
}

// Bodies need not read every argument.
std::string Unused(const Function& f) {
  std::vector<std::string> parameters;
  for (const CppArgument& a : f.arguments)
    parameters.push_back(StrCat("[[maybe_unused]] ", a.type, " ", a.name));
  return Join(parameters, ", ");
}

// The sentences of `check:`; the name is that of the operator's primary form.
void EmitChecks(const Entry& entry, Printer& header, Printer& p) {
  if (entry.check_formulas.empty()) return;
  const std::string head =
      StrCat("void Check_", entry.primary().struct_name, "(", Unused(entry.primary()), ")");
  header.Line(head + ";");
  p.Line(head + " {");
  p.Indent();
  EmitOptions options;
  options.name = [](const FormulaExpr& name) { return CppIdentifier(name.text); };
  for (const auto& tree : entry.check_formulas) p.Line(EmitCheck(tree->root, options));
  p.Outdent();
  p.Line("}");
}

// Whether no operator but a view is called, so that no memory is asked for.
bool AsksForNothing(const FormulaExpr& e) {
  if (e.kind == FormulaExpr::Kind::kCall && e.function->entry->op_class != OpClass::kView) return false;
  if (e.kind == FormulaExpr::Kind::kHelper && e.type.is_tensor()) return false;
  if (e.kind == FormulaExpr::Kind::kDo || e.type.is_tensor_list()) return false;
  return std::all_of(e.operands.begin(), e.operands.end(), AsksForNothing);
}

// What a copy need not be made of, since it is copied again: `clone(x)` is x.
const FormulaExpr& Copied(const FormulaExpr& e) {
  const bool clone = e.kind == FormulaExpr::Kind::kCall && e.function->full_name == "mica::clone";
  return clone && e.operands[0].type.is(schema::TypeKind::kTensor) ? e.operands[0] : e;
}

// Whether a call leaves its dtype open, as sum(x) does: its out form would compute in that of `out`.
bool LeavesDType(const FormulaExpr& e) {
  const int dtype = e.function->schema.FindArgument("dtype");
  if (dtype < 0) return false;
  const FormulaExpr& given = e.operands[static_cast<size_t>(dtype)];
  return given.kind == FormulaExpr::Kind::kNone || given.text == "std::nullopt";
}

// The form of the last call `e` that writes into what `f` writes, or NULL. In place that is
// the in-place form of what has `self` first, or the out form of a pointwise operator, whose
// result has the shape that its inputs are broadcast to.
const Function* Writer(const Function& f, const FormulaExpr& e) {
  const bool called = e.kind == FormulaExpr::Kind::kCall && e.function->form == OpForm::kFunctional &&
                      e.function->schema.returns.size() == 1 && e.type.is_tensor();
  if (!called) return nullptr;
  if (f.form == OpForm::kOut) return LeavesDType(e) ? nullptr : e.function->entry->out;
  const bool of_self = !e.operands.empty() && e.operands[0].kind == FormulaExpr::Kind::kName &&
                       CppIdentifier(e.operands[0].text) == f.arguments[0].name;
  if (of_self && e.function->entry->inplace) return e.function->entry->inplace;
  return e.function->entry->op_class == OpClass::kPointwise ? e.function->entry->out : nullptr;
}

bool IsView(const FormulaExpr& e) {
  return e.kind == FormulaExpr::Kind::kCall && e.type.is(schema::TypeKind::kTensor) &&
         (e.function->entry->op_class == OpClass::kView || e.function->full_name == "mica::reshape");
}

// Of an in-place form that ends in a view of what a call gives, which itself begins with a view
// of `self`: that call. squeeze(addmm(unsqueeze(self, 1), ...), 1) may write into
// unsqueeze(self, 1), where the one view undoes the other.
const FormulaExpr* InnerWriter(const Function& f, const FormulaExpr& end) {
  if (f.form != OpForm::kInplace || !IsView(end)) return nullptr;
  const FormulaExpr* inner = &end;
  while (IsView(*inner)) inner = &inner->operands[0];
  if (inner->kind != FormulaExpr::Kind::kCall || inner->function->form != OpForm::kFunctional ||
      !inner->function->entry->inplace || !IsView(inner->operands[0]))
    return nullptr;
  const FormulaExpr* first = &inner->operands[0];
  while (IsView(*first)) first = &first->operands[0];
  const bool of_self =
      first->kind == FormulaExpr::Kind::kName && CppIdentifier(first->text) == f.arguments[0].name;
  return of_self ? inner : nullptr;
}

// `end` with the call replaced by the name `seen_`.
FormulaExpr SeenThrough(FormulaExpr end) {
  FormulaExpr* inner = &end;
  while (IsView(*inner)) inner = &inner->operands[0];
  inner->kind = FormulaExpr::Kind::kLocal;
  inner->text = "seen_";
  inner->operands.clear();
  return end;
}

// The call of `writer` for the last call `e`, which ends the function.
std::string CallInto(const Function& f, const FormulaExpr& e, const Function& writer,
                     const EmitOptions& options) {
  const std::string callee = StrCat("::", writer.entry->ns, "::ops::op::", writer.struct_name, "::call(");
  const std::string arguments = EmitArguments(e, options);
  const std::string& target = f.form == OpForm::kOut ? f.arguments.back().name : f.arguments[0].name;
  const std::string end = StrCat("LogWrite(", target, ", ", CppString(f.full_name), ");\nreturn;");
  if (writer.form == OpForm::kInplace) return StrCat(callee, arguments, ");\n", end);
  if (f.form == OpForm::kOut)
    return StrCat(callee, arguments, arguments.empty() ? "" : ", ", target, ");\n", end);
  std::string values, names;
  std::vector<std::string> all;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    const std::string text = EmitFormula(e.operands[i], options);
    if (!e.operands[i].type.is_tensor()) {
      all.push_back(text);
      continue;
    }
    const std::string name = StrCat("input", i, "_");
    StrAppend(&values, "const Tensor ", name, " = ", text, ";\n");
    StrAppend(&names, ", ", name);
    all.push_back(name);
  }
  return StrCat("{\n", values, "CheckFitsSelf(", target, names, ");\n", callee, Join(all, ", "), ", ", target,
                ");\n", end, "\n}");
}

// The write through the views, where what `end` sees in what the call writes is `self`.
std::string CallThroughViews(const Function& f, const FormulaExpr& end, const FormulaExpr& inner,
                             const EmitOptions& options) {
  const Function& writer = *inner.function->entry->inplace;
  const std::string& self = f.arguments[0].name;
  std::string arguments = "seen_";
  for (size_t i = 1; i < inner.operands.size(); ++i)
    StrAppend(&arguments, ", ", EmitFormula(inner.operands[i], options));
  return StrCat("{\nconst Tensor seen_ = ", EmitFormula(inner.operands[0], options), ";\nif (SamePlace(",
                EmitFormula(SeenThrough(end), options), ", ", self, ")) {\n::", writer.entry->ns,
                "::ops::op::", writer.struct_name, "::call(", arguments, ");\nLogWrite(", self, ", ",
                CppString(f.full_name), ");\nreturn;\n}\n}\n");
}

// Calls visit(e) for what each way through a body ends in, with whether memory is asked for before.
template <class Visit>
void VisitEnds(const FormulaExpr& e, bool asked, Visit visit) {
  using Kind = FormulaExpr::Kind;
  switch (e.kind) {
    case Kind::kLet:
      return VisitEnds(e.operands[1], asked || !AsksForNothing(e.operands[0]), visit);
    case Kind::kDo:
      return VisitEnds(e.operands.back(), true, visit);
    case Kind::kCheck:
      return VisitEnds(e.operands.back(), asked, visit);
    case Kind::kIf:
      VisitEnds(e.operands[1], asked || !AsksForNothing(e.operands[0]), visit);
      return VisitEnds(e.operands[2], asked || !AsksForNothing(e.operands[0]), visit);
    default:
      return visit(e, asked);
  }
}

// How the last calls of a body may write in place of a copy.
enum class Through {
  kNever,
  kUnrecorded,  // what else is called may be saved for a gradient
  kAlways,      // the body is a choice of one call, which minds its own gradient
};
Through WritesThrough(const Function& f) {
  const Entry& entry = *f.entry;
  if (f.form == OpForm::kFunctional || !entry.functional || !entry.formula || f.schema.returns.size() != 1)
    return Through::kNever;
  bool any = false, every = true, always = f.form == OpForm::kOut && !entry.derivative;
  VisitEnds(entry.formula->root, false, [&](const FormulaExpr& e, bool asked) {
    const bool writes = Writer(f, e) != nullptr;
    any = any || writes || InnerWriter(f, e) || &Copied(e) != &e;
    every = every && (writes || (!asked && AsksForNothing(Copied(e))));
    const bool one = writes && std::all_of(e.operands.begin(), e.operands.end(), AsksForNothing);
    always = always && !asked && (one || AsksForNothing(e));
  });
  if (always) return Through::kAlways;
  // Of an out form, what another end computes is better lent the memory of `out`.
  return any && (every || f.form == OpForm::kInplace) ? Through::kUnrecorded : Through::kNever;
}

void EmitBodyInto(const Function& f, Printer& p) {
  const bool is_out = f.form == OpForm::kOut;
  const std::string& target = is_out ? f.arguments.back().name : f.arguments[0].name;
  const std::string asked = AskedDType(f);
  if (!asked.empty())
    p.Print({{"asked", asked}}, "[[maybe_unused]] const std::optional<DType> asked = $asked$;");
  EmitOptions options;
  options.name = [&](const FormulaExpr& name) {
    return !asked.empty() && name.text == "dtype" ? std::string("asked") : CppIdentifier(name.text);
  };
  options.result = [&](const FormulaExpr& value, const std::string& text) {
    if (const Function* writer = Writer(f, value)) return CallInto(f, value, *writer, options);
    const FormulaExpr* inner = InnerWriter(f, value);
    const FormulaExpr& copied = Copied(value);
    return StrCat(inner ? CallThroughViews(f, value, *inner, options) : "",
                  is_out ? "CopyToOut(" : "CopyToSelf(", target, ", ",
                  &copied == &value ? text : EmitFormula(copied, options), ");\nLogWrite(", target, ", ",
                  CppString(f.full_name), ");\nreturn;");
  };
  p.Line(Trimmed(EmitStatements(f.entry->formula->root, options, true, 0)));
}

std::string TensorArguments(const Function& f) {
  std::vector<std::string> tensors;
  for (size_t i = 0; i < f.arguments.size(); ++i)
    if (f.schema.arguments[i].type.is_tensor() || f.schema.arguments[i].type.is_tensor_list())
      tensors.push_back(f.arguments[i].name);
  return Join(tensors, ", ");
}

void EmitBody(const FormulaTree& tree, bool returns, Printer& p) {
  EmitOptions options;
  options.name = [](const FormulaExpr& name) { return CppIdentifier(name.text); };
  p.Line(Trimmed(EmitStatements(tree.root, options, returns, 0)));
}

// A definition's head: "Tensor kept(const Tensor& t, IntSpan sizes)".
std::string HeadOf(const Helper& helper) {
  std::vector<std::string> parameters;
  for (const schema::Argument& a : helper.schema.arguments)
    parameters.push_back(StrCat("[[maybe_unused]] ", CppParameterType(a.type), " ", CppIdentifier(a.name)));
  return StrCat(CppReturnType(helper.schema), " ", CppIdentifier(helper.schema.name), "(",
                Join(parameters, ", "), ")");
}

void EmitCopyToSelf(const Function& f, Printer& p) {
  const std::string& self = f.arguments[0].name;
  p.Print({{"self", self}, {"tensors", TensorArguments(f)}},
          "const Tensor before = BeforeWrite($self$, $tensors$);");
  p.Print({{"self", self}, {"call", FunctionalCall(f, "before")}}, "CopyToSelf($self$, $call$);");
  p.Print({{"self", self}, {"name", CppString(f.full_name)}}, "LogWrite($self$, $name$);");
}

void EmitCopiesToOut(const Function& f, Printer& p) {
  const size_t inputs = f.entry->functional->arguments.size();
  const size_t outputs = f.schema.returns.size();
  std::vector<std::string> outs, values, read;
  for (size_t i = 0; i < outputs; ++i) {
    outs.push_back(f.arguments[inputs + i].name);
    values.push_back(outputs == 1 ? "std::move(computed_)"
                                  : StrCat("std::get<", i, ">(std::move(computed_))"));
  }
  for (size_t i = 0; i < inputs; ++i)
    if (f.schema.arguments[i].type.is_tensor() || f.schema.arguments[i].type.is_tensor_list())
      read.push_back(StrCat(", ", f.arguments[i].name));
  p.Print(
      {{"all", TensorArguments(f)},
       {"outs", Join(outs, ", ")},
       {"read", Join(read, "")},
       {"call", FunctionalCall(f, "")},
       {"values", f.entry->fills ? StrCat("InShapeOf(", outs[0], ", ", values[0], ")") : Join(values, ", ")}},
      "MemoryLoan loan_(!AnyRecorded($all$), {$outs$}$read$);\n"
      "auto computed_ = $call$;\n"
      "Tensor values_[] = {$values$};\n"
      "loan_.Settle(values_, [](const Tensor& t) { return ops::clone(t); });");
  for (size_t i = 0; i < outputs; ++i) {
    const std::string& result = f.entry->functional->schema.returns[i].name;
    p.Print({{"out", outs[i]},
             {"i", StrCat(i)},
             {"name", CppString(f.full_name)},
             {"result", CppString(result.empty() ? "result" : result)}},
            "CopyToOut($out$, values_[$i$], loan_, $result$);\nLogWrite($out$, $name$);");
  }
}

// An in-place or out form.
void EmitWriting(const Function& f, Printer& p) {
  const Through through = WritesThrough(f);
  if (through == Through::kAlways) return EmitBodyInto(f, p);
  if (through == Through::kUnrecorded) {
    p.Print({{"tensors", TensorArguments(f)}}, "if (!AnyRecorded($tensors$)) {");
    p.Indent();
    EmitBodyInto(f, p);
    p.Outdent();
    p.Line("}");
  }
  f.form == OpForm::kOut ? EmitCopiesToOut(f, p) : EmitCopyToSelf(f, p);
}

// Shared by all: in an anonymous namespace of each shard.
constexpr const char* kHelpers = R"(
[[maybe_unused]] void CopyToOut(const Tensor& out, const Tensor& value, const char* name = "result") {
  MICA_CHECK(CanCast(value.dtype(), out.dtype()), CannotHold(value.dtype(), out.dtype(), name), "; `out` of dtype (", Name(out.dtype()), ") cannot hold a result of dtype (", Name(value.dtype()), ").");
  CheckNoInternalOverlap(out, "out");
  if (!(out.sizes() == value.sizes())) {
    CheckResizable(out, value.sizes());
    WarnOfResize(out, value.sizes());
    ops::resize_(out, value.sizes());
  }
  ops::copy_(out, value);
}
// The numbers of a range in the shape of an `out` of as many elements.
[[maybe_unused]] Tensor InShapeOf(const Tensor& out, const Tensor& value) {
  return out.numel() == value.numel() ? ops::view(value, out.sizes()) : value;
}
// Nothing is left to copy where the value was computed in the memory of `out`.
[[maybe_unused]] void CopyToOut(const Tensor& out, const Tensor& value, const MemoryLoan& loan, const char* name) {
  if (loan.Fills(value, out)) return out.impl()->storage->BumpVersion();
  CopyToOut(out, value, name);
}
// By Autograd, or by an outer level of a transform.
[[maybe_unused]] bool Recorded(const Tensor& t) {
  return t.defined() && (IsRecorded(t) || t.keys().has(keys::kFrameEscape));
}
[[maybe_unused]] bool Recorded(TensorSpan list) {
  for (const Tensor& t : list)
    if (Recorded(t)) return true;
  return false;
}
template <typename... T>
bool AnyRecorded(const T&... inputs) {
  return (Recorded(inputs) || ...);
}
// What the functional form gets for a tensor that its result then overwrites: a copy
// where it may be saved for a gradient.
template <typename... T>
Tensor BeforeWrite(const Tensor& self, const T&... inputs) {
  return AnyRecorded(inputs...) ? ops::clone(self) : self;
}
[[maybe_unused]] bool SamePlace(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}
// Before a result of the shape that the inputs are broadcast to is written into self.
template <typename... T>
void CheckFitsSelf(const Tensor& self, const T&... inputs) {
  Dims shape;
  ((shape = inputs.defined() ? BroadcastShapes(shape, inputs.sizes(), "self", "another input") : shape), ...);
  const bool fits = IntSpan(shape) == self.sizes();
  MICA_CHECK(fits, "Shape of the result differs from that of `self`, which is written in place; expected the same shape, since an in-place form does not broadcast `self`.");
}
[[maybe_unused]] void CopyToSelf(const Tensor& self, const Tensor& value) {
  MICA_CHECK(self.sizes() == value.sizes(), "Shape of the result differs from that of `self`, which is written in place; expected the same shape, since an in-place form does not broadcast `self`.");
  MICA_CHECK(CanCast(value.dtype(), self.dtype()), "Result has dtype (", Name(value.dtype()), "), which `self` of dtype (", Name(self.dtype()), ") cannot hold; expected a `self` of the same kind or a wider one.");
  CheckNoInternalOverlap(self, "self");
  ops::copy_(self, value);
}
)";

}  // namespace

void EmitComposites(const Model& model, OutputFolder& out) {
  std::vector<Printer> shards(kCompositeShards);
  Printer header;
  header.Line("#pragma once\n\n#include \"mica/ops/prelude.h\"\n\nnamespace mica::composites {");
  for (const auto& helper : model.helpers) {
    if (!helper->formula) continue;
    header.Line(HeadOf(*helper) + ";");
    Printer& p = shards[ShardOf(helper->schema.name, kCompositeShards)];
    p.Line(HeadOf(*helper) + " {");
    p.Indent();
    EmitBody(*helper->formula, true, p);
    p.Outdent();
    p.Line("}");
  }
  for (const auto& entry : model.entries) {
    EmitChecks(*entry, header, shards[ShardOf(entry->base_name, kCompositeShards)]);
    for (const auto& function : entry->functions) {
      const Function& f = *function;
      if (!NeedsGeneratedComposite(f)) continue;
      const std::string head = StrCat(f.return_type, " ", f.struct_name, "(", Unused(f), ")");
      header.Comment(f.schema_text);
      header.Line(head + ";");
      Printer& p = shards[ShardOf(entry->base_name, kCompositeShards)];
      p.Line(head + " {");
      p.Indent();
      if (&f == &entry->primary())
        EmitBody(*entry->formula, entry->functional != nullptr, p);
      else
        EmitWriting(f, p);
      p.Outdent();
      p.Line("}");
    }
  }
  header.Line("\n}  // namespace mica::composites");
  out.Write("kernels/generated_composites.h",
            GeneratedBanner("Composites made from `body:` and for in-place and out forms.") + header.text());
  const bool can_copy = model.Find("copy_") && model.Find("resize_");
  for (int i = 0; i < kCompositeShards; ++i) {
    Printer p;
    p.Line(
        "#include <cmath>\n\n#include \"dispatcher/calls/given_output.h\"\n#include "
        "\"dispatcher/calls/thread_state.h\"\n#include "
        "\"dispatcher/calls/write_log.h\"\n#include \"kernels/formula.h\"\n#include "
        "\"mica/kernels/generated_composites.h\"\n#include \"mica/ops.h\"\n"
        "#include \"tensor/loan.h\"\n#include \"tensor/promote.h\"\n#include "
        "\"tensor/scalar_math.h\"\n\nnamespace "
        "mica::composites {\nnamespace {");
    if (can_copy) p.Line(kHelpers);
    p.Line("}  // namespace\n");
    p.Line(shards[i].text());
    p.Line("}  // namespace mica::composites");
    out.Write(StrCat("composites_", i, ".cc"),
              GeneratedBanner(StrCat("Generated composites, part ", i, ".")) + p.text());
  }
}

}  // namespace mica::codegen
