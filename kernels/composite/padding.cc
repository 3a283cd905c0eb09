// Padding by reflection, replication or wrapping, and its gradient.
#include <algorithm>
#include <limits>

#include "mica/kernels/composite_declarations.h"
#include "mica/ops/_circular_pad.h"
#include "mica/ops/_reflection_pad.h"
#include "mica/ops/_replication_pad.h"
#include "mica/ops/add.h"
#include "mica/ops/clone.h"
#include "mica/ops/constant_pad_nd.h"
#include "mica/ops/flip.h"
#include "mica/ops/narrow.h"
#include "mica/ops/sum.h"
#include "tensor/shape.h"

namespace mica::composite {

Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  if (mode == "constant") {
    const double number = value.value_or(0.0);
    const bool whole = IsInteger(self.dtype()) || self.dtype() == DType::kBool;
    return ops::constant_pad_nd(self, pad, whole ? Scalar(static_cast<int64_t>(number)) : Scalar(number));
  }
  MICA_CHECK_IMPLEMENTED(mode == "reflect" || mode == "replicate" || mode == "circular", "Padding mode (",
                         std::string(mode),
                         ") is unknown; expected constant, reflect, replicate or circular.");
  MICA_CHECK(value.value_or(0.0) == 0.0, "Argument `value` (", *value, ") has no meaning for padding mode (",
             std::string(mode), ").");
  const int64_t count = pad.size() / 2;
  MICA_CHECK(pad.size() % 2 == 0 && (self.ndim() == count + 1 || self.ndim() == count + 2),
             "Number of paddings (", pad.size(), ") does not fit the number of dimensions (", self.ndim(),
             ") of `self`; expected a pair for each dimension but the first one or two.");
  const bool wraps = mode == "circular";
  for (int64_t d = self.ndim() - count - 1; d < self.ndim() && !wraps; ++d)
    MICA_CHECK(
        self.sizes()[d] != 0, "Expected ", count + 1, "D or ", count + 2,
        "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ",
        ShapeText(self.sizes()), ".");
  Tensor x = self;
  Dims outer(pad.begin(), pad.end());
  for (int64_t i = 0; i < count; ++i) {
    int64_t &before = outer.data()[2 * i], &after = outer.data()[2 * i + 1];
    const int64_t d = self.ndim() - 1 - i, size = self.sizes()[d];
    const int64_t most = mode == "reflect" ? size - 1 : wraps ? size : std::numeric_limits<int64_t>::max();
    MICA_CHECK(before <= most && after <= most,
               "Padding size should be less than the corresponding input dimension, but got: padding (",
               before, ", ", after, ") at dimension ", d, " of input ", ShapeText(self.sizes()), ".");
    MICA_CHECK(size > 0 && size + before + after > 0, "Padding (", before, ", ", after, ") of dimension (", d,
               ") of size (", size, ") leaves no element.");
    if (!wraps || (before >= 0 && after >= 0)) continue;
    // Wrapping goes round what a negative padding leaves.
    const int64_t gone = std::max<int64_t>(-before, 0), left = size - gone - std::max<int64_t>(-after, 0);
    MICA_CHECK(left > 0, "Padding (", before, ", ", after, ") of dimension (", d, ") of size (", size,
               ") leaves nothing to wrap round.");
    x = ops::narrow(x, d, gone, left);
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
  }
  if (wraps) return ops::_circular_pad(x, outer);
  return mode == "reflect" ? ops::_reflection_pad(x, outer) : ops::_replication_pad(x, outer);
}

namespace {

constexpr int64_t kReflects = 0, kRepeats = 1, kWraps = 2;

// Adds the gradient of `length` padded elements of dimension d, from `begin` of `grad` on, to that of the
// element they were taken from: `inner`, which begins at `before`.
void AddEdge(const Tensor& inner, const Tensor& grad, int64_t d, int64_t begin, int64_t length,
             int64_t before, int64_t mode) {
  if (length == 0) return;
  const int64_t n = inner.size(d);
  const Tensor edge = ops::narrow(grad, d, begin, length);
  if (mode == kReflects) {
    const int64_t first = (begin < before ? 1 : 2 * n - 1) + before - begin - length;
    ops::add_(ops::narrow(inner, d, first, length), ops::flip(edge, {d}));
  } else if (mode == kRepeats) {
    ops::add_(ops::narrow(inner, d, begin < before ? 0 : n - 1, 1), ops::sum(edge, IntSpan({d}), true));
  } else {
    for (int64_t at = 0; at < length;) {
      const int64_t place = ((begin + at - before) % n + n) % n, run = std::min(n - place, length - at);
      ops::add_(ops::narrow(inner, d, place, run), ops::narrow(edge, d, at, run));
      at += run;
    }
  }
}

}  // namespace

Tensor _pad_backward(const Tensor& grad, IntSpan pad, int64_t mode) {
  MICA_CHECK(mode >= kReflects && mode <= kWraps, "Padding mode (", mode,
             ") is unknown; expected 0 (reflect), 1 (replicate) or 2 (circular).");
  MICA_CHECK(pad.size() % 2 == 0 && pad.size() / 2 <= grad.ndim(), "Number of paddings (", pad.size(),
             ") does not fit the number of dimensions (", grad.ndim(), ") of `grad`; expected a pair each.");
  // What was cut off has no gradient.
  Dims cut(pad.begin(), pad.end());
  for (int64_t& p : cut) {
    MICA_CHECK(p != std::numeric_limits<int64_t>::min(), "Padding (", p,
               ") leads beyond the range of int64.");
    p = std::max<int64_t>(-p, 0);
  }
  Tensor x = grad;
  if (std::any_of(cut.begin(), cut.end(), [](int64_t p) { return p > 0; }))
    x = ops::constant_pad_nd(x, cut, Scalar(0));
  for (int64_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t d = grad.ndim() - 1 - i;
    const int64_t before = std::max<int64_t>(pad[2 * i], 0), after = std::max<int64_t>(pad[2 * i + 1], 0);
    if (before == 0 && after == 0) continue;
    const int64_t padded = x.size(d), n = before < padded ? padded - before - after : 0;
    MICA_CHECK(n > 0 && (mode != kReflects || std::max(before, after) < n), "Padding (", before, ", ", after,
               ") of dimension (", d, ") does not fit its padded size (", padded, ") in `grad`.");
    const Tensor inner = ops::clone(ops::narrow(x, d, before, n), MemoryFormat::kContiguous);
    AddEdge(inner, x, d, 0, before, before, mode);
    AddEdge(inner, x, d, before + n, after, before, mode);
    x = inner;
  }
  return x;
}

}  // namespace mica::composite
