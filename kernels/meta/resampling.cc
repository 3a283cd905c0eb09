// Meta functions of the two linear maps that interpolation is made of: along each
// dimension by a table of its own, and from any place of a plane.
#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

// Tables [out, taps] of places, and of weights if any, for the last dimensions.
void CheckTables(const Tensor& data, TensorSpan indices, TensorSpan weights) {
  MICA_CHECK(indices.size() >= 1 && indices.size() <= 3 && data.ndim() == indices.size() + 2,
             "Number of tables (", indices.size(), ") does not fit shape ", ShapeText(data.sizes()),
             "; expected one for each of 1 to 3 dimensions after batch and channels.");
  MICA_CHECK(weights.empty() || weights.size() == indices.size(), "Number of weights (", weights.size(),
             ") differs from that (", indices.size(), ") of `indices`.");
  MICA_CHECK_IMPLEMENTED(!IsComplex(data.dtype()), "Resampling of the dtype (", Name(data.dtype()),
                         ") is not supported; use a real dtype.");
  for (int64_t d = 0; d < indices.size(); ++d) {
    const Tensor& at = indices[d];
    MICA_CHECK(at.ndim() == 2 && at.dtype() == DType::kI64 && (!weights.empty() || at.sizes()[1] == 1),
               "Table (", d, ") of `indices` with shape ", ShapeText(at.sizes()), " and dtype (",
               Name(at.dtype()), ") is no int64[out, taps], of one tap where there are no weights.");
    CheckSameDevice(data, at, "self", "indices");
    if (weights.empty()) continue;
    const Tensor& by = weights[d];
    MICA_CHECK(by.sizes() == at.sizes() && IsFloating(by.dtype()), "Shape ", ShapeText(by.sizes()),
               " or dtype (", Name(by.dtype()), ") of the weights of table (", d,
               ") is wrong; expected floats of shape ", ShapeText(at.sizes()), ".");
    CheckSameDevice(data, by, "self", "weights");
  }
}

void AddImage(MetaResult& result, const Tensor& like, const Dims& sizes) {
  ComputeIn(result, like.dtype());
  AddOutput(result, sizes, like.dtype(), like.device()).strides = StridesInFormatOf(like, sizes);
}

// [N, K, L] of places and weights.
void CheckTaps(const Tensor& data, const Tensor& indices, const char* name) {
  MICA_CHECK(data.ndim() == 3 && indices.ndim() == 3 && data.sizes()[0] == indices.sizes()[0] &&
                 indices.sizes()[1] > 0,
             "Shape ", ShapeText(data.sizes()), " of `", name, "` and shape ", ShapeText(indices.sizes()),
             " of `indices` do not fit; expected [N, C, ..] and [N, taps, places].");
  MICA_CHECK(indices.dtype() == DType::kI64, "Dtype (", Name(indices.dtype()),
             ") of `indices` is not int64.");
  MICA_CHECK_IMPLEMENTED(IsFloating(data.dtype()), "Dtype (", Name(data.dtype()), ") of `", name,
                         "` is not supported; use a floating dtype.");
  CheckSameDevice(data, indices, name, "indices");
}
void CheckWeights(const Tensor& data, const Tensor& indices, const Tensor& weights) {
  MICA_CHECK(weights.sizes() == indices.sizes(), "Shape ", ShapeText(weights.sizes()),
             " of `weights` differs from shape ", ShapeText(indices.sizes()), " of `indices`.");
  CheckSameDType(data, weights, "self", "weights");
  CheckSameDevice(data, weights, "self", "weights");
}
void AddTaps(MetaResult& result, const Tensor& like, IntSpan sizes) {
  ComputeIn(result, like.dtype());
  AddOutput(result, sizes, like.dtype(), like.device());
}

}  // namespace

void _resample(MetaResult& result, const Tensor& self, TensorSpan indices, TensorSpan weights) {
  CheckTables(self, indices, weights);
  Dims sizes = ToDims(self.sizes());
  for (int64_t d = 0; d < indices.size(); ++d) sizes[static_cast<size_t>(d + 2)] = indices[d].sizes()[0];
  AddImage(result, self, sizes);
}
void _resample_backward(MetaResult& result, const Tensor& grad_output, IntSpan sizes, TensorSpan indices,
                        TensorSpan weights) {
  CheckTables(grad_output, indices, weights);
  bool fits = sizes.size() == grad_output.ndim() && sizes[0] == grad_output.sizes()[0] &&
              sizes[1] == grad_output.sizes()[1];
  for (int64_t d = 0; fits && d < indices.size(); ++d)
    fits = grad_output.sizes()[d + 2] == indices[d].sizes()[0];
  MICA_CHECK(fits, "Shape ", ShapeText(grad_output.sizes()),
             " of `grad_output` is not that of a resampled image of sizes ", ShapeText(sizes), ".");
  AddImage(result, grad_output, ToDims(sizes));
}

void _weighted_gather(MetaResult& result, const Tensor& self, const Tensor& indices, const Tensor& weights) {
  CheckTaps(self, indices, "self");
  CheckWeights(self, indices, weights);
  AddTaps(result, self, {self.sizes()[0], self.sizes()[1], indices.sizes()[2]});
}
void _weighted_scatter(MetaResult& result, const Tensor& grad_output, const Tensor& indices,
                       const Tensor& weights, int64_t places) {
  CheckTaps(grad_output, indices, "grad_output");
  CheckWeights(grad_output, indices, weights);
  MICA_CHECK(grad_output.sizes()[2] == indices.sizes()[2] && places >= 0, "Number of places (",
             grad_output.sizes()[2], ") of `grad_output` differs from that (", indices.sizes()[2],
             ") of `indices`.");
  AddTaps(result, grad_output, {grad_output.sizes()[0], grad_output.sizes()[1], places});
}
void _weighted_gather_weights(MetaResult& result, const Tensor& grad_output, const Tensor& self,
                              const Tensor& indices) {
  CheckTaps(self, indices, "self");
  CheckTaps(grad_output, indices, "grad_output");
  CheckSameDType(grad_output, self, "grad_output", "self");
  CheckSameDevice(grad_output, self, "grad_output", "self");
  MICA_CHECK(grad_output.sizes()[1] == self.sizes()[1] && grad_output.sizes()[2] == indices.sizes()[2],
             "Shape ", ShapeText(grad_output.sizes()),
             " of `grad_output` fits neither `self` nor `indices`.");
  AddTaps(result, grad_output, indices.sizes());
}

}  // namespace mica::meta
