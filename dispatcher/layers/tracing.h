// What a trace frame carries as its payload: the tape that the layer Trace (keys/trace)
// writes and the Python binding turns into a graph (mica.fx).
//
// Each tensor that takes part in a trace is a wrapper of the frame, and Wrapper::number is
// the number of its value on the tape, from 1. A value is an input of the function, a
// constant that the function found outside (or made without an operator), or a result of a
// recorded call. The tape keeps no result: a call's tensors are numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dispatcher/frames/frames.h"
#include "dispatcher/tables/operator.h"
#include "schema/value.h"

namespace mica::frames {

struct Tape {
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

  bool fake = false;      // values have no memory: meta tensors that show another device
  bool symbolic = false;  // sizes that Python reads are symbolic: see `owner`
  void* owner = nullptr;  // the binding's
  std::vector<TracedValue> values;
  std::vector<Call> calls;
  std::vector<Constant> constants;
  std::vector<Tensor> numbers;                             // wrapped numbers among the arguments
  std::unordered_map<const TensorImpl*, size_t> captured;  // into `constants`
  std::vector<std::shared_ptr<void>> kept;                 // generators that calls name

  int64_t NewValue(const Tensor& wrapper);
  // Whether the trace wrote a constant that the function made, so that a run needs a copy.
  static bool Written(const Constant& c) { return c.watched.get()->version() != c.version; }
};

inline Tape& TapeOf(const Frame& frame) { return *static_cast<Tape*>(frame.payload); }

// The wrapper of the current frame, a trace, that stands for `t`: `t` itself if it is one
// and has a number, else a new input or constant.
Tensor EnterTrace(const Tensor& t, bool as_input);

// What the layer offers.
inline constexpr const char* kTracingExtension = "mica.tracing";
struct TracingLayer {
  Tensor (*enter)(const Tensor& t, bool as_input);
};

}  // namespace mica::frames
