// The words for operators' classes, forms and dtype rules, each list in its enumeration's order.
#include "schema/operator_class.h"

#include <iterator>

namespace mica {
namespace {

constexpr const char* kClasses[] = {"custom",  "pointwise",   "reduction", "scan",   "row",
                                    "window",  "gather",      "scatter",   "random", "view",
                                    "factory", "contraction", "core",      "fold",   "decompose"};
static_assert(std::size(kClasses) == kOpClassCount);
constexpr const char* kForms[] = {"functional", "inplace", "out"};
constexpr const char* kRules[] = {"promote", "float",   "bool",       "same",  "index",
                                  "real",    "complex", "accumulate", "fixed", "argument"};
static_assert(std::size(kRules) == kDTypeRuleCount);

}  // namespace

const char* Name(OpClass c) { return kClasses[static_cast<int>(c)]; }
const char* Name(OpForm f) { return kForms[static_cast<int>(f)]; }
const char* Name(DTypeRule r) { return kRules[static_cast<int>(r)]; }

std::optional<OpClass> OpClassNamed(std::string_view name) {
  for (int c = 0; c < kOpClassCount; ++c)
    if (name == kClasses[c]) return static_cast<OpClass>(c);
  return std::nullopt;
}

}  // namespace mica
