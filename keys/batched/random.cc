// Random operators: an error, one draw for all examples, or one for each, as the call of
// vmap chose.
#include "keys/batched/batched.h"

#include "mica/ops/copy_.h"
#include "mica/ops/empty_strided.h"
#include "mica/ops/select.h"

namespace mica::batched {
namespace {

// One draw: of the first example, for all.
void DrawOnce(Call& call, int64_t written) {
  for (int64_t i = 0; i < call.size(); ++i) {
    MICA_CHECK_IMPLEMENTED(i == written || !call.PartAt(i).batched, "Operator ", call.op().spec().name,
                           " draws with parameters that differ between the examples, under vmap with "
                           "randomness (same); use randomness='different'.");
  }
  const Part self = call.PartAt(written);
  const Tensor first = ::mica::ops::op::select_int::call(self.value, 0, 0);
  const Tensor one = ::mica::EmptyTensor(first.sizes(), first.dtype(), first.device());
  call.Set(written, one);
  call.Run();
  ::mica::ops::op::copy_::call(self.value, one, false);
}

}  // namespace

void RunRandom(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
               MicaValue* results) {
  const frames::Frame& frame = *frames::Current();
  const int32_t randomness = BatchOf(frame).randomness;
  MICA_CHECK(randomness != MICA_BATCH_ERROR, "Random operator ", op.spec().name,
             " is called under vmap, which was not told what it shall draw: pass randomness='different' for "
             "one draw an example, or randomness='same' for one draw for all.");
  bool batched = false;
  frames::ForEachTensor(args, n, [&](const Tensor& t, int64_t) { batched = batched || IsBatched(t, frame); });
  if (randomness == MICA_BATCH_SAME && !batched) return frames::CallInParent(op, args, n, results);
  if (op.spec().form == OpForm::kOut) frames::ThrowNoRule(op, frame);
  Call call(op, args, n, results);
  if (op.spec().written_args) {
    const Tensor& self = Tensor::Ref(args[0].u.tensor);
    Promote(op, self, call.frame());
    if (randomness == MICA_BATCH_SAME) return DrawOnce(call, 0);
  }
  const Part self = call.PartAt(0);
  const bool rows = op.name() == "mica::multinomial" && self.rank == 2;
  if (randomness == MICA_BATCH_SAME) {
    MICA_THROW(kNotImplemented, "Operator ", op.spec().name,
               " draws from weights that differ between the examples, under vmap with randomness (same); use "
               "randomness='different'.");
  }
  if (op.name() == "mica::_randperm_") {
    for (int64_t i = 0; i < call.batch(); ++i) {
      call.Set(0, ::mica::ops::op::select_int::call(self.value, 0, i));
      call.Run();
    }
    return;
  }
  call.AllAligned();
  if (rows) call.Set(0, Fold(WithBatch(self, call.batch())));
  call.Run([&](Tensor t) { return rows ? Unfold(t, call.batch()) : t; });
}

}  // namespace mica::batched
