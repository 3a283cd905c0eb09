// Padding by reflection, replication or wrapping, dimension by dimension.
#include <algorithm>
#include <limits>

#include "mica/kernels/composite_declarations.h"
#include "mica/ops/_clamp.h"
#include "mica/ops/abs.h"
#include "mica/ops/arange.h"
#include "mica/ops/constant_pad_nd.h"
#include "mica/ops/index_select.h"
#include "mica/ops/narrow.h"
#include "mica/ops/remainder.h"
#include "mica/ops/rsub.h"
#include "mica/tensor/shape.h"

namespace mica::composite {

namespace {
// Where the padded elements of one dimension come from.
Tensor PaddedPlaces(std::string_view mode, int64_t size, int64_t before, int64_t after, Device device) {
  const Tensor p = ops::op::arange_start::call(Scalar(-before), Scalar(size + after), DType::kI64,
                                               std::nullopt, device, std::nullopt);
  if (mode == "replicate") return ops::_clamp(p, Scalar(0), Scalar(size - 1));
  if (mode == "circular") return ops::remainder(p, Scalar(size));
  return ops::rsub(ops::abs(ops::rsub(ops::abs(p), Scalar(size - 1))), Scalar(size - 1));
}
}  // namespace

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
  Tensor x = self;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t d = self.ndim() - 1 - i, size = self.sizes()[d], before = pad[2 * i],
                  after = pad[2 * i + 1];
    const int64_t most = mode == "reflect"    ? size - 1
                         : mode == "circular" ? size
                                              : std::numeric_limits<int64_t>::max();
    MICA_CHECK(before <= most && after <= most, "Padding (", before, ", ", after, ") of dimension (", d,
               ") is too large for its size (", size, ").");
    MICA_CHECK(size > 0 && size + before + after > 0, "Padding (", before, ", ", after, ") of dimension (", d,
               ") of size (", size, ") leaves no element.");
    // Wrapping goes round what a negative padding leaves.
    const int64_t gone = mode == "circular" ? std::max<int64_t>(-before, 0) : 0;
    const int64_t left = mode == "circular" ? size - gone - std::max<int64_t>(-after, 0) : size;
    if (left < size) x = ops::narrow(x, d, gone, std::max<int64_t>(left, 0));
    MICA_CHECK(left > 0, "Padding (", before, ", ", after, ") of dimension (", d, ") of size (", size,
               ") leaves nothing to wrap round.");
    const bool wraps = mode == "circular";
    x = ops::index_select(x, d,
                          PaddedPlaces(mode, left, wraps ? std::max<int64_t>(before, 0) : before,
                                       wraps ? std::max<int64_t>(after, 0) : after, self.device()));
  }
  return x;
}

}  // namespace mica::composite
