// The tape's side of a call: tensors become numbers of values, results get new ones.
#include <mica/plugin.h>
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/calls/thread_state.h"
#include "dispatcher/layers/autograd_interface.h"
#include "dispatcher/tables/dispatcher.h"
#include "keys/trace/trace.h"
#include "mica/ops/clone.h"
#include "mica/ops/detach.h"
#include "tensor/generator.h"

namespace mica::trace {
namespace {

using frames::Frame;

bool IsNumber(const Tensor& t) { return t.is_wrapped_number() && !frames::IsWrapper(t); }

// A tensor that the function made without an operator (mica.tensor): what it holds now.
void EnterMade(const Tensor& t, frames::Wrapper& w, Tape& tape) {
  Tape::Constant constant;
  {
    const frames::LeaveFrame left;
    constant.tensor = ::mica::ops::op::clone::call(w.value, std::nullopt);
    if (tape.fake) w.value = OnMeta(w.value);
  }
  constant.made_inside = true;
  constant.watched = w.value.storage();
  constant.version = w.value.version();
  w.number = constant.number = tape.NewValue(t);
  tape.constants.push_back(std::move(constant));
}

Tensor WrapNew(const Tensor& t, const Frame& frame, const Tape& tape) {
  Tensor value;
  {
    const frames::LeaveFrame left;
    value = ::mica::ops::op::detach::call(t);  // raises for what escaped
    if (tape.fake) value = OnMeta(value);
  }
  const bool grad = t.requires_grad();
  Tensor wrapper =
      grad ? GetAutogradInterface().GradInput(value, frame) : frames::Wrap(std::move(value), frame);
  if (wrapper.device() != t.device()) frames::ShowDevice(wrapper, t.device());
  return wrapper;
}

int64_t Reference(const Tensor& t, const Frame& frame, Tape& tape) {
  if (!t.defined()) return 0;
  if (!IsNumber(t)) return frames::Own(t, frame)->number;
  tape.numbers.push_back(t);
  return -static_cast<int64_t>(tape.numbers.size());
}

Tape::Argument Described(const MicaValue& v, const Frame& frame, Tape& tape) {
  Tape::Argument a;
  if (v.tag == MICA_VALUE_TENSOR) {
    a.is_tensor = true;
    a.refs.push_back(Reference(Tensor::Ref(v.u.tensor), frame, tape));
  } else if (v.tag == MICA_VALUE_TENSORS) {
    a.is_tensor = a.is_list = true;
    for (int64_t j = 0; j < v.u.tensors.size; ++j)
      a.refs.push_back(Reference(Tensor::Ref(v.u.tensors.data[j]), frame, tape));
  } else {
    a.value = Value::FromBorrowed(v);
    if (v.tag == MICA_VALUE_GENERATOR && v.u.generator) {
      Generator* g = Generator::FromAbi(v.u.generator);
      g->Retain();
      tape.kept.emplace_back(g, [](Generator* kept) { kept->Release(); });
    }
  }
  return a;
}

// A new number for a tensor that a call made or wrote.
int64_t Numbered(const Tensor& t, const Frame& frame, Tape& tape) {
  frames::Wrapper* w = t.defined() ? frames::Own(t, frame) : nullptr;
  if (!w) return 0;
  return w->number = tape.NewValue(t);
}

Tape::Result NumberedAll(const MicaValue& v, const Frame& frame, Tape& tape) {
  Tape::Result r;
  r.is_list = v.tag == MICA_VALUE_TENSORS;
  if (v.tag == MICA_VALUE_TENSOR) r.values.push_back(Numbered(Tensor::Ref(v.u.tensor), frame, tape));
  for (int64_t j = 0; r.is_list && j < v.u.tensors.size; ++j)
    r.values.push_back(Numbered(Tensor::Ref(v.u.tensors.data[j]), frame, tape));
  return r;
}

bool ReturnsNumber(const schema::FunctionSchema& schema) {
  return !schema.returns.empty() && !schema.returns[0].type.has_tensor();
}

void Record(const Operator& op, const MicaValue* args, int64_t n, MicaValue* results) {
  const Frame& frame = *frames::Current();
  Tape& tape = TapeOf(frame);
  const schema::FunctionSchema& schema = op.schema();
  const frames::ReplacedArguments own(args, n,
                                      [](const Tensor& t) { return IsNumber(t) ? t : Enter(t, false); });
  if (ReturnsNumber(schema)) return ComputeNumber(op, own.data(), n, results);
  Tape::Call call;
  call.op = &op;
  call.args.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) call.args.push_back(Described(own.data()[i], frame, tape));
  Compute(op, tape, own.data(), n, results);
  for (size_t k = 0; k < schema.returns.size(); ++k) {
    // In-place and out forms return what they wrote.
    const int written = schema.ReturnsAliasOfArgument(static_cast<int>(k));
    const bool is_written = written >= 0 && schema.arguments[static_cast<size_t>(written)].is_mutable();
    call.results.push_back(NumberedAll(is_written ? own.data()[written] : results[k], frame, tape));
  }
  tape.calls.push_back(std::move(call));
}

// Whether no gradient flows through the operator, nor does it cut the history of what it writes.
bool HasNoHistory(const OperatorSpec& spec) {
  if (spec.form != OpForm::kFunctional) return false;
  return (spec.flags & kNotDifferentiable) || spec.op_class == OpClass::kFactory;
}

// Through Autograd's kernels where they have something to record.
void RunTrace(const BoxedKernel&, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
              MicaValue* results) {
  const frames::ReplacedArguments own(args, n,
                                      [](const Tensor& t) { return IsNumber(t) ? t : Enter(t, false); });
  bool recorded = false;
  if (!HasNoHistory(op.spec()))
    frames::ForEachTensor(own.data(), n,
                          [&](const Tensor& t, int64_t) { recorded = recorded || IsRecorded(t); });
  if (!recorded) return Record(op, own.data(), n, results);
  const KeySet here = KeySet::Of(keys::kAutograd) | KeySet::Of(keys::kFrameBelow);
  op.RedispatchBoxed(here | (keys & keys::kBackends), own.data(), n, results);
}

void RecordWhole(const BoxedKernel&, const Operator& op, KeySet, const MicaValue* args, int64_t n,
                 MicaValue* results) {
  Record(op, args, n, results);
}

}  // namespace

Tensor Enter(const Tensor& t, bool as_input) {
  const Frame& frame = *frames::Current();
  Tape& tape = TapeOf(frame);
  if (frames::Wrapper* w = frames::Own(t, frame); w && !as_input) {
    if (!w->number) EnterMade(t, *w, tape);
    return t;
  }
  if (as_input) {
    Tensor wrapper = WrapNew(t, frame, tape);
    frames::WrapperOf(wrapper).number = tape.NewValue(wrapper);
    return wrapper;
  }
  const auto [found, is_new] = tape.captured.emplace(t.impl(), tape.constants.size());
  if (!is_new) return tape.constants[found->second].wrapper;
  Tensor wrapper = WrapNew(t, frame, tape);
  frames::Wrapper& w = frames::WrapperOf(wrapper);
  w.number = tape.NewValue(wrapper);
  tape.constants.push_back({w.number, t, wrapper, w.value.storage(), w.value.version(), false});
  if (wrapper.requires_grad()) {  // backward adds to the gradient that it has
    const Tensor grad = GetAutogradInterface().Grad(t);
    if (grad.defined()) GetAutogradInterface().SetGrad(wrapper, Enter(grad, false));
  }
  return wrapper;
}

namespace {

frames::Kind MakeKind() {
  frames::Kind k;
  k.name = "trace";
  k.after_escape =
      "Return it from the traced function, or compute with it inside; what is kept longer is no tensor.";
  k.own_autograd = true;
  k.below_autograd = &Record;
  k.writes_captured = true;
  k.unreadable =
      "is one of a trace, whose values no Python code may read, because the graph would keep what one run "
      "gave; compute with tensors (mica.where instead of `if`), or read it outside of the traced function";
  return k;
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  auto& scope = *static_cast<Scope*>(registrar->context);
  scope.BringKind(MakeKind());
  scope.AddExtension(MICA_TRACING_EXTENSION, &kTable.table);
  const SourceLocation here{__FILE__, __LINE__};
  scope.AddBoxedFallback("trace", {&RunTrace, nullptr, nullptr}, here);
  // Composites that make memory: decomposed by Autograd they would make it unseen.
  for (const char* maker : {"mica::empty.memory_format", "mica::empty_strided", "mica::empty_like"})
    scope.AddBoxedKernel(maker, "trace", {&RecordWhole, nullptr, nullptr}, here);
}
}  // namespace

}  // namespace mica::trace

MICA_PLUGIN("trace", "Mica", "0.1", "", "", "layer:Trace,layer:trace,extension:mica.tracing",
            ::mica::trace::Init)
