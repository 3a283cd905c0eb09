// Four ways to make an operator, counted by base name and by entry.
#include "codegen/stats.h"

#include <set>

#include "codegen/text.h"

namespace mica::codegen {

// A view's shape is by hand, its rule is data; it counts as by hand.
Way WayOf(const Entry& e) {
  if (e.op_class == OpClass::kDecompose) return e.body.text().empty() ? Way::kCpp : Way::kYaml;
  return e.has_program() && e.portable.empty() ? Way::kData : Way::kHand;
}

BatchWay BatchWayOf(const Entry& e) {
  if (e.batch_rule == kBatchRefused) return BatchWay::kRefused;
  if (!e.batch_rule.empty()) return BatchWay::kHand;
  if (e.op_class == OpClass::kDecompose) return BatchWay::kParts;
  return e.op_class == OpClass::kCustom ? BatchWay::kLoop : BatchWay::kClass;
}

namespace {

void AddBatchRules(const Model& model, std::string* text) {
  int counts[kBatchWayCount] = {};
  for (const auto& entry : model.entries) ++counts[static_cast<int>(BatchWayOf(*entry))];
  const auto of = [&](BatchWay way) { return counts[static_cast<int>(way)]; };
  StrAppend(text, "batch rules: ", of(BatchWay::kClass), " from class, ", of(BatchWay::kParts), " by parts, ",
            of(BatchWay::kHand), " by hand, ", of(BatchWay::kRefused), " refused, ", of(BatchWay::kLoop),
            " none\n");
}

// Where the forward-mode rules of differentiable operators come from.
void AddForwardRules(const Model& model, std::string* text) {
  int from_class[kOpClassCount] = {}, by_kind[8] = {}, classes = 0;
  for (const auto& derivative : model.derivatives) {
    const TangentRule& rule = derivative->tangent;
    classes += rule.from_class;
    if (rule.from_class) ++from_class[static_cast<int>(derivative->entry->op_class)];
    if (!rule.from_class) ++by_kind[static_cast<int>(rule.kind)];
  }
  using Kind = TangentRule::Kind;
  const auto of = [&](Kind kind) { return by_kind[static_cast<int>(kind)]; };
  std::string parts;
  for (int c = 0; c < kOpClassCount; ++c)
    if (from_class[c])
      StrAppend(&parts, parts.empty() ? "" : ", ", Name(static_cast<OpClass>(c)), " ", from_class[c]);
  StrAppend(text, "forward rules: ", classes, " from class (", parts, "), ",
            of(Kind::kLinear) + of(Kind::kMultilinear), " said to be linear, ", of(Kind::kFormula),
            " by formula, ", of(Kind::kParts), " by parts, ", of(Kind::kGeneric), " generic\n");
}

}  // namespace

std::string StatsText(const Model& model) {
  int entries[kWayCount] = {}, by_class[kOpClassCount][kWayCount] = {};
  std::set<std::string> bases[kWayCount], all;
  int functions = 0, formulas = 0;
  for (const auto& entry : model.entries) {
    const int way = static_cast<int>(WayOf(*entry));
    ++entries[way];
    ++by_class[static_cast<int>(entry->op_class)][way];
    bases[way].insert(entry->base_name);
    all.insert(entry->base_name);
    functions += static_cast<int>(entry->functions.size());
  }
  for (const auto& derivative : model.derivatives) formulas += static_cast<int>(derivative->rules.size());
  std::string text;
  for (int way = 0; way < kWayCount; ++way)
    StrAppend(&text, kWayNames[way], ": ", entries[way], " entries, ", bases[way].size(), " base names\n");
  for (int c = 0; c < kOpClassCount; ++c) {
    const int* of = by_class[c];
    StrAppend(&text, "class ", Name(static_cast<OpClass>(c)), ": ", of[0] + of[1] + of[2] + of[3],
              " (from data ", of[0], ", in YAML ", of[1], ", in C++ ", of[2], ", by hand ", of[3], ")\n");
  }
  StrAppend(&text, "derivatives: ", model.derivatives.size(), " operators, ", formulas, " formulas\n");
  AddForwardRules(model, &text);
  AddBatchRules(model, &text);
  StrAppend(&text, "total: ", model.entries.size(), " entries, ", all.size(), " base names, ", functions,
            " operators\n");
  return text;
}

}  // namespace mica::codegen
