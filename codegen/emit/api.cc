// api.h: mica::api::Tensor, a Tensor with the operators as methods and with
// infix operators, for programs. Nothing inside Mica includes it, since it
// changes with every operator.
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

// What the handle has already, with the same meaning.
const std::set<std::string>& HandleMembers() {
  static const std::set<std::string> names = {
      "defined",        "impl",          "is_same",   "ndim",          "dim",
      "sizes",          "strides",       "size",      "stride",        "numel",
      "dtype",          "device",        "itemsize",  "is_contiguous", "is_wrapped_number",
      "is_inference",   "requires_grad", "keys",      "data",          "storage",
      "storage_offset", "version",       "view_base", "is_view",       "release",
      "reset"};
  return names;
}

// Parameters after `self`, with defaults.
std::string MethodParameters(const Function& f) {
  std::vector<std::string> parts;
  for (size_t i = 1; i < f.arguments.size(); ++i) {
    const CppArgument& a = f.arguments[i];
    // A method's own name would hide the base class in its parameters.
    std::string type = a.type;
    if (type == "const Tensor&") type = "const ::mica::Tensor&";
    parts.push_back(StrCat(type, " ", a.name, a.default_value.empty() ? "" : " = ",
                           a.default_value == "Tensor()" ? "::mica::Tensor()" : a.default_value));
  }
  return Join(parts, ", ");
}

void EmitMethod(const Function& f, const std::string& name, Printer& p) {
  std::string names = "*this";
  for (size_t i = 1; i < f.arguments.size(); ++i) StrAppend(&names, ", ", f.arguments[i].name);
  const std::string call = StrCat("ops::op::", f.struct_name, "::call(", names, ")");
  const bool inplace = f.form == OpForm::kInplace;
  std::string ret = f.return_type, body = StrCat("return ", call, ";");
  if (inplace) {
    ret = "const Tensor&";
    body = StrCat(call, ";\n  return *this;");
  } else if (f.return_type == "std::vector<Tensor>" || f.return_type.starts_with("std::tuple<")) {
    ret = "auto";
  }
  const std::string lead = StrCat(ret, " ", name, "(");
  p.Print({{"lead", lead}, {"params", MethodParameters(f)}, {"body", body}},
          "$lead$$params$) const {\n  $body$\n}");
}

struct InfixOperator {
  const char* sign;
  const char* op;
};
constexpr InfixOperator kInfix[] = {
    {"+", "add"},         {"-", "sub"},        {"*", "mul"},         {"/", "div"}, {"%", "remainder"},
    {"&", "bitwise_and"}, {"|", "bitwise_or"}, {"^", "bitwise_xor"}, {"==", "eq"}, {"!=", "ne"},
    {"<", "lt"},          {"<=", "le"},        {">", "gt"},          {">=", "ge"}};

bool Has(const Model& model, const std::string& name) { return model.Find(name) != nullptr; }

void EmitInfix(const Model& model, Printer& p) {
  for (const InfixOperator& infix : kInfix) {
    const std::string op = infix.op;
    if (Has(model, op + ".Tensor"))
      p.Print({{"sign", infix.sign}, {"op", op}},
              "inline Tensor operator$sign$(const Tensor& a, const Tensor& b) { return ops::$op$(a, b); }");
    if (Has(model, op + ".Scalar"))
      p.Print({{"sign", infix.sign}, {"op", op}},
              "inline Tensor operator$sign$(const Tensor& a, const Scalar& b) { return ops::$op$(a, b); }");
  }
  if (Has(model, "neg")) p.Line("inline Tensor operator-(const Tensor& a) { return ops::neg(a); }");
}

}  // namespace

void EmitApi(const Model& model, OutputFolder& out) {
  Printer p;
  p.Line("#pragma once\n\n#include \"mica/ops.h\"\n\nnamespace mica::api {\n");
  p.Line("// The handle of tensor/tensor.h with a method for each operator that has one.");
  p.Line("class Tensor : public ::mica::Tensor {\n public:");
  p.Line("  Tensor() = default;\n  Tensor(::mica::Tensor t) : ::mica::Tensor(std::move(t)) {}\n");
  p.Indent();
  std::set<std::string> taken;
  for (const auto& entry : model.entries) {
    if (!entry->python_method || entry->ns != "mica") continue;
    for (const Function* f : {entry->functional, entry->inplace}) {
      if (!f || HandleMembers().count(f->cpp_name)) continue;
      std::string types = f->cpp_name;
      for (const CppArgument& a : f->arguments) StrAppend(&types, ",", a.type);
      if (!taken.insert(types).second) continue;
      p.Comment(f->schema_text);
      EmitMethod(*f, f->cpp_name, p);
    }
  }
  p.Outdent();
  p.Line("};\n");
  EmitInfix(model, p);
  p.Line("\n}  // namespace mica::api");
  out.Write("api.h", GeneratedBanner("The C++ API: tensors with methods.") + p.text());
}

}  // namespace mica::codegen
