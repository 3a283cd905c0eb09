// The tape's side of a call: tensors become numbers of values, results get new ones.
#include <optional>
#include <string_view>

#include "keys/trace/trace.h"

namespace mica::trace {
namespace {

bool IsNumber(const Tensor& t) {
  return (t.get()->flags & MICA_TENSOR_WRAPPED_NUMBER) != 0 && !layer::IsWrapper(t);
}

Tensor EnterUnlessNumber(const Tensor& t) { return IsNumber(t) ? t : Enter(t, false); }

int64_t NumberOf(const Tensor& wrapper, const MicaFrame& frame) {
  return layer::OwnOf(wrapper, frame)->number;
}

// A tensor that the function made without an operator (mica.tensor): what it holds now.
void EnterMade(const Tensor& t, const MicaFrame& frame, Tape& tape) {
  static const layer::Function<Tensor(Tensor, std::optional<formula::MemoryFormat>)> clone("mica::clone");
  Tape::Constant constant;
  {
    const layer::LeaveFrame left;
    constant.watched = Tensor::Borrow(layer::OwnOf(t, frame)->value);
    constant.tensor = clone(constant.watched, std::nullopt);
    if (tape.fake) {
      constant.watched = OnMeta(constant.watched);
      layer::Check(layer::Table()->set_value(t.get(), &frame, constant.watched.get()));
    }
  }
  constant.made_inside = true;
  constant.version = layer::Table()->tensor_version(constant.watched.get());
  constant.number = tape.NewValue(t);
  layer::SetNumber(t, frame, constant.number);
  tape.constants.push_back(std::move(constant));
}

Tensor WrapNew(const Tensor& t, const MicaFrame& frame, const Tape& tape) {
  static const layer::Function<Tensor(Tensor)> detach("mica::detach");
  Tensor value;
  {
    const layer::LeaveFrame left;
    value = detach(t);  // raises for what escaped
    if (tape.fake) value = OnMeta(value);
  }
  Tensor wrapper = layer::Wrap(value, frame);
  if (layer::TraitsOf(t) & MICA_TRAIT_REQUIRES_GRAD)
    layer::Check(layer::Table()->set_requires_grad(wrapper.get(), 1));
  if (!(wrapper.device() == t.device())) layer::Check(layer::Table()->show_device(wrapper.get(), t.device()));
  return wrapper;
}

int64_t Reference(MicaTensor* raw, const MicaFrame& frame, Tape& tape) {
  if (!raw) return 0;
  const Tensor t = Tensor::Borrow(raw);
  if (!IsNumber(t)) return NumberOf(t, frame);
  tape.numbers.push_back(t);
  return -static_cast<int64_t>(tape.numbers.size());
}

Tape::Argument Described(const MicaValue& v, const MicaFrame& frame, Tape& tape) {
  Tape::Argument a;
  if (v.tag == MICA_VALUE_TENSOR) {
    a.is_tensor = true;
    a.refs.push_back(Reference(v.u.tensor, frame, tape));
  } else if (v.tag == MICA_VALUE_TENSORS) {
    a.is_tensor = a.is_list = true;
    for (int64_t j = 0; j < v.u.tensors.size; ++j)
      a.refs.push_back(Reference(v.u.tensors.data[j], frame, tape));
  } else {
    a.value = layer::KeptValue(v);
  }
  return a;
}

// A new number for a tensor that a call made or wrote.
int64_t Numbered(MicaTensor* raw, const MicaFrame& frame, Tape& tape) {
  const Tensor t = Tensor::Borrow(raw);
  if (!layer::OwnOf(t, frame)) return 0;
  const int64_t number = tape.NewValue(t);
  layer::SetNumber(t, frame, number);
  return number;
}

Tape::Result NumberedAll(const MicaValue& v, const MicaFrame& frame, Tape& tape) {
  Tape::Result r;
  r.is_list = v.tag == MICA_VALUE_TENSORS;
  if (v.tag == MICA_VALUE_TENSOR) r.values.push_back(Numbered(v.u.tensor, frame, tape));
  for (int64_t j = 0; r.is_list && j < v.u.tensors.size; ++j)
    r.values.push_back(Numbered(v.u.tensors.data[j], frame, tape));
  return r;
}

// And no tensor, whose call is recorded.
bool ReturnsNumber(const MicaOperatorInfo& info) {
  for (int32_t k = 0; k < info.num_results; ++k)
    if (info.results[k].tag == MICA_VALUE_TENSOR || info.results[k].tag == MICA_VALUE_TENSORS) return false;
  return info.num_results > 0;
}

// What a call made that fails all the same.
void Drop(const layer::Call& call) {
  layer::ReplaceResults(call.info(), call.results(), [](const Tensor&) { return Tensor(); });
  for (int64_t k = 0; k < call.num_results(); ++k) {
    MicaValue& r = call.results()[k];
    if (r.tag == MICA_VALUE_OBJECT) plugin::Host()->object_release(r.u.object);
    if (r.tag == MICA_VALUE_TENSORS) {
      std::vector<MicaTensor*> none(static_cast<size_t>(r.u.tensors.size));
      layer::Table()->take_list(&r, none.data());
    }
    r = MicaValue{};
  }
}

// An object beside tensors would become a constant of the graph: that is right of an argument alone.
void RefuseMadeObjects(const layer::Call& call) {
  for (int64_t k = 0; k < call.num_results(); ++k) {
    const MicaValue& r = call.results()[k];
    if (r.tag != MICA_VALUE_OBJECT) continue;
    bool given = false;
    for (int64_t i = 0; i < call.size(); ++i)
      given = given || (call[i].tag == MICA_VALUE_OBJECT && call[i].u.object == r.u.object);
    if (given) continue;
    Drop(call);
    formula::Throw(MICA_ERROR_RUNTIME, "Operator ", call.info().name,
                   " makes an object inside of a trace, and the graph would keep the object of this one run. "
                   "Make it outside of the traced function, and pass it in.");
  }
}

void RecordEntered(layer::Call& call) {
  const MicaFrame& frame = call.frame();
  Tape& tape = TapeOf(frame);
  const MicaOperatorInfo& info = call.info();
  if (ReturnsNumber(info)) return ComputeNumber(call);
  Tape::Call recorded;
  recorded.op = call.op();
  recorded.args.reserve(static_cast<size_t>(call.size()));
  for (int64_t i = 0; i < call.size(); ++i) recorded.args.push_back(Described(call[i], frame, tape));
  Compute(call, tape);
  RefuseMadeObjects(call);
  for (int32_t k = 0; k < info.num_results; ++k) {
    // In-place and out forms return what they wrote.
    const int32_t of = info.results[k].alias_of;
    const bool is_written = of >= 0 && (info.args[of].flags & MICA_ARGUMENT_WRITTEN) != 0;
    recorded.results.push_back(NumberedAll(is_written ? call[of] : call.results()[k], frame, tape));
  }
  tape.calls.push_back(std::move(recorded));
}

void Record(layer::Call& call) {
  const layer::ReplacedArguments own(call.args(), call.size(), &EnterUnlessNumber);
  layer::Call entered = call.With(own.data());
  RecordEntered(entered);
}

// Whether no gradient flows through the operator, nor does it cut the history of what it writes.
bool HasNoHistory(const MicaOperatorInfo& info) {
  if (info.form != MICA_FORM_FUNCTIONAL) return false;
  return (info.flags & MICA_OPERATOR_NOT_DIFFERENTIABLE) || std::string_view(info.class_name) == "factory";
}

// Through Autograd's kernels where they have something to record.
void RunTrace(layer::Call& call) {
  const layer::ReplacedArguments own(call.args(), call.size(), &EnterUnlessNumber);
  layer::Call entered = call.With(own.data());
  bool recorded = false;
  if (!HasNoHistory(call.info()))
    entered.ForEachTensor([&](MicaTensor* t, int64_t) {
      recorded = recorded || (layer::Table()->tensor_traits(t) & MICA_TRAIT_RECORDED) != 0;
    });
  if (!recorded) return RecordEntered(entered);
  static const uint64_t here =
      layer::Bit(layer::Table()->layer_bit("Autograd")) | layer::Bit(layer::Table()->layer_bit("FrameBelow"));
  entered.Redispatch(here | (call.keys() & MICA_KEYS_OF_BACKENDS), own.data());
}

}  // namespace

Tensor Enter(const Tensor& t, bool as_input) {
  const MicaFrame frame = layer::CurrentFrame();
  Tape& tape = TapeOf(frame);
  if (const auto own = layer::OwnOf(t, frame); own && !as_input) {
    if (!own->number) EnterMade(t, frame, tape);
    return t;
  }
  if (as_input) {
    Tensor wrapper = WrapNew(t, frame, tape);
    layer::SetNumber(wrapper, frame, tape.NewValue(wrapper));
    return wrapper;
  }
  if (const auto found = tape.captured.find(t.get()); found != tape.captured.end())
    return tape.constants[found->second].wrapper;
  Tensor wrapper = WrapNew(t, frame, tape);  // may raise: nothing is noted before
  const int64_t number = tape.NewValue(wrapper);
  layer::SetNumber(wrapper, frame, number);
  const Tensor value = Tensor::Borrow(layer::OwnOf(wrapper, frame)->value);
  tape.constants.push_back({number, t, wrapper, value, layer::Table()->tensor_version(value.get()), false});
  tape.captured.emplace(t.get(), tape.constants.size() - 1);
  if (layer::TraitsOf(wrapper) & MICA_TRAIT_REQUIRES_GRAD) {  // backward adds to the gradient that it has
    const Tensor grad = layer::Taken(layer::Table()->gradient(t.get()));
    if (grad.defined()) layer::Check(layer::Table()->set_gradient(wrapper.get(), Enter(grad, false).get()));
  }
  return wrapper;
}

namespace {

MicaFrameKindRecord KindRecord() {
  MicaFrameKindRecord k{};
  k.struct_size = sizeof(k);
  k.name = "trace";
  k.after_escape =
      "Return it from the traced function, or compute with it inside; what is kept longer is no tensor.";
  k.flags = MICA_KIND_OWN_AUTOGRAD | MICA_KIND_WRITES_CAPTURED;
  k.below_autograd = &layer::BoxedThunk<&Record>::Run;
  k.unreadable =
      "is one of a trace, whose values no Python code may read, because the graph would keep what one run "
      "gave; compute with tensors (mica.where instead of `if`), or read it outside of the traced function";
  return k;
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  layer::Kind kind(registrar, KindRecord());
  SetKind(kind.number());
  plugin::Registrar(registrar, "").Extension(MICA_TRACING_EXTENSION, &kTable.table);
  kind.Fallback<&RunTrace>();
  // Composites that make memory: decomposed by Autograd they would make it unseen.
  for (const char* maker : {"mica::empty.memory_format", "mica::empty_strided", "mica::empty_like"})
    kind.Boxed<&Record>(maker);
}
}  // namespace

}  // namespace mica::trace

MICA_PLUGIN("trace", "Mica", "0.1", "", "", "layer:Trace,layer:trace,extension:mica.tracing",
            ::mica::trace::Init)
