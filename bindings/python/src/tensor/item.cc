// Reading and writing single elements; see item.h.
#include "bindings/python/src/tensor/item.h"

#include <limits>

#include "dispatcher/calls/thread_state.h"
#include "dispatcher/frames/frames.h"
#include "mica/ops/_local_scalar_dense.h"
#include "mica/ops/to.h"
#include "tensor/shape.h"

namespace mica::python {

Scalar ReadElement(const void* data, DType d) {
  return VisitDType(d, [&]<typename T>() -> Scalar {
    if constexpr (std::is_same_v<T, bool>) {  // of a view of other bytes any but 0 is true
      return Scalar(*static_cast<const uint8_t*>(data) != 0);
    }
    const T& v = *static_cast<const T*>(data);
    if constexpr (std::is_integral_v<T>) {
      return Scalar(v);
    } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      return Scalar(std::complex<double>(v.real(), v.imag()));
    } else {
      return Scalar(static_cast<double>(v));
    }
  });
}

Scalar ItemOf(const Tensor& shown) {
  MICA_CHECK(shown.numel() == 1, "a Tensor with ", shown.numel(),
             " elements cannot be converted to Scalar; its shape is ", ShapeText(shown.sizes()),
             ", and tolist() gives all numbers.");
  const KeySet seen = (shown.keys() | CurrentThread().include) - CurrentThread().exclude;
  if (__builtin_expect(seen.has(keys::kDispatchMode) || seen.has(keys::kPythonSubclass), 0))
    return ops::_local_scalar_dense(shown);
  Tensor read;
  if (frames::IsWrapper(shown) || frames::Current() || IsLazy(shown))
    read = frames::Readable(shown, "item(), or a test of truth,");
  const Tensor& t = read.defined() ? read : shown;
  MICA_CHECK_IMPLEMENTED(!t.device().is_meta(), "A tensor on meta has no values, so it has no item().");
  if (t.device().is_cpu()) {
    if (t.dtype() == DType::kF64) return Scalar(*t.data_as<double>());
    return ReadElement(t.data(), t.dtype());
  }
  const Tensor on_cpu =
      ops::to(t, std::nullopt, std::nullopt, Device{}, std::nullopt, false, false, std::nullopt);
  return ItemOf(on_cpu);
}

void WriteElement(void* data, DType d, const Scalar& s) {
  VisitDType(d, [&]<typename T>() {
    T& out = *static_cast<T*>(data);
    if constexpr (std::is_same_v<T, bool>) {
      out = s.ToBool();
    } else if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_same_v<T, uint64_t>) {
        out = s.To<T>();
        return;
      }
      const int64_t v = s.ToInt();
      if constexpr (sizeof(T) < 8) {
        // An unsigned dtype takes small negative values as well, as C does.
        constexpr int64_t kMost = std::numeric_limits<T>::max();
        constexpr int64_t kLeast = std::is_unsigned_v<T> ? -kMost : -kMost - 1;
        MICA_CHECK(v >= kLeast && v <= kMost, "The value (", v, ") does not fit the dtype (", Name(d), ").");
      }
      out = static_cast<T>(v);
    } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      out = T(s.ToComplex());
    } else if constexpr (std::is_same_v<T, double>) {
      out = s.ToDouble();
    } else {
      out = T(static_cast<float>(s.ToDouble()));
    }
  });
}

bool StandsForBatch(const Tensor& t) {
  for (const Tensor* inner = &t; frames::IsWrapper(*inner); inner = &frames::WrapperOf(*inner).value)
    if (frames::WrapperOf(*inner).hidden > 0) return true;
  return false;
}

}  // namespace mica::python
