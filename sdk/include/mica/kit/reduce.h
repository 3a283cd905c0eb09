// The reduction, scan and row classes: dimensions, teams, launches.
#pragma once

#include <algorithm>
#include <optional>

#include <mica/kit/scan_source.h>

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

constexpr int64_t kItems = 1 << 17;  // work-items that hide memory's latency

// Whether neighbours in memory are of neighbouring rows.
inline bool LiesAcross(const ReduceCall& c) {
  const auto innermost = [](const Space& s) {
    return s.operands.empty() || s.operands[0].strides.empty() ? INT64_MAX : s.operands[0].strides.back();
  };
  return innermost(c.kept) < innermost(c.taken);
}

// How many neighbours of a row a member reads at once: as many as the device likes to read,
// where the row lies densely in every operand, or is one element of it.
inline int ChunkOf(const ReduceCall& c) {
  const int bytes = DeviceOf(c.call).access_bytes;
  if (bytes == 0 || c.taken.sizes.size() != 1 || (c.ordered && !c.by_index)) return 1;
  int widest = 1;
  bool dense = false;
  for (size_t k = 0; k < c.taken.operands.size(); ++k) {
    const int64_t stride = c.taken.operands[k].strides[0];
    if (stride != 1 && (stride != 0 || k >= c.num_inputs())) return 1;
    if (stride == 0) continue;
    dense = true;
    widest = std::max(widest, BytesOf(c.taken.operands[k].dtype));
  }
  int chunk = dense ? 8 : 1;
  while (chunk > 1 && chunk * widest > bytes) chunk /= 2;
  return chunk;
}

// A scan on a GPU: a team for each row or piece of one, or, where neighbours in memory are of rows that
// fill the device, a work-item.
inline void ChooseScanTeam(ReduceCall* c) {
  const MicaProgram& program = *c->stages[0];
  if (program.combine.size == 0 || c->length() < 2 || (c->ordered && !HoldsLast(program))) return;
  const bool across = LiesAcross(*c);
  int64_t pieces = 1;
  if (across ? c->rows() >= 2048 : c->length() <= 16 && c->rows() >= 4096) {
    pieces = std::min({kItems / c->rows(), c->length() / 32, int64_t{64}});
    if (!across || pieces < 2) return;  // a work-item scans a row
  } else {
    c->team = 32;
    if (ChunkOf(*c) > 1) c->chunk = kDenseScanEach;
    const int64_t each = ScanEach(*c);
    while (c->team < 512 && c->team * each < c->length() && c->rows() * c->team < kItems) c->team *= 2;
    c->group = c->team;
    if (c->rows() * c->team < kItems / 2)
      pieces = std::min(
          {c->length() / (2 * each * c->team), 2 * kItems / (c->rows() * c->team), int64_t{c->team}});
  }
  c->in_teams = true;
  c->by_column = c->team == 1;
  // No piece is empty: what begins a scan need not be neutral on the right of `combine`.
  const int64_t piece = (c->length() + std::max<int64_t>(pieces, 1) - 1) / std::max<int64_t>(pieces, 1);
  c->splits = (c->length() + piece - 1) / piece;
}

// How many chunks a member keeps of its row, so that each stage finds it in registers; 0 where
// a row is too long for that, or has nothing to keep: one element that is expanded.
inline int KeptChunks(const ReduceCall& c) {
  constexpr int64_t kBytes = 128;  // of a member's registers, for all inputs
  if (c.chunk == 1) return 0;
  int64_t bytes = 0;
  for (size_t k = 0; k < c.num_inputs(); ++k)
    if (c.taken.operands[k].strides[0] == 1) bytes += BytesOf(c.taken.operands[k].dtype);
  const int64_t stride = int64_t{c.team} * c.chunk, chunks = (c.length() + stride - 1) / stride;
  return bytes > 0 && bytes * chunks * c.chunk <= kBytes ? static_cast<int>(chunks) : 0;
}

// A GPU: rows that lie along memory are read by a team, and rows across it by neighbours, as
// many pieces as fill the device.
inline void ChooseWideTeam(ReduceCall* c) {
  c->group = 256;
  if (c->form == Form::kScan) return ChooseScanTeam(c);
  if (c->length() < 2) return;
  for (const MicaProgram* stage : c->stages)
    if (stage->combine.size == 0) return;
  if (c->ordered) {
    if (c->form != Form::kReduction || !FindIndexStates(*c->stages[0], &c->index_states) ||
        c->index_states.size() != 1)
      return;
    c->by_index = true;
  }
  c->by_column = LiesAcross(*c);
  const bool splits = c->form == Form::kReduction;
  if (!c->by_column || !splits) {
    c->chunk = ChunkOf(*c);
    c->team = 32;
    if (c->form == Form::kRow) {
      // Four chunks for each member: more members would have the team's combining alone to do.
      while (c->team < 512 && c->team * c->chunk < c->length() &&
             (c->team * c->chunk * 4 < c->length() || c->rows() * c->team < kItems))
        c->team *= 2;
      c->kept_chunks = KeptChunks(*c);
    } else {
      while (c->team < 512 && c->team * c->chunk * 4 <= c->length() && c->rows() * c->team < kItems)
        c->team *= 2;
    }
    if (c->length() <= 16 && c->rows() >= kItems) c->team = c->chunk = 1, c->kept_chunks = 0;
    c->group = c->team > 1 ? c->team : 256;
    c->by_column = false;
    c->whole = c->length() % c->chunk == 0;
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
  key.Add(c.form)
      .Add(c.lane)
      .Add(c.team)
      .Add(c.splits > 1)
      .Add(c.by_column)
      .Add(c.in_teams)
      .Add(c.small)
      .Add(c.chunk)
      .Add(c.whole)
      .Add(c.kept_chunks);
  for (const MicaProgram* stage : c.stages) key.Add(stage);
  key.Add(c.kept.sizes.size()).Add(c.taken.sizes.size());
  for (const Operand& operand : c.kept.operands) key.Add(static_cast<int8_t>(operand.dtype));
  if (c.chunk > 1)
    for (const Operand& operand : c.taken.operands) key.Add(operand.strides[0] == 1);
  return key;
}

inline void Enqueue(const ReduceCall& c, const Device& device, const char* entry, int64_t teams,
                    void* partial, const void* raised) {
  const Kernel& kernel = FindKernel(device, KeyOf(c), entry, c.call->name, [&] {
    return c.in_teams ? ScanSource(c, device) : ReduceSource(c, device);
  });
  Launch launch(c.call, kernel);
  for (const Operand& operand : c.kept.operands) launch.Pointer(operand.data);
  for (const MicaProgram* stage : c.stages) {
    for (int i = 0; i < stage->num_scalars; ++i) {
      const LaneBytes number = NumberOf(c.args[stage->scalar_args[i]], c.lane);
      launch.Bytes(number.bytes, number.size);
    }
  }
  const auto index = [&](int64_t value) { launch.Index(value, c.small); };
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
    Enqueue(c, device, "rest", c.in_teams ? c.rows() * c.splits : c.rows(), partial.data(), raised);
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
