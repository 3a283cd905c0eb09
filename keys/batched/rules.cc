// Which rule an operator has: by its class; by name, where the class does not say enough.
#include "mica/keys/batched/batched.h"

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

// By the name of the functional form.
const absl::flat_hash_map<std::string_view, RuleEntry>& ByName() {
  static const auto* table = new absl::flat_hash_map<std::string_view, RuleEntry>{
      {"copy_", {&Pointwise, Source::kByHand}},
      {"clone", {&Copied, Source::kByHand}},
      {"fill.Tensor", {&Filled, Source::kByHand}},
      {"masked_fill.Tensor", {&MaskedFilled, Source::kByHand}},
      {"native_layer_norm", {&LayerNorm, Source::kByHand}},
      {"scaled_dot_product_attention", {&Attention, Source::kByHand}},
      {"linalg_qr", {&Trailing, Source::kByHand}},
      {"block_diag", {nullptr, Source::kLoop}},
      {"pdist", {nullptr, Source::kLoop}},
      {"linalg_ldl_solve", {&Leading, Source::kByHand}},
      {"_linalg_failure", {&Whole, Source::kByHand}},
      {"_linalg_failure_code", {&Whole, Source::kByHand}},
      {"multinomial", {nullptr, Source::kByHand}},          // random.cc
      {"_local_scalar_dense", {nullptr, Source::kByHand}},  // RunRead
      {"empty.memory_format", {nullptr, Source::kByHand}},  // takes no tensors
      {"empty_strided", {nullptr, Source::kByHand}},
      {"linalg_matrix_exp", {nullptr, Source::kLoop}},
      {"histc", {nullptr, Source::kLoop}},
      {"histogram.bin_ct", {nullptr, Source::kLoop}},
      {"nonzero_static", {nullptr, Source::kLoop}},
      {"empty_like", {&Copied, Source::kByHand}},
      {"_become_view_", {&BecomeView, Source::kByHand}},
      {"sort.stable", {&Along, Source::kByHand}},
      {"topk", {&Along, Source::kByHand}},
      {"searchsorted.Tensor", {&Sorted, Source::kByHand}},
      {"roll", {&FlatAlong, Source::kByHand}},
      {"tril", {&Trailing, Source::kByHand}},
      {"triu", {&Trailing, Source::kByHand}},
      {"constant_pad_nd", {&Trailing, Source::kByHand}},
      {"_fft_c2c", {&Transform, Source::kByHand}},
      {"_fft_r2c", {&Transform, Source::kByHand}},
      {"_fft_c2r", {&Transform, Source::kByHand}},
      {"index_select", {&IndexSelect, Source::kByHand}},
      {"index_add", {&IndexAdd, Source::kByHand}},
      {"index_copy", {&IndexCopy, Source::kByHand}},
      {"_index", {&Index, Source::kByHand}},
      {"_index_put", {&IndexPut, Source::kByHand}},
      {"embedding", {&Embedding, Source::kByHand}},
      {"embedding_dense_backward", {&EmbeddingBackward, Source::kByHand}},
      {"unfold_backward", {&UnfoldBackward, Source::kByHand}},
      {"_resample", {&Folded, Source::kByHand}},
      {"_resample_backward", {&Folded, Source::kByHand}},
      {"_weighted_gather", {&Folded, Source::kByHand}},
      {"_weighted_scatter", {&Folded, Source::kByHand}},
      {"_weighted_gather_weights", {&Folded, Source::kByHand}},
      {"convolution", {&Convolution, Source::kByHand}},
      {"_convolution_backward_input", {&ConvolutionBackwardInput, Source::kByHand}},
      {"_convolution_backward_weight", {&ConvolutionBackwardWeight, Source::kByHand}},
      {"max_pool2d_with_indices_backward", {&Images, Source::kByHand}},
      {"max_pool3d_with_indices_backward", {&Images, Source::kByHand}},
      {"avg_pool2d_backward", {&Images, Source::kByHand}},
      {"avg_pool3d_backward", {&Images, Source::kByHand}},
      {"_adaptive_avg_pool2d_backward", {&Images, Source::kByHand}},
      {"_adaptive_avg_pool3d_backward", {&Images, Source::kByHand}},
      {"col2im", {&Images, Source::kByHand}},
      {"nll_loss_forward", {&NllLoss, Source::kByHand}},
      {"nll_loss_backward", {&NllLossBackward, Source::kByHand}},
      {"masked_select", {nullptr, Source::kRefused}},
      {"nonzero", {nullptr, Source::kRefused}},
      {"_unique2", {nullptr, Source::kRefused}},
  };
  return *table;
}

std::string_view Bare(std::string_view name) {
  constexpr std::string_view kOwn = "mica::";
  return name.substr(0, kOwn.size()) == kOwn ? name.substr(kOwn.size()) : std::string_view();
}

}  // namespace

const char* Name(Source s) {
  static constexpr const char* kNames[] = {"class", "by hand", "decomposition", "loop", "refused"};
  return kNames[static_cast<int>(s)];
}

RuleEntry RuleOf(const Operator& op) {
  const OperatorSpec& spec = op.spec();
  const auto& table = ByName();
  auto found = table.find(Bare(op.name()));
  if (found == table.end() && spec.functional_name) found = table.find(Bare(spec.functional_name));
  if (found != table.end()) return found->second;
  if (!spec.adapters) return {};  // of a plugin: its class says how it computes, not its arguments
  if (const Rule rule = OfClass(spec.op_class)) return {rule, Source::kClass};
  if (spec.composite) return {nullptr, Source::kDecomposition};
  // Random operators have a kernel of their own; factories take no tensors.
  const bool no_rule_needed = spec.op_class == OpClass::kRandom || spec.op_class == OpClass::kFactory;
  return {nullptr, no_rule_needed ? Source::kClass : Source::kLoop};
}

}  // namespace mica::batched
