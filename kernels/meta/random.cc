// Meta functions of draws whose parameters are tensors: contiguous results of the parameters'
// shape and floating dtype, as in torch.
#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {

void drawn(MetaResult& result, const Tensor& self, Generator*) {
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()), "Dtype (", Name(self.dtype()),
                         ") of the parameters of a distribution is not supported; expected a float.");
  AddOutput(result, self.sizes(), self.dtype(), self.device());
  ComputeIn(result, self.dtype());
}

void binomial(MetaResult& result, const Tensor& count, const Tensor& prob, Generator*) {
  for (const Tensor* t : {&count, &prob})
    MICA_CHECK_VALUE(IsFloating(t->dtype()), "Dtype (", Name(t->dtype()), ") of `",
                     t == &count ? "count" : "prob", "` of binomial is not a float.");
  CheckSameDType(count, prob, "count", "prob");
  CheckSameDevice(count, prob, "count", "prob");
  AddOutput(result, BroadcastShapes(count.sizes(), prob.sizes(), "count", "prob"), count.dtype(),
            count.device());
  ComputeIn(result, count.dtype());
}

}  // namespace mica::meta
