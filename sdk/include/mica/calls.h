// Operators of the host that a layer calls by name, with arguments as they cross the border: nothing is
// boxed.
//
//   static const layer::Function<Tensor(Tensor, IntSpan)> permute("mica::permute");
//   return permute(t, dims);
//
// The types are those of <mica/formula.h>, in the schema's order, all of them: Tensor for `Tensor` and
// `Tensor?`, std::optional for what else may be None. What they are as C types is compared with the
// operator's schema when the Function is made, which throws a sentence where they differ. The call begins at
// the top, with this thread's layers and frame. Not for operators that are known at run time alone: those are
// called boxed. Cost: one indirect call more than from within Mica.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

#include <mica/formula.h>
#include <mica/layer.h>
#include <mica/signature.h>

namespace mica {
namespace layer {

// The C type that a type of the formula language crosses as.
template <typename T>
struct Crossing;
template <>
struct Crossing<formula::Tensor> {
  using Abi = MicaTensor*;
  static Abi To(const formula::Tensor& t) { return t.get(); }
};
template <>
struct Crossing<formula::TensorSpan> {
  using Abi = MicaTensorSpan;
  static Abi To(formula::TensorSpan s) { return formula::Box(s).u.tensors; }
};
template <>
struct Crossing<formula::IntSpan> {
  using Abi = MicaIntSpan;
  static Abi To(formula::IntSpan s) { return {s.data(), s.size()}; }
};
template <>
struct Crossing<std::optional<formula::IntSpan>> {
  using Abi = MicaIntSpan;
  static Abi To(std::optional<formula::IntSpan> s) {
    return s ? Abi{s->data(), s->size()} : Abi{nullptr, -1};
  }
};
template <>
struct Crossing<formula::Scalar> {
  using Abi = MicaScalar;
  static Abi To(const formula::Scalar& s) { return s.ToAbi(); }
};
template <>
struct Crossing<int64_t> {
  using Abi = int64_t;
  static Abi To(int64_t i) { return i; }
};
template <>
struct Crossing<std::optional<int64_t>> {
  using Abi = MicaOptInt;
  static Abi To(std::optional<int64_t> i) { return {i.value_or(0), i.has_value()}; }
};
template <>
struct Crossing<bool> {
  using Abi = int32_t;
  static Abi To(bool b) { return b; }
};
template <>
struct Crossing<std::optional<bool>> {
  using Abi = MicaOptInt;
  static Abi To(std::optional<bool> b) { return {b.value_or(false), b.has_value()}; }
};
template <>
struct Crossing<std::string_view> {
  using Abi = MicaStr;
  static Abi To(std::string_view s) { return {s.data(), static_cast<int64_t>(s.size())}; }
};
template <>
struct Crossing<std::optional<formula::Device>> {
  using Abi = MicaDevice;
  static Abi To(const std::optional<formula::Device>& d) { return d ? Abi(*d) : Abi{-1, 0}; }
};
// Numbers of an enumeration, -1 for None.
template <>
struct Crossing<formula::DType> {
  using Abi = int32_t;
  static Abi To(formula::DType d) { return static_cast<Abi>(d); }
};
template <typename Enum>
struct Crossing<std::optional<Enum>> {
  static_assert(std::is_enum_v<Enum>, "no other type of the schema language crosses so");
  using Abi = int32_t;
  static Abi To(std::optional<Enum> e) { return e ? static_cast<Abi>(*e) : -1; }
};

template <typename Signature>
class Function;
template <typename R, typename... A>
class Function<R(A...)> {
 public:
  explicit Function(const char* name) : op_(name) { Check(Table()->call_of(op_.handle(), kText, &call_)); }
  R operator()(const A&... a) const {
    if (__builtin_expect(!call_, 0)) return op_.Call<R>(a...);
    void* const op = op_.handle();
    if constexpr (std::is_void_v<R>) {
      Check(As<MicaStatus>()(op, Crossing<A>::To(a)...));
    } else if constexpr (kBoxed) {
      MicaValue result{};
      Check(reinterpret_cast<MicaStatus (*)(void*, AbiOf<A>..., MicaValue*)>(call_)(op, Crossing<A>::To(a)...,
                                                                                    &result));
      return formula::Unboxed<R>::Take(result);
    } else {
      const MicaTensorResult result = As<MicaTensorResult>()(op, Crossing<A>::To(a)...);
      Check(result.status);
      return R::Steal(result.value);
    }
  }

 private:
  template <typename T>
  using AbiOf = typename Crossing<T>::Abi;
  template <typename Abi>
  auto As() const {
    return reinterpret_cast<Abi (*)(void*, AbiOf<A>...)>(call_);
  }
  static_assert(std::is_void_v<R> || std::is_same_v<R, formula::Tensor> || std::is_same_v<R, formula::Scalar>,
                "operators that return something else are called boxed");
  static constexpr bool kBoxed = std::is_same_v<R, formula::Scalar>;
  static constexpr const char* kText =
      kBoxed ? plugin::SignatureText<void, AbiOf<A>..., MicaValue*>::text
             : plugin::SignatureText<std::conditional_t<std::is_void_v<R>, void, MicaTensor*>,
                                     AbiOf<A>...>::text;

  formula::Operator op_;
  MicaFunction call_ = nullptr;
};

}  // namespace layer
}  // namespace mica
