/* Operators that a plugin brings: shape function, decomposition and gradient, in
 * C11. mica-gen --emit=plugin writes these records from the plugin's own YAML.
 *
 * The host offers them as the extension MICA_OPERATORS_EXTENSION, for use during
 * the plugin's init only. What is defined goes with the plugin. Append-only.
 */
#ifndef MICA_OPERATORS_H_
#define MICA_OPERATORS_H_

#include <mica/abi.h>
#include <mica/program.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_OPERATORS_EXTENSION "mica.operators"
/* Since 1: forms of operators with a shape function, and gradients of lists of tensors. */
#define MICA_OPERATORS_MINOR 1

/* The gradient of an operator. `args` are the forward's arguments and `results`
 * its results; those tensors are NULL (or NONE) that the record does not ask to
 * keep. `grads` has one incoming gradient a result. `wanted` and `gradients` have an
 * entry for each argument, in order; a list of tensors that is differentiable has one
 * for each of its tensors instead. Where an entry is wanted the function puts an owned
 * tensor, or NULL for none, into its gradient. It may call operators: the host runs it so that gradients of
 * gradients follow where they are wanted. */
typedef MicaStatus (*MicaBackwardFunction)(void* context, const MicaValue* args, int64_t num_args,
                                           MicaTensor* const* results, MicaTensor* const* grads,
                                           int64_t num_results, const uint8_t* wanted,
                                           MicaTensor** gradients);

typedef struct MicaOperatorRecord {
  uint64_t struct_size;
  const char* schema; /* "acme::spin(Tensor self, float angle) -> Tensor" */
  const char* doc;
  const char* file; /* of the YAML entry, for explain */
  int64_t line;
  /* The policies that the entry names, kept for the layers that read them. */
  const char* autocast;   /* "lower", "float32", "promote", "whole", "none", "parts" */
  const char* batch_rule; /* the plugin's name of a rule, "" if none */
  /* Shapes and dtypes: a boxed kernel that runs on tensors of the meta device and
   * gives results there. The host runs it before every kernel of the operator, on every
   * device, with a tensor of the meta device for each of the call's. NULL where there is
   * a composite. */
  MicaBoxedFunction shape;
  /* The decomposition into other operators, for every device; or NULL. */
  MicaBoxedFunction composite;
  /* The gradient, or NULL; bits by argument and by result. */
  MicaBackwardFunction backward;
  uint64_t differentiable;         /* arguments that can get a gradient: Tensor, Tensor?, Tensor[] */
  uint64_t differentiable_results; /* results that have one */
  uint64_t kept_args;              /* tensor arguments that `backward` reads */
  uint64_t kept_results;
  void* context; /* of all functions of this record */
  /* An operator that runs from data: the name of its class, one program a kind of
   * dtype (bool, unsigned, signed, floating, complex; NULL where none), and what the
   * class says of shapes and dtypes. Every backend that runs the class has it then,
   * and the CPU always. NULL and zeros otherwise. */
  const char* class_name; /* "pointwise", "reduction", "scan", "row" */
  const MicaProgram* const* programs;
  /* Of the other forms, or NULL; also of an operator without a class that has a shape
   * function: its kernel is then that of the out form, whose outputs the host makes. */
  const char* inplace_schema;
  const char* out_schema;
  int32_t dtype_rule;            /* MICA_RULE_... */
  int32_t fixed_dtype;           /* MICA_RULE_FIXED */
  int32_t dtype_arg;             /* MICA_RULE_ARGUMENT, MICA_RULE_ACCUMULATE; -1 if none */
  int32_t dims_arg, keepdim_arg; /* -1 if none */
  int32_t none_dims;             /* 1: no dims are all of them */
  uint32_t supports;             /* bit k: kind k of compute dtypes */
  uint32_t reserved;
  /* Schemas that the operator had before, of all its forms, and then NULL; or NULL.
   * Arguments with defaults were added since. A kernel that was built for one of them
   * gets the calls in which the new arguments hold their defaults. */
  const char* const* earlier;
} MicaOperatorRecord;

/* The dtypes of results, as native_functions.yaml says them in `dtype:`. */
#define MICA_RULE_PROMOTE 0
#define MICA_RULE_FLOAT 1
#define MICA_RULE_BOOL 2
#define MICA_RULE_SAME 3
#define MICA_RULE_INDEX 4
#define MICA_RULE_REAL 5
#define MICA_RULE_COMPLEX 6
#define MICA_RULE_ACCUMULATE 7
#define MICA_RULE_FIXED 8
#define MICA_RULE_ARGUMENT 9

typedef struct MicaOperatorsExtension {
  uint64_t struct_size;
  uint32_t major, minor;
  /* `registrar_context` is the registrar's. The record is copied; what it points to
   * stays, since a plugin is never unloaded. */
  MicaStatus (*define)(void* registrar_context, const MicaOperatorRecord* record);
} MicaOperatorsExtension;

#ifdef __cplusplus
}
#endif
#endif /* MICA_OPERATORS_H_ */
