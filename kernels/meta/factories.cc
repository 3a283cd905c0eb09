// Meta functions of factories.
#include <algorithm>
#include <cmath>

#include "dispatcher/calls/thread_state.h"
#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

void Factory(MetaResult& result, IntSpan sizes, DType dtype, std::optional<Device> device) {
  CheckedNumel(sizes);
  AddOutput(result, sizes, dtype, device.value_or(CurrentThread().default_device));
  ComputeIn(result, dtype);
}

DType FloatOf(std::optional<DType> dtype, const Scalar& a, const Scalar& b) {
  if (dtype) return *dtype;
  return a.is_complex() || b.is_complex() ? DefaultComplexDType() : DefaultDType();
}

}  // namespace

void arange(MetaResult& result, const Scalar& start, const Scalar& end, const Scalar& step,
            std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
            std::optional<bool>) {
  bool floats = start.is_float() || end.is_float() || step.is_float();
  const DType type = dtype.value_or(floats ? DefaultDType() : DType::kI64);
  if (type == DType::kI64) floats = false;  // as in torch the arguments lose their fractions first
  const auto number = [&](const Scalar& s) {
    return type == DType::kI64 ? std::trunc(s.ToDouble()) : s.ToDouble();
  };
  const double from = number(start), to = number(end), by = number(step);
  MICA_CHECK(step.ToDouble() != 0, "The step must be nonzero; `step` is 0.");
  MICA_CHECK_VALUE(by != 0, "Argument `step` (", step.ToString(), ") is 0 in the dtype (", Name(type), ").");
  MICA_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", start.ToString(), " -> ",
             end.ToString(), "; `start` and `end` must be finite.");
  MICA_CHECK((by > 0) == (to >= from) || from == to,
             "upper bound and lower bound inconsistent with step sign: the range from `start` (",
             start.ToString(), ") to `end` (", end.ToString(), ") does not go the way of `step` (",
             step.ToString(), ").");
  double count = std::ceil((to - from) / by);
  if (!floats) {
    // Without a sign, so that no distance and no quotient overflows.
    const int64_t first = start.ToInt(), last = end.ToInt(), s = step.ToInt();
    const auto low = static_cast<uint64_t>(std::min(first, last)),
               high = static_cast<uint64_t>(std::max(first, last)),
               stride = s > 0 ? static_cast<uint64_t>(s) : uint64_t{0} - static_cast<uint64_t>(s);
    const uint64_t distance = (s > 0) == (last >= first) ? high - low : 0;
    count = static_cast<double>(distance / stride + (distance % stride != 0));
  }
  MICA_CHECK(count < 9.2e18, "Number of elements (", count, ") of arange is too large.");
  Factory(result, {static_cast<int64_t>(count)}, type, device);
}

void _linspace(MetaResult& result, const Scalar& start, const Scalar& end, int64_t steps,
               std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
               std::optional<bool>) {
  MICA_CHECK(steps >= 0, "Number of steps `steps` (", steps, ") is negative; expected 0 or more.");
  Factory(result, {steps}, FloatOf(dtype, start, end), device);
}

void logspace(MetaResult& result, const Scalar& start, const Scalar& end, int64_t steps, double,
              std::optional<DType> dtype, std::optional<Layout>, std::optional<Device> device,
              std::optional<bool>) {
  MICA_CHECK(steps >= 0, "Number of steps `steps` (", steps, ") is negative; expected 0 or more.");
  Factory(result, {steps}, FloatOf(dtype, start, end), device);
}

}  // namespace mica::meta
