// The class kernels of the portable interpreter: pointwise, reduction, scan, row
// and factory, each one function for all operators of the class.
#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/operator_spec.h"
#include "kernels/portable/machine.h"

namespace mica::portable {
namespace {

constexpr int64_t kBlock = Offsets::kBlock;

const Tensor& TensorArg(const MicaValue* args, int32_t i) { return Tensor::Ref(args[i].u.tensor); }
Span<Tensor> Outputs(MicaTensor* const* outputs, int64_t n) {
  return {reinterpret_cast<const Tensor*>(outputs), n};
}
DType ComputeDType(const MicaCall* call, const Tensor& fallback) {
  return call->compute_dtype < 0 ? fallback.dtype() : static_cast<DType>(call->compute_dtype);
}

// The dtype that integer states wrap to: a count of bools is no bool, so that a
// wider integer output decides.
DType StateDType(DType compute, Span<Tensor> outs) {
  if (IsDifferentiable(compute)) return compute;
  for (const Tensor& o : outs)
    if (IsInteger(o.dtype()) && o.itemsize() > ItemSize(compute)) compute = o.dtype();
  return compute;
}

// Reads blocks of one tensor as lanes of T, following a shape that it is
// broadcast to.
template <typename T>
class Reader {
 public:
  Reader(const Tensor& t, IntSpan shape) : Reader(t, shape, BroadcastStrides(t, shape)) {}
  Reader(const Tensor& t, IntSpan shape, IntSpan strides)
      : offsets_(shape, strides, t.itemsize()), dtype_(t.dtype()), data_(t.data_as<char>()) {}
  void Next(T* out, int64_t n) {
    int64_t at[kBlock];
    offsets_.Next(at, n);
    LoadLanes(kLaneFor<T>, dtype_, data_, at, n, out);
  }

 private:
  Offsets offsets_;
  DType dtype_;
  const char* data_;
};

template <typename T>
void Pointwise(const MicaCall* call, const MicaValue* args, Span<Tensor> outs, bool coordinates) {
  const MicaProgram& p = *call->program;
  const IntSpan shape = outs[0].sizes();
  Machine<T> machine(p, args, ComputeDType(call, outs[0]));
  std::vector<Reader<T>> readers;
  for (int i = 0; i < p.num_inputs; ++i) readers.emplace_back(TensorArg(args, p.input_args[i]), shape);
  std::vector<Offsets> writers;
  for (const Tensor& o : outs) writers.emplace_back(o);
  if (coordinates) machine.SetSizes(shape);
  Dims at(static_cast<size_t>(shape.size()), 0);
  const int64_t total = outs[0].numel();
  int64_t offsets[kBlock];
  for (int64_t i = 0; i < total; i += kBlock) {
    const int64_t n = std::min(kBlock, total - i);
    for (size_t k = 0; k < readers.size(); ++k) readers[k].Next(machine.input(static_cast<int>(k)), n);
    for (int64_t j = 0; coordinates && j < n; ++j) {
      for (int64_t d = 0; d < shape.size(); ++d)
        machine.coordinate(static_cast<int>(d))[j] = T(static_cast<double>(at[static_cast<size_t>(d)]));
      for (int64_t d = shape.size() - 1; d >= 0 && ++at[static_cast<size_t>(d)] == shape[d]; --d)
        at[static_cast<size_t>(d)] = 0;
    }
    machine.Run(p.main, n);
    for (int64_t k = 0; k < outs.size(); ++k) {
      writers[static_cast<size_t>(k)].Next(offsets, n);
      StoreLanes(kLaneFor<T>, outs[k].dtype(), machine.output(static_cast<int>(k)), outs[k].data_as<char>(),
                 offsets, n);
    }
  }
}

// Which dimensions an argument (int, int[], None) names.
std::vector<bool> DimsOf(const MicaProgram& p, const MicaValue* args, int64_t ndim) {
  std::vector<bool> in(static_cast<size_t>(ndim), false);
  const MicaValue none{};
  const MicaValue& v = p.dims_arg < 0 ? none : args[p.dims_arg];
  if (v.tag == MICA_VALUE_INT) {
    if (ndim > 0) in[static_cast<size_t>(Wrapped(v.u.i, ndim))] = true;
  } else if (v.tag == MICA_VALUE_INTS && (p.flags & MICA_PROGRAM_TRAILING_DIMS)) {
    for (int64_t i = 0; i < v.u.ints.size; ++i) in[static_cast<size_t>(ndim - 1 - i)] = true;
  } else if (v.tag == MICA_VALUE_INTS && v.u.ints.size > 0) {
    for (int64_t i = 0; i < v.u.ints.size && ndim > 0; ++i)
      in[static_cast<size_t>(Wrapped(v.u.ints.data[i], ndim))] = true;
  } else {
    in.assign(static_cast<size_t>(ndim), true);
  }
  return in;
}

// The kept or the taken dimensions of a shape and of strides that go with it.
Dims Pick(IntSpan all, const std::vector<bool>& taken, bool want) {
  Dims out;
  for (int64_t d = 0; d < all.size(); ++d)
    if (taken[static_cast<size_t>(d)] == want) out.push_back(all[d]);
  return out;
}
int64_t Product(IntSpan sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// What reductions, scans and rows share: the inputs split into kept dimensions
// (256 of their positions at a time) and taken ones (walked one by one).
template <typename T>
struct Split {
  const MicaProgram& program;
  const MicaValue* args;
  Dims shape, kept, taken;
  std::vector<bool> is_taken;
  int64_t rows, length;
  Machine<T> machine;

  Split(const MicaCall* call, const MicaValue* a, Span<Tensor> outs)
      : program(*call->program),
        args(a),
        shape(ToDims(TensorArg(a, program.input_args[0]).sizes())),
        is_taken(DimsOf(program, a, static_cast<int64_t>(shape.size()))),
        machine(program, a, StateDType(ComputeDType(call, TensorArg(a, program.input_args[0])), outs)) {
    kept = Pick(shape, is_taken, false);
    taken = Pick(shape, is_taken, true);
    rows = Product(kept);
    length = Product(taken);
    machine.SetCount(length);
  }
  Dims StridesOf(const Tensor& t, bool of_taken) const {
    return Pick(BroadcastStrides(t, shape), is_taken, of_taken);
  }
};

// One input of a split: for a block of rows, its lanes at a position.
template <typename T>
class RowInput {
 public:
  RowInput(const Split<T>& s, const Tensor& t)
      : tensor_(&t),
        rows_(s.kept, s.StridesOf(t, false), t.itemsize()),
        step_(static_cast<size_t>(s.length)) {
    Offsets(s.taken, s.StridesOf(t, true), t.itemsize()).Next(step_.data(), s.length);
  }
  void NextRows(int64_t n) { rows_.Next(base_, n); }
  void At(int64_t position, T* out, int64_t n) {
    LoadLanes(kLaneFor<T>, tensor_->dtype(), tensor_->data_as<char>() + step_[static_cast<size_t>(position)],
              base_, n, out);
  }
  void Write(int64_t position, const T* in, int64_t n) {
    StoreLanes(kLaneFor<T>, tensor_->dtype(), in,
               tensor_->data_as<char>() + step_[static_cast<size_t>(position)], base_, n);
  }

 private:
  const Tensor* tensor_;
  Offsets rows_;
  int64_t base_[kBlock];
  std::vector<int64_t> step_;
};

template <typename T>
std::vector<RowInput<T>> InputsOf(const Split<T>& s, const MicaProgram& stage) {
  std::vector<RowInput<T>> inputs;
  for (int i = 0; i < stage.num_inputs; ++i) inputs.emplace_back(s, TensorArg(s.args, stage.input_args[i]));
  return inputs;
}
template <typename T>
void ReadAt(Split<T>& s, std::vector<RowInput<T>>& inputs, int64_t position, int64_t n) {
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].At(position, s.machine.input(static_cast<int>(i)), n);
  std::copy_n(s.machine.input(0), n, s.machine.element());
  s.machine.SetIndex(position);
}

template <typename T>
void Reduction(const MicaCall* call, const MicaValue* args, Span<Tensor> outs) {
  Split<T> s(call, args, outs);
  std::vector<RowInput<T>> inputs = InputsOf(s, s.program);
  std::vector<Offsets> writers;
  for (const Tensor& o : outs) writers.emplace_back(o);
  int64_t offsets[kBlock];
  for (int64_t row = 0; row < s.rows; row += kBlock) {
    const int64_t n = std::min(kBlock, s.rows - row);
    for (RowInput<T>& in : inputs) in.NextRows(n);
    s.machine.Run(s.program.init, n);
    for (int64_t k = 0; k < s.length; ++k) {
      ReadAt(s, inputs, k, n);
      s.machine.Run(s.program.main, n);
    }
    s.machine.Run(s.program.finish, n);
    for (int64_t k = 0; k < outs.size(); ++k) {
      writers[static_cast<size_t>(k)].Next(offsets, n);
      StoreLanes(kLaneFor<T>, outs[k].dtype(), s.machine.output(static_cast<int>(k)), outs[k].data_as<char>(),
                 offsets, n);
    }
  }
}

template <typename T>
void Scan(const MicaCall* call, const MicaValue* args, Span<Tensor> outs) {
  Split<T> s(call, args, outs);
  std::vector<RowInput<T>> inputs = InputsOf(s, s.program), writers;
  for (const Tensor& o : outs) writers.emplace_back(s, o);
  for (int64_t row = 0; row < s.rows; row += kBlock) {
    const int64_t n = std::min(kBlock, s.rows - row);
    for (RowInput<T>& in : inputs) in.NextRows(n);
    for (RowInput<T>& out : writers) out.NextRows(n);
    s.machine.Run(s.program.init, n);
    for (int64_t k = 0; k < s.length; ++k) {
      ReadAt(s, inputs, k, n);
      s.machine.Run(s.program.main, n);
      s.machine.Run(s.program.finish, n);
      for (size_t o = 0; o < writers.size(); ++o)
        writers[o].Write(k, s.machine.output(static_cast<int>(o)), n);
    }
  }
}

template <typename T>
void Row(const MicaCall* call, const MicaValue* args, Span<Tensor> outs) {
  Split<T> s(call, args, outs);
  std::vector<RowInput<T>> writers;
  for (const Tensor& o : outs) writers.emplace_back(s, o);
  std::vector<std::vector<RowInput<T>>> inputs;
  for (const MicaProgram* stage = &s.program; stage; stage = stage->next)
    inputs.push_back(InputsOf(s, *stage));
  for (int64_t row = 0; row < s.rows; row += kBlock) {
    const int64_t n = std::min(kBlock, s.rows - row);
    for (RowInput<T>& out : writers) out.NextRows(n);
    for (auto& stage : inputs)
      for (RowInput<T>& in : stage) in.NextRows(n);
    size_t number = 0;
    for (const MicaProgram* stage = &s.program; stage; stage = stage->next, ++number) {
      s.machine.Select(*stage);
      s.machine.Run(stage->init, n);
      for (int64_t k = 0; k < s.length; ++k) {
        ReadAt(s, inputs[number], k, n);
        s.machine.Run(stage->main, n);
      }
      s.machine.Run(stage->finish, n);
      for (int64_t k = 0; stage->map.size > 0 && k < s.length; ++k) {
        ReadAt(s, inputs[number], k, n);
        s.machine.Run(stage->map, n);
        for (size_t o = 0; o < writers.size(); ++o)
          writers[o].Write(k, s.machine.output(static_cast<int>(o)), n);
      }
    }
  }
}

template <typename F>
MicaStatus ForLane(const MicaCall* call, MicaTensor* const* outputs, int64_t num_outputs, F&& f) {
  return CatchAll([&] {
    const Span<Tensor> outs = Outputs(outputs, num_outputs);
    VisitLane(LaneOf(ComputeDType(call, outs[0])), [&]<typename T>() { f.template operator()<T>(outs); });
  });
}

MicaStatus RunPointwise(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                        int64_t n) {
  return ForLane(call, outputs, n,
                 [&]<typename T>(Span<Tensor> outs) { Pointwise<T>(call, args, outs, false); });
}
MicaStatus RunFactory(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                      int64_t n) {
  return ForLane(call, outputs, n,
                 [&]<typename T>(Span<Tensor> outs) { Pointwise<T>(call, args, outs, true); });
}
MicaStatus RunReduction(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                        int64_t n) {
  return ForLane(call, outputs, n, [&]<typename T>(Span<Tensor> outs) { Reduction<T>(call, args, outs); });
}
MicaStatus RunScan(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                   int64_t n) {
  return ForLane(call, outputs, n, [&]<typename T>(Span<Tensor> outs) { Scan<T>(call, args, outs); });
}
MicaStatus RunRow(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                  int64_t n) {
  return ForLane(call, outputs, n, [&]<typename T>(Span<Tensor> outs) { Row<T>(call, args, outs); });
}

[[maybe_unused]] const bool kRegistered = [] {
  SetPortableClass(OpClass::kPointwise, &RunPointwise);
  SetPortableClass(OpClass::kFactory, &RunFactory);
  SetPortableClass(OpClass::kReduction, &RunReduction);
  SetPortableClass(OpClass::kScan, &RunScan);
  SetPortableClass(OpClass::kRow, &RunRow);
  return true;
}();

}  // namespace
}  // namespace mica::portable
