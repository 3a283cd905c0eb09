// Results of operators at the C border: AbiReturn<R> for each C++ result type.
//
// kDirect results come back in two registers with the status (nothing, one
// tensor, one int, bool or float); the rest is written to a MicaValue array.
// Tensors in a MicaValue result carry a reference that the receiver owns; a list
// of tensors owns its array (TakeTensorList frees it).
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include <mica/abi.h>
#include "dispatcher/plugins/status.h"
#include "tensor/tensor.h"

namespace mica {

// An owned list result: the array comes from NewTensorList and is freed here.
MicaTensor** NewTensorList(int64_t size);
void FreeTensorList(MicaTensor* const* list);  // the array alone
std::vector<Tensor> TakeTensorList(MicaTensorSpan list);
MicaTensorSpan GiveTensorList(std::vector<Tensor> tensors);

inline MicaValue OwnedTensorValue(Tensor t) {
  return {t.defined() ? MICA_VALUE_TENSOR : MICA_VALUE_NONE, 0, {.tensor = t.release()}};
}
inline Tensor TakeTensor(MicaValue& v) {
  return v.tag == MICA_VALUE_NONE ? Tensor() : Tensor::Steal(v.u.tensor);
}

template <typename R>
struct AbiReturn;

template <>
struct AbiReturn<void> {
  static constexpr bool kDirect = true;
  static constexpr int kCount = 0;
  using Abi = MicaStatus;
  static MicaStatus StatusOf(Abi r) { return r; }
  static void ToValue(Abi, MicaValue*) {}
  static Abi FromValue(const MicaValue&) { return nullptr; }
  template <typename F>
  static Abi Pack(F&& f) {
    f();
    return nullptr;
  }
  template <typename F>
  static Abi PackNoexcept(F&& f) noexcept {
    return CatchAll(f);
  }
  static void Unpack(Abi r) { ThrowIfError(r); }
};

template <>
struct AbiReturn<Tensor> {
  static constexpr bool kDirect = true;
  static constexpr int kCount = 1;
  using Abi = MicaTensorResult;
  static MicaStatus StatusOf(const Abi& r) { return r.status; }
  static void ToValue(const Abi& r, MicaValue* out) { *out = OwnedTensorValue(Tensor::Steal(r.value)); }
  static Abi FromValue(const MicaValue& v) {
    return {v.tag == MICA_VALUE_NONE ? nullptr : v.u.tensor, nullptr};
  }
  template <typename F>
  static Abi Pack(F&& f) {
    return {f().release(), nullptr};
  }
  template <typename F>
  static Abi PackNoexcept(F&& f) noexcept {
    Abi r{nullptr, nullptr};
    r.status = CatchAll([&] { r.value = f().release(); });
    return r;
  }
  static Tensor Unpack(Abi r) {
    ThrowIfError(r.status);
    return Tensor::Steal(r.value);
  }
};

namespace internal {
template <typename R, typename AbiT, int kTag>
struct NumberReturn {
  static constexpr bool kDirect = true;
  static constexpr int kCount = 1;
  using Abi = AbiT;
  using Number = decltype(AbiT::value);
  static MicaStatus StatusOf(const Abi& r) { return r.status; }
  static void ToValue(const Abi& r, MicaValue* out) {
    out->tag = kTag;
    out->reserved = 0;
    if constexpr (kTag == MICA_VALUE_FLOAT)
      out->u.f = r.value;
    else
      out->u.i = r.value;
  }
  static Abi FromValue(const MicaValue& v) {
    if constexpr (kTag == MICA_VALUE_FLOAT)
      return {v.u.f, nullptr};
    else
      return {v.u.i, nullptr};
  }
  template <typename F>
  static Abi Pack(F&& f) {
    return {static_cast<Number>(f()), nullptr};
  }
  template <typename F>
  static Abi PackNoexcept(F&& f) noexcept {
    Abi r{0, nullptr};
    r.status = CatchAll([&] { r.value = static_cast<Number>(f()); });
    return r;
  }
  static R Unpack(Abi r) {
    ThrowIfError(r.status);
    return static_cast<R>(r.value);
  }
};
}  // namespace internal
template <>
struct AbiReturn<int64_t> : internal::NumberReturn<int64_t, MicaIntResult, MICA_VALUE_INT> {};
template <>
struct AbiReturn<bool> : internal::NumberReturn<bool, MicaIntResult, MICA_VALUE_BOOL> {};
template <>
struct AbiReturn<DType> : internal::NumberReturn<DType, MicaIntResult, MICA_VALUE_DTYPE> {};
template <>
struct AbiReturn<double> : internal::NumberReturn<double, MicaFloatResult, MICA_VALUE_FLOAT> {};

template <>
struct AbiReturn<Scalar> {
  static constexpr bool kDirect = false;
  static constexpr int kCount = 1;
  using Abi = MicaStatus;
  static void ToValues(const Scalar& s, MicaValue* out) {
    out->reserved = 0;
    if (s.is_complex()) {
      out->tag = MICA_VALUE_COMPLEX;
      out->u.complex_parts[0] = s.ToComplex().real();
      out->u.complex_parts[1] = s.ToComplex().imag();
    } else {
      out->tag = MICA_VALUE_SCALAR;
      out->u.scalar = s.ToAbi();
    }
  }
  static Scalar FromValues(MicaValue* v) {
    if (v->tag == MICA_VALUE_COMPLEX)
      return Scalar(std::complex<double>(v->u.complex_parts[0], v->u.complex_parts[1]));
    return Scalar::FromAbi(v->u.scalar);
  }
};

template <>
struct AbiReturn<std::vector<Tensor>> {
  static constexpr bool kDirect = false;
  static constexpr int kCount = 1;
  using Abi = MicaStatus;
  static void ToValues(std::vector<Tensor> list, MicaValue* out) {
    out->tag = MICA_VALUE_TENSORS;
    out->reserved = 0;
    out->u.tensors = GiveTensorList(std::move(list));
  }
  static std::vector<Tensor> FromValues(MicaValue* v) { return TakeTensorList(v->u.tensors); }
};

template <typename... T>
struct AbiReturn<std::tuple<T...>> {
  static_assert((std::is_same_v<T, Tensor> && ...), "only tuples of tensors are results");
  static constexpr bool kDirect = false;
  static constexpr int kCount = sizeof...(T);
  using Abi = MicaStatus;
  static void ToValues(std::tuple<T...> t, MicaValue* out) {
    std::apply(
        [&](auto&... x) {
          int i = 0;
          ((out[i++] = OwnedTensorValue(std::move(x))), ...);
        },
        t);
  }
  template <size_t... I>
  static std::tuple<T...> FromImpl(MicaValue* v, std::index_sequence<I...>) {
    return std::tuple<T...>(TakeTensor(v[I])...);
  }
  static std::tuple<T...> FromValues(MicaValue* v) { return FromImpl(v, std::index_sequence_for<T...>()); }
};

}  // namespace mica
