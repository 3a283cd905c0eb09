// The table: tapes made, and read by others.
#include "keys/trace/tape.h"

#include <atomic>

#include "keys/trace/trace.h"

namespace mica::trace {
namespace {

std::atomic<int32_t> g_kind{-1};

const Tape& Of(const MicaTape* tape) { return *static_cast<const Tape*>(tape); }

MicaIntSpan SpanOf(formula::IntSpan v) { return {v.data(), v.size()}; }
template <typename T>
int64_t Count(const std::vector<T>& list) {
  return static_cast<int64_t>(list.size());
}

MicaStatus Create(uint64_t flags, MicaTape** tape) {
  return plugin::CatchAll([&] { *tape = new Tape((flags & MICA_TAPE_FAKE) != 0); });
}
void Destroy(MicaTape* tape) { delete static_cast<Tape*>(tape); }

MicaTensorResult EnterTensor(MicaTensor* t, int32_t as_input, int64_t* number) {
  MicaTensorResult r{nullptr, nullptr};
  r.status = plugin::CatchAll([&] {
    const MicaFrame frame = layer::CurrentFrame();
    MICA_CHECK(frame.kind >= 0 && frame.kind == g_kind.load(),
               "A tensor enters a trace while none is current on this thread.");
    Tensor inside = Enter(Tensor::Borrow(t), as_input != 0);
    if (number) *number = layer::OwnOf(inside, frame)->number;
    r.value = inside.release();
  });
  return r;
}

void ShowValue(const MicaTape* tape, int64_t i, MicaTracedValue* out) {
  const Tape::TracedValue& v = Of(tape).values[static_cast<size_t>(i)];
  *out = {v.dtype, 0, v.device, SpanOf(v.sizes), SpanOf(v.strides)};
}

void ShowCall(const MicaTape* tape, int64_t i, MicaTracedCall* out) {
  const Tape& t = Of(tape);
  const Tape::Call& call = t.calls[static_cast<size_t>(i)];
  t.shown_args.clear();
  t.shown_results.clear();
  for (const Tape::Argument& a : call.args) {
    const int32_t kind = a.is_list     ? MICA_TRACED_TENSORS
                         : a.is_tensor ? MICA_TRACED_TENSOR
                                       : MICA_TRACED_PLAIN;
    t.shown_args.push_back({kind, 0, a.value.value(), SpanOf(a.refs)});
  }
  for (const Tape::Result& r : call.results) t.shown_results.push_back({r.is_list, SpanOf(r.values)});
  *out = {call.op, t.shown_args.data(), Count(t.shown_args), t.shown_results.data(), Count(t.shown_results)};
}

void ShowConstant(const MicaTape* tape, int64_t i, MicaTracedConstant* out) {
  const Tape::Constant& c = Of(tape).constants[static_cast<size_t>(i)];
  const bool written = layer::Table()->tensor_version(c.watched.get()) != c.version;
  *out = {c.number, c.tensor.get(), c.made_inside, written};
}

}  // namespace

int64_t Tape::NewValue(const Tensor& wrapper) {
  values.push_back({static_cast<int32_t>(wrapper.dtype()), wrapper.device(), formula::Own(wrapper.sizes()),
                    formula::Own(wrapper.strides())});
  return Count(values);
}

void SetKind(int32_t kind) { g_kind.store(kind); }

const MicaTracing kTable = {
    {sizeof(MicaTracing), 1, 0},
    [] { return g_kind.load(); },
    &Create,
    &Destroy,
    &EnterTensor,
    [](const MicaTape* tape) { return Count(Of(tape).values); },
    &ShowValue,
    [](const MicaTape* tape) { return Count(Of(tape).calls); },
    &ShowCall,
    [](const MicaTape* tape) { return Count(Of(tape).constants); },
    &ShowConstant,
    [](const MicaTape* tape, int64_t k) { return Of(tape).numbers[static_cast<size_t>(k - 1)].get(); },
};

}  // namespace mica::trace
