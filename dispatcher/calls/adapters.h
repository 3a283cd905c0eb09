// Between C++ types and the C ABI: one mapping per type (AbiType), and four
// adapters per *signature* (not per operator), gathered in SignatureAdapters.
//
// A signature is the C++ function type of an operator: `Tensor(const Tensor&,
// const Scalar&)`; in-place and out forms return void. The generated spec of an
// operator points to kAdapters<Signature>.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/operator.h"
#include "tensor/tensor.h"

namespace mica {

class Generator;  // tensor/generator.h

// ---- arguments: To (C++ -> ABI), From (ABI -> C++), Box, Unbox --------------
template <typename T>
struct AbiType;

template <>
struct AbiType<const Tensor&> {
  using Abi = MicaTensor*;
  static Abi To(const Tensor& t) { return t.impl(); }
  static const Tensor& From(const Abi& a) { return Tensor::Ref(a); }
  static MicaValue Box(Abi a) {
    MicaValue v;  // the rest of the union stays as it is: no stores for it
    v.tag = a ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
    v.reserved = 0;
    v.u.tensor = a;
    return v;
  }
  static Abi Unbox(const MicaValue& v) { return v.tag == MICA_VALUE_NONE ? nullptr : v.u.tensor; }
};
template <>
struct AbiType<TensorSpan> {
  using Abi = MicaTensorSpan;
  static Abi To(TensorSpan s) { return {reinterpret_cast<MicaTensor* const*>(s.data()), s.size()}; }
  static TensorSpan From(Abi a) { return {reinterpret_cast<const Tensor*>(a.data), a.size}; }
  static MicaValue Box(Abi a) { return {MICA_VALUE_TENSORS, 0, {.tensors = a}}; }
  static Abi Unbox(const MicaValue& v) { return v.u.tensors; }
};
template <>
struct AbiType<int64_t> {
  using Abi = int64_t;
  static Abi To(int64_t i) { return i; }
  static int64_t From(Abi a) { return a; }
  static MicaValue Box(Abi a) { return {MICA_VALUE_INT, 0, {.i = a}}; }
  static Abi Unbox(const MicaValue& v) { return v.u.i; }
};
template <>
struct AbiType<bool> {
  using Abi = int32_t;
  static Abi To(bool b) { return b; }
  static bool From(Abi a) { return a != 0; }
  static MicaValue Box(Abi a) { return {MICA_VALUE_BOOL, 0, {.i = a}}; }
  static Abi Unbox(const MicaValue& v) { return static_cast<int32_t>(v.u.i); }
};
template <>
struct AbiType<double> {
  using Abi = double;
  static Abi To(double d) { return d; }
  static double From(Abi a) { return a; }
  static MicaValue Box(Abi a) { return {MICA_VALUE_FLOAT, 0, {.f = a}}; }
  static Abi Unbox(const MicaValue& v) { return v.u.f; }
};
template <>
struct AbiType<const Scalar&> {
  using Abi = MicaScalar;
  static Abi To(const Scalar& s) { return s.ToAbi(); }
  static Scalar From(Abi a) { return Scalar::FromAbi(a); }
  static MicaValue Box(Abi a) {
    return {a.tag == MICA_SCALAR_NONE ? MICA_VALUE_NONE : MICA_VALUE_SCALAR, 0, {.scalar = a}};
  }
  static Abi Unbox(const MicaValue& v) { return v.tag == MICA_VALUE_NONE ? MicaScalar{} : v.u.scalar; }
};
template <>
struct AbiType<const std::optional<Scalar>&> : AbiType<const Scalar&> {
  static MicaScalar To(const std::optional<Scalar>& s) { return s ? s->ToAbi() : MicaScalar{}; }
  static std::optional<Scalar> From(MicaScalar a) {
    return a.tag == MICA_SCALAR_NONE ? std::nullopt : std::optional<Scalar>(Scalar::FromAbi(a));
  }
};
template <>
struct AbiType<std::optional<int64_t>> {
  using Abi = MicaOptInt;
  static Abi To(std::optional<int64_t> v) { return {v.value_or(0), v.has_value()}; }
  static std::optional<int64_t> From(Abi a) { return a.has ? std::optional<int64_t>(a.value) : std::nullopt; }
  static MicaValue Box(Abi a) { return {a.has ? MICA_VALUE_INT : MICA_VALUE_NONE, 0, {.i = a.value}}; }
  static Abi Unbox(const MicaValue& v) {
    return {v.tag == MICA_VALUE_NONE ? 0 : v.u.i, v.tag != MICA_VALUE_NONE};
  }
};
template <>
struct AbiType<std::optional<bool>> {
  using Abi = MicaOptInt;
  static Abi To(std::optional<bool> v) { return {v.value_or(false), v.has_value()}; }
  static std::optional<bool> From(Abi a) { return a.has ? std::optional<bool>(a.value != 0) : std::nullopt; }
  static MicaValue Box(Abi a) { return {a.has ? MICA_VALUE_BOOL : MICA_VALUE_NONE, 0, {.i = a.value}}; }
  static Abi Unbox(const MicaValue& v) {
    return {v.tag == MICA_VALUE_NONE ? 0 : v.u.i, v.tag != MICA_VALUE_NONE};
  }
};
template <>
struct AbiType<std::optional<double>> {
  using Abi = MicaOptFloat;
  static Abi To(std::optional<double> v) { return {v.value_or(0), v.has_value()}; }
  static std::optional<double> From(Abi a) { return a.has ? std::optional<double>(a.value) : std::nullopt; }
  static MicaValue Box(Abi a) { return {a.has ? MICA_VALUE_FLOAT : MICA_VALUE_NONE, 0, {.f = a.value}}; }
  static Abi Unbox(const MicaValue& v) {
    return {v.tag == MICA_VALUE_NONE ? 0 : v.u.f, v.tag != MICA_VALUE_NONE};
  }
};

// Spans of PODs; the optional ones say None by length -1.
#define MICA_SPAN_TYPE(cpp_element, abi, tag_, member)                                              \
  template <>                                                                                       \
  struct AbiType<Span<cpp_element>> {                                                               \
    using Abi = abi;                                                                                \
    static Abi To(Span<cpp_element> s) { return {s.data(), s.size()}; }                             \
    static Span<cpp_element> From(Abi a) { return {a.data, a.size}; }                               \
    static MicaValue Box(Abi a) { return {a.size < 0 ? MICA_VALUE_NONE : tag_, 0, {.member = a}}; } \
    static Abi Unbox(const MicaValue& v) {                                                          \
      return v.tag == MICA_VALUE_NONE ? Abi{nullptr, -1} : v.u.member;                              \
    }                                                                                               \
  };                                                                                                \
  template <>                                                                                       \
  struct AbiType<std::optional<Span<cpp_element>>> : AbiType<Span<cpp_element>> {                   \
    static Abi To(std::optional<Span<cpp_element>> s) {                                             \
      return s ? Abi{s->data(), s->size()} : Abi{nullptr, -1};                                      \
    }                                                                                               \
    static std::optional<Span<cpp_element>> From(Abi a) {                                           \
      return a.size < 0 ? std::nullopt                                                              \
                        : std::optional<Span<cpp_element>>(Span<cpp_element>(a.data, a.size));      \
    }                                                                                               \
  };
MICA_SPAN_TYPE(int64_t, MicaIntSpan, MICA_VALUE_INTS, ints)
MICA_SPAN_TYPE(double, MicaFloatSpan, MICA_VALUE_FLOATS, floats)
MICA_SPAN_TYPE(uint8_t, MicaBoolSpan, MICA_VALUE_BOOLS, bools)
#undef MICA_SPAN_TYPE
// A list of Scalars crosses as 16-byte PODs; the C++ side keeps the ABI type.
using ScalarSpan = Span<MicaScalar>;
template <>
struct AbiType<ScalarSpan> {
  using Abi = MicaScalarSpan;
  static Abi To(ScalarSpan s) { return {s.data(), s.size()}; }
  static ScalarSpan From(Abi a) { return {a.data, a.size}; }
  static MicaValue Box(Abi a) { return {MICA_VALUE_SCALARS, 0, {.scalars = a}}; }
  static Abi Unbox(const MicaValue& v) { return v.u.scalars; }
};

// Enumerations cross as int32, None is -1.
#define MICA_ENUM_TYPE(cpp, tag_)                                                         \
  template <>                                                                             \
  struct AbiType<cpp> {                                                                   \
    using Abi = int32_t;                                                                  \
    static Abi To(cpp v) { return static_cast<int32_t>(v); }                              \
    static cpp From(Abi a) { return static_cast<cpp>(a); }                                \
    static MicaValue Box(Abi a) { return {a < 0 ? MICA_VALUE_NONE : tag_, 0, {.i = a}}; } \
    static Abi Unbox(const MicaValue& v) {                                                \
      return v.tag == MICA_VALUE_NONE ? -1 : static_cast<int32_t>(v.u.i);                 \
    }                                                                                     \
  };                                                                                      \
  template <>                                                                             \
  struct AbiType<std::optional<cpp>> : AbiType<cpp> {                                     \
    static Abi To(std::optional<cpp> v) { return v ? static_cast<int32_t>(*v) : -1; }     \
    static std::optional<cpp> From(Abi a) {                                               \
      return a < 0 ? std::nullopt : std::optional<cpp>(static_cast<cpp>(a));              \
    }                                                                                     \
  };
MICA_ENUM_TYPE(DType, MICA_VALUE_DTYPE)
MICA_ENUM_TYPE(Layout, MICA_VALUE_LAYOUT)
MICA_ENUM_TYPE(MemoryFormat, MICA_VALUE_MEMORY_FORMAT)
#undef MICA_ENUM_TYPE

template <>
struct AbiType<Device> {
  using Abi = MicaDevice;
  static Abi To(Device d) { return d.ToAbi(); }
  static Device From(Abi a) { return Device::FromAbi(a); }
  static MicaValue Box(Abi a) {
    return {a.backend < 0 ? MICA_VALUE_NONE : MICA_VALUE_DEVICE, 0, {.device = a}};
  }
  static Abi Unbox(const MicaValue& v) { return v.tag == MICA_VALUE_NONE ? Abi{-1, 0} : v.u.device; }
};
template <>
struct AbiType<std::optional<Device>> : AbiType<Device> {
  static Abi To(std::optional<Device> d) { return d ? d->ToAbi() : Abi{-1, 0}; }
  static std::optional<Device> From(Abi a) {
    return a.backend < 0 ? std::nullopt : std::optional<Device>(Device::FromAbi(a));
  }
};
template <>
struct AbiType<std::string_view> {
  using Abi = MicaStr;
  static Abi To(std::string_view s) { return {s.data(), static_cast<int64_t>(s.size())}; }
  static std::string_view From(Abi a) { return {a.data, static_cast<size_t>(a.size)}; }
  static MicaValue Box(Abi a) { return {a.size < 0 ? MICA_VALUE_NONE : MICA_VALUE_STR, 0, {.str = a}}; }
  static Abi Unbox(const MicaValue& v) { return v.tag == MICA_VALUE_NONE ? Abi{nullptr, -1} : v.u.str; }
};
template <>
struct AbiType<std::optional<std::string_view>> : AbiType<std::string_view> {
  static Abi To(std::optional<std::string_view> s) {
    return s ? Abi{s->data(), static_cast<int64_t>(s->size())} : Abi{nullptr, -1};
  }
  static std::optional<std::string_view> From(Abi a) {
    return a.size < 0 ? std::nullopt : std::optional<std::string_view>({a.data, static_cast<size_t>(a.size)});
  }
};
template <>
struct AbiType<Generator*> {
  using Abi = MicaGenerator*;
  static Abi To(Generator* g) { return reinterpret_cast<MicaGenerator*>(g); }
  static Generator* From(Abi a) { return reinterpret_cast<Generator*>(a); }
  static MicaValue Box(Abi a) { return {a ? MICA_VALUE_GENERATOR : MICA_VALUE_NONE, 0, {.generator = a}}; }
  static Abi Unbox(const MicaValue& v) { return v.tag == MICA_VALUE_NONE ? nullptr : v.u.generator; }
};

template <>
struct AbiType<MicaObject*> {
  using Abi = MicaObject*;
  static Abi To(MicaObject* o) { return o; }
  static MicaObject* From(Abi a) { return a; }
  static MicaValue Box(Abi a) { return {a ? MICA_VALUE_OBJECT : MICA_VALUE_NONE, 0, {.object = a}}; }
  static Abi Unbox(const MicaValue& v) { return v.tag == MICA_VALUE_NONE ? nullptr : v.u.object; }
};

template <typename T>
using AbiOf = typename AbiType<T>::Abi;

}  // namespace mica

#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/calls/border_call.h"
#include "dispatcher/calls/owned_results.h"

namespace mica {

// ---- adapters per signature --------------------------------------------------
struct SignatureAdapters {
  // A slot function in layer convention whose context is a BoxedKernel.
  MicaFunction boxing;
  // Calls a slot function (layer convention) from boxed arguments; throws.
  void (*call_slot)(const Slot& slot, KeySet keys, const MicaValue* args, MicaValue* results);
  // Calls a leaf kernel of this very signature: `n` boxed arguments, then `outs` (of an out form).
  MicaStatus (*call_leaf)(MicaFunction leaf, const MicaCall* call, const MicaValue* args, int64_t n,
                          MicaTensor* const* outs, MicaValue* results);
  // The operator itself, for plugins: border_call.h.
  MicaFunction call;
};

namespace internal {
// Calls f with the C++ forms of `args`; the ABI values outlive the call, so that
// references into them stay good.
template <typename... A, typename F, size_t... I>
void CallWithArgsImpl(F&& f, const MicaValue* args, std::index_sequence<I...>) {
  const std::tuple<AbiOf<A>...> abi{AbiType<A>::Unbox(args[I])...};
  f(AbiType<A>::From(std::get<I>(abi))...);
}
template <typename... A, typename F>
void CallWithArgs(F&& f, const MicaValue* args) {
  CallWithArgsImpl<A...>(std::forward<F>(f), args, std::index_sequence_for<A...>());
}

// Argument `i` of a call whose first `n` are boxed; those behind are outputs.
template <typename A>
AbiOf<A> ArgumentAt(size_t i, const MicaValue* args, int64_t n, MicaTensor* const* outs) {
  if constexpr (std::is_same_v<A, const Tensor&>)
    if (static_cast<int64_t>(i) >= n) return outs[static_cast<int64_t>(i) - n];
  return AbiType<A>::Unbox(args[i]);
}

inline void RunBoxed(void* context, uint64_t keys, const MicaValue* args, int64_t n, MicaValue* results) {
  const BoxedKernel& k = *static_cast<const BoxedKernel*>(context);
  k.fn(k, *k.op, KeySet(keys), args, n, results);
}

// Two shapes of slot function: results in registers (kDirect), or through a
// `MicaValue*` at the end.
template <bool kDirect, typename R, typename... A>
struct AdaptersImpl {
  using Ret = AbiReturn<R>;
  static constexpr auto kCall = &BorderCall<typename Ret::Abi, AbiOf<A>...>;
  static typename Ret::Abi Boxing(void* context, uint64_t keys, AbiOf<A>... a) {
    const MicaValue args[std::max<size_t>(sizeof...(A), 1)] = {AbiType<A>::Box(a)...};
    MicaValue result;
    RunBoxed(context, keys, args, sizeof...(A), &result);
    return Ret::FromValue(result);
  }
  template <size_t... I>
  static void Slot_(const Slot& s, KeySet keys, const MicaValue* args, MicaValue* results,
                    std::index_sequence<I...>) {
    using Fn = typename Ret::Abi (*)(void*, uint64_t, AbiOf<A>...);
    auto r = reinterpret_cast<Fn>(s.fn)(s.context, keys.bits(), AbiType<A>::Unbox(args[I])...);
    ThrowIfError(Ret::StatusOf(r));
    Ret::ToValue(r, results);
  }
  template <size_t... I>
  static MicaStatus Leaf_(MicaFunction f, const MicaCall* call, const MicaValue* args, int64_t n,
                          MicaTensor* const* outs, MicaValue* results, std::index_sequence<I...>) {
    using Fn = typename Ret::Abi (*)(const MicaCall*, AbiOf<A>...);
    auto r = reinterpret_cast<Fn>(f)(call, ArgumentAt<A>(I, args, n, outs)...);
    if (!Ret::StatusOf(r)) Ret::ToValue(r, results);
    return Ret::StatusOf(r);
  }
};
template <typename R, typename... A>
struct AdaptersImpl<false, R, A...> {
  static constexpr auto kCall = &BorderCall<MicaStatus, AbiOf<A>..., MicaValue*>;
  static MicaStatus Boxing(void* context, uint64_t keys, AbiOf<A>... a, MicaValue* results) {
    const MicaValue args[std::max<size_t>(sizeof...(A), 1)] = {AbiType<A>::Box(a)...};
    RunBoxed(context, keys, args, sizeof...(A), results);
    return nullptr;
  }
  template <size_t... I>
  static void Slot_(const Slot& s, KeySet keys, const MicaValue* args, MicaValue* results,
                    std::index_sequence<I...>) {
    using Fn = MicaStatus (*)(void*, uint64_t, AbiOf<A>..., MicaValue*);
    ThrowIfError(reinterpret_cast<Fn>(s.fn)(s.context, keys.bits(), AbiType<A>::Unbox(args[I])..., results));
  }
  template <size_t... I>
  static MicaStatus Leaf_(MicaFunction f, const MicaCall* call, const MicaValue* args, int64_t n,
                          MicaTensor* const* outs, MicaValue* results, std::index_sequence<I...>) {
    using Fn = MicaStatus (*)(const MicaCall*, AbiOf<A>..., MicaValue*);
    return reinterpret_cast<Fn>(f)(call, ArgumentAt<A>(I, args, n, outs)..., results);
  }
};

template <typename Signature>
struct Adapters;
template <typename R, typename... A>
struct Adapters<R(A...)> : AdaptersImpl<AbiReturn<R>::kDirect, R, A...> {
  using Base = AdaptersImpl<AbiReturn<R>::kDirect, R, A...>;
  static void CallSlot(const Slot& s, KeySet keys, const MicaValue* args, MicaValue* results) {
    Base::Slot_(s, keys, args, results, std::index_sequence_for<A...>());
  }
  static MicaStatus CallLeaf(MicaFunction f, const MicaCall* call, const MicaValue* args, int64_t n,
                             MicaTensor* const* outs, MicaValue* results) {
    return Base::Leaf_(f, call, args, n, outs, results, std::index_sequence_for<A...>());
  }
};
}  // namespace internal

// Those of the operators' signatures are compiled once, in the generated adapters_<i>.cc.
template <typename Signature>
const SignatureAdapters kAdapters = {reinterpret_cast<MicaFunction>(&internal::Adapters<Signature>::Boxing),
                                     &internal::Adapters<Signature>::CallSlot,
                                     &internal::Adapters<Signature>::CallLeaf,
                                     reinterpret_cast<MicaFunction>(internal::Adapters<Signature>::kCall)};

// A C++ function `R f(KeySet, A...)` as a layer's kernel.
template <auto kFunction>
struct LayerKernel;
template <typename R, typename... A, R (*kFunction)(KeySet, A...)>
struct LayerKernel<kFunction> {
  using Ret = AbiReturn<R>;
  static typename Ret::Abi Direct(void*, uint64_t keys, AbiOf<A>... a) requires(Ret::kDirect) {
    return Ret::Pack([&]() -> R { return kFunction(KeySet(keys), AbiType<A>::From(a)...); });
  }
  static MicaStatus Indirect(void*, uint64_t keys, AbiOf<A>... a,
                             MicaValue* results) requires(!Ret::kDirect) {
    Ret::ToValues(kFunction(KeySet(keys), AbiType<A>::From(a)...), results);
    return nullptr;
  }
  static MicaFunction Get() {
    if constexpr (Ret::kDirect)
      return reinterpret_cast<MicaFunction>(&Direct);
    else
      return reinterpret_cast<MicaFunction>(&Indirect);
  }
};
// A C++ function `R f(A...)` as a composite in layer convention: its parts dispatch anew, and its
// results are the caller's: Note [Owned results].
template <auto kFunction>
struct CompositeKernel;
template <typename R, typename... A, R (*kFunction)(A...)>
struct CompositeKernel<kFunction> {
  using Ret = AbiReturn<R>;
  static typename Ret::Abi Direct(void*, uint64_t, AbiOf<A>... a) requires(Ret::kDirect) {
    if constexpr (std::is_void_v<R>) {
      return Ret::Pack([&] { kFunction(AbiType<A>::From(a)...); });
    } else {
      return Ret::Pack([&]() -> R {
        R result = kFunction(AbiType<A>::From(a)...);
        OwnResults(result);
        return result;
      });
    }
  }
  static MicaStatus Indirect(void*, uint64_t, AbiOf<A>... a, MicaValue* results) requires(!Ret::kDirect) {
    R made = kFunction(AbiType<A>::From(a)...);
    OwnResults(made);
    Ret::ToValues(std::move(made), results);
    return nullptr;
  }
  static MicaFunction Get() {
    if constexpr (Ret::kDirect)
      return reinterpret_cast<MicaFunction>(&Direct);
    else
      return reinterpret_cast<MicaFunction>(&Indirect);
  }
};

// C++ functions `R f(A...)` as leaf kernels (portable): exceptions become statuses.
template <auto kFunction>
struct PortableKernel;
template <typename R, typename... A, R (*kFunction)(A...)>
struct PortableKernel<kFunction> {
  using Ret = AbiReturn<R>;
  static typename Ret::Abi Direct(const MicaCall*, AbiOf<A>... a) noexcept requires(Ret::kDirect) {
    return Ret::PackNoexcept([&]() -> R { return kFunction(AbiType<A>::From(a)...); });
  }
  static MicaStatus Indirect(const MicaCall*, AbiOf<A>... a, MicaValue* results) noexcept
      requires(!Ret::kDirect) {
    return CatchAll([&] { Ret::ToValues(kFunction(AbiType<A>::From(a)...), results); });
  }
  static MicaFunction Get() {
    if constexpr (Ret::kDirect)
      return reinterpret_cast<MicaFunction>(&Direct);
    else
      return reinterpret_cast<MicaFunction>(&Indirect);
  }
};

// Hand-written meta and view functions from boxed arguments of the functional
// form: `void f(MetaResult&, A...)`, `ViewSpec f(A...)`, `ViewSpecs f(A...)`.
template <auto kFunction>
struct MetaThunk;
template <typename... A, void (*kFunction)(MetaResult&, A...)>
struct MetaThunk<kFunction> {
  static void Get(const OperatorSpec&, const MicaValue* args, MetaResult& r) {
    internal::CallWithArgs<A...>([&](auto&&... a) { kFunction(r, a...); }, args);
  }
};
// `check:` of an entry before its meta function.
template <auto kCheck, MetaFunction kMeta>
struct CheckedMeta;
template <typename... A, void (*kCheck)(A...), MetaFunction kMeta>
struct CheckedMeta<kCheck, kMeta> {
  static void Get(const OperatorSpec& spec, const MicaValue* args, MetaResult& r) {
    internal::CallWithArgs<A...>(kCheck, args);
    kMeta(spec, args, r);
  }
};
template <auto kFunction>
struct ViewThunk;
template <typename R, typename... A, R (*kFunction)(A...)>
struct ViewThunk<kFunction> {
  static void Get(const MicaValue* args, ViewSpecs& out) {
    internal::CallWithArgs<A...>(
        [&](auto&&... a) {
          if constexpr (std::is_same_v<R, ViewSpec>)
            out.push_back(kFunction(a...));
          else
            out = kFunction(a...);
        },
        args);
  }
};

}  // namespace mica
