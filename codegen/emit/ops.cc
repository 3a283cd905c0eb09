// ops/<base>.h and ops_<i>.cc: the C++ face of every operator.
//
// A header has, for each form, a struct in <ns>::ops::op with the signature, the
// name, call() and redispatch(); and a free function in <ns>::ops that takes the
// arguments with their defaults. Out forms take their outputs first, so that the
// defaults stay usable. Two overloads with the same C++ parameters cannot share a
// name: the later one's function gets its overload's name appended.
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
  p.Print({{"name", f.struct_name}}, "struct $name$ {");
  p.Indent();
  p.Print({{"signature", f.signature}}, "using Signature = $signature$;");
  p.Print({{"name", CppString(f.full_name)}}, "static constexpr const char* kName = $name$;");
  p.Line("static Operator& op();");
  p.Print({{"ret", f.return_type}, {"params", f.Parameters(false)}}, "static $ret$ call($params$);");
  p.Print({{"ret", f.return_type}, {"params", f.arguments.empty() ? "" : ", " + f.Parameters(false)}},
          "static $ret$ redispatch(KeySet keys$params$);");
  p.Outdent();
  p.Line("};");
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

void EmitDefinitions(const Function& f, Printer& p) {
  const std::string comma_names = f.arguments.empty() ? "" : ", " + f.ArgumentNames();
  const std::string comma_params = f.arguments.empty() ? "" : ", " + f.Parameters(false);
  p.Print({{"name", f.struct_name}}, "Operator& $name$::op() { return ::mica::generated::$name$; }");
  p.Print({{"ret", f.return_type},
           {"name", f.struct_name},
           {"params", f.Parameters(false)},
           {"names", comma_names}},
          "$ret$ $name$::call($params$) {\n  return "
          "TypedOperator<Signature>::Call(::mica::generated::$name$$names$);\n}");
  p.Print({{"ret", f.return_type}, {"name", f.struct_name}, {"params", comma_params}, {"names", comma_names}},
          "$ret$ $name$::redispatch(KeySet keys$params$) {\n  return "
          "TypedOperator<Signature>::Redispatch(::mica::generated::$name$, keys$names$);\n}");
}

constexpr const char* kPrelude = R"(#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "tensor/tensor.h"

namespace mica {

class Generator;
class Operator;
using ScalarSpan = Span<MicaScalar>;

}  // namespace mica
)";

}  // namespace

void EmitOps(const Model& model, OutputFolder& out) {
  out.Write("ops/prelude.h", GeneratedBanner("What every operator's header needs.") + kPrelude);
  const auto by_header = EntriesByHeader(model);
  std::vector<Printer> shards(kOpsShards);
  std::vector<std::vector<std::string>> includes(kOpsShards);
  Printer all;
  all.Line("#pragma once\n");
  for (const auto& [base, entries] : by_header) {
    out.Write(StrCat("ops/", base, ".h"), Header(base, entries));
    all.Print({{"base", base}}, "#include \"mica/ops/$base$.h\"");
    const int shard = ShardOf(base, kOpsShards);
    includes[shard].push_back(base);
    Printer& p = shards[shard];
    p.Line("namespace mica::generated {");
    for (const Entry* entry : entries)
      for (const auto& f : entry->functions) p.Print({{"name", f->struct_name}}, "extern Operator $name$;");
    p.Line("}  // namespace mica::generated");
    p.Line(OpenNamespace(entries[0]->ns));
    p.Line("namespace op {");
    for (const Entry* entry : entries)
      for (const auto& f : entry->functions) EmitDefinitions(*f, p);
    p.Print({{"ns", entries[0]->ns}}, "}  // namespace op\n}  // namespace $ns$::ops\n");
  }
  out.Write("ops.h", GeneratedBanner("All operators; for the binding and for tests.") + all.text());
  for (int i = 0; i < kOpsShards; ++i) {
    Printer head;
    head.Line("#include \"dispatcher/calls/typed_operator.h\"");
    for (const std::string& base : includes[i])
      head.Print({{"base", base}}, "#include \"mica/ops/$base$.h\"");
    head.Line();
    out.Write(StrCat("ops_", i, ".cc"), GeneratedBanner(StrCat("Calls of the operators, part ", i, ".")) +
                                            head.text() + shards[i].text());
  }
  out.RemoveOthers("ops", ".h");
}

}  // namespace mica::codegen
