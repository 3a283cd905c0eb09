// The table: tapes made, and read by others.
#include "keys/trace/tape.h"

#include "dispatcher/plugins/status.h"
#include "keys/trace/trace.h"

namespace mica::trace {
namespace {

const Tape& Of(const MicaTape* tape) { return *static_cast<const Tape*>(tape); }

MicaIntSpan SpanOf(const Dims& d) { return {d.data(), static_cast<int64_t>(d.size())}; }
MicaIntSpan SpanOf(const std::vector<int64_t>& v) { return {v.data(), static_cast<int64_t>(v.size())}; }

MicaStatus Create(uint64_t flags, MicaTape** tape) {
  return CatchAll([&] { *tape = new Tape((flags & MICA_TAPE_FAKE) != 0); });
}
void Destroy(MicaTape* tape) { delete static_cast<Tape*>(tape); }

MicaTensorResult EnterTensor(MicaTensor* t, int32_t as_input, int64_t* number) {
  MicaTensorResult r{nullptr, nullptr};
  r.status = CatchAll([&] {
    const frames::Frame* const frame = frames::Current();
    MICA_CHECK(frame && frames::KindOf(frame->kind).name == "trace",
               "A tensor enters a trace while none is current on this thread.");
    Tensor inside = Enter(Tensor::Ref(t), as_input != 0);
    if (number) *number = frames::WrapperOf(inside).number;
    r.value = inside.release();
  });
  return r;
}

int64_t NumValues(const MicaTape* tape) { return static_cast<int64_t>(Of(tape).values.size()); }
void ShowValue(const MicaTape* tape, int64_t i, MicaTracedValue* out) {
  const Tape::TracedValue& v = Of(tape).values[static_cast<size_t>(i)];
  *out = {static_cast<int32_t>(v.dtype), 0, v.device.ToAbi(), SpanOf(v.sizes), SpanOf(v.strides)};
}

int64_t NumCalls(const MicaTape* tape) { return static_cast<int64_t>(Of(tape).calls.size()); }
void ShowCall(const MicaTape* tape, int64_t i, MicaTracedCall* out) {
  const Tape& t = Of(tape);
  const Tape::Call& call = t.calls[static_cast<size_t>(i)];
  t.shown_args.clear();
  t.shown_results.clear();
  for (const Tape::Argument& a : call.args) {
    const int32_t kind = a.is_list     ? MICA_TRACED_TENSORS
                         : a.is_tensor ? MICA_TRACED_TENSOR
                                       : MICA_TRACED_PLAIN;
    t.shown_args.push_back({kind, 0, a.value.Borrow(), SpanOf(a.refs)});
  }
  for (const Tape::Result& r : call.results) t.shown_results.push_back({r.is_list, SpanOf(r.values)});
  *out = {const_cast<Operator*>(call.op), t.shown_args.data(), static_cast<int64_t>(t.shown_args.size()),
          t.shown_results.data(), static_cast<int64_t>(t.shown_results.size())};
}

int64_t NumConstants(const MicaTape* tape) { return static_cast<int64_t>(Of(tape).constants.size()); }
void ShowConstant(const MicaTape* tape, int64_t i, MicaTracedConstant* out) {
  const Tape::Constant& c = Of(tape).constants[static_cast<size_t>(i)];
  *out = {c.number, c.tensor.impl(), c.made_inside, c.watched.get()->version() != c.version};
}

MicaTensor* Number(const MicaTape* tape, int64_t k) {
  return Of(tape).numbers[static_cast<size_t>(k - 1)].impl();
}

}  // namespace

const MicaTracing kTable = {
    {sizeof(MicaTracing), 1, 0},
    []() -> int32_t { return frames::KindNumber("trace"); },
    &Create,
    &Destroy,
    &EnterTensor,
    &NumValues,
    &ShowValue,
    &NumCalls,
    &ShowCall,
    &NumConstants,
    &ShowConstant,
    &Number,
};

}  // namespace mica::trace
