// Factories: arange, linspace, logspace, eye.
//
// A piece lies within one row of the output, so that along it the last coordinate
// counts and the others stand still. Programs run in float64 or int64 lanes, as in the
// portable kernel, whatever the dtype: a coordinate need not fit a narrower one.
#include "plugins/cpu/engine/factory.h"

#include <algorithm>
#include <atomic>
#include <new>

#include <mica/plugin.h>
#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/engine/plans/numbers.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

// Elements that make a second thread worth waking.
constexpr int64_t kGrain = 8192;

// The lane that holds every value of the dtype, or -1.
int32_t WideLane(int32_t dtype) {
  if (dtype == MICA_F32 || dtype == MICA_F64) return MICA_F64;
  return IsInteger(dtype) && dtype != MICA_U64 ? MICA_I64 : -1;
}

class Factory {
 public:
  Factory(const MicaCall* call, const MicaValue* args, MicaTensor* out)
      : program_(*call->program), args_(args), out_(out) {
    const int32_t lane = WideLane(call->compute_dtype), last = out_.ndim() - 1;
    if (lane < 0 || out_.dtype() != call->compute_dtype || program_.num_inputs != 0 || out_.ndim() > kMaxDims)
      throw plugin::NotImplemented();
    if (last >= 0 && out_.size(last) > 1 && out_.stride(last) != 1) throw plugin::NotImplemented();
    PlanRequest request = {};
    request.program = &program_;
    request.code = program_.main.data;
    request.code_size = program_.main.size;
    request.lane = lane;
    request.num_outputs = 1;
    request.whole = 1;
    request.output_dtypes[0] = static_cast<int8_t>(out_.dtype());
    plan_ = FindPlan(request);
    bool runs = plan_->error == nullptr && plan_->num_results == 1;
    for (int v = 0; v < plan_->num_varying; ++v) runs &= plan_->varying[v].role == Role::kCoord;
    for (int i = 0; i < plan_->num_constants; ++i)
      runs &= plan_->constants[i].source == ConstantSource::kConstant ||
              plan_->constants[i].source == ConstantSource::kScalar;
    if (!runs) throw plugin::NotImplemented();
  }

  void Run(int32_t threads) {
    const int32_t last = out_.ndim() - 1;
    const int64_t length = last < 0 ? 1 : out_.size(last);
    if (out_.numel() == 0) return;
    const int64_t rows = out_.numel() / length;
    if (rows == 1) {
      ParallelSteps(length, kGrain, 64, threads,
                    [&](int64_t begin, int64_t end) { RunRows(0, 1, begin, end); });
    } else {
      ParallelSteps(rows, std::max<int64_t>(1, kGrain / length), 1, threads,
                    [&](int64_t begin, int64_t end) { RunRows(begin, end, 0, length); });
    }
    if (no_memory_) throw std::bad_alloc();
    if (const int flags = flags_) ThrowFlags(flags);
  }

 private:
  // The places [first, end) of the rows [row, last_row).
  void RunRows(int64_t row, int64_t last_row, int64_t first, int64_t end) {
    char* slots[kMaxSlots];
    char* scratch = Scratch(static_cast<int64_t>(plan_->num_slots) * plan_->slot_bytes);
    if (scratch == nullptr) {
      no_memory_ = true;
      return;
    }
    for (int s = 0; s < plan_->num_slots; ++s)
      slots[s] = scratch + static_cast<int64_t>(s) * plan_->slot_bytes;
    const int64_t block = std::min<int64_t>(plan_->block, end - first);
    FillConstants(slots, block);
    int flags = RunSteps(*plan_, 0, plan_->num_fixed, slots, block);
    int64_t at[kMaxDims];
    for (; row < last_row; ++row) {
      char* to = out_.data<char>() + Locate(row, at) * out_.itemsize();
      for (int64_t p = first; p < end; p += block) {
        const int64_t n = std::min(block, end - p);
        SetCoordinates(slots, at, p);
        slots[plan_->results[0].slot] = to + p * out_.itemsize();
        flags |= RunSteps(*plan_, plan_->num_fixed, plan_->num_steps, slots, n);
      }
    }
    if (flags != 0) flags_ |= flags;
  }

  // The coordinates of a row's beginning, and its place in elements.
  int64_t Locate(int64_t row, int64_t* at) const {
    int64_t place = 0;
    for (int32_t d = out_.ndim() - 2; d >= 0; --d) {
      at[d] = row % out_.size(d);
      row /= out_.size(d);
      place += at[d] * out_.stride(d);
    }
    return place;
  }

  // A coordinate's slot holds its first value and its step.
  void SetCoordinates(char* const* slots, const int64_t* at, int64_t first) const {
    const int32_t last = out_.ndim() - 1;
    for (int v = 0; v < plan_->num_varying; ++v) {
      const int32_t d =
          plan_->varying[v].index < 0 ? plan_->varying[v].index + out_.ndim() : plan_->varying[v].index;
      int64_t* slot = reinterpret_cast<int64_t*>(slots[plan_->varying[v].slot]);
      slot[0] = d == last ? first : at[d];
      slot[1] = d == last ? 1 : 0;
    }
  }

  void FillConstants(char* const* slots, int64_t n) const {
    for (int i = 0; i < plan_->num_constants; ++i) {
      const ConstantSlot& constant = plan_->constants[i];
      char* slot = slots[constant.slot];
      if (constant.source == ConstantSource::kScalar)
        FillLanes(NumberOf(args_[program_.scalar_args[constant.index]]), plan_->lane, slot, 1,
                  constant.wraps);
      else
        FillConstant(program_.constants[constant.index], plan_->lane, slot, 1);
      plan_->splat(slot, slot, nullptr, nullptr, n);
    }
  }

  const MicaProgram& program_;
  const MicaValue* args_;
  const plugin::TensorRef out_;
  const Plan* plan_;
  std::atomic<int> flags_{0};
  std::atomic<bool> no_memory_{false};
};

}  // namespace

void RunFactory(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                int64_t num_outputs) {
  if (num_outputs != 1) throw plugin::NotImplemented();
  Factory(call, args, outputs[0]).Run(ThreadsOf(call));
}

}  // namespace mica::cpu
