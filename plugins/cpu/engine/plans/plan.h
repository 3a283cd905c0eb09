// A plan: a program compiled for one lane and one set of dtypes.
//
// Compile() turns the bytecode of a MicaProgram section into a flat list of
// steps over numbered slots: casts of the inputs to the lane, the arithmetic,
// casts to the outputs. It drops what no result needs, multiplications by a
// scalar that is one, and powers that are squares; it fuses a product into the
// sum that takes it; and lets the last step write where the result belongs.
// What depends on constants alone comes first, so that it need be run only once a call.
// Plans know nothing of shapes: class kernels bind slots to memory. FindPlan()
// keeps every plan it has made by the program's address, so that a call costs one
// lookup, and programs must live as long as the process.
//
// Always holds: varying, result and constant slots are distinct from the
// temporaries; a result slot is written once and read at most after that.
#ifndef MICA_PLUGINS_CPU_ENGINE_PLAN_H_
#define MICA_PLUGINS_CPU_ENGINE_PLAN_H_

#include <cstdint>

#include "plugins/cpu/engine/hot.h"
#include "plugins/cpu/engine/lanes/lanes.h"

namespace mica::cpu {

inline constexpr int kMaxInputs = 16;
inline constexpr int kMaxResults = 8;
inline constexpr int kMaxSteps = 120;
inline constexpr int kMaxSlots = 120;

struct Step {
  Primitive run;  // NULL: the plan's hot loop
  uint8_t dst, a, b, c;
};

// Where a slot's content comes from or goes to.
enum class Role : uint8_t {
  kInput,   // tensor `index`, in its own dtype
  kState,   // state `index`, in the lane
  kIndex,   // position along the reduced dimension
  kCoord,   // coordinate of dimension `index`
  kOutput,  // tensor `index`, in its own dtype
};
struct Binding {
  Role role;
  uint8_t slot;
  int16_t index;
};

enum class ConstantSource : uint8_t { kConstant, kScalar, kCount, kSize };
struct ConstantSlot {
  ConstantSource source;
  uint8_t slot;
  bool wraps;  // an integer beyond the lane's range counts by its low bits
  int16_t index;
};

// What Compile() needs to know, and FindPlan()'s key.
struct PlanRequest {
  const MicaProgram* program;
  const MicaInstruction* code;
  int64_t code_size;
  int32_t lane;
  uint32_t ones;  // bit i: scalar i is exactly 1
  uint32_t twos;  // bit i: scalar i is exactly 2
  int8_t num_inputs, num_outputs;
  int8_t input_dtypes[kMaxInputs];
  int8_t output_dtypes[kMaxResults];
  int8_t whole;       // a hot loop may stand for the program: pointwise and factory
  int8_t padding[5];  // zero: keys compare as bytes
};

struct Plan {
  const char* error = nullptr;  // why the program cannot run here, or NULL
  int16_t error_opcode = -1;
  int32_t lane = 0;
  int32_t lane_size = 0;   // bytes of a lane, both planes of a complex one
  int32_t block = 0;       // elements a block
  int32_t slot_bytes = 0;  // distance of slots in scratch memory
  int16_t num_slots = 0;
  int16_t num_steps = 0;
  int16_t num_fixed = 0;  // the first steps, which depend on constants alone
  int16_t num_varying = 0;
  int16_t num_results = 0;
  int16_t num_constants = 0;
  bool planes = false;              // lanes are complex, in two planes; else as memory has them
  bool reads_after_result = false;  // a step follows the writing of a result
  bool direct = false;              // the slots are the inputs in order, then the one result
  Primitive splat = nullptr;        // kOpSplat of the lane
  HotLoop hot = nullptr;
  int8_t num_hot = 0;
  uint8_t hot_slots[kMaxHotOperands] = {};  // in the loop's order
  Step steps[kMaxSteps];
  Binding varying[kMaxInputs + kMaxResults];
  Binding results[kMaxResults];
  ConstantSlot constants[32];
};

// Fills `plan`; on a program that cannot run sets its error.
void Compile(const PlanRequest& request, Plan* plan);

// Runs the steps [first, last) over n elements of the slots; returns their flags.
inline int RunSteps(const Plan& plan, int first, int last, char* const* slots, int64_t n) {
  int flags = 0;
  for (int s = first; s < last; ++s) {
    const Step& step = plan.steps[s];
    if (step.run == nullptr) {
      void* operands[kMaxHotOperands];
      for (int k = 0; k < plan.num_hot; ++k) operands[k] = slots[plan.hot_slots[k]];
      plan.hot(operands, n);
    } else {
      flags |= step.run(slots[step.dst], slots[step.a], slots[step.b], slots[step.c], n);
    }
  }
  return flags;
}

// The plan of the request, compiled at most once a process.
const Plan* FindPlan(const PlanRequest& request);

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_ENGINE_PLAN_H_
