// The class kernel of random operators: `compute` over u01(), normal() and bits(),
// drawn from the generator's stream as torch's CPU kernels draw: element by element
// in the order of memory, in float64, so that a program of one draw an element gives
// torch's numbers. A Ctrl-C ends a long fill between two steps.
#include "dispatcher/plugins/host.h"
#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/operator_spec.h"
#include "kernels/portable/machine.h"
#include "kernels/portable/random_order.h"
#include "tensor/random.h"

namespace mica::portable {
namespace {

constexpr int64_t kBlock = Offsets::kBlock;
constexpr int64_t kBlocksBetweenChecks = 4096;

// The opcodes of a program's draws, by their number.
std::vector<int> DrawsOf(const MicaProgram& program) {
  std::vector<int> draws;
  for (int64_t i = 0; i < program.main.size; ++i) {
    const MicaInstruction& in = program.main.data[i];
    if (in.opcode != MICA_OP_U01 && in.opcode != MICA_OP_NORMAL && in.opcode != MICA_OP_BITS) continue;
    draws.resize(std::max(draws.size(), static_cast<size_t>(in.aux) + 1));
    draws[static_cast<size_t>(in.aux)] = in.opcode;
  }
  return draws;
}

double Draw(int opcode, Generator& g) {
  if (opcode == MICA_OP_NORMAL) return DrawNormal(g, 0, 1);
  return opcode == MICA_OP_BITS ? static_cast<double>(g.Random32()) : DrawUniform53(g);
}

Generator& GeneratorOf(const MicaValue* args, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (args[i].tag == MICA_VALUE_GENERATOR) return *Generator::FromAbi(args[i].u.generator);
  return DefaultGenerator(Device{});
}

void Fill(const MicaCall& call, const MicaValue* args, int64_t n, const Tensor& self) {
  const MicaProgram& program = *call.program;
  const std::vector<int> draws = DrawsOf(program);
  const Dims order = MemoryOrder(self);
  const Tensor out = Permuted(self, order);
  Machine<double> machine(program, args, DType::kF64);
  machine.SetDraws(static_cast<int>(draws.size()));
  std::vector<Offsets> readers;
  std::vector<Tensor> inputs;
  for (int i = 0; i < program.num_inputs; ++i) {
    const Tensor& t = Tensor::Ref(args[program.input_args[i]].u.tensor);
    const Dims strides = BroadcastStrides(t, self.sizes());
    inputs.push_back(Permuted(
        MakeViewAs(t, self.sizes(), strides, t.storage_offset() * t.itemsize(), t.dtype(), true), order));
    readers.emplace_back(inputs.back());
  }
  Offsets writer(out);
  Generator& g = GeneratorOf(args, n);
  std::unique_lock lock(g.mutex());
  int64_t at[kBlock];
  for (int64_t done = 0, step = 1; done < out.numel(); done += kBlock, ++step) {
    const int64_t count = std::min(kBlock, out.numel() - done);
    for (size_t k = 0; k < readers.size(); ++k) {
      readers[k].Next(at, count);
      LoadLanes(kLaneFor<double>, inputs[k].dtype(), inputs[k].data_as<char>(), at, count,
                machine.input(static_cast<int>(k)));
    }
    for (int64_t i = 0; i < count; ++i)
      for (size_t k = 0; k < draws.size(); ++k) machine.draw(static_cast<int>(k))[i] = Draw(draws[k], g);
    machine.Run(program.main, count);
    writer.Next(at, count);
    StoreLanes(kLaneFor<double>, out.dtype(), machine.output(0), out.data_as<char>(), at, count);
    if (step % kBlocksBetweenChecks == 0) CheckInterrupted(lock);
  }
}

MicaStatus RunRandom(const MicaCall* call, const MicaValue* args, int64_t n, MicaTensor* const* outputs,
                     int64_t) {
  return CatchAll([&] { Fill(*call, args, n, Tensor::Ref(outputs[0])); });
}

[[maybe_unused]] const bool kRegistered = [] {
  SetPortableClass(OpClass::kRandom, &RunRandom);
  return true;
}();

}  // namespace
}  // namespace mica::portable
