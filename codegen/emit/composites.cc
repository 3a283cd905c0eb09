// composites_<i>.cc: composites that nobody writes by hand, and their
// declarations in kernels/generated_composites.h.
//
// A `body:` becomes one expression over operators. The in-place and out forms of
// a composite, and of an operator that sizes its own result, compute the
// functional form and copy: out= is resized first, as other out forms are. Where a
// body is but a choice of one call, its out form hands `out` to that call.
#include <algorithm>

#include "mica/codegen/emit/emitters.h"
#include "mica/codegen/formula/formula.h"
#include "mica/codegen/names.h"
#include "mica/codegen/text.h"

namespace mica::codegen {
namespace {

std::string Trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The functional form's call; an in-place form gives what stands for `self`, and what
// is written has the dtype, unless another is asked for.
std::string FunctionalCall(const Function& f, const std::string& self) {
  const Function& functional = *f.entry->functional;
  std::vector<std::string> names;
  for (size_t i = 0; i < functional.arguments.size(); ++i)
    names.push_back(i == 0 && !self.empty() ? self : f.arguments[i].name);
  const int dtype = f.schema.FindArgument("dtype");
  if (f.form == OpForm::kOut && dtype >= 0 &&
      f.schema.arguments[static_cast<size_t>(dtype)].type.is_optional()) {
    const std::string& out = f.arguments[functional.arguments.size()].name;
    std::string& name = names[static_cast<size_t>(dtype)];
    const bool of_tensor = f.schema.arguments[0].type.is(schema::TypeKind::kTensor);
    const std::string asked = StrCat("std::optional<DType>(", name, ".value_or(", out, ".dtype()))");
    // A real `out` of complex numbers (a norm) does not make them real before.
    name = of_tensor ? StrCat("(IsComplex(", names[0], ".dtype()) && !IsComplex(", out, ".dtype()) ? ", name,
                              " : ", asked, ")")
                     : asked;
  }
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

bool IsOneCall(const FormulaExpr& e) {
  const bool called = e.kind == FormulaExpr::Kind::kCall && e.function->form == OpForm::kFunctional &&
                      e.function->entry->out && e.function->schema.returns.size() == 1;
  return called && std::all_of(e.operands.begin(), e.operands.end(), AsksForNothing);
}

// Whether each way through a body ends in one call of an operator that has an out form,
// or in a tensor that exists.
bool EndsInOneCall(const FormulaExpr& e) {
  using Kind = FormulaExpr::Kind;
  switch (e.kind) {
    case Kind::kLet:
      return AsksForNothing(e.operands[0]) && EndsInOneCall(e.operands[1]);
    case Kind::kCheck:
      return EndsInOneCall(e.operands.back());
    case Kind::kIf:
      return AsksForNothing(e.operands[0]) && EndsInOneCall(e.operands[1]) && EndsInOneCall(e.operands[2]);
    default:
      return IsOneCall(e) || AsksForNothing(e);
  }
}

// An out form whose body can hand `out` to its last call: its result needs no memory of its own.
bool WritesThrough(const Function& f) {
  const Entry& entry = *f.entry;
  return f.form == OpForm::kOut && entry.functional && entry.formula && !entry.derivative &&
         f.schema.returns.size() == 1 && f.schema.FindArgument("dtype") < 0 &&
         EndsInOneCall(entry.formula->root);
}

void EmitBodyInto(const Function& f, Printer& p) {
  const std::string& out = f.arguments.back().name;
  EmitOptions options;
  options.name = [](const FormulaExpr& name) { return CppIdentifier(name.text); };
  options.result = [&](const FormulaExpr& value, const std::string& text) {
    if (!IsOneCall(value))
      return StrCat("CopyToOut(", out, ", ", text, ");\nLogWrite(", out, ", ", CppString(f.full_name),
                    ");\nreturn;");
    const Function& called = *value.function->entry->out;
    const std::string arguments = EmitArguments(value, options);
    return StrCat("return ::", called.entry->ns, "::ops::op::", called.struct_name, "::call(", arguments,
                  arguments.empty() ? "" : ", ", out, ");");
  };
  p.Line(Trimmed(EmitStatements(f.entry->formula->root, options, true, 0)));
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

void EmitCopies(const Function& f, Printer& p) {
  const size_t inputs = f.entry->functional->arguments.size();
  const size_t outputs = f.schema.returns.size();
  std::string self;
  if (f.form == OpForm::kInplace) {
    std::vector<std::string> tensors;
    for (size_t i = 0; i < f.arguments.size(); ++i)
      if (f.schema.arguments[i].type.is_tensor() || f.schema.arguments[i].type.is_tensor_list())
        tensors.push_back(f.arguments[i].name);
    self = "before";
    p.Print({{"self", f.arguments[0].name}, {"tensors", Join(tensors, ", ")}},
            "const Tensor before = BeforeWrite($self$, $tensors$);");
  }
  p.Print({{"call", FunctionalCall(f, self)}}, "const auto computed = $call$;");
  for (size_t i = 0; i < outputs; ++i) {
    const std::string value = outputs == 1 ? "computed" : StrCat("std::get<", i, ">(computed)");
    const std::string& target =
        f.form == OpForm::kInplace ? f.arguments[0].name : f.arguments[inputs + i].name;
    if (f.form == OpForm::kOut)
      p.Print({{"target", target}, {"value", value}}, "CopyToOut($target$, $value$);");
    else
      p.Print({{"target", target}, {"value", value}}, "CopyToSelf($target$, $value$);");
    p.Print({{"target", target}, {"name", CppString(f.full_name)}}, "LogWrite($target$, $name$);");
  }
}

// Shared by all: in an anonymous namespace of each shard.
constexpr const char* kHelpers = R"(
[[maybe_unused]] void CopyToOut(const Tensor& out, const Tensor& value) {
  MICA_CHECK(CanCast(value.dtype(), out.dtype()), "Result has dtype (", Name(value.dtype()), "), which `out` of dtype (", Name(out.dtype()), ") cannot hold; expected an `out` of the same kind or a wider one.");
  CheckNoInternalOverlap(out, "out");
  if (!(out.sizes() == value.sizes())) ops::resize_(out, value.sizes());
  ops::copy_(out, value);
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
// What the functional form gets for a tensor that its result then overwrites: a copy
// where it may be saved for a gradient.
template <typename... T>
Tensor BeforeWrite(const Tensor& self, const T&... inputs) {
  return (Recorded(inputs) || ...) ? ops::clone(self) : self;
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
      else if (WritesThrough(f))
        EmitBodyInto(f, p);
      else
        EmitCopies(f, p);
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
        "#include <cmath>\n\n#include \"mica/dispatcher/thread_state.h\"\n#include "
        "\"mica/dispatcher/write_log.h\"\n#include \"mica/kernels/formula.h\"\n#include "
        "\"mica/kernels/generated_composites.h\"\n#include \"mica/ops.h\"\n"
        "#include \"mica/tensor/promote.h\"\n#include \"mica/tensor/scalar_math.h\"\n\nnamespace "
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
