// The pointwise and factory classes, and copies, which are pointwise too.
//
// Dense operands are one dimension of vectors. A broadcast whose last dimension is
// dense in every operand, or constant (a bias), runs on vectors as well, and on a GPU inputs with
// small gaps (x[:, ::2]); anything else runs an element at a time. Rows that are long enough are the second
// dimension of the work-items, so that no element pays for a division to find its row. Coordinates
// (factories) keep their dimensions.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace pointwise {

// An input is a tensor, an operand of the space; or a number.
struct Input {
  int operand;  // -1: a number
  LaneBytes number;
};

struct Call {
  const MicaCall* call;
  const MicaProgram* program;
  int32_t lane;
  Space space;  // results, then tensor inputs
  size_t num_outputs;
  std::vector<Input> inputs;
  std::vector<LaneBytes> numbers;
  int width = 1;
  int64_t row_group = 0;  // work-items of a row in a group; 0: work-items have one dimension
  bool whole =
      false;  // every vector is: what handles a rest costs registers, and large memory rarely has one
  bool small = true;
  bool coordinates = false;
};

inline bool IsInteger(int32_t dtype) { return dtype >= MICA_U8 && dtype <= MICA_I64; }

// Loops in the scalar functions, and conversions with a range check, take one lane.
inline bool FitsVectors(const Call& c) {
  for (int64_t i = 0; i < c.program->main.size; ++i) {
    const int opcode = c.program->main.data[i].opcode;
    if (opcode > MICA_OP_GIVEN || (opcode == MICA_OP_DIGAMMA && c.lane == MICA_F64)) return false;
    if (opcode == MICA_OP_GCD || opcode == MICA_OP_LCM) return false;
    if (opcode == MICA_OP_POW && c.lane < MICA_F16) return false;
  }
  if (IsComplex(c.lane)) return false;
  const bool float_lane = c.lane >= MICA_F16;
  for (size_t k = 0; k < c.space.operands.size(); ++k) {
    const int32_t dtype = c.space.operands[k].dtype;
    if (k < c.num_outputs ? float_lane && IsInteger(dtype) : !float_lane && dtype >= MICA_F16) return false;
  }
  return true;
}

// What complex.cl computes.
inline bool IsOfComplex(int opcode) {
  switch (opcode) {
    case MICA_OP_LOAD:
    case MICA_OP_SCALAR:
    case MICA_OP_CONST:
    case MICA_OP_STORE:
    case MICA_OP_TO_LANE:
    case MICA_OP_TO_MASK:
    case MICA_OP_SELECT:
    case MICA_OP_MASK_SELECT:
    case MICA_OP_MASK_AND:
    case MICA_OP_MASK_OR:
    case MICA_OP_MASK_XOR:
    case MICA_OP_MASK_NOT:
    case MICA_OP_EQ:
    case MICA_OP_NE:
    case MICA_OP_IS_NAN:
    case MICA_OP_IS_INF:
    case MICA_OP_IS_FINITE:
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
    case MICA_OP_DIV:
    case MICA_OP_NEG:
    case MICA_OP_SQUARE:
    case MICA_OP_RECIPROCAL:
    case MICA_OP_ABS:
    case MICA_OP_ANGLE:
    case MICA_OP_SIGN:
    case MICA_OP_REAL:
    case MICA_OP_IMAG:
    case MICA_OP_CONJ:
    case MICA_OP_COMPLEX:
    case MICA_OP_EXP:
    case MICA_OP_LOG:
      return true;
    default:
      return false;
  }
}

// Whether there are lanes for the program: complex operands need complex ones, which know fewer operations.
inline bool HasLanes(const Call& c) {
  if (!IsComplex(c.lane)) {
    return std::none_of(c.space.operands.begin(), c.space.operands.end(),
                        [](const Operand& operand) { return IsComplex(operand.dtype); });
  }
  const MicaCode& code = c.program->main;
  return std::all_of(code.data, code.data + code.size,
                     [](const MicaInstruction& in) { return IsOfComplex(in.opcode); });
}

constexpr int64_t kGroup = 256;

// Work-items of a row.
inline int64_t RowItems(const Call& c, int width) { return (c.space.sizes.back() + width - 1) / width; }

// A group is part of one row, so that what a row costs is paid once a group.
inline int64_t RowGroup(const Call& c, int width) {
  if (c.space.sizes.size() < 2 || RowItems(c, width) < 8) return 0;
  if (c.space.Count() / c.space.sizes.back() > DeviceOf(c.call).max_groups_yz) return 0;
  int64_t group = kGroup;
  while (group > RowItems(c, width)) group /= 2;
  return group;
}

// An input whose elements have small gaps between them: vectors read the gaps too. 0 where there are none.
inline int64_t SpacingOf(const Call& c, size_t operand) {
  if (operand < c.num_outputs || c.space.sizes.empty()) return 0;
  const int64_t stride = c.space.operands[operand].strides.back();
  return stride == 2 || stride == 4 ? stride : 0;
}

inline int Width(const Call& c, const Device& device) {
  const Space& space = c.space;
  if (space.sizes.empty() || c.coordinates || !FitsVectors(c)) return 1;
  int64_t widest = 1;
  bool has_gaps = false;
  for (size_t k = 0; k < space.operands.size(); ++k) {
    const int64_t stride = space.operands[k].strides.back(), spacing = SpacingOf(c, k);
    const bool reads_gaps = spacing > 0 && device.access_bytes > 0;
    if (stride != 1 && !reads_gaps && (stride != 0 || k < c.num_outputs)) return 1;
    has_gaps |= reads_gaps;
    if (device.access_bytes > 0 && stride != 0)
      widest = std::max(widest, stride * BytesOf(space.operands[k].dtype));
  }
  int native = device.vector_width;
  while (device.access_bytes > 0 && native > 1 && native * widest > device.access_bytes) native /= 2;
  const bool whole = space.sizes.size() == 1 || (!has_gaps && space.sizes.back() % native == 0);
  return whole || RowGroup(c, native) > 0 ? native : 1;
}

inline bool IsSplat(const Call& c, size_t operand) {
  return c.space.sizes.empty() || c.space.operands[operand].strides.back() == 0;
}

// What a kernel is told of its dimensions: dense memory needs nothing, and vectors lie
// densely along the last one.
inline bool HasSizes(const Call& c) { return c.coordinates || c.space.sizes.size() > 1; }
inline size_t NumStrides(const Call& c) { return c.space.sizes.size() - (c.width > 1 ? 1 : 0); }

inline std::string PointerType(const Call& c, size_t operand) {
  return "global E_" + std::string(PointwiseSuffix(c.space.operands[operand].dtype)) + "*";
}

inline bool UsesMaths(const Call& c, const Device& device) {
  return NeedsMaths(*c.program) || (device.has_maths && LikesMaths(*c.program, c.lane));
}

// What stands before a kernel's text: its lanes, and the scalar functions where the program has any.
inline std::string HeadText(const Call& c, const Device& device) {
  return LanesText(device, {c.lane, c.width}, c.small) +
         (UsesMaths(c, device)
              ? kMathsText + std::string("#undef OP_DIGAMMA\n#define OP_DIGAMMA(a) OP_MATHS1(digamma, a)\n")
              : "");
}

inline std::string BodyText(const Call& c, const Device& device) {
  return CodeText(*c.program, c.program->main, static_cast<int>(c.space.sizes.size()), UsesMaths(c, device));
}

inline std::string Source(const Call& c, const Device& device) {
  const Space& space = c.space;
  const size_t ndim = space.sizes.size();
  std::string parameters, offsets, loads, numbers, stores;
  if (c.row_group > 0)
    offsets = "const INDEX row = get_global_id(1); " + SplitText("row", "c", ndim - 1) + "const INDEX c" +
              std::to_string(ndim - 1) + " = i; ";
  else
    offsets = SplitText("i", "c", ndim);
  for (size_t k = 0; k < space.operands.size(); ++k) {
    const bool result = k < c.num_outputs;
    const std::string n = std::to_string(k);
    parameters += (result ? "" : "const ") + PointerType(c, k) + " a" + n + ", ";
    // Along the last dimension a vector is dense: no multiplication is needed.
    std::string at = OffsetText(n, "c", NumStrides(c));
    const int64_t spacing = c.width > 1 ? SpacingOf(c, k) : 0;
    if (c.width > 1 && !IsSplat(c, k)) at += " + c" + std::to_string(ndim - 1);
    if (spacing > 0) at += " * " + std::to_string(spacing);
    offsets += "const INDEX at_" + n + " = " + at + "; ";
    if (result) {
      stores += "STORE_" + std::string(PointwiseSuffix(space.operands[k].dtype)) + "(y" + n + ", a" + n +
                " + at_" + n + ", left); ";
      offsets += "L y" + n + "; ";
    }
  }
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string x = "x" + std::to_string(i);
    if (c.inputs[i].operand < 0) {
      parameters += "const LANE number_" + x + ", ";
      numbers += "const L " + x + " = (L)(number_" + x + "); ";
      continue;
    }
    const auto k = static_cast<size_t>(c.inputs[i].operand);
    const std::string at = "a" + std::to_string(k) + " + at_" + std::to_string(k);
    const std::string suffix = PointwiseSuffix(space.operands[k].dtype);
    const int64_t spacing = c.width > 1 ? SpacingOf(c, k) : 0;
    if (spacing > 0) {
      loads += "const Vec<E_" + suffix + ", W> near_" + x + " = load_spaced<" + std::to_string(spacing) +
               ">(" + at + ", count - i > W, left); const L " + x + " = LOAD_" + suffix + "(near_" + x +
               ".v, W); ";
      continue;
    }
    loads +=
        "const L " + x + " = " +
        (IsSplat(c, k) ? "SPLAT_" + suffix + "(" + at + "); " : "LOAD_" + suffix + "(" + at + ", left); ");
  }
  for (size_t i = 0; i < c.numbers.size(); ++i) {
    const std::string n = "n" + std::to_string(i);
    parameters += "const LANE number_" + n + ", ";
    numbers += "const L " + n + " = (L)(number_" + n + "); ";
  }
  if (HasSizes(c))
    for (size_t d = 0; d < ndim; ++d) parameters += "const INDEX size_c" + std::to_string(d) + ", ";
  for (size_t k = 0; k < space.operands.size(); ++k)
    for (size_t d = 0; d < NumStrides(c); ++d)
      parameters += "const INDEX stride_" + std::to_string(k) + "_c" + std::to_string(d) + ", ";
  parameters += "global int* raised";
  return HeadText(c, device) + Define("WHOLE", c.whole ? "1" : "0") + Define("PARAMETERS", parameters) +
         Define("OFFSETS", offsets) + Define("LOADS", loads) + Define("NUMBERS", numbers) +
         Define("BODY", BodyText(c, device)) + Define("STORES", stores) + kPointwiseText;
}

inline Key KeyOf(const Call& c) {
  Key key("pointwise");
  key.Add(c.program)
      .Add(c.lane)
      .Add(c.width)
      .Add(c.row_group)
      .Add(c.whole)
      .Add(c.small)
      .Add(c.coordinates)
      .Add(c.space.sizes.size());
  for (size_t k = 0; k < c.space.operands.size(); ++k)
    key.Add(static_cast<int8_t>(c.space.operands[k].dtype)).Add(IsSplat(c, k)).Add(SpacingOf(c, k));
  for (const Input& input : c.inputs) key.Add(static_cast<int8_t>(input.operand));
  return key;
}

// Declines what no kernel of the device computes.
inline void CheckComputes(const Call& c, const Device& device) {
  for (const Operand& operand : c.space.operands) CheckPointwiseDtype(device, operand.dtype);
  CheckPointwiseDtype(device, c.lane);
  if (!HasLanes(c)) throw plugin::NotImplemented();
  if (NeedsMaths(*c.program) && !(device.has_maths && device.has_f64)) throw plugin::NotImplemented();
}

inline void Enqueue(Call& c) {
  const MicaCall* call = c.call;
  const Device& device = DeviceOf(call);
  CheckComputes(c, device);
  if (!c.coordinates) c.space.Simplify(true);
  c.small = c.space.IsSmall();
  c.width = Width(c, device);
  c.row_group = RowGroup(c, c.width);
  const int64_t count = c.space.Count(), last = c.row_group > 0 ? c.space.sizes.back() : count;
  c.whole = c.width == 1 || (last % c.width == 0 && count >= 4096);
  const Kernel& kernel =
      FindKernel(device, KeyOf(c), "pointwise", call->name, [&] { return Source(c, device); });
  std::optional<Raise> raise;
  if (MayRaise(*c.program, c.lane)) raise.emplace(call, ZeroDivision());
  {
    Launch launch(call, kernel);
    for (const Operand& operand : c.space.operands) launch.Pointer(operand.data);
    for (const Input& input : c.inputs)
      if (input.operand < 0) launch.Bytes(input.number.bytes, input.number.size);
    for (const LaneBytes& number : c.numbers) launch.Bytes(number.bytes, number.size);
    const auto index = [&](int64_t value) { launch.Index(value, c.small); };
    if (HasSizes(c))
      for (const int64_t size : c.space.sizes) index(size);
    for (const Operand& operand : c.space.operands)
      for (size_t d = 0; d < NumStrides(c); ++d) index(operand.strides[d]);
    launch.Pointer(raise ? raise->word() : nullptr);
    index(last);
    if (c.row_group > 0)
      launch.Run(RowItems(c, c.width), count / last, 1, c.row_group, 1);
    else
      launch.Run((count + c.width - 1) / c.width, kGroup);
  }
  if (raise) raise->Check();
}

inline void Run(const MicaCall* call, const MicaValue* args, MicaTensor* const* outputs, int64_t num_outputs,
                bool coordinates) {
  const MicaProgram& program = *call->program;
  Call c;
  c.call = call;
  c.program = &program;
  c.lane = PointwiseLane(call->compute_dtype >= 0 ? call->compute_dtype : DtypeOf(outputs[0]));
  c.num_outputs = static_cast<size_t>(num_outputs);
  c.coordinates = coordinates;
  c.inputs.reserve(static_cast<size_t>(program.num_inputs));
  const MicaTensor* tensors[32];
  size_t count = 0;
  for (int64_t k = 0; k < num_outputs; ++k) tensors[count++] = outputs[k];
  for (int i = 0; i < program.num_inputs; ++i) {
    const MicaValue& value = args[program.input_args[i]];
    if (value.tag == MICA_VALUE_NONE || count == 32) throw plugin::NotImplemented();
    if (value.tag == MICA_VALUE_TENSOR) {
      c.inputs.push_back({static_cast<int>(count), {}});
      tensors[count++] = value.u.tensor;
    } else {
      c.inputs.push_back({-1, NumberOf(value, c.lane)});
    }
  }
  if (coordinates || !c.space.AddDense(tensors, count)) {
    c.space.sizes.assign(tensors[0]->dl.shape, tensors[0]->dl.shape + tensors[0]->dl.ndim);
    for (size_t k = 0; k < count; ++k) c.space.Add(tensors[k]);
  }
  for (int i = 0; i < program.num_scalars; ++i)
    c.numbers.push_back(NumberOf(args[program.scalar_args[i]], c.lane));
  Enqueue(c);
}

// y = x, as a program. Its source is no operator's.
inline const MicaProgram& IdentityProgram() {
  static const MicaInstruction code[] = {{MICA_OP_LOAD, 0, 0, 0, 0, 0}, {MICA_OP_STORE, 255, 0, 0, 0, 0}};
  static const int32_t input = 0;
  static const MicaProgram program = [] {
    MicaProgram p = {};
    p.struct_size = sizeof(p);
    p.class_name = "pointwise";
    p.source = "self";
    p.hint = "copy";
    p.num_inputs = p.num_outputs = p.num_registers = 1;
    p.input_args = &input;
    p.main = {code, 2};
    p.dims_arg = p.keepdim_arg = -1;
    return p;
  }();
  return program;
}

inline void RunPointwise(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                         int64_t num_outputs) {
  Run(call, args, outputs, num_outputs, false);
}

inline void RunFactory(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                       int64_t num_outputs) {
  Run(call, args, outputs, num_outputs, true);
}

// Elements that keep their dtype move as integers of their size, whatever they are.
inline void MoveAsBits(Space* space) {
  static constexpr int32_t kBits[] = {MICA_U8, MICA_U16, MICA_U32, MICA_U64, MICA_U64};
  const int32_t dtype = space->operands[0].dtype;
  const int log_size = dtype == MICA_C128                                                                 ? 4
                       : dtype == MICA_C64 || dtype == MICA_F64 || dtype == MICA_I64 || dtype == MICA_U64 ? 3
                       : dtype == MICA_F32 || dtype == MICA_I32 || dtype == MICA_U32                      ? 2
                       : dtype >= MICA_U16 && dtype <= MICA_BF16                                          ? 1
                                                                                                          : 0;
  for (Operand& operand : space->operands) {
    operand.dtype = kBits[log_size];
    if (log_size < 4) continue;
    for (int64_t& stride : operand.strides) stride *= 2;
    operand.strides.push_back(1);
  }
  if (log_size == 4) space->sizes.push_back(2);
}

inline void CopyPart(const MicaCall* call, Space space) {
  if (space.Count() == 0) return;
  if (space.operands[0].dtype == space.operands[1].dtype) MoveAsBits(&space);
  Call c;
  c.call = call;
  c.program = &IdentityProgram();
  const int32_t from = space.operands[1].dtype;
  // Floats keep their precision on the way to an integer or a bool.
  c.lane = PointwiseLane(IsComplex(space.operands[0].dtype) ? space.operands[0].dtype : from);
  c.num_outputs = 1;
  c.space = std::move(space);
  c.inputs.push_back({1, {}});
  Enqueue(c);
}

inline void CopyTensor(const MicaCall* call, const MicaTensor* to, const MicaTensor* from) {
  Space space;
  space.sizes.assign(to->dl.shape, to->dl.shape + to->dl.ndim);
  space.Add(to);
  space.Add(from);
  CopyPart(call, std::move(space));
}

// The elements of a tensor of `shape`'s sizes, one behind the other at `data`.
inline Operand DenseOperand(const MicaTensor* shape, void* data, int32_t dtype) {
  const plugin::TensorRef t(shape);
  Operand dense{data, dtype, std::vector<int64_t>(static_cast<size_t>(t.ndim()), 1)};
  for (int d = t.ndim(); d-- > 1;)
    dense.strides[static_cast<size_t>(d) - 1] = dense.strides[static_cast<size_t>(d)] * t.size(d);
  return dense;
}

// The elements of `from`, broadcast to the sizes of `shape` where it is given.
inline void CopyToDense(const MicaCall* call, void* data, int32_t dtype, const MicaTensor* from,
                        const MicaTensor* shape = nullptr) {
  if (!shape) shape = from;
  Space space;
  space.sizes.assign(shape->dl.shape, shape->dl.shape + shape->dl.ndim);
  space.operands.push_back(DenseOperand(shape, data, dtype));
  space.Add(from);
  CopyPart(call, std::move(space));
}

// The same back: `to` takes elements of its own dtype.
inline void CopyFromDense(const MicaCall* call, const MicaTensor* to, void* data) {
  Space space;
  space.sizes.assign(to->dl.shape, to->dl.shape + to->dl.ndim);
  space.Add(to);
  space.operands.push_back(DenseOperand(to, data, DtypeOf(to)));
  CopyPart(call, std::move(space));
}

}  // namespace pointwise
}  // namespace kit
}  // namespace mica
