// Composites that read lengths from tensors on their way to an operator that takes lists.
#include "dispatcher/frames/frames.h"
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/_to_copy.h"
#include "mica/ops/contiguous.h"
#include "mica/ops/ctc_loss.h"

namespace mica::composite {
namespace {

Dims Numbers(const Tensor& lengths, const char* name) {
  MICA_CHECK(IsInteger(lengths.dtype()), "Dtype (", Name(lengths.dtype()), ") of `", name,
             "` is no integer.");
  MICA_CHECK(!lengths.device().is_meta(), "`", name, "` on the meta device has no values.");
  const Tensor here =
      ops::contiguous(ops::_to_copy(frames::Readable(lengths, name), DType::kI64, std::nullopt, Device()));
  return Dims(here.data_as<int64_t>(), here.data_as<int64_t>() + here.numel());
}

}  // namespace

Tensor ctc_loss_Tensor(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  return ops::ctc_loss(log_probs, targets, Numbers(input_lengths, "input_lengths"),
                       Numbers(target_lengths, "target_lengths"), blank, reduction, zero_infinity);
}

}  // namespace mica::composite
