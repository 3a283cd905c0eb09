// Random operators: an error, one draw for all examples, or one for each, as the call of
// vmap chose.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

// One draw: of the first example, for all.
void DrawOnce(Call& call, int64_t written) {
  for (int64_t i = 0; i < call.size(); ++i) {
    MICA_CHECK_IMPLEMENTED(i == written || !call.PartAt(i).batched, "Operator ", call.op().name(),
                           " draws with parameters that differ between the examples, under vmap with "
                           "randomness (same); use randomness='different'.");
  }
  const Part self = call.PartAt(written);
  const Tensor first = ops::select(self.value, 0, 0);
  const Tensor one =
      Tensor::Steal(plugin::OwnedTensor::Empty(first.sizes().data(), first.ndim(),
                                               static_cast<int32_t>(first.dtype()), first.device())
                        .release());
  call.Set(written, one);
  call.Run();
  ops::copy_(self.value, one, false);
}

}  // namespace

void RunRandom(layer::Call& called) {
  const MicaFrame frame = layer::CurrentFrame();
  const Op& op = OpOf(called.op());
  const int32_t randomness = BatchOf(frame).randomness;
  MICA_CHECK(randomness != MICA_BATCH_ERROR, "Random operator ", op.name(),
             " is called under vmap, which was not told what it shall draw: pass randomness='different' for "
             "one draw an example, or randomness='same' for one draw for all.");
  bool batched = false;
  called.ForEachTensor([&](MicaTensor* t, int64_t) { batched = batched || IsBatched(t, frame); });
  if (randomness == MICA_BATCH_SAME && !batched) return called.InParent();
  MICA_CHECK_IMPLEMENTED(op.info->form != MICA_FORM_OUT, "Operator ", op.name(),
                         " has no rule for the frame kind (vmap) and no decomposition. Register a kernel for "
                         "it at (vmap), or detach its inputs (x.detach()) if it is to be a constant there.");
  Call call(op, called.args(), called.size(), called.results());
  if (op.info->written_args) {
    call.Promote(0);
    if (randomness == MICA_BATCH_SAME) return DrawOnce(call, 0);
  }
  const Part self = call.PartAt(0);
  const bool rows = op.name() == "mica::multinomial" && self.rank == 2;
  if (randomness == MICA_BATCH_SAME) {
    formula::Throw(
        MICA_ERROR_NOT_IMPLEMENTED, "Operator ", op.name(),
        " draws from weights that differ between the examples, under vmap with randomness (same); use "
        "randomness='different'.");
  }
  if (op.name() == "mica::_randperm_") {
    for (int64_t i = 0; i < call.batch(); ++i) {
      call.Set(0, ops::select(self.value, 0, i));
      call.Run();
    }
    return;
  }
  call.AllAligned();
  if (rows) call.Set(0, Fold(WithBatch(self, call.batch())));
  call.Run([&](Tensor t) { return rows ? Unfold(t, call.batch()) : t; });
}

}  // namespace mica::batched
