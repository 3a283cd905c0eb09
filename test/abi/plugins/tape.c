/* A compiler's first step, in C11: begins a trace, calls an operator with a tensor of it, and reads
 * from the tape what was recorded.
 *
 * test_tape::record(Tensor x, Tensor captured) -> str: the first value, the calls and the constants of the
 * call captured + x. */
#include <mica/layers.h>
#include <mica/operators.h>
#include <mica/tracing.h>
#include <stdio.h>
#include <string.h>

#define NOTE                                                                                          \
  "{\"name\":\"tape\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1,\"abi_minor\":0," \
  "\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"operators:test_tape\"}"

__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

static const MicaHost* host;

static MicaStr str(const char* s) { return (MicaStr){s, (int64_t)strlen(s)}; }

#define TRY(call)                      \
  do {                                 \
    const MicaStatus status_ = (call); \
    if (status_) return status_;       \
  } while (0)

static char text[1000];
static void say(const char* format, long long a, long long b) {
  const size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, format, a, b);
}

static void read(const MicaTracing* tracing, const MicaTape* tape) {
  MicaTracedValue value;
  tracing->value(tape, 0, &value);
  say("value 1 dtype %lld of %lld sizes; ", value.dtype, value.sizes.size);
  for (int64_t i = 0; i < tracing->num_calls(tape); ++i) {
    const MicaLayers* layers = host->extension(str(MICA_LAYERS_EXTENSION), MICA_LAYERS_MINOR);
    MicaTracedCall call;
    tracing->call(tape, i, &call);
    strcat(text, layers->operator_info(call.op)->name);
    for (int64_t a = 0; a < call.num_args; ++a) {
      if (call.args[a].kind == MICA_TRACED_PLAIN)
        say(" plain %lld", call.args[a].value.tag, 0);
      else
        say(" %lld", call.args[a].refs.data[0], 0);
    }
    say(" -> %lld", call.results[0].values.data[0], 0);
  }
  for (int64_t i = 0; i < tracing->num_constants(tape); ++i) {
    MicaTracedConstant constant;
    tracing->constant(tape, i, &constant);
    say("; constant %lld made inside %lld", constant.number, constant.made_inside);
  }
}

static MicaStatus trace(const MicaTracing* tracing, MicaTape* tape, MicaTensor* x, MicaTensor* captured) {
  int64_t number = 0;
  const MicaTensorResult inside = tracing->enter(x, 1, &number);
  TRY(inside.status);
  void* add = NULL;
  TRY(host->op_find(str("mica::add.Tensor"), &add));
  MicaValue args[3] = {0}, sum = {0};
  args[0].tag = args[1].tag = MICA_VALUE_TENSOR;
  args[0].u.tensor = captured;
  args[1].u.tensor = inside.value;
  args[2].tag = MICA_VALUE_SCALAR;
  args[2].u.scalar.tag = MICA_SCALAR_INT;
  args[2].u.scalar.u.i = 1;
  const MicaStatus status = host->op_call_boxed(add, args, 3, &sum, 1);
  if (!status) host->tensor_release(sum.u.tensor);
  host->tensor_release(inside.value);
  return status;
}

static MicaStatus record(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                         int64_t num_results) {
  (void)call, (void)n, (void)num_results;
  const MicaLayers* layers = host->extension(str(MICA_LAYERS_EXTENSION), MICA_LAYERS_MINOR);
  const MicaTracing* tracing = host->extension(str(MICA_TRACING_EXTENSION), 0);
  if (!layers || !tracing)
    return host->status_create(MICA_ERROR_RUNTIME, str("nobody traces here"), __FILE__, __LINE__);
  MicaTape* tape = NULL;
  MicaFrameScope scope;
  TRY(tracing->create(0, &tape));
  MicaStatus status = layers->frame_enter(tracing->kind(), tape, 0, &scope);
  if (!status) {
    status = trace(tracing, tape, args[0].u.tensor, args[1].u.tensor);
    const MicaStatus left = layers->frame_exit(&scope);
    if (!status) status = left;
  }
  text[0] = 0;
  if (!status) read(tracing, tape);
  tracing->destroy(tape);
  results[0].tag = MICA_VALUE_STR;
  results[0].u.str = str(text);
  return status;
}

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t minor) {
  (void)minor;
  static const MicaManifest manifest = {sizeof(MicaManifest), 1, 0, "tape", "Mica tests", "1.0", "", "",
                                        "operators:test_tape"};
  return &manifest;
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  if (!MICA_IS_1_0(h, r)) return (MicaStatus)MICA_ERROR_NOT_IMPLEMENTED;
  host = h;
  /* A composite: what it calls comes from the top, where a backend's kernel calls below the layers. */
  const MicaOperatorsExtension* operators = host->extension(str(MICA_OPERATORS_EXTENSION), 0);
  MicaOperatorRecord op = {0};
  op.struct_size = sizeof op;
  op.schema = "test_tape::record(Tensor x, Tensor captured) -> str";
  op.composite = &record;
  return operators->define(r->context, &op);
}
