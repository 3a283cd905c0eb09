// Meta functions of connectionist temporal classification.
#include <algorithm>

#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

void CheckSamples(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths,
                  IntSpan target_lengths, int64_t blank) {
  MICA_CHECK_IMPLEMENTED(log_probs.dtype() == DType::kF32 || log_probs.dtype() == DType::kF64, "Dtype (",
                         Name(log_probs.dtype()),
                         ") of `log_probs` is not supported; use float32 or float64.");
  MICA_CHECK(targets.dtype() == DType::kI64 || targets.dtype() == DType::kI32, "Dtype (",
             Name(targets.dtype()), ") of `targets` is not int64 or int32.");
  MICA_CHECK(log_probs.ndim() == 3 && log_probs.numel() > 0, "Shape ", ShapeText(log_probs.sizes()),
             " of `log_probs` is not that of steps, samples and classes, all positive.");
  const int64_t steps = log_probs.sizes()[0], samples = log_probs.sizes()[1], classes = log_probs.sizes()[2];
  MICA_CHECK(blank >= 0 && blank < classes, "Class `blank` (", blank, ") is out of range for (", classes,
             ") classes.");
  MICA_CHECK(input_lengths.size() == samples && target_lengths.size() == samples, "Numbers of lengths (",
             input_lengths.size(), ") and (", target_lengths.size(), ") are not that (", samples,
             ") of samples.");
  MICA_CHECK(targets.ndim() == 1 || targets.ndim() == 2, "Number of dimensions (", targets.ndim(),
             ") of `targets` is not 1 or 2.");
  int64_t sum = 0;
  for (int64_t b = 0; b < samples; ++b) {
    MICA_CHECK(input_lengths[b] >= 0 && input_lengths[b] <= steps, "Length (", input_lengths[b],
               ") of input (", b, ") is not between 0 and the number of steps (", steps, ").");
    const int64_t room = targets.ndim() == 2 ? targets.sizes()[1] : targets.numel() - sum;
    MICA_CHECK(target_lengths[b] >= 0 && target_lengths[b] <= room, "Length (", target_lengths[b],
               ") of target (", b, ") is not between 0 and what `targets` with shape ",
               ShapeText(targets.sizes()), " has (", room, ").");
    sum += target_lengths[b];
  }
  MICA_CHECK(targets.ndim() == 2 ? targets.sizes()[0] == samples : targets.numel() == sum, "Shape ",
             ShapeText(targets.sizes()), " of `targets` does not fit (", samples, ") samples with (", sum,
             ") targets.");
  CheckSameDevice(log_probs, targets, "log_probs", "targets");
}

}  // namespace

void _ctc_loss(MetaResult& result, const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths,
               IntSpan target_lengths, int64_t blank, bool) {
  CheckSamples(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t longest = *std::max_element(target_lengths.begin(), target_lengths.end());
  ComputeIn(result, log_probs.dtype());
  AddOutput(result, {log_probs.sizes()[1]}, log_probs.dtype(), log_probs.device());
  AddOutput(result, {log_probs.sizes()[1], log_probs.sizes()[0], 2 * longest + 1}, log_probs.dtype(),
            log_probs.device());
}

void _ctc_loss_backward(MetaResult& result, const Tensor& grad_output, const Tensor& log_probs,
                        const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
                        const Tensor& neg_log_likelihood, const Tensor& log_alpha, int64_t blank, bool) {
  CheckSamples(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t samples = log_probs.sizes()[1];
  const int64_t longest = *std::max_element(target_lengths.begin(), target_lengths.end());
  const Dims states = {samples, log_probs.sizes()[0], 2 * longest + 1};
  MICA_CHECK(grad_output.numel() == samples && neg_log_likelihood.numel() == samples &&
                 log_alpha.sizes() == IntSpan(states),
             "Shapes ", ShapeText(grad_output.sizes()), ", ", ShapeText(neg_log_likelihood.sizes()), " and ",
             ShapeText(log_alpha.sizes()), " are not those of (", samples, ") losses and of alpha ",
             ShapeText(states), ".");
  CheckSameDType(grad_output, log_probs, "grad_output", "log_probs");
  ComputeIn(result, log_probs.dtype());
  AddOutput(result, log_probs.sizes(), log_probs.dtype(), log_probs.device());
}

}  // namespace mica::meta
