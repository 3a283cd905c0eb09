// The pointwise class over a list of tensors in one launch: foreach operators and optimizers' steps.
//
// A launch takes the addresses, sizes and first groups of as many rows as fit into its arguments
// (Device::list_bytes); more rows are more launches. What differs from row to row beside them, a number for
// one, is declined, and the host makes the calls one by one.
#pragma once

#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {
namespace pointwise {

// The rows of one launch: the struct ROWS of the text, which has arrays of `capacity` rows.
class RowTable {
 public:
  RowTable(size_t capacity, size_t operands)
      : capacity_(capacity), operands_(operands), bytes_((capacity * RowBytes(operands) + 7) / 8 * 8) {}

  static size_t RowBytes(size_t operands) { return 8 * operands + 8 + 4; }

  void Put(size_t row, const std::vector<uint64_t>& addresses, uint64_t count, uint32_t first) {
    std::memcpy(&bytes_[8 * operands_ * row], addresses.data(), 8 * operands_);
    std::memcpy(&bytes_[8 * operands_ * capacity_ + 8 * row], &count, 8);
    std::memcpy(&bytes_[8 * (operands_ + 1) * capacity_ + 4 * row], &first, 4);
  }
  const std::vector<char>& bytes() const { return bytes_; }

  static std::string Text(size_t capacity, size_t operands) {
    const std::string rows = std::to_string(capacity);
    return "typedef struct { ulong address[" + rows + "][" + std::to_string(operands) + "]; ulong count[" +
           rows + "]; uint first[" + rows + "]; } ROWS;\n";
  }

 private:
  size_t capacity_, operands_;
  std::vector<char> bytes_;
};

inline std::string ListSource(const Call& c, const Device& device, size_t capacity) {
  std::string parameters, pointers, offsets, loads, numbers, stores;
  for (size_t k = 0; k < c.space.operands.size(); ++k) {
    const bool result = k < c.num_outputs;
    const std::string n = std::to_string(k), type = (result ? "" : "const ") + PointerType(c, k);
    pointers += type + " a" + n + " = (" + type + ")rows.address[row][" + n + "]; ";
    if (!result) continue;
    offsets += "L y" + n + "; ";
    stores += "STORE_" + std::string(PointwiseSuffix(c.space.operands[k].dtype)) + "(y" + n + ", a" + n +
              " + i, left); ";
  }
  const auto number = [&](const std::string& name) {
    parameters += "const LANE number_" + name + ", ";
    numbers += "const L " + name + " = (L)(number_" + name + "); ";
  };
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string x = "x" + std::to_string(i);
    if (c.inputs[i].operand < 0) {
      number(x);
      continue;
    }
    const auto k = static_cast<size_t>(c.inputs[i].operand);
    const std::string suffix = PointwiseSuffix(c.space.operands[k].dtype), a = "a" + std::to_string(k);
    loads +=
        "const L " + x + " = " +
        (IsSplat(c, k) ? "SPLAT_" + suffix + "(" + a + "); " : "LOAD_" + suffix + "(" + a + " + i, left); ");
  }
  for (size_t i = 0; i < c.numbers.size(); ++i) number("n" + std::to_string(i));
  parameters += "global int* raised";
  return HeadText(c, device) + RowTable::Text(capacity, c.space.operands.size()) +
         Define("GROUP", std::to_string(kGroup)) + Define("PARAMETERS", parameters) +
         Define("POINTERS", pointers) + Define("OFFSETS", offsets) + Define("LOADS", loads) +
         Define("NUMBERS", numbers) + Define("BODY", BodyText(c, device)) + Define("STORES", stores) +
         kPointwiseListText;
}

// One row of the list as a call of one dimension.
inline Call RowOf(const MicaCall* call, const MicaValue* args, MicaTensor* const* outputs,
                  int64_t num_outputs) {
  const MicaProgram& program = *call->program;
  Call c;
  c.call = call;
  c.program = &program;
  c.lane = PointwiseLane(call->compute_dtype);
  c.num_outputs = static_cast<size_t>(num_outputs);
  c.small = false;
  c.space.sizes.assign(1, plugin::TensorRef(outputs[0]).numel());
  const auto add = [&](const MicaTensor* t, int64_t stride) {
    c.space.operands.push_back({t->dl.data, DtypeOf(t), std::vector<int64_t>(1, stride)});
  };
  for (int64_t k = 0; k < num_outputs; ++k) add(outputs[k], 1);
  for (int i = 0; i < program.num_inputs; ++i) {
    const MicaValue& value = args[program.input_args[i]];
    if (value.tag == MICA_VALUE_NONE) throw plugin::NotImplemented();
    if (value.tag == MICA_VALUE_TENSOR) {
      c.inputs.push_back({static_cast<int>(c.space.operands.size()), {}});
      add(value.u.tensor, value.u.tensor->dl.ndim == 0 ? 0 : 1);
    } else {
      c.inputs.push_back({-1, NumberOf(value, c.lane)});
    }
  }
  for (int i = 0; i < program.num_scalars; ++i)
    c.numbers.push_back(NumberOf(args[program.scalar_args[i]], c.lane));
  return c;
}

inline bool SameBytes(const LaneBytes& a, const LaneBytes& b) {
  return a.size == b.size && std::memcmp(a.bytes, b.bytes, a.size) == 0;
}

// Whether one kernel with the same numbers serves both rows.
inline bool GoTogether(const Call& a, const Call& b) {
  for (size_t i = 0; i < a.numbers.size(); ++i)
    if (!SameBytes(a.numbers[i], b.numbers[i])) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (a.inputs[i].operand != b.inputs[i].operand) return false;
    if (a.inputs[i].operand < 0 && !SameBytes(a.inputs[i].number, b.inputs[i].number)) return false;
  }
  for (size_t k = 0; k < a.space.operands.size(); ++k)
    if (a.space.operands[k].dtype != b.space.operands[k].dtype || IsSplat(a, k) != IsSplat(b, k))
      return false;
  return true;
}

inline void RunPointwiseList(const MicaCall* call, const MicaValue* args, int64_t num_args,
                             MicaTensor* const* outputs, int64_t num_outputs, int64_t num_rows) {
  const Device& device = DeviceOf(call);
  std::vector<Call> rows;
  for (int64_t i = 0; i < num_rows; ++i) {
    rows.push_back(RowOf(call, args + i * num_args, outputs + i * num_outputs, num_outputs));
    if (!GoTogether(rows[0], rows.back())) throw plugin::NotImplemented();
  }
  Call& c = rows[0];
  CheckComputes(c, device);
  c.width = Width(c, device);
  const size_t operands = c.space.operands.size();
  const size_t capacity = static_cast<size_t>(device.list_bytes) / RowTable::RowBytes(operands);
  if (capacity < 2) throw plugin::NotImplemented();
  Key key = KeyOf(c);
  key.Add("list");
  const Kernel& kernel =
      FindKernel(device, key, "pointwise_list", call->name, [&] { return ListSource(c, device, capacity); });
  std::optional<Raise> raise;
  if (MayRaise(*c.program, c.lane)) raise.emplace(call, ZeroDivision());
  const int64_t chunk = kGroup * c.width;
  for (size_t begin = 0; begin < rows.size(); begin += capacity) {
    const size_t count = std::min(capacity, rows.size() - begin);
    RowTable table(capacity, operands);
    std::vector<uint64_t> addresses(operands);
    int64_t groups = 0;
    for (size_t i = 0; i < count; ++i) {
      const Space& space = rows[begin + i].space;
      for (size_t k = 0; k < operands; ++k) addresses[k] = reinterpret_cast<uint64_t>(space.operands[k].data);
      table.Put(i, addresses, static_cast<uint64_t>(space.sizes[0]), static_cast<uint32_t>(groups));
      groups += (space.sizes[0] + chunk - 1) / chunk;
    }
    Launch launch(call, kernel);
    launch.Bytes(table.bytes().data(), table.bytes().size());
    for (const Input& input : c.inputs)
      if (input.operand < 0) launch.Bytes(input.number.bytes, input.number.size);
    for (const LaneBytes& number : c.numbers) launch.Bytes(number.bytes, number.size);
    launch.Pointer(raise ? raise->word() : nullptr).Value(static_cast<uint32_t>(count));
    launch.Run(groups * kGroup, kGroup);
  }
  if (raise) raise->Check();
}

}  // namespace pointwise
}  // namespace kit
}  // namespace mica
