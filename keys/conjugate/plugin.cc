// Lazy conjugates: what stands between x.conj(), which is a view, and kernels, which read memory.
//
// A tensor with the layer's bit holds in its memory the conjugates (or the negatives) of its
// elements. Views of it keep the bit. Every other operator gets plain tensors here: what it reads is
// computed into fresh memory, what it writes is computed there and put back, conjugated again. So no
// kernel, neither Mica's nor a vendor's, sees the bit.
#include <mica/plugin.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/registration/registration.h"
#include "mica/fingerprint.h"

namespace mica::conjugate {
namespace {

// One of the two layers. The operator is its own inverse.
struct Conjugate {
  static constexpr int kBit = keys::kConjugate;
  static constexpr char kName[] = "Conjugate";
  static constexpr char kCompute[] = "mica::_conj_physical";
  static constexpr char kResolve[] = "resolve_conj";
};
struct Negative {
  static constexpr int kBit = keys::kNegative;
  static constexpr char kName[] = "Negative";
  static constexpr char kCompute[] = "mica::neg";
  static constexpr char kResolve[] = "resolve_neg";
};

// The memory of `t` as it is.
Tensor Plain(const Tensor& t, int bit) {
  Tensor alias = MakeView(t, t.sizes(), t.strides(), t.storage_offset() * t.itemsize(), /*detached=*/true);
  alias.impl()->keys = alias.keys() - KeySet::Of(bit);
  return alias;
}

// Below this layer: Autograd and whatever else is above has seen the call already.
void CallBelow(const Operator& op, int bit, std::initializer_list<MicaValue> args, MicaValue* results) {
  const auto n = static_cast<int64_t>(args.size());
  op.RedispatchBoxed(op.KeysOf(args.begin(), n) & KeySet::Below(bit), args.begin(), n, results);
}

template <typename Layer>
Tensor Computed(const Tensor& plain) {
  static const Operator& op = GetOperator(Layer::kCompute);
  MicaValue made[1];
  CallBelow(op, Layer::kBit, {AbiType<const Tensor&>::Box(plain.impl())}, made);
  return TakeTensor(made[0]);
}

void Copy(const Tensor& to, const Tensor& from, int bit) {
  static const Operator& copy = GetOperator("mica::copy_");
  MicaValue unused[1];  // in-place forms return what they were given
  CallBelow(copy, bit,
            {AbiType<const Tensor&>::Box(to.impl()), AbiType<const Tensor&>::Box(from.impl()),
             AbiType<bool>::Box(false)},
            unused);
}

// The elements of `t`. What is copied to the CPU is computed there: its device need not be able to.
template <typename Layer>
Tensor Elements(const Tensor& t, bool to_cpu) {
  const Tensor plain = Plain(t, Layer::kBit);
  if (!to_cpu || t.device().is_cpu()) return Computed<Layer>(plain);
  const Tensor there = EmptyTensor(t.sizes(), t.dtype(), Device{});
  Copy(there, plain, Layer::kBit);
  return Computed<Layer>(there);
}

// A marked tensor that the operator writes, and what it writes in its place.
struct Written {
  Tensor shown, values;
};
using AllWritten = absl::InlinedVector<Written, 2>;

template <typename Layer>
void PutBack(const Written& w) {
  if (w.shown.sizes() != w.values.sizes()) ResizeTensor(w.shown, w.values.sizes(), w.values.strides());
  const Tensor plain = Plain(w.shown, Layer::kBit), values = Computed<Layer>(w.values);
  Copy(plain, values, Layer::kBit);
}

template <typename Layer>
void RunPlain(const Operator& op, KeySet keys, const MicaValue* args, int64_t n, MicaValue* results,
              bool to_cpu) {
  const auto is_marked = [](const Tensor& t) { return t.defined() && t.keys().has(Layer::kBit); };
  const auto plain_values = [&](const Tensor& t) { return Elements<Layer>(t, to_cpu); };
  AllWritten all;
  frames::ForEachTensor(args, n, [&](const Tensor& t, int64_t i) {
    if (((op.spec().written_args >> i) & 1) && is_marked(t)) all.push_back({t, plain_values(t)});
  });
  const frames::ReplacedArguments plain(args, n, [&](const Tensor& t) {
    if (!is_marked(t)) return t;
    for (const Written& w : all)
      if (w.shown.is_same(t)) return w.values;
    return plain_values(t);
  });
  op.RedispatchBoxed(keys & KeySet::Below(Layer::kBit), plain.data(), n, results);
  for (const Written& w : all) PutBack<Layer>(w);
}

// The layer's fallback. A view keeps the mark, also one of an operator that was defined later.
template <typename Layer>
void Run(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
         MicaValue* results) {
  if (op.spec().view) return op.RedispatchBoxed(keys & KeySet::Below(Layer::kBit), args, n, results);
  RunPlain<Layer>(op, keys, args, n, results, /*to_cpu=*/false);
}

template <typename Layer>
void RunCopy(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
             MicaValue* results) {
  RunPlain<Layer>(op, keys, args, n, results, Tensor::Ref(args[0].u.tensor).device().is_cpu());
}

// Views of memory whose elements are no conjugates, or no negatives, of anything.
template <typename Layer>
void Refuse(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t, MicaValue*) {
  const Tensor& self = Tensor::Ref(args[0].u.tensor);
  std::string name(op.name().substr(op.name().find("::") + 2));
  name.resize(std::min(name.size(), name.find('.')));
  MICA_THROW(kRuntime, name, " is not supported for ",
             Layer::kBit == keys::kConjugate ? "conjugate view tensors" : "tensors with negative bit set",
             ": ", name, " doesn't work on unresolved ",
             Layer::kBit == keys::kConjugate ? "conjugated" : "negated", " tensors, as `self` (",
             self.ToString(), ") is: its memory has other numbers than it shows. Use ", Layer::kResolve,
             "(), whose result does not share its memory.");
}

template <typename Layer>
void Register(Scope& scope, std::initializer_list<const char*> refused) {
  const SourceLocation here{__FILE__, __LINE__};
  scope.DecomposeAt(Layer::kName);
  scope.AddBoxedFallback(Layer::kName, {&Run<Layer>, nullptr, nullptr}, here);
  scope.AddBoxedKernel("mica::copy_", Layer::kName, {&RunCopy<Layer>, nullptr, nullptr}, here);
  // Of the memory's place alone: the mark stays.
  for (const char* write : {"mica::resize_", "mica::_become_view_"})
    scope.AddFallthrough(write, Layer::kName);
  for (const char* view : refused)
    scope.AddBoxedKernel(view, Layer::kName, {&Refuse<Layer>, nullptr, nullptr}, here);
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  auto& scope = *static_cast<Scope*>(registrar->context);
  Register<Conjugate>(scope, {"mica::view.dtype", "mica::view_as_real"});
  Register<Negative>(scope, {"mica::view.dtype"});
}

}  // namespace
}  // namespace mica::conjugate

MICA_PLUGIN("conjugate", "Mica", "0.1", "", MICA_CORE_BUILD, "layer:Conjugate,layer:Negative",
            ::mica::conjugate::Init)
