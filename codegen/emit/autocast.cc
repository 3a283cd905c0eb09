// autocast.cc: the layer's registrations, one for each functional form that has a policy.
//
// A composite without one decomposes at the layer, by the layer's own rule; one that has a
// gradient formula passes it instead, so that the formula serves: its parts meet the layer
// when they run.
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

// "kLower"; "none" is kNone, and so is "parts" where a formula serves the whole.
std::string PolicyName(const std::string& policy, bool has_parts) {
  if (policy == "parts" && has_parts) return "AutocastPolicy::kParts";
  if (policy == "lower") return "AutocastPolicy::kLower";
  if (policy == "float32") return "AutocastPolicy::kFloat32";
  if (policy == "promote") return "AutocastPolicy::kPromote";
  if (policy == "whole") return "AutocastPolicy::kWhole";
  return "AutocastPolicy::kNone";
}

bool HasPolicy(const Entry& entry) {
  const auto has = [](const std::string& policy) { return policy != "none" && policy != "parts"; };
  return has(entry.autocast) || has(entry.autocast_cpu);
}

}  // namespace

void EmitAutocast(const Model& model, OutputFolder& out) {
  std::set<const Entry*> with_formula;
  for (const auto& derivative : model.derivatives) with_formula.insert(derivative->entry);
  Printer p;
  p.Line("#include \"dispatcher/layers/autocast.h\"\n#include \"dispatcher/registration/registration.h\"\n");
  p.Line("namespace mica::autocast {\n\nvoid RegisterPolicies(Scope& scope);");
  p.Line("void RegisterPolicies(Scope& scope) {");
  p.Indent();
  for (const auto& entry : model.entries) {
    if (!entry->functional) continue;
    const std::string name = CppString(entry->functional->full_name);
    if (HasPolicy(*entry)) {
      const bool has_parts = entry->op_class == OpClass::kDecompose && !with_formula.count(entry.get());
      p.Print({{"name", name},
               {"cpu", PolicyName(entry->autocast_cpu, has_parts)},
               {"other", PolicyName(entry->autocast, has_parts)},
               {"file", CppString(entry->location.file->name)},
               {"line", StrCat(entry->location.line)}},
              "scope.AddBoxedKernel($name$, \"Autocast\",\n"
              "                     AutocastKernel({$cpu$, $other$}), {$file$, $line$});");
    } else if (entry->op_class == OpClass::kDecompose &&
               (with_formula.count(entry.get()) || entry->autocast == "none")) {
      p.Print({{"name", name}}, "scope.AddFallthrough($name$, \"Autocast\");");
    }
  }
  p.Outdent();
  p.Line("}\n\n}  // namespace mica::autocast");
  out.Write("autocast.cc", GeneratedBanner("What the layer Autocast does with each operator.") + p.text());
}

}  // namespace mica::codegen
