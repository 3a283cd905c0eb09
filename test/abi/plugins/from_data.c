/* A plugin in C11 whose operator liar::twice(Tensor self, *, Scalar by=2) -> Tensor runs
 * from data: self * by. As it is, it is honest; each macro below spoils one number of its
 * record or of its program, and test_lies.py holds the host to its refusal. */
#include <mica/operators.h>
#include <string.h>

#ifndef RULE
#define RULE MICA_RULE_PROMOTE
#endif
#ifndef FIXED_DTYPE
#define FIXED_DTYPE -1
#endif
#ifndef DTYPE_ARG
#define DTYPE_ARG -1
#endif
#ifndef CLASS
#define CLASS "pointwise"
#endif
#ifndef OPCODE
#define OPCODE MICA_OP_MUL
#endif
#ifndef OPERAND
#define OPERAND 1
#endif
#ifndef INPUT
#define INPUT 0
#endif
#ifndef INPUT_ARG
#define INPUT_ARG 0
#endif
#ifndef REGISTERS
#define REGISTERS 3
#endif
#ifndef OUTPUTS
#define OUTPUTS 1
#endif
#ifndef STATES
#define STATES 0
#endif
#ifndef PROGRAM_SIZE
#define PROGRAM_SIZE sizeof(MicaProgram)
#endif

#define NOTE                                                                          \
  "{\"name\":\"liar\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1," \
  "\"abi_minor\":0,\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"operators:liar\"}"

__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  (void)host_minor;
  static const MicaManifest manifest = {sizeof(MicaManifest), 1, 0, "liar", "Mica tests", "1.0", "", "",
                                        "operators:liar"};
  return &manifest;
}

static const MicaInstruction code[] = {
    {MICA_OP_LOAD, 0, 255, 255, 255, INPUT},
    {MICA_OP_SCALAR, 1, 255, 255, 255, 0},
    {OPCODE, 2, 0, OPERAND, 255, 0},
    {MICA_OP_STORE, 255, 2, 255, 255, 0},
};
static const int32_t inputs[] = {INPUT_ARG}, scalars[] = {1};
static const MicaProgram program = {
    .struct_size = PROGRAM_SIZE,
    .class_name = CLASS,
    .source = "self * by",
    .hint = "",
    .num_inputs = 1,
    .num_scalars = 1,
    .num_outputs = OUTPUTS,
    .num_states = STATES,
    .num_registers = REGISTERS,
    .input_args = inputs,
    .scalar_args = scalars,
    .main = {code, 4},
    .dims_arg = -1,
    .keepdim_arg = -1,
    .data_arg = -1,
    .source_arg = -1,
    .index_arg = -1,
    .fill_arg = -1,
    .dim = MICA_NO_DIM,
    .kernel_arg = -1,
    .stride_arg = -1,
    .pad_arg = -1,
    .dilation_arg = -1,
    .output_arg = -1,
    .equation = "",
};

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  static const char name[] = MICA_OPERATORS_EXTENSION;
  static const MicaProgram* const programs[] = {NULL, NULL, &program, &program, NULL};
  const MicaOperatorsExtension* extension = h->extension((MicaStr){name, sizeof(name) - 1}, 0);
  MicaOperatorRecord record;
  memset(&record, 0, sizeof(record));
  record.struct_size = sizeof(record);
  record.schema = "liar::twice(Tensor self, *, Scalar by=2) -> Tensor";
  record.out_schema = "liar::twice.out(Tensor self, *, Scalar by=2, Tensor(a!) out) -> Tensor(a!)";
  record.doc = "self * by";
  record.class_name = CLASS;
  record.programs = programs;
  record.dtype_rule = RULE;
  record.fixed_dtype = FIXED_DTYPE;
  record.dtype_arg = DTYPE_ARG;
  record.dims_arg = record.keepdim_arg = -1;
  record.supports = 12;
  return extension->define(r->context, &record);
}
