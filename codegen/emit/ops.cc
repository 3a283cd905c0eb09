// ops/<base>.h: the C++ face of every operator.
//
// A header has, for each form, a struct in <ns>::ops::op with its Signature, op(),
// call() and redispatch() (dispatcher/calls/typed_operator.h); and a free function in <ns>::ops that takes
// the arguments with their defaults. Out forms take their outputs first, so that the defaults stay usable.
// Two overloads with the same C++ parameters cannot share a name: the later one's function gets its
// overload's name appended.
#include <map>
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

std::map<std::string, std::vector<const Entry*>> EntriesByHeader(const Model& model) {
  std::map<std::string, std::vector<const Entry*>> by_header;
  for (const auto& entry : model.entries) by_header[entry->base_name].push_back(entry.get());
  return by_header;
}

std::string OpenNamespace(const std::string& ns) {
  return ns == "mica" ? "namespace mica::ops {"
                      : StrCat("namespace ", ns, "::ops {\nusing namespace ::mica;");
}

// "const Tensor& out, const Tensor& self": outputs first.
std::string FreeParameters(const Function& f, bool with_defaults) {
  if (f.form != OpForm::kOut) return f.Parameters(with_defaults);
  const size_t inputs = f.entry->functional->arguments.size();
  std::vector<std::string> parts;
  for (size_t i = inputs; i < f.arguments.size(); ++i)
    parts.push_back(StrCat(f.arguments[i].type, " ", f.arguments[i].name));
  for (size_t i = 0; i < inputs; ++i) {
    const CppArgument& a = f.arguments[i];
    std::string part = StrCat(a.type, " ", a.name);
    if (with_defaults && !a.default_value.empty()) StrAppend(&part, " = ", a.default_value);
    parts.push_back(std::move(part));
  }
  return Join(parts, ", ");
}

// The written argument that a free function returns; "" if none or several.
std::string WrittenName(const Function& f) {
  if (f.form == OpForm::kFunctional || f.schema.returns.size() != 1) return "";
  for (size_t i = 0; i < f.arguments.size(); ++i)
    if ((f.written_args >> i) & 1) return f.arguments[i].type == "const Tensor&" ? f.arguments[i].name : "";
  return "";
}

void EmitStruct(const Function& f, Printer& p) {
  p.Print({{"name", f.struct_name}, {"signature", f.signature}},
          "struct $name$ : OperatorCalls<::mica::generated::$name$, $signature$> {};");
}

void EmitFreeFunction(const Function& f, const std::string& name, Printer& p) {
  const std::string written = WrittenName(f);
  const std::string ret = written.empty() ? f.return_type : "const Tensor&";
  p.Print({{"ret", ret}, {"name", name}, {"params", FreeParameters(f, true)}},
          "inline $ret$ $name$($params$) {");
  const std::string call = StrCat("op::", f.struct_name, "::call(", f.ArgumentNames(), ");");
  if (written.empty()) {
    p.Print({{"call", call}}, "  return $call$");
  } else {
    p.Print({{"call", call}, {"written", written}}, "  $call$\n  return $written$;");
  }
  p.Line("}");
}

std::string Header(const std::string& base, const std::vector<const Entry*>& entries) {
  Printer p;
  p.Line("#pragma once\n");
  p.Line("#include \"mica/ops/prelude.h\"\n");
  p.Line("namespace mica::generated {");
  for (const Entry* entry : entries)
    for (const auto& f : entry->functions) p.Print({{"name", f->struct_name}}, "extern Operator $name$;");
  p.Line("}  // namespace mica::generated\n");
  p.Line(OpenNamespace(entries[0]->ns));
  p.Line("namespace op {");
  for (const Entry* entry : entries)
    for (const auto& f : entry->functions) EmitStruct(*f, p);
  p.Line("}  // namespace op\n");
  std::set<std::string> taken;
  for (const Entry* entry : entries) {
    for (const auto& f : entry->functions) {
      p.Comment(entry->doc);
      p.Comment(f->schema_text);
      std::string types = f->cpp_name;
      for (const CppArgument& a : f->arguments) StrAppend(&types, ",", a.type);
      const bool is_new = taken.insert(types).second;
      EmitFreeFunction(*f, is_new ? f->cpp_name : StrCat(f->cpp_name, "_", f->schema.overload), p);
    }
  }
  p.Line();
  p.Print({{"ns", entries[0]->ns}}, "}  // namespace $ns$::ops");
  return GeneratedBanner(StrCat("Operators named ", base, ".")) + p.text();
}

constexpr const char* kPrelude =
    "#pragma once\n\n"
    "#include <optional>\n#include <string_view>\n#include <tuple>\n#include <vector>\n\n"
    "#include \"dispatcher/calls/typed_operator.h\"\n#include \"tensor/tensor.h\"\n\n"
    "namespace mica {\n\nclass Generator;\nusing ScalarSpan = Span<MicaScalar>;\n\n}  // namespace mica\n";

}  // namespace

void EmitOps(const Model& model, OutputFolder& out) {
  out.Write("ops/prelude.h", GeneratedBanner("What every operator's header needs.") + kPrelude);
  Printer all;
  all.Line("#pragma once\n");
  for (const auto& [base, entries] : EntriesByHeader(model)) {
    out.Write(StrCat("ops/", base, ".h"), Header(base, entries));
    all.Print({{"base", base}}, "#include \"mica/ops/$base$.h\"");
  }
  out.Write("ops.h", GeneratedBanner("All operators; for the binding and for tests.") + all.text());
  out.RemoveOthers("ops", ".h");
}

}  // namespace mica::codegen
