// What a trace frame carries as its payload: the tape that the layer writes, and that others
// read through its table (<mica/tracing.h>).
//
// Each tensor that takes part in a trace is a wrapper of the frame, and Wrapper::number is
// the number of its value on the tape, from 1.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <mica/tracing.h>
#include "dispatcher/frames/frames.h"
#include "dispatcher/tables/operator.h"
#include "schema/value.h"

namespace mica::trace {

struct Tape : MicaTape {
  struct TracedValue {
    DType dtype = DType::kF32;
    Device device;
    Dims sizes, strides;
  };
  // A tensor argument is `refs` (a list if `is_list`); 0 says None, -k the Python number
  // numbers[k - 1]. Any other argument is `value`.
  struct Argument {
    Value value;
    std::vector<int64_t> refs;
    bool is_tensor = false, is_list = false;
  };
  // One result of the schema: a value, or a list of them; 0 says None.
  struct Result {
    std::vector<int64_t> values;
    bool is_list = false;
  };
  struct Call {
    const Operator* op = nullptr;
    std::vector<Argument> args;
    std::vector<Result> results;
  };
  struct Constant {
    int64_t number = 0;
    Tensor tensor;             // what the function captured, or a copy of what it made
    Tensor wrapper;            // stands for it in the trace; undefined for what it made
    Storage watched;           // of what the trace computes with
    uint32_t version = 0;      // of `watched` when the constant was met
    bool made_inside = false;  // by the function, so that each run has its own
  };

  explicit Tape(bool is_fake) : MicaTape{nullptr}, fake(is_fake) {}
  bool fake;  // values have no memory: meta tensors that show another device
  std::vector<TracedValue> values;
  std::vector<Call> calls;
  std::vector<Constant> constants;
  std::vector<Tensor> numbers;                             // wrapped numbers among the arguments
  std::unordered_map<const TensorImpl*, size_t> captured;  // into `constants`
  std::vector<std::shared_ptr<void>> kept;                 // generators that calls name
  // The call that was read last, as the table shows it.
  mutable std::vector<MicaTracedArgument> shown_args;
  mutable std::vector<MicaTracedResult> shown_results;

  // The number of a new value that looks as `wrapper`.
  int64_t NewValue(const Tensor& wrapper) {
    values.push_back({wrapper.dtype(), wrapper.device(), ToDims(wrapper.sizes()), ToDims(wrapper.strides())});
    return static_cast<int64_t>(values.size());
  }
};

inline Tape& TapeOf(const frames::Frame& frame) {
  return *static_cast<Tape*>(static_cast<MicaTape*>(frame.payload));
}

// What the plugin offers.
extern const MicaTracing kTable;

}  // namespace mica::trace
