// The pointwise class: request, bind, run.
//
// Three ways through, fastest first: operands that are all dense and alike run
// over flat memory (of a tiny tensor, a lookup and the steps); long rows
// bind each row in place, by panels (panels.h) where inputs lie across them;
// anything else packs strided operands block by block.
#include "plugins/cpu/engine/pointwise.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include <mica/plugin.h>
#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/engine/panels.h"
#include "plugins/cpu/engine/plans/numbers.h"
#include "plugins/cpu/engine/repeated.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

// Elements × steps that are worth waking a thread for.
constexpr int64_t kGrain = 32768;
// Piece of a plan of one step, which needs no scratch memory.
constexpr int64_t kWholePiece = 65536;

struct Call {
  const MicaCall* call;
  const MicaValue* args;
  const MicaProgram* program;
  const MicaTensor* inputs[kMaxInputs];
  MicaTensor* const* outputs;
  uint64_t input_dtypes, output_dtypes;  // a byte each, of the last 8
  bool dense;                            // all tensors are contiguous
};

// What tells one plan from another, small enough to compare at once; for calls
// of at most 8 inputs, 6 outputs and 32 numbers.
struct Key {
  const MicaProgram* program;
  uint64_t inputs;   // a byte a dtype
  uint64_t outputs;  // a byte a dtype, the compute dtype on top
  uint64_t numbers;  // which scalars are 1 (low half) or 2 (high half)
  bool operator==(const Key& other) const {
    return program == other.program && inputs == other.inputs && outputs == other.outputs &&
           numbers == other.numbers;
  }
};
struct Recent {
  Key key;
  const Plan* plan;
};
constexpr uint64_t kNumRecent = 256;
thread_local __attribute__((tls_model("initial-exec"))) Recent* recent = nullptr;

// On the heap: an object that is opened late finds little static TLS left.
struct RecentOwner {
  std::unique_ptr<Recent[]> table = std::make_unique<Recent[]>(kNumRecent);
  ~RecentOwner() { recent = nullptr; }
};
thread_local RecentOwner recent_owner;

uint64_t Numbers(const Call& call) {
  uint64_t bits = 0;
  for (int i = 0; i < call.program->num_scalars && i < 32; ++i) {
    const MicaValue& value = call.args[call.program->scalar_args[i]];
    double number = 0;
    if (value.tag == MICA_VALUE_SCALAR) {
      if (value.u.scalar.tag == MICA_SCALAR_INT) number = static_cast<double>(value.u.scalar.u.i);
      if (value.u.scalar.tag == MICA_SCALAR_FLOAT) number = value.u.scalar.u.f;
    } else if (value.tag == MICA_VALUE_FLOAT) {
      number = value.u.f;
    }
    bits |= static_cast<uint64_t>(number == 1) << i | static_cast<uint64_t>(number == 2) << (i + 32);
  }
  return bits;
}

PlanRequest MakeRequest(const Call& call, int64_t num_outputs, uint64_t numbers) {
  const MicaProgram& program = *call.program;
  PlanRequest request = {};
  request.program = &program;
  request.code = program.main.data;
  request.code_size = program.main.size;
  request.lane = LaneOf(call.call->compute_dtype);
  request.num_inputs = static_cast<int8_t>(program.num_inputs);
  request.num_outputs = static_cast<int8_t>(num_outputs);
  request.whole = 1;
  for (int i = 0; i < program.num_inputs; ++i)
    request.input_dtypes[i] = static_cast<int8_t>(DtypeOf(call.inputs[i]));
  for (int i = 0; i < num_outputs; ++i)
    request.output_dtypes[i] = static_cast<int8_t>(DtypeOf(call.outputs[i]));
  request.ones = static_cast<uint32_t>(numbers);
  request.twos = static_cast<uint32_t>(numbers >> 32);
  return request;
}

__attribute__((noinline)) const Plan* FindPlanOf(const Call& call, int64_t num_outputs, uint64_t numbers) {
  return FindPlan(MakeRequest(call, num_outputs, numbers));
}

__attribute__((noinline)) Recent* RecentOfThread() { return recent = recent_owner.table.get(); }

const Plan& PlanOf(const Call& call, int64_t num_outputs) {
  const MicaProgram& program = *call.program;
  const uint64_t numbers = Numbers(call);
  if (program.num_inputs > 8 || num_outputs > 6) return *FindPlanOf(call, num_outputs, numbers);
  const Key key = {&program, call.input_dtypes,
                   call.output_dtypes | static_cast<uint64_t>(call.call->compute_dtype) << 56, numbers};
  const uint64_t hash = (reinterpret_cast<uintptr_t>(key.program) >> 3) + key.inputs + (key.outputs >> 50) +
                        key.outputs * 5 + numbers;
  Recent* const table = __builtin_expect(recent != nullptr, 1) ? recent : RecentOfThread();
  Recent& entry = table[(hash ^ hash >> 8) % kNumRecent];
  if (__builtin_expect(!(entry.key == key), 0)) entry = {key, FindPlanOf(call, num_outputs, numbers)};
  return *entry.plan;
}

// Fills the constant slots of this thread's scratch memory, by whole vectors: a
// vector load of lanes stored singly would wait for the stores. A hot loop reads one lane.
void FillConstants(const Plan& plan, const Call& call, char* scratch, int64_t n) {
  if (plan.hot != nullptr) n = 1;
  for (int i = 0; i < plan.num_constants; ++i) {
    const ConstantSlot& constant = plan.constants[i];
    char* slot = scratch + static_cast<int64_t>(constant.slot) * plan.slot_bytes;
    if (constant.source == ConstantSource::kScalar) {
      FillLanes(NumberOf(call.args[call.program->scalar_args[constant.index]]), plan.lane, slot, 1,
                constant.wraps);
    } else if (constant.source == ConstantSource::kConstant) {
      FillConstant(call.program->constants[constant.index], plan.lane, slot, 1);
    }
    plan.splat(slot, slot, nullptr, nullptr, (n + 15) / 16 * 16);
  }
}

// Scratch memory for the plan's slots and, behind them, `more` bytes.
char* BindScratch(const Plan& plan, char** slots, int64_t more = 0) {
  char* scratch = Scratch(static_cast<int64_t>(plan.num_slots) * plan.slot_bytes + more);
  if (scratch == nullptr) return nullptr;
  for (int s = 0; s < plan.num_slots; ++s) slots[s] = scratch + static_cast<int64_t>(s) * plan.slot_bytes;
  return scratch;
}

// How operands are reached, once a call; indices follow plan.varying and
// plan.results.
struct Bound {
  const Plan* plan;
  const Call* call;
  Iteration iteration;
  bool whole;   // one step over dense memory: pieces need not fit the cache
  bool staged;  // outputs are computed in scratch and copied after the last step
  // Inputs that repeat dense runs of `period` elements (a bias) are packed once; 0:
  // there is none. Pieces are multiples of it then.
  int64_t period = 0;
  bool periodic[kMaxOperands] = {};
  Panels panels;
  std::atomic<int> flags{0};
  std::atomic<bool> no_memory{false};

  int InputOperand(int v) const { return plan->num_results + v; }
  int64_t Piece() const {
    return period > 0 ? plan->block / period * period : whole ? kWholePiece : plan->block;
  }
  void FindPeriod();
  // Positions, or panels where there are any.
  void RunRange(int64_t begin, int64_t end);
};

// What one thread has bound of a call.
struct Worker {
  const Bound& bound;
  char* scratch;
  char* slots[kMaxSlots];
  // Of inputs that repeat one element along a row: which one fills the slot, and how far.
  const char* repeated[kMaxOperands] = {};
  int64_t filled[kMaxOperands] = {};

  char* Home(int slot) const { return scratch + static_cast<int64_t>(slot) * bound.plan->slot_bytes; }
  char* PanelMemory() const { return Home(bound.plan->num_slots); }
  void BindRepeated(int64_t begin, int64_t n);
  bool IsFilled(int k, int64_t position, int64_t n);
  int RunPiece(int64_t position, int64_t n, int64_t panel_row);
  int RunPanel(int64_t index);
};

// The last dimension alone, short, dense, and the same for all outer positions.
void Bound::FindPeriod() {
  const int last = iteration.ndim - 1;
  const int64_t length = iteration.sizes[last];
  if (iteration.rows || last == 0 || length > plan->block / 2) return;
  for (int k = plan->num_results; k < iteration.num_operands; ++k) {
    const Operand& operand = iteration.operands[k];
    periodic[k] = !operand.invariant && operand.strides[last] == operand.size;
    for (int d = 0; d < last; ++d) periodic[k] &= operand.strides[d] == 0;
    if (periodic[k]) period = length;
  }
}

// Binds the inputs whose content does not depend on the position.
void Worker::BindRepeated(int64_t begin, int64_t n) {
  const Plan& plan = *bound.plan;
  for (int v = 0; v < plan.num_varying; ++v) {
    const int k = bound.InputOperand(v);
    char* slot = slots[plan.varying[v].slot];
    const Operand& operand = bound.iteration.operands[k];
    if (operand.invariant) Splat(slot, operand.data, operand.size, std::min<int64_t>(plan.block, n));
    if (bound.periodic[k]) bound.iteration.Pack(k, 0, begin, std::min(bound.Piece(), n), slot);
  }
}

// Whether the slot of input k holds the element of this piece from a piece before; notes it if not.
bool Worker::IsFilled(int k, int64_t position, int64_t n) {
  const Iteration& iteration = bound.iteration;
  const Operand& operand = iteration.operands[k];
  if (!iteration.rows || operand.flat || operand.strides[iteration.ndim - 1] != 0 || bound.panels.any())
    return false;
  const char* element = operand.data + iteration.Offset(k, position);
  if (element == repeated[k] && n <= filled[k]) return true;
  repeated[k] = element;
  filled[k] = n;
  return false;
}

// Computes n elements at `position`; held inputs come from row `panel_row` of the panel.
int Worker::RunPiece(int64_t position, int64_t n, int64_t panel_row) {
  const Plan& plan = *bound.plan;
  const Iteration& iteration = bound.iteration;
  for (int v = 0; v < plan.num_varying; ++v) {
    const int k = bound.InputOperand(v);
    if (iteration.operands[k].invariant || bound.periodic[k]) continue;
    const int slot = plan.varying[v].slot;
    if (IsFilled(k, position, n)) continue;
    slots[slot] = bound.panels.Holds(k) ? bound.panels.Row(k, panel_row, PanelMemory())
                                        : iteration.Locate(k, 0, position, n, Home(slot), true);
  }
  char* targets[kMaxResults];
  for (int r = 0; r < plan.num_results; ++r) {
    const int slot = plan.results[r].slot;
    targets[r] = iteration.Locate(r, 0, position, n, Home(slot), false);
    slots[slot] = bound.staged ? Home(slot) : targets[r];
  }
  const int flags = RunSteps(plan, plan.num_fixed, plan.num_steps, slots, n);
  for (int r = 0; r < plan.num_results; ++r) {
    const char* computed = slots[plan.results[r].slot];
    const Operand& operand = iteration.operands[r];
    if (computed != targets[r]) {
      std::memcpy(targets[r], computed, static_cast<size_t>(n * operand.size));
    } else if (!operand.flat && computed == Home(plan.results[r].slot)) {
      iteration.Deliver(r, 0, position, n, computed);
    }
  }
  return flags;
}

int Worker::RunPanel(int64_t index) {
  const Panels::Panel panel = bound.panels.At(index);
  bound.panels.Pack(panel, PanelMemory());
  int flags = 0;
  for (int64_t r = 0; r < panel.rows; ++r)
    flags |= RunPiece(panel.position + r * bound.panels.row_step(), panel.columns, r);
  return flags;
}

void Bound::RunRange(int64_t begin, int64_t end) {
  Worker worker{*this, nullptr, {}, {}, {}};
  worker.scratch = BindScratch(*plan, worker.slots, panels.bytes());
  if (worker.scratch == nullptr) {
    no_memory = true;
    return;
  }
  const int64_t elements = panels.any() ? plan->block : end - begin;
  FillConstants(*plan, *call, worker.scratch, std::min<int64_t>(plan->block, elements));
  worker.BindRepeated(begin, elements);
  int raised = RunSteps(*plan, 0, plan->num_fixed, worker.slots, std::min<int64_t>(plan->block, elements));
  if (panels.any()) {
    for (int64_t panel = begin; panel < end; ++panel) raised |= worker.RunPanel(panel);
  } else {
    const int64_t block = Piece();
    for (int64_t position = begin; position < end;) {
      const int64_t n = iteration.PieceLength(position, end, block);
      raised |= worker.RunPiece(position, n, 0);
      position += n;
    }
  }
  if (raised != 0) flags |= raised;
}

bool SameSizes(const MicaTensor* a, const MicaTensor* b) {
  if (a->dl.ndim != b->dl.ndim) return false;
  for (int d = 0; d < a->dl.ndim; ++d) {
    if (a->dl.shape[d] != b->dl.shape[d]) return false;
  }
  return true;
}

int64_t Numel(const MicaTensor* tensor) {
  int64_t n = 1;
  for (int d = 0; d < tensor->dl.ndim; ++d) n *= tensor->dl.shape[d];
  return n;
}

// Whether the call has the form that RunTiny runs: a block or less, outputs dense and alike.
bool IsTiny(const Call& call, const Plan& plan, int64_t num_outputs, int64_t n) {
  if (!call.dense || n > plan.block || (num_outputs > 1 && plan.num_results != num_outputs)) return false;
  for (int64_t r = 1; r < num_outputs; ++r)
    if (!SameSizes(call.outputs[r], call.outputs[0])) return false;
  return true;
}

// One block or less of operands that are all dense and alike, or one number.
__attribute__((noinline)) bool RunTiny(const Call& call, const Plan& plan, int64_t num_outputs) {
  const MicaTensor* out = call.outputs[0];
  const int64_t n = Numel(out);
  if (!IsTiny(call, plan, num_outputs, n)) return false;
  uint32_t numbers = 0;  // inputs of one element, by their place in plan.varying
  for (int v = 0; v < plan.num_varying; ++v) {
    const Binding& binding = plan.varying[v];
    if (binding.role != Role::kInput) return false;
    const MicaTensor* input = call.inputs[binding.index];
    if (SameSizes(input, out)) continue;
    if (Numel(input) != 1) return false;
    numbers |= uint32_t{1} << v;
  }
  char* slots[kMaxSlots];
  if (numbers != 0 || plan.num_slots > plan.num_varying + plan.num_results || plan.reads_after_result) {
    char* scratch = BindScratch(plan, slots);
    if (scratch == nullptr) throw std::bad_alloc();
    FillConstants(plan, call, scratch, n);
  } else {
    slots[0] = nullptr;
  }
  for (int v = 0; v < plan.num_varying; ++v) {
    const MicaTensor* input = call.inputs[plan.varying[v].index];
    char*& slot = slots[plan.varying[v].slot];
    if ((numbers >> v & 1) != 0) {
      Splat(slot, input->dl.data, input->dl.dtype.bits / 8, (n + 15) / 16 * 16);
    } else {
      slot = static_cast<char*>(input->dl.data);
    }
  }
  // Results written before the last step stay in scratch memory until then: they may lie over inputs.
  for (int r = 0; !plan.reads_after_result && r < plan.num_results; ++r)
    slots[plan.results[r].slot] = static_cast<char*>(call.outputs[plan.results[r].index]->dl.data);
  const int flags = RunSteps(plan, 0, plan.num_steps, slots, n);
  if (flags != 0) ThrowFlags(flags);
  for (int r = 0; plan.reads_after_result && r < plan.num_results; ++r) {
    const auto& to = call.outputs[plan.results[r].index]->dl;
    std::memcpy(to.data, slots[plan.results[r].slot], static_cast<size_t>(n * to.dtype.bits / 8));
  }
  return true;
}

// Under this width rows are packed: a loop for each would cost more than its elements.
constexpr int64_t kRepeatedWidth = 16;

// One step of arithmetic on dense rows and a number for each of them; false for other calls.
bool RunRepeatedRows(const Bound& bound) {
  const Plan& plan = *bound.plan;
  const Iteration& it = bound.iteration;
  const Step& step = plan.steps[0];
  if (plan.num_steps != 1 || step.run == nullptr || plan.num_results != 1 || plan.num_varying != 2)
    return false;
  const int last = it.ndim - 1, v = plan.varying[0].slot == step.a ? 0 : 1;
  if (last == 0 || it.sizes[last] < kRepeatedWidth || plan.varying[v].slot != step.a ||
      plan.varying[1 - v].slot != step.b || step.a == step.b)
    return false;
  const Operand &dst = it.operands[0], &a = it.operands[bound.InputOperand(v)],
                &b = it.operands[bound.InputOperand(1 - v)];
  const bool by_a = a.strides[last] == 0 && b.strides[last] == b.size;
  const bool by_b = b.strides[last] == 0 && a.strides[last] == a.size;
  if (dst.strides[last] != dst.size || !(by_a || by_b)) return false;
  const RowPrimitive run = RowPrimitiveOf(step.run, by_a ? 0 : 1);
  if (run == nullptr) return false;
  const int64_t width = it.sizes[last], height = it.sizes[last - 1];
  const int above = last - 1;
  ParallelSteps(
      it.numel / width, std::max<int64_t>(1, kGrain / width), 1, ThreadsOf(bound.call->call),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end;) {
          const int64_t rows = std::min(end - row, height - row % height);
          const auto at = [&](const Operand& o) {
            return o.data + it.Offset(static_cast<int>(&o - it.operands), row * width);
          };
          run({at(dst), at(a), at(b), dst.strides[above], a.strides[above], b.strides[above], rows, width});
          row += rows;
        }
      });
  return true;
}

// Runs the plan over the iteration space.
void RunOver(Bound& bound) {
  const Plan& plan = *bound.plan;
  Iteration& it = bound.iteration;
  if (RunRepeatedRows(bound)) return;
  bool aliased = false;
  for (int k = 0; k < it.num_operands; ++k) {
    for (int r = 0; k >= plan.num_results && r < plan.num_results; ++r)
      aliased |= it.operands[k].data == it.operands[r].data;
  }
  // A hot loop reads one lane of a constant; another step reads as many as it writes.
  bound.whole = plan.num_steps == 1 && (plan.num_constants == 0 || plan.hot != nullptr) && !plan.planes;
  for (int k = 0; k < it.num_operands; ++k) bound.whole &= it.operands[k].flat;
  bound.staged = plan.reads_after_result && aliased;
  const int64_t grain = std::max<int64_t>(kGrain / (plan.num_steps + 1), plan.block);
  bound.FindPeriod();
  bound.panels.Find(it, plan.num_results);
  const bool by_panels = bound.panels.any();
  ParallelSteps(by_panels ? bound.panels.count() : it.numel,
                by_panels ? std::max<int64_t>(1, grain / bound.panels.Elements()) : grain,
                by_panels ? 1 : bound.Piece(), ThreadsOf(bound.call->call),
                [&bound](int64_t begin, int64_t end) { bound.RunRange(begin, end); });
  if (bound.no_memory) throw std::bad_alloc();
  if (const int flags = bound.flags) ThrowFlags(flags);
}

__attribute__((noinline)) void RunGeneral(const Call& call, const Plan& plan) {
  Bound bound;
  bound.plan = &plan;
  bound.call = &call;
  Iteration& it = bound.iteration;
  const MicaTensor* out = call.outputs[0];
  it.SetSizes(out->dl.shape, out->dl.ndim);
  if (it.numel == 0) return;
  for (int r = 0; r < plan.num_results; ++r) it.Add(call.outputs[plan.results[r].index]);
  for (int v = 0; v < plan.num_varying; ++v) {
    MICA_PLUGIN_CHECK(plan.varying[v].role == Role::kInput, MICA_ERROR_NOT_IMPLEMENTED,
                      "A pointwise program of the CPU backend reads tensors alone.");
    it.Add(call.inputs[plan.varying[v].index]);
  }
  it.Normalize();
  Repeated repeated;
  const bool once = repeated.TakeFrom(&it, plan.num_results);
  RunOver(bound);
  if (once) repeated.Spread(ThreadsOf(call.call));
}

}  // namespace

void ThrowPlanError(const MicaCall* call, const Plan& plan) {
  static constexpr const char* kOpcodes[] = {
#define MICA_NAME(name, arity, result) #name,
      MICA_FORALL_OPCODES(MICA_NAME)
#undef MICA_NAME
  };
  std::string message = std::string("The CPU engine cannot run `") +
                        (call->name != nullptr ? call->name : "") + "` because " + plan.error;
  if (plan.error_opcode >= 0 && plan.error_opcode < MICA_OPCODE_COUNT) {
    message += std::string(" (") + kOpcodes[plan.error_opcode] + ")";
  }
  MICA_PLUGIN_THROW(MICA_ERROR_NOT_IMPLEMENTED, message + ".");
}

void ThrowFlags(int flags) {
  if ((flags & kFlagZeroDivision) != 0)
    MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, "ZeroDivisionError: an integer is divided by zero.");
}

void RunPointwise(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                  int64_t num_outputs) {
  const MicaProgram* program = call->program;
  MICA_PLUGIN_CHECK(program != nullptr && program->num_inputs <= kMaxInputs && num_outputs <= kMaxResults,
                    MICA_ERROR_NOT_IMPLEMENTED,
                    "The CPU engine runs programs of at most 16 inputs and 8 outputs.");
  Call c;
  c.call = call;
  c.args = args;
  c.program = program;
  c.outputs = outputs;
  c.input_dtypes = c.output_dtypes = 0;
  const int64_t n = Numel(outputs[0]);
  // An input of as many elements as the output has its shape, but for sizes of 1.
  uint64_t dense = MICA_TENSOR_CONTIGUOUS;
  bool alike = num_outputs == 1;
  char* slots[kMaxInputs + 1];
  for (int64_t r = 0; r < num_outputs; ++r) {
    c.output_dtypes = c.output_dtypes << 8 | static_cast<uint64_t>(DtypeOf(outputs[r]));
    dense &= outputs[r]->flags;
  }
  for (int i = 0; i < program->num_inputs; ++i) {
    const MicaValue& value = args[program->input_args[i]];
    MICA_PLUGIN_CHECK(value.tag == MICA_VALUE_TENSOR && value.u.tensor != nullptr, MICA_ERROR_NOT_IMPLEMENTED,
                      "A pointwise program of the CPU engine has an optional input that is absent.");
    const MicaTensor* input = c.inputs[i] = value.u.tensor;
    slots[i] = static_cast<char*>(input->dl.data);
    c.input_dtypes = c.input_dtypes << 8 | static_cast<uint64_t>(DtypeOf(input));
    dense &= input->flags;
    alike &= Numel(input) == n;
  }
  c.dense = dense != 0;
  const Plan& plan = PlanOf(c, num_outputs);
  if (plan.error != nullptr) ThrowPlanError(call, plan);
  if (plan.direct && alike && c.dense && n <= plan.block) {
    slots[program->num_inputs] = static_cast<char*>(outputs[0]->dl.data);
    if (const int flags = RunSteps(plan, 0, plan.num_steps, slots, n)) ThrowFlags(flags);
  } else if (!RunTiny(c, plan, num_outputs)) {
    RunGeneral(c, plan);
  }
}

}  // namespace mica::cpu
