// What entries say to the layers: their `autocast:`, `batch_rule:` and the arguments of `class:`, as policies
// of the operator's spec. The layers of keys/ read them by name; nothing here knows what a layer does with
// them.
#include "codegen/emit/emitters.h"

namespace mica::codegen {
namespace {

// A composite decomposes at a layer that it says nothing to ("parts"). With a gradient formula it passes
// autocast instead, so that the formula serves: its parts meet the layer when they run.
void AddAutocast(const Entry& entry, bool has_formula, std::vector<Policy>* policies) {
  const bool decomposes = entry.op_class == OpClass::kDecompose;
  const auto word = [&](const std::string& text) {
    return text == "parts" && (has_formula || !decomposes) ? std::string("none") : text;
  };
  const std::string cpu = word(entry.autocast_cpu), other = word(entry.autocast);
  if (!entry.functional || (cpu == other && other == (decomposes ? "parts" : "none"))) return;
  policies->push_back({"autocast", other});
  if (cpu != other) policies->push_back({"autocast.cpu", cpu});
}

}  // namespace

std::vector<Policy> PoliciesOf(const Entry& entry, bool has_formula) {
  std::vector<Policy> policies;
  AddAutocast(entry, has_formula, &policies);
  if (!entry.batch_rule.empty()) policies.push_back({"batch_rule", entry.batch_rule});
  if (entry.class_text.find('(') != std::string::npos) policies.push_back({"class", entry.class_text});
  return policies;
}

}  // namespace mica::codegen
