/* Traces, for those who begin them (the Python package) or compile what they hold, in C11: the tape
 * that is the payload of a frame of the kind "trace", and the table that its plugin offers as the
 * extension MICA_TRACING_EXTENSION. Append-only.
 *
 * Each tensor that takes part in a trace is a wrapper of the frame with a number of its own, from
 * 1: an input of the function, a constant that the function found outside (or made without an
 * operator), or a result of a recorded call. The tape keeps no result: a call's tensors are
 * numbers. What `call` gives is borrowed until it is called again, all else until the tape changes.
 */
#ifndef MICA_TRACING_H_
#define MICA_TRACING_H_

#include <mica/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_TRACING_EXTENSION "mica.tracing"

/* The face of a tape; made and destroyed by the table's functions. */
typedef struct MicaTape {
  void* owner; /* of whoever made it, to be changed at will; not NULL where sizes are symbolic */
} MicaTape;

/* values have no memory: meta tensors that show another device */
#define MICA_TAPE_FAKE UINT64_C(1)

typedef struct MicaTracedValue {
  int32_t dtype;
  int32_t reserved;
  MicaDevice device;
  MicaIntSpan sizes, strides;
} MicaTracedValue;

#define MICA_TRACED_PLAIN 0   /* no tensor: `value` */
#define MICA_TRACED_TENSOR 1  /* refs.data[0]: a number; 0 says None, -k the k-th Python number */
#define MICA_TRACED_TENSORS 2 /* the same of a list */
typedef struct MicaTracedArgument {
  int32_t kind;
  int32_t reserved;
  MicaValue value;
  MicaIntSpan refs;
} MicaTracedArgument;

/* One result of the schema: a value, or a list of them; 0 says None. */
typedef struct MicaTracedResult {
  int64_t is_list;
  MicaIntSpan values;
} MicaTracedResult;

typedef struct MicaTracedCall {
  void* op; /* the operator's handle */
  const MicaTracedArgument* args;
  int64_t num_args;
  const MicaTracedResult* results;
  int64_t num_results;
} MicaTracedCall;

typedef struct MicaTracedConstant {
  int64_t number;
  MicaTensor* tensor;  /* what the function captured, or a copy of what it made */
  int32_t made_inside; /* by the function, so that each run has its own */
  int32_t written;     /* by the trace since, so that a run needs a copy of what was made */
} MicaTracedConstant;

typedef struct MicaTracing {
  MicaTable table;
  /* The number of the frame kind, for MicaLayers::frame_enter. */
  int32_t (*kind)(void);
  /* An empty tape, for the payload of a frame; `destroy` once the frame was left. */
  MicaStatus (*create)(uint64_t flags, MicaTape** tape);
  void (*destroy)(MicaTape* tape);
  /* The wrapper of the current frame, a trace, that stands for `t`: `t` itself if it is one and has a
   * number, else a new input or constant; and its number. */
  MicaTensorResult (*enter)(MicaTensor* t, int32_t as_input, int64_t* number);
  /* In order; the numbers of values begin at 1, so that value `i` here has number i + 1. */
  int64_t (*num_values)(const MicaTape* tape);
  void (*value)(const MicaTape* tape, int64_t i, MicaTracedValue* out);
  int64_t (*num_calls)(const MicaTape* tape);
  void (*call)(const MicaTape* tape, int64_t i, MicaTracedCall* out);
  int64_t (*num_constants)(const MicaTape* tape);
  void (*constant)(const MicaTape* tape, int64_t i, MicaTracedConstant* out);
  /* The 0-d tensor of the k-th Python number among the arguments, from 1. */
  MicaTensor* (*number)(const MicaTape* tape, int64_t k);
} MicaTracing;

MICA_LAYOUT_ASSERT(sizeof(MicaTracedValue) == 48);
MICA_LAYOUT_ASSERT(sizeof(MicaTracedArgument) == 48);
MICA_LAYOUT_ASSERT(sizeof(MicaTracedResult) == 24);
MICA_LAYOUT_ASSERT(sizeof(MicaTracedCall) == 40);
MICA_LAYOUT_ASSERT(sizeof(MicaTracedConstant) == 24);

#ifdef __cplusplus
}
#endif
#endif /* MICA_TRACING_H_ */
