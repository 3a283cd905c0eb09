// docs/operators/<base>.md: the reference page of each base name, and README.md.
//
// A page tells a Python user what the function is called, what it means, its shapes and
// dtypes, its gradient, an example, and how it is made. Examples stand as statements, from
// `example:` of the entry, or as a comment that names the overload: scripts/reference.py runs
// them, makes those that lack from sample inputs, and writes what they print. Operators that
// have no Python name, and those that only formulas call, are listed apart.
#include <algorithm>
#include <map>

#include "codegen/emit/emitters.h"
#include "codegen/emit/prose.h"
#include "codegen/emit/python.h"
#include "codegen/stats.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

// Where the forward-mode rule comes from.
std::string TangentText(const TangentRule& rule) {
  if (!rule.text.text().empty()) return StrCat("`", rule.text.text(), "`");
  switch (rule.kind) {
    case TangentRule::Kind::kZero:
      return "the tangent is zero";
    case TangentRule::Kind::kPointwise:
      return "the gradients' formulas, of tangents";
    case TangentRule::Kind::kReduction:
      return "the tangents of a slice, weighed by the gradient of one";
    case TangentRule::Kind::kLinear:
      return "the operator itself, of tangents";
    case TangentRule::Kind::kMultilinear:
      return "the operator itself, of one input's tangent after the other";
    default:
      return "the gradient of the gradient";
  }
}

std::string GradientText(const Entry& e) {
  if (!e.derivative) {
    if (!e.differentiable) return " none";
    if (e.op_class == OpClass::kDecompose) return " that of the operators which it is made of";
    return " not implemented; backward through it raises";
  }
  std::string text;
  for (const GradientRule& rule : e.derivative->rules) {
    std::vector<std::string> names;
    for (const int number : rule.inputs) names.push_back(e.primary().schema.arguments[number].name);
    StrAppend(&text, "\n  - `", Join(names, "`, `"), "`: `", rule.text.text(), "`");
  }
  return StrCat(text, "\n- Forward mode: ", TangentText(e.derivative->tangent));
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// What it computes, as it stands in the YAML file; by dtype kind where kinds differ.
std::string Definition(const Entry& e) {
  if (!e.body.text().empty()) return std::string(Trim(e.body.text()));
  if (e.op_class != OpClass::kPointwise) return "";
  std::vector<std::pair<std::string, uint16_t>> sources;  // with the kinds that share one
  for (int kind = 0; kind < 5; ++kind) {
    if (!e.programs[kind]) continue;
    const std::string& source = e.programs[kind]->source;
    const auto same = [&](const auto& s) { return s.first == source; };
    const auto at = std::find_if(sources.begin(), sources.end(), same);
    if (at == sources.end())
      sources.emplace_back(source, uint16_t{1} << kind);
    else
      at->second |= uint16_t{1} << kind;
  }
  std::vector<std::string> lines;
  for (const auto& [source, kinds] : sources)
    lines.push_back(sources.size() == 1 ? source : StrCat(KindsText(kinds), ": ", source));
  return Join(lines, "\n");
}

// A table of the arguments of the entry's forms.
void AddArguments(const Model& model, const Entry& e, std::string* text) {
  const auto& arguments = e.primary().schema.arguments;
  if (arguments.empty()) return;
  StrAppend(text, "| argument | type | default | |\n|---|---|---|---|\n");
  for (const schema::Argument& a : arguments) {
    const std::string standard = a.default_value ? StrCat("`", DefaultInWords(*a.default_value), "`") : "";
    StrAppend(text, "| `", a.name, "` | ", TypeInWords(a.type), " | ", standard, " | ",
              ArgumentText(model, e, a), " |\n");
  }
  StrAppend(text, "\n");
}

void AddEntry(const Model& model, const Entry& e, std::string* text) {
  StrAppend(text, "\n## `", e.primary().full_name.substr(e.ns.size() + 2), "`\n\n", e.doc, "\n\n```text\n");
  for (const auto& f : e.functions) StrAppend(text, f->schema_text, "\n");
  StrAppend(text, "```\n\n");
  AddArguments(model, e, text);
  const std::string shape = ShapeText(e);
  if (!shape.empty()) StrAppend(text, "- Shape: ", shape, "\n");
  if (e.op_class != OpClass::kDecompose && e.op_class != OpClass::kView) {
    StrAppend(text, "- Result's dtype: ", DTypeText(e), "\n");
    if (e.supports) StrAppend(text, "- Computes in: ", KindsText(e.supports), "\n");
  }
  StrAppend(text, "- Gradient:", GradientText(e), "\n- Class: `", FirstLine(e.class_text), "`, ",
            kWayNames[static_cast<int>(WayOf(e))], "\n");
  const std::string definition = Definition(e);
  if (!definition.empty()) StrAppend(text, "\nDefinition:\n\n```text\n", definition, "\n```\n");
  if (e.example.empty())
    StrAppend(text, "\n<!-- example: ", e.primary().full_name.substr(e.ns.size() + 2), " -->\n");
  else
    StrAppend(text, "\nExample:\n\n```python\n", e.example, "\n```\n");
}

// "`mica.add`", "`Tensor.add`", ...: by base name, as Python has them.
std::map<std::string, std::vector<std::string>> PythonNames(const Model& model) {
  std::map<std::string, std::vector<std::string>> names;
  for (const PythonGroup& g : PythonGroups(model)) {
    bool function = false, method = false;
    for (const PythonSignature& s : g.signatures) {
      function = function || s.as_function;
      method = method || s.as_method;
    }
    auto& list = names[g.base_name];
    const std::string module = g.module.empty() ? "mica." : StrCat("mica.", g.module, ".");
    if (function) list.push_back(StrCat("`", module, g.name, "`"));
    if (method) list.push_back(StrCat("`Tensor.", g.name, "`"));
  }
  return names;
}

// What only formulas and other operators call.
bool Internal(const std::string& base, bool has_names) {
  return !has_names || base[0] == '_' || base.find("_backward") != std::string::npos;
}

// Where a program looks for it: "mica.linalg", "mica" or, for methods alone, "Tensor".
std::string ModuleOf(const std::string& base, const std::vector<std::string>& names) {
  for (const std::string module : {"linalg", "fft", "special"})
    if (base.starts_with(module + "_")) return "mica." + module;
  std::string best = "Tensor";
  for (const std::string& name : names) {
    const std::string module = name.substr(1, name.rfind('.') - 1);
    if (module != "Tensor" && (best == "Tensor" || module.size() > best.size())) best = module;
  }
  return best;
}

void AddIndex(const std::string& head, const std::vector<const Entry*>& firsts, std::string* index) {
  if (firsts.empty()) return;
  StrAppend(index, "\n## ", head, "\n\n");
  for (const Entry* e : firsts)
    StrAppend(index, "- [", e->base_name, "](", e->base_name, ".md), `", Name(e->op_class), "`: ", e->doc,
              "\n");
}

}  // namespace

void EmitDocs(const Model& model, OutputFolder& out) {
  std::map<std::string, std::vector<const Entry*>> by_base;
  for (const auto& entry : model.entries) by_base[entry->base_name].push_back(entry.get());
  auto names = PythonNames(model);
  std::map<std::string, std::vector<const Entry*>> by_module;
  std::vector<const Entry*> internal;
  for (const auto& [base, entries] : by_base) {
    auto& list = names[base];
    const bool hidden = Internal(base, !list.empty());
    (hidden ? internal : by_module[ModuleOf(base, list)]).push_back(entries[0]);
    std::string text = StrCat("# ", base, "\n\n");
    if (hidden)
      text += "Internal: other operators and formulas call it, programs do not.\n";
    else
      StrAppend(&text, "In Python: ", Join(list, ", "), "\n");
    for (const Entry* entry : entries) AddEntry(model, *entry, &text);
    StrAppend(&text, "\n[All operators](README.md)\n");
    out.Write(StrCat("docs/operators/", base, ".md"), text);
  }
  std::string index =
      "# Operators\n\nGenerated from native_functions.yaml and derivatives.yaml. One page a name, all its\n"
      "overloads on it; behind the name, the class that says how it is made (docs/concepts/codegen.md).\n"
      "In examples `nn` is `mica.nn` and `F` is `mica.nn.functional`; they were run, and show what they\n"
      "printed.\n";
  for (const auto& [module, entries] : by_module) AddIndex(module, entries, &index);
  AddIndex("Internal", internal, &index);
  out.Write("docs/operators/README.md", index);
  out.RemoveOthers("docs/operators", ".md");
}

}  // namespace mica::codegen
