// Binding of plans to memory; see runner.h.
#include "plugins/cpu/reduce/runner.h"

#include "plugins/cpu/engine/plans/numbers.h"
#include "plugins/cpu/engine/pointwise.h"

namespace mica::cpu {

const Plan* SectionPlan(const ReduceCall& call, const MicaProgram& program, const MicaCode& code) {
  PlanRequest request = {};
  request.program = &program;
  request.code = code.data;
  request.code_size = code.size;
  request.lane = LaneOf(call.call->compute_dtype);
  request.num_inputs = static_cast<int8_t>(program.num_inputs);
  request.num_outputs = static_cast<int8_t>(call.num_outputs);
  for (int i = 0; i < program.num_inputs; ++i) {
    request.input_dtypes[i] = static_cast<int8_t>(DtypeOf(call.args[program.input_args[i]].u.tensor));
  }
  for (int i = 0; i < call.num_outputs; ++i)
    request.output_dtypes[i] = static_cast<int8_t>(DtypeOf(call.outputs[i]));
  const Plan* plan = FindPlan(request);
  if (plan->error != nullptr) ThrowPlanError(call.call, *plan);
  return plan;
}

void Runner::Bind(const Plan* plan, const MicaProgram& program, const ReduceCall& call,
                  const int8_t* operands, int64_t count, Arena* arena) {
  plan_ = plan;
  operands_ = operands;
  memory_ = arena->Take(MemoryOf(*plan));
  for (int s = 0; s < plan->num_slots; ++s) slots_[s] = Home(s);
  for (int i = 0; i < plan->num_constants; ++i) {
    const ConstantSlot& constant = plan->constants[i];
    char* slot = slots_[constant.slot];
    if (constant.source == ConstantSource::kConstant) {
      FillConstant(program.constants[constant.index], plan->lane, slot, 1);
    } else if (constant.source == ConstantSource::kScalar) {
      FillLanes(NumberOf(call.args[program.scalar_args[constant.index]]), plan->lane, slot, 1,
                constant.wraps);
    } else {
      FillLanes(NumberOf(count), plan->lane == MICA_BOOL ? MICA_BOOL : plan->lane, slot, 1);
    }
    plan->splat(slot, slot, nullptr, nullptr, plan->block);
  }
  for (int v = 0; v < plan->num_varying; ++v) {
    if (plan->varying[v].role == Role::kIndex)
      slots_[plan->varying[v].slot] = reinterpret_cast<char*>(index_);
  }
}

void Runner::ReadState(int state, char* data) {
  for (int v = 0; v < plan_->num_varying; ++v) {
    const Binding& binding = plan_->varying[v];
    if (binding.role == Role::kState && binding.index == state) slots_[binding.slot] = data;
  }
}

void Runner::WriteState(int state, char* data) {
  for (int r = 0; r < plan_->num_results; ++r) {
    const Binding& binding = plan_->results[r];
    if (binding.role == Role::kState && binding.index == state) slots_[binding.slot] = data;
  }
}

void Runner::Load(const Iteration& space, const int64_t* shifts, int64_t position, int64_t n) {
  for (int v = 0; v < plan_->num_varying; ++v) {
    const Binding& binding = plan_->varying[v];
    if (binding.role != Role::kInput) continue;
    const int k = operands_[binding.index];
    slots_[binding.slot] = space.Locate(k, shifts[k], position, n, Home(binding.slot), true);
  }
}

void Runner::Target(const Iteration& space, const int64_t* shifts, int num_inputs, int64_t position,
                    int64_t n) {
  for (int r = 0; r < plan_->num_results; ++r) {
    const Binding& binding = plan_->results[r];
    if (binding.role != Role::kOutput) continue;
    const int k = num_inputs + binding.index;
    slots_[binding.slot] = space.Locate(k, shifts[k], position, n, Home(binding.slot), false);
  }
}

void Runner::Deliver(const Iteration& space, const int64_t* shifts, int num_inputs, int64_t position,
                     int64_t n) {
  for (int r = 0; r < plan_->num_results; ++r) {
    const Binding& binding = plan_->results[r];
    if (binding.role != Role::kOutput || slots_[binding.slot] != Home(binding.slot)) continue;
    const int k = num_inputs + binding.index;
    space.Deliver(k, shifts[k], position, n, Home(binding.slot));
  }
}

}  // namespace mica::cpu
