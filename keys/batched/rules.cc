// Which rule an operator has: by its class; by name (`batch_rule:` of its entry), where the class
// does not say enough.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "keys/batched/batched.h"

namespace mica::batched {
namespace {

Rule OfClass(std::string_view c) {
  if (c == "pointwise") return &Pointwise;
  if (c == "reduction") return &Reduction;
  if (c == "scan" || c == "row" || c == "gather" || c == "scatter") return &Along;
  if (c == "view") return &View;
  if (c == "contraction") return &Contraction;
  if (c == "core") return &Trailing;
  if (c == "fold") return &Join;
  if (c == "window") return &Images;
  return nullptr;
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
std::optional<RuleEntry> Named(void* handle) {
  const char* const word = layer::Table()->operator_policy(handle, "batch_rule");
  if (!word) return std::nullopt;
  const std::string_view name = word;
  if (name == "refused") return RuleEntry{nullptr, Source::kRefused};
  if (name == "kernel") return RuleEntry{nullptr, Source::kByHand};
  if (name.find("::") != std::string_view::npos) return RuleEntry{&ByOperator, Source::kByHand};
  for (const NamedRule& named : kNamed)
    if (named.name == name) return RuleEntry{named.rule, Source::kByHand};
  formula::Throw(MICA_ERROR_INTERNAL, "The entry of ", layer::Table()->operator_info(handle)->name,
                 " names the batch rule (", word, "), which keys/batched does not have.");
}

// Every operator that was asked for. Never freed, for others keep pointers.
struct Known {
  std::mutex mutex;
  std::unordered_map<void*, std::unique_ptr<Op>> ops;
};
Known& AllKnown() {
  static Known* const known = new Known();
  return *known;
}

const Op& MakeOp(void* handle) {
  auto op = std::make_unique<Op>();
  op->handle = handle;
  op->info = layer::Table()->operator_info(handle);
  op->text = op->info->name;
  op->entry = RuleOf(handle);
  op->view = WayOfView(*op->info);
  op->dims_args = DimsArgs(*op->info);
  const char* const functional = op->info->functional_name;
  if (functional && op->name() != functional) op->functional = FindOp(functional);
  Known& known = AllKnown();
  const std::lock_guard<std::mutex> lock(known.mutex);
  std::unique_ptr<Op>& kept = known.ops[handle];
  if (!kept) kept = std::move(op);
  return *kept;
}

}  // namespace

// The operators of late calls, each at the place that its address gives: no lock on the way of a call.
const Op& OpOf(void* handle) {
  static std::atomic<const Op*> recent[4096];
  std::atomic<const Op*>& place = recent[(reinterpret_cast<uintptr_t>(handle) >> 4) % 4096];
  const Op* op = place.load(std::memory_order_acquire);
  if (op && op->handle == handle) return *op;
  op = &MakeOp(handle);
  place.store(op, std::memory_order_release);
  return *op;
}

const Op* FindOp(std::string_view name) {
  void* const handle = layer::Table()->find_operator(std::string(name).c_str());
  return handle ? &OpOf(handle) : nullptr;
}

int64_t Op::Find(std::string_view argument) const {
  for (int32_t i = 0; i < info->num_args; ++i)
    if (argument == info->args[i].name) return i;
  return -1;
}

const char* Name(Source s) {
  static constexpr const char* kNames[] = {"class", "by hand", "decomposition", "loop", "refused"};
  return kNames[static_cast<int>(s)];
}

RuleEntry RuleOf(void* handle) {
  const MicaOperatorInfo& info = *layer::Table()->operator_info(handle);
  if (const std::optional<RuleEntry> named = Named(handle)) return *named;
  if (!(info.flags & MICA_OPERATOR_BY_CLASS)) return {};  // of a plugin or of Python, and not from data
  const std::string_view c = info.class_name;
  if (const Rule rule = OfClass(c)) return {rule, Source::kClass};
  if (info.flags & MICA_OPERATOR_COMPOSITE) return {nullptr, Source::kDecomposition};
  // Random operators have a kernel of their own; factories take no tensors.
  const bool no_rule_needed = c == "random" || c == "factory";
  return {nullptr, no_rule_needed ? Source::kClass : Source::kLoop};
}

}  // namespace mica::batched
