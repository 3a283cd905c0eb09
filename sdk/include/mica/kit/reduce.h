// The reduction, scan and row classes: dimensions, teams, launches.
#pragma once

#include <algorithm>
#include <optional>

#include <mica/kit/reduce_source.h>

namespace mica {
namespace kit {
namespace reduce {

// Which dimensions of the input an argument (int, int[], None) names.
inline std::vector<bool> TakenDims(const MicaProgram& program, const MicaValue* args, int64_t ndim) {
  std::vector<bool> taken(static_cast<size_t>(ndim), false);
  const auto take = [&](int64_t d) {
    if (ndim > 0) taken[static_cast<size_t>(d < 0 ? d + ndim : d)] = true;
  };
  const MicaValue none = {};
  const MicaValue& dims = program.dims_arg < 0 ? none : args[program.dims_arg];
  if (dims.tag == MICA_VALUE_INT) {
    take(dims.u.i);
  } else if (dims.tag == MICA_VALUE_INTS && dims.u.ints.size > 0) {
    const bool trailing = (program.flags & MICA_PROGRAM_TRAILING_DIMS) != 0;
    for (int64_t i = 0; i < dims.u.ints.size; ++i) take(trailing ? ndim - 1 - i : dims.u.ints.data[i]);
  } else {
    taken.assign(static_cast<size_t>(ndim), true);
  }
  return taken;
}

// The strides of a tensor by dimension of the input. A reduction's output without
// keepdim has the kept dimensions alone.
inline std::vector<int64_t> StridesOf(const MicaTensor* tensor, const std::vector<bool>& taken,
                                      bool reduced) {
  const size_t ndim = taken.size();
  std::vector<int64_t> strides(ndim, 0);
  const auto own = static_cast<size_t>(tensor->dl.ndim);
  const bool dropped = reduced && own != ndim;
  size_t next = dropped ? 0 : own;
  if (!dropped) {
    for (size_t d = 0; d < ndim && d < own; ++d)
      if (tensor->dl.shape[own - 1 - d] != 1) strides[ndim - 1 - d] = tensor->dl.strides[own - 1 - d];
    return strides;
  }
  for (size_t d = 0; d < ndim; ++d)
    if (!taken[d] && next < own) strides[d] = tensor->dl.strides[next++];
  return strides;
}

inline void AddOperand(ReduceCall* c, const MicaTensor* tensor, const std::vector<bool>& taken,
                       bool is_output) {
  const bool reduced = is_output && c->form == Form::kReduction;
  const std::vector<int64_t> strides = StridesOf(tensor, taken, reduced);
  Operand kept{tensor->dl.data, DtypeOf(tensor), {}};
  Operand inner = kept;
  for (size_t d = 0; d < taken.size(); ++d) (taken[d] ? inner : kept).strides.push_back(strides[d]);
  c->kept.operands.push_back(std::move(kept));
  if (!reduced) c->taken.operands.push_back(std::move(inner));
}

// Integer states live in the wider of the compute dtype and an integer result (a
// count of bools is no bool); indices take the widest lanes.
inline int32_t StateLane(const ReduceCall& c, int32_t compute, MicaTensor* const* outputs) {
  int32_t lane = LaneDtype(compute);
  if (lane < MICA_F16) {
    for (int64_t o = 0; o < c.num_outputs; ++o) {
      const int32_t dtype = DtypeOf(outputs[o]);
      if (dtype > MICA_BOOL && dtype < MICA_F16 && dtype / 2 > lane / 2) lane = dtype;
    }
    if (c.ordered && lane != MICA_U64) lane = MICA_I64;
  }
  if (c.ordered && lane == MICA_F32 && c.length() > (int64_t{1} << 24)) lane = MICA_F64;
  return lane;
}

// A GPU: rows that lie along memory are read by a team, and rows across it by neighbours, as
// many pieces as fill the device.
inline void ChooseWideTeam(ReduceCall* c) {
  c->group = 256;
  if (c->form == Form::kScan || c->length() < 2) return;
  for (const MicaProgram* stage : c->stages)
    if (stage->combine.size == 0) return;
  if (c->ordered) {
    if (c->form != Form::kReduction || !FindIndexStates(*c->stages[0], &c->index_states)) return;
    c->in_shares = true;
  }
  constexpr int64_t kItems = 1 << 17;  // enough to hide memory's latency
  const auto innermost = [](const Space& s) {
    return s.operands.empty() || s.operands[0].strides.empty() ? INT64_MAX : s.operands[0].strides.back();
  };
  c->by_column = innermost(c->kept) < innermost(c->taken);
  const bool splits = c->form == Form::kReduction;
  if (!c->by_column || !splits) {
    c->team = 32;
    while (c->team < 512 && c->team * 8 <= c->length() && c->rows() * c->team < kItems) c->team *= 2;
    if (c->length() <= 16 && c->rows() >= kItems) c->team = 1;
    c->group = c->team > 1 ? c->team : 256;
    c->by_column = false;
  }
  const int64_t least = c->team > 1 ? 16 * c->team : 64;  // elements of a piece
  if (splits && c->rows() * c->team < kItems / 2)
    c->splits =
        std::max<int64_t>(1, std::min({c->length() / least, kItems / (c->rows() * c->team), int64_t{512}}));
}

inline void ChooseTeam(ReduceCall* c) {
  if (DeviceOf(c->call).is_wide) return ChooseWideTeam(c);
  constexpr int kTeam = 64;
  if (c->ordered || c->form == Form::kScan || c->length() <= 32 || c->rows() >= 1024) return;
  c->team = kTeam;
  if (c->form == Form::kReduction && c->rows() < 32 && c->length() >= 65536)
    c->splits = std::min<int64_t>(64, c->length() / 16384);
}

inline Key KeyOf(const ReduceCall& c) {
  Key key("reduce");
  key.Add(c.form).Add(c.lane).Add(c.team).Add(c.splits > 1).Add(c.by_column).Add(c.small);
  for (const MicaProgram* stage : c.stages) key.Add(stage);
  key.Add(c.kept.sizes.size()).Add(c.taken.sizes.size());
  for (const Operand& operand : c.kept.operands) key.Add(static_cast<int8_t>(operand.dtype));
  return key;
}

inline void Enqueue(const ReduceCall& c, const Device& device, const char* entry, int64_t teams,
                    void* partial, const void* raised) {
  const Kernel& kernel =
      FindKernel(device, KeyOf(c), entry, c.call->name, [&] { return ReduceSource(c, device); });
  Launch launch(c.call, kernel);
  for (const Operand& operand : c.kept.operands) launch.Pointer(operand.data);
  for (const MicaProgram* stage : c.stages) {
    for (int i = 0; i < stage->num_scalars; ++i) {
      const LaneBytes number = NumberOf(c.args[stage->scalar_args[i]], c.lane);
      launch.Bytes(number.bytes, number.size);
    }
  }
  const auto index = [&](int64_t value) {
    if (c.small)
      launch.Value(static_cast<uint32_t>(value));
    else
      launch.Value(static_cast<uint64_t>(value));
  };
  for (const Space* space : {&c.kept, &c.taken}) {
    for (const int64_t size : space->sizes) index(size);
    for (const Operand& operand : space->operands)
      for (const int64_t stride : operand.strides) index(stride);
  }
  index(c.rows());
  index(c.length());
  index(c.splits);
  launch.Pointer(partial).Pointer(raised);
  launch.Run(teams * c.team, c.group);
}

inline ReduceCall MakeReduceCall(const MicaCall* call, const MicaValue* args, MicaTensor* const* outputs,
                                 int64_t num_outputs, Form form) {
  ReduceCall c = {};
  c.call = call;
  c.args = args;
  c.form = form;
  c.num_outputs = num_outputs;
  for (const MicaProgram* stage = call->program; stage != nullptr; stage = stage->next) {
    c.stages.push_back(stage);
    c.ordered |= (stage->flags & MICA_PROGRAM_USES_INDEX) != 0;
    for (int i = 0; i < stage->num_inputs; ++i) {
      const int32_t arg = stage->input_args[i];
      if (args[arg].tag != MICA_VALUE_TENSOR) throw plugin::NotImplemented();
      if (std::find(c.input_args.begin(), c.input_args.end(), arg) == c.input_args.end())
        c.input_args.push_back(arg);
    }
  }
  const MicaTensor* self = args[call->program->input_args[0]].u.tensor;
  const std::vector<bool> taken = TakenDims(*call->program, args, self->dl.ndim);
  for (int d = 0; d < self->dl.ndim; ++d)
    (taken[static_cast<size_t>(d)] ? c.taken : c.kept).sizes.push_back(self->dl.shape[d]);
  for (const int32_t arg : c.input_args) AddOperand(&c, args[arg].u.tensor, taken, false);
  for (int64_t o = 0; o < num_outputs; ++o) AddOperand(&c, outputs[o], taken, true);
  c.kept.Simplify(true);
  c.taken.Simplify(!c.ordered && form != Form::kScan);
  c.lane = StateLane(c, call->compute_dtype >= 0 ? call->compute_dtype : DtypeOf(self), outputs);
  ChooseTeam(&c);
  c.small = c.kept.IsSmall() && c.taken.IsSmall() && c.rows() * c.length() < (int64_t{1} << 31);
  return c;
}

inline void Run(const MicaCall* call, const MicaValue* args, MicaTensor* const* outputs, int64_t num_outputs,
                Form form) {
  const ReduceCall c = MakeReduceCall(call, args, outputs, num_outputs, form);
  const Device& device = DeviceOf(call);
  CheckDtype(device, c.lane);
  for (const Operand& operand : c.kept.operands) CheckDtype(device, operand.dtype);
  if (c.rows() == 0) return;
  std::optional<Raise> raise;
  for (const MicaProgram* stage : c.stages)
    if (!raise && MayRaise(*stage, c.lane)) raise.emplace(call, ZeroDivision());
  const void* raised = raise ? raise->word() : nullptr;
  if (c.splits == 1) {
    Enqueue(c, device, "whole", c.rows(), nullptr, raised);
  } else {
    const Workspace partial(call, c.rows() * c.splits * c.num_states() * 8);
    Enqueue(c, device, "part", c.rows() * c.splits, partial.data(), raised);
    Enqueue(c, device, "rest", c.rows(), partial.data(), raised);
  }
  if (raise) raise->Check();
}

inline void RunReduction(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                         int64_t num_outputs) {
  Run(call, args, outputs, num_outputs, Form::kReduction);
}
inline void RunScan(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                    int64_t num_outputs) {
  Run(call, args, outputs, num_outputs, Form::kScan);
}
inline void RunRow(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                   int64_t num_outputs) {
  Run(call, args, outputs, num_outputs, Form::kRow);
}

}  // namespace reduce
}  // namespace kit
}  // namespace mica
