// A layer that counts floating-point operations by the class of each operator, and passes
// every call on.
//
// It stands after the frames, so that it sees what transforms make of a call: under vmap one
// product of the whole batch, under grad the calls of forward and of backward. It stands
// before Autograd, whose formulas are made of operators that are called anew: a backward that
// runs while the layer is on is counted. Composites are decomposed here, so that their parts
// are counted and nothing twice.
//
// What is counted: contraction, two for each multiply-and-add of its equation; convolution the
// same; pointwise, one for each element of the result, however long the expression; reduction,
// scan and row, one for each element read. Views, fills, gathers and copies count nothing.
#include "flops.h"

#include <mica/layer.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace my_layer {
namespace {

using mica::layer::Call;
using mica::plugin::OwnedTensor;
using mica::plugin::TensorRef;

// By operator, by class, and "all".
using Counts = std::map<std::string, int64_t, std::less<>>;
thread_local Counts t_counts;  // what this thread has counted since it began
int32_t g_bit = -1;            // of the layer

// Counts at one moment, by number: a counter is two of them.
struct Marks {
  std::mutex mutex;
  std::map<int64_t, Counts> list;
  int64_t next = 0;
};
Marks& AllMarks() {
  static auto& marks = *new Marks();
  return marks;
}

void Count(const MicaOperatorInfo& info, int64_t operations) {
  t_counts[info.name] += operations;
  t_counts[info.class_name] += operations;
  t_counts["all"] += operations;
}

int64_t Elements(const MicaTensor* t) { return t ? TensorRef(t).numel() : 0; }

// The product of the sizes of the equation's letters.
int64_t Products(const Call& call) {
  const MicaOperatorInfo& info = call.info();
  std::map<char, int64_t> sizes;
  const char* letter = info.equation;
  for (int32_t i = 0; i < info.num_args; ++i) {
    if (!(info.args[i].flags & MICA_ARGUMENT_OPERAND)) continue;
    const TensorRef operand(call[i].u.tensor);
    for (int d = 0; d < operand.ndim() && *letter >= 'a'; ++d) sizes[*letter++] = operand.size(d);
    if (*letter == ',') ++letter;
  }
  int64_t product = 1;
  for (const auto& [name, size] : sizes) product *= size;
  return product;
}

int64_t Made(const Call& call) {
  int64_t elements = 0;
  call.ForEachMade([&](MicaTensor* t) { elements += Elements(t); });
  return elements;
}

int64_t Read(const Call& call) {
  int64_t elements = 0;
  call.ForEachTensor([&](MicaTensor* t, int64_t) { elements += Elements(t); });
  return elements;
}

bool Is(const MicaOperatorInfo& info, const char* class_name) {
  return std::strcmp(info.class_name, class_name) == 0;
}

// Whether the operator's program does more than to read and write: filling and copying do not.
bool Computes(const MicaOperatorInfo& info) {
  for (const MicaProgram* p : info.programs) {
    for (int64_t i = 0; p && i < p->main.size; ++i) {
      const uint16_t opcode = p->main.data[i].opcode;
      if (opcode != MICA_OP_LOAD && opcode != MICA_OP_SCALAR && opcode != MICA_OP_CONST &&
          opcode != MICA_OP_STORE)
        return true;
    }
  }
  return false;
}

// snippet: count
void CountByClass(Call& call) {
  const MicaOperatorInfo& info = call.info();
  call.Next(g_bit);
  if (Is(info, "contraction"))
    Count(info, 2 * Products(call));
  else if (Is(info, "pointwise") && Computes(info))
    Count(info, Made(call));
  else if (Is(info, "reduction") || Is(info, "scan") || Is(info, "row"))
    Count(info, Read(call));
}
// end snippet

// Convolutions have no class that says what they cost. Each element of the images' side (the
// result; of a transposed one, the input) meets a filter's worth of weights.
void CountConvolution(Call& call) {
  call.Next(g_bit);
  const bool transposed = call[6].u.i != 0;
  const TensorRef weight(call[1].u.tensor);
  const MicaTensor* images = transposed ? call[0].u.tensor : call.results()[0].u.tensor;
  if (weight.size(0)) Count(call.info(), 2 * Elements(images) * (weight.numel() / weight.size(0)));
}

// The kernel of one operator without boxing: what a hot path wants.
MicaTensor* CountMm(uint64_t keys, MicaTensor* self, MicaTensor* mat2) {
  static void* const op = [] {
    void* found = nullptr;
    mica::plugin::Check(mica::plugin::Host()->op_find(mica::plugin::Str("mica::mm"), &found));
    return found;
  }();
  MicaValue args[2] = {}, result{};
  args[0].tag = args[1].tag = MICA_VALUE_TENSOR;
  args[0].u.tensor = self;
  args[1].u.tensor = mat2;
  const mica::layer::Exclude own(mica::layer::Bit(g_bit));
  const uint64_t below = keys & mica::layer::Below(g_bit);
  mica::plugin::Check(mica::layer::Table()->redispatch(op, below, args, 2, &result, 1));
  const int64_t products = Elements(self) * TensorRef(mat2).size(1);
  Count(*mica::layer::Table()->operator_info(op), 2 * products);
  return result.u.tensor;
}

// my_layer::flops_mark() -> int: keeps what this thread has counted by now.
void Mark(const MicaCall*, const MicaValue*, int64_t, MicaValue* results, int64_t) {
  const std::lock_guard lock(AllMarks().mutex);
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = AllMarks().next++;
  AllMarks().list[results[0].u.i] = t_counts;
}

// my_layer::flops_drop(int mark)
void Drop(const MicaCall*, const MicaValue* args, int64_t, MicaValue*, int64_t) {
  const std::lock_guard lock(AllMarks().mutex);
  AllMarks().list.erase(args[0].u.i);
}

// my_layer::flops(int? mark, str of) -> int: at the mark, or now.
void Flops(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const std::lock_guard lock(AllMarks().mutex);
  const Counts& counts = args[0].tag == MICA_VALUE_NONE ? t_counts : AllMarks().list[args[0].u.i];
  const auto found =
      counts.find(std::string_view(args[1].u.str.data, static_cast<size_t>(args[1].u.str.size)));
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = found == counts.end() ? 0 : found->second;
}

}  // namespace

void RegisterFlops(const MicaRegistrar* r) {
  // snippet: register
  mica::layer::Layer layer(r, "my_layer.flops", {/*after=*/"frames", /*before=*/"Autograd"});
  layer.Fallback<&CountByClass>().Decompose();
  layer.Boxed<&CountConvolution>("mica::convolution");
  MICA_LAYER_KERNEL(layer, &CountMm, "mica::mm(Tensor self, Tensor mat2) -> Tensor");
  g_bit = layer.number();
  // end snippet
  mica::plugin::Registrar cpu(r, "cpu");
  cpu.Define("my_layer::flops_mark() -> int");
  cpu.Define("my_layer::flops_drop(int mark) -> ()");
  cpu.Define("my_layer::flops(int? mark, str of) -> int");
  cpu.Boxed<&Mark>("my_layer::flops_mark");
  cpu.Boxed<&Drop>("my_layer::flops_drop");
  cpu.Boxed<&Flops>("my_layer::flops");
}

}  // namespace my_layer
