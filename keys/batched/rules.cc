// Which rule an operator has: by its class; by name (`batch_rule:` of its entry), where the class
// does not say enough.
#include "keys/batched/batched.h"

#include "absl/container/flat_hash_map.h"

namespace mica::batched {
namespace {

Rule OfClass(OpClass c) {
  switch (c) {
    case OpClass::kPointwise:
      return &Pointwise;
    case OpClass::kReduction:
      return &Reduction;
    case OpClass::kScan:
    case OpClass::kRow:
    case OpClass::kGather:
    case OpClass::kScatter:
      return &Along;
    case OpClass::kView:
      return &View;
    case OpClass::kContraction:
      return &Contraction;
    case OpClass::kCore:
      return &Trailing;
    case OpClass::kFold:
      return &Join;
    case OpClass::kWindow:
      return &Images;
    default:
      return nullptr;
  }
}

// What the entries of native_functions.yaml name, by the name of the functional form.
const absl::flat_hash_map<std::string_view, RuleEntry>& ByName() {
  static const auto* table = [] {
    auto* made = new absl::flat_hash_map<std::string_view, RuleEntry>;
    for (const NamedRule& rule : NamedRules()) made->emplace(rule.name, rule.entry);
    return made;
  }();
  return *table;
}

}  // namespace

const char* Name(Source s) {
  static constexpr const char* kNames[] = {"class", "by hand", "decomposition", "loop", "refused"};
  return kNames[static_cast<int>(s)];
}

RuleEntry RuleOf(const Operator& op) {
  const OperatorSpec& spec = op.spec();
  const auto& table = ByName();
  auto found = table.find(op.name());
  if (found == table.end() && spec.functional_name) found = table.find(spec.functional_name);
  if (found != table.end()) return found->second;
  if (!spec.adapters) {  // of a plugin or of Python
    if (!frames::PluginBatchRule(op.name()).empty()) return {&ByOperator, Source::kByHand};
    if (!ClassMeta(spec.op_class)) return {};  // not from data
  }
  if (const Rule rule = OfClass(spec.op_class)) return {rule, Source::kClass};
  if (spec.composite) return {nullptr, Source::kDecomposition};
  // Random operators have a kernel of their own; factories take no tensors.
  const bool no_rule_needed = spec.op_class == OpClass::kRandom || spec.op_class == OpClass::kFactory;
  return {nullptr, no_rule_needed ? Source::kClass : Source::kLoop};
}

}  // namespace mica::batched
