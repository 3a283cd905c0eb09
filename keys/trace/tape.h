// What a trace frame carries as its payload: the tape that the layer writes, and that others
// read through its table (<mica/tracing.h>).
//
// Each tensor that takes part in a trace is a wrapper of the frame, and its payload's number is
// the number of its value on the tape, from 1.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <mica/frame.h>
#include <mica/tracing.h>

namespace mica::trace {

using layer::Tensor;

struct Tape : MicaTape {
  struct TracedValue {
    int32_t dtype;
    MicaDevice device;
    formula::Dims sizes, strides;
  };
  // A tensor argument is `refs` (a list if `is_list`); 0 says None, -k the Python number
  // numbers[k - 1]. Any other argument is `value`.
  struct Argument {
    layer::KeptValue value;
    std::vector<int64_t> refs;
    bool is_tensor = false, is_list = false;
  };
  // One result of the schema: a value, or a list of them; 0 says None.
  struct Result {
    std::vector<int64_t> values;
    bool is_list = false;
  };
  struct Call {
    void* op = nullptr;
    std::vector<Argument> args;
    std::vector<Result> results;
  };
  struct Constant {
    int64_t number = 0;
    Tensor tensor;             // what the function captured, or a copy of what it made
    Tensor wrapper;            // stands for it in the trace; undefined for what it made
    Tensor watched;            // what the trace computes with
    uint64_t version = 0;      // of `watched` when the constant was met
    bool made_inside = false;  // by the function, so that each run has its own
  };

  explicit Tape(bool is_fake) : MicaTape{nullptr}, fake(is_fake) {}
  bool fake;  // values have no memory: meta tensors that show another device
  std::vector<TracedValue> values;
  std::vector<Call> calls;
  std::vector<Constant> constants;
  std::vector<Tensor> numbers;                             // wrapped numbers among the arguments
  std::unordered_map<const MicaTensor*, size_t> captured;  // into `constants`
  // The call that was read last, as the table shows it.
  mutable std::vector<MicaTracedArgument> shown_args;
  mutable std::vector<MicaTracedResult> shown_results;

  // The number of a new value that looks as `wrapper`.
  int64_t NewValue(const Tensor& wrapper);
};

inline Tape& TapeOf(const MicaFrame& frame) {
  MICA_CHECK(frame.payload,
             "A frame of the kind trace is entered without a tape; mica.fx.make_fx gives it one.");
  return *static_cast<Tape*>(static_cast<MicaTape*>(frame.payload));
}

// What the plugin offers.
extern const MicaTracing kTable;
// The frame kind's number, set by the plugin's entry.
void SetKind(int32_t kind);

}  // namespace mica::trace
