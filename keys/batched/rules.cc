// Which rule an operator has: by its class; by name (`batch_rule:` of its entry), where the class
// does not say enough.
#include <optional>
#include <string_view>

#include "keys/batched/batched.h"

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

// By the word that an entry's `batch_rule:` has.
struct NamedRule {
  std::string_view name;
  Rule rule;
};
#define MICA_RULE(function) \
  { #function, &function }
constexpr NamedRule kNamed[] = {
    MICA_RULE(Along),
    MICA_RULE(Attention),
    MICA_RULE(BecomeView),
    MICA_RULE(Bincount),
    MICA_RULE(Convolution),
    MICA_RULE(ConvolutionBackwardInput),
    MICA_RULE(ConvolutionBackwardWeight),
    MICA_RULE(Copied),
    MICA_RULE(CtcLoss),
    MICA_RULE(CtcLossBackward),
    MICA_RULE(Diagonal),
    MICA_RULE(Embedding),
    MICA_RULE(EmbeddingBackward),
    MICA_RULE(Filled),
    MICA_RULE(FlatAlong),
    MICA_RULE(Folded),
    MICA_RULE(Images),
    MICA_RULE(Index),
    MICA_RULE(IndexAdd),
    MICA_RULE(IndexCopy),
    MICA_RULE(IndexPut),
    MICA_RULE(IndexSelect),
    MICA_RULE(LayerNorm),
    MICA_RULE(LdlSolve),
    MICA_RULE(MaskedFilled),
    MICA_RULE(MaskedScatter),
    MICA_RULE(NllLoss),
    MICA_RULE(NllLossBackward),
    MICA_RULE(Pointwise),
    MICA_RULE(Resize),
    MICA_RULE(Sorted),
    MICA_RULE(SquareMatrices),
    MICA_RULE(Trailing),
    MICA_RULE(Transform),
    MICA_RULE(UnfoldBackward),
    MICA_RULE(Whole),
};
#undef MICA_RULE

// What the entry says.
std::optional<RuleEntry> Named(const Operator& op) {
  const char* const word = PolicyOf(op.spec(), "batch_rule");
  if (!word) return std::nullopt;
  const std::string_view name = word;
  if (name == "refused") return RuleEntry{nullptr, Source::kRefused};
  if (name == "kernel") return RuleEntry{nullptr, Source::kByHand};
  if (name.find("::") != std::string_view::npos) return RuleEntry{&ByOperator, Source::kByHand};
  for (const NamedRule& named : kNamed)
    if (named.name == name) return RuleEntry{named.rule, Source::kByHand};
  MICA_THROW(kInternal, "The entry of ", op.spec().name, " names the batch rule (", word,
             "), which keys/batched does not have.");
}

}  // namespace

const char* Name(Source s) {
  static constexpr const char* kNames[] = {"class", "by hand", "decomposition", "loop", "refused"};
  return kNames[static_cast<int>(s)];
}

RuleEntry RuleOf(const Operator& op) {
  const OperatorSpec& spec = op.spec();
  if (const std::optional<RuleEntry> named = Named(op)) return *named;
  if (!spec.adapters && !ClassMeta(spec.op_class)) return {};  // of a plugin or of Python, and not from data
  if (const Rule rule = OfClass(spec.op_class)) return {rule, Source::kClass};
  if (spec.composite) return {nullptr, Source::kDecomposition};
  // Random operators have a kernel of their own; factories take no tensors.
  const bool no_rule_needed = spec.op_class == OpClass::kRandom || spec.op_class == OpClass::kFactory;
  return {nullptr, no_rule_needed ? Source::kClass : Source::kLoop};
}

}  // namespace mica::batched
