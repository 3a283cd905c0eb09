/* What a third party's layer needs of Mica (tier T2), in C11: a place among the layers,
 * kernels with key sets, redispatch, frames and wrappers, and what the host knows of an
 * operator. <mica/layer.h> is the C++17 face over it.
 *
 * The host offers this table as the extension MICA_LAYERS_EXTENSION. Unlike T1 it is
 * locked: MICA_LAYERS_MAJOR and MICA_LAYERS_MINOR of the host must be those that the plugin
 * was built with, until T2 has proved itself; the host gives NULL otherwise.
 *
 * The first six functions are for the plugin's init and take the registrar's context. What
 * they register goes with the plugin; a layer's bit and a kind's number are kept for it
 * while it is disabled, and go back when its init fails. All others may be called at any
 * time, on any thread; what they change is this thread's alone.
 */
#ifndef MICA_LAYERS_H_
#define MICA_LAYERS_H_

#include <mica/abi.h>
#include <mica/program.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_LAYERS_EXTENSION "mica.layers"
#define MICA_LAYERS_MAJOR 1
#define MICA_LAYERS_MINOR 3

/* --- this thread --------------------------------------------------------- */

/* One level of a transform. `tag` is unique and stands on its wrappers. */
typedef struct MicaFrame {
  int32_t kind; /* -1: none */
  int32_t reserved;
  uint64_t tag;
  void* payload; /* of frame_enter */
} MicaFrame;

/* What this thread's calls go by, to read: the beginning of the host's own state of the thread, so that it is
 * what holds now. It is changed by the functions of the table alone. */
typedef struct MicaThread {
  uint64_t include; /* layers that calls pass, and do not pass, whatever their tensors say */
  uint64_t exclude;
  const MicaFrame* frame; /* the innermost; NULL if there is none */
  uint8_t grad_enabled;   /* 1 where calls are recorded for gradients */
  uint8_t inference_mode; /* 1 where results have no history and no version */
} MicaThread;

/* --- kernels ------------------------------------------------------------- */

struct MicaLayers;

/* What the boxed kernel of a layer or frame kind gets behind the key set. */
typedef struct MicaLayerCall {
  uint64_t struct_size;
  const MicaHost* host;
  const struct MicaLayers* layers;
  void* context; /* of the kernel's record */
  void* op;      /* the operator's handle, as of MicaHost::op_find */
  const MicaThread* thread;
} MicaLayerCall;

/* `keys`: the key set that the call came with. The kernel redispatches with those of them
 * that are below its own layer. One that fails leaves nothing in `results` that the host would release. */
typedef MicaStatus (*MicaLayerFunction)(uint64_t keys, const MicaLayerCall* call, const MicaValue* args,
                                        int64_t num_args, MicaValue* results, int64_t num_results);

typedef struct MicaLayerKernelRecord {
  uint64_t struct_size;
  const char* name; /* "mica::mm"; NULL: all operators without a kernel of their own at `key` */
  const char* key;  /* a layer's name or a frame kind's */
  /* One of the two. Unboxed, the function is as of MicaKernelRecord with another beginning:
   *   R function(void* context, uint64_t keys, arguments...)
   * and stands in the operator's slot itself; `schema_hash` says what it was built for. */
  MicaFunction function;
  uint64_t schema_hash;
  MicaLayerFunction boxed;
  void* context;
  const char* file; /* where it is registered, for explain */
  int64_t line;
} MicaLayerKernelRecord;

/* What a layer or frame kind does with one operator; the host zeroes the rest. */
#define MICA_CHOICE_NOTHING 0 /* as if there were no rule: decomposition, fallback, the next layer */
#define MICA_CHOICE_KERNEL 1
#define MICA_CHOICE_PASS 2 /* the call passes the layer */
typedef struct MicaLayerChoice {
  uint64_t struct_size;
  int32_t what;
  int32_t reserved;
  MicaLayerFunction boxed; /* of a kernel */
  void* context;
} MicaLayerChoice;

/* For all operators that have no kernel of their own at `key`. Asked once an operator, when
 * its table is made, under a lock of the host's: `choose` may call operator_policy, operator_info
 * and operator_at, and nothing else. */
typedef struct MicaLayerRuleRecord {
  uint64_t struct_size;
  const char* key;
  void (*choose)(void* context, void* op, MicaLayerChoice* out);
  void* context;
} MicaLayerRuleRecord;

/* --- frames -------------------------------------------------------------- */

/* A kind's wrapper that is no constant stands for more than its value's elements: reading
 * them (item(), `if`) raises. */
#define MICA_KIND_HIDES_VALUE UINT64_C(1)
/* Gradients are recorded in the frame as they are outside: it has an Autograd of its own, which records
 * on wrappers. */
#define MICA_KIND_OWN_AUTOGRAD UINT64_C(2)
/* Operators may write what the function captured: the kind keeps the write. */
#define MICA_KIND_WRITES_CAPTURED UINT64_C(4)
/* All that shares memory with a wrapper follows it to other memory, and so is a view of it: also what
 * operators without a gradient return (detach). */
#define MICA_KIND_MOVES_MEMORY UINT64_C(8)
/* Wrappers mirror their values and nothing else: they are brought up to date with them. */
#define MICA_KIND_MIRRORS UINT64_C(16)

typedef struct MicaFrameKindRecord {
  uint64_t struct_size;
  const char* name;         /* "interval" */
  const char* after_escape; /* a sentence: what the user shall do with a tensor that escaped */
  uint64_t flags;
  /* 1 where the wrapper holds nothing of the transform and may stand for its value; NULL: no
   * wrapper may. */
  int32_t (*is_constant)(void* context, MicaTensor* wrapper);
  void* context;
  /* The rest may be NULL. Why the elements of a wrapper that is no constant cannot be read and what to do,
   * in place of the sentence of MICA_KIND_HIDES_VALUE: it goes on from "The tensor (...) ". */
  const char* unreadable;
  /* What goes on below the kind's own Autograd; else the call in the parent. */
  MicaLayerFunction below_autograd;
  /* How what a factory made becomes a tensor of the frame (owned); else a wrapper without a payload. */
  MicaTensorResult (*lift)(void* context, MicaTensor* value, const MicaFrame* frame);
  /* What a tensor stands for now in the frame's parent, which is current then (owned): the value of a
   * wrapper, something else for what was captured, else the tensor. Else the wrapper's value, whose memory
   * the wrapper shares. */
  MicaTensorResult (*read)(void* context, MicaTensor* t, const MicaFrame* frame);
  /* Brings what a wrapper shows of its memory up to date. */
  MicaStatus (*settle)(void* context, MicaTensor* wrapper);
} MicaFrameKindRecord;

/* Room for what is restored; belongs to the caller, who does not look inside. */
typedef struct MicaFrameScope {
  uint64_t opaque[12];
} MicaFrameScope;

/* What the object begins with that a kind keeps with its wrappers, several of which may share it: who
 * keeps it, wrapper or plugin, counts one, in one atomic step, and the last calls `destroy`. */
typedef struct MicaShared {
  int64_t holders;
  void (*destroy)(struct MicaShared*);
} MicaShared;

/* What a wrapper is given to carry; borrowed. */
typedef struct MicaPayload {
  MicaTensor* second; /* or NULL */
  int64_t number;
  MicaShared* shared; /* or NULL */
  int64_t hidden;     /* leading dimensions of the value that the wrapper does not show */
} MicaPayload;

/* A wrapper, to read: the beginning of the host's own, good as long as the tensor. */
typedef struct MicaWrapper {
  MicaTensor* value;
  uint64_t tag; /* of the frame that made it */
  int32_t kind;
  int32_t hidden; /* from here on as in its payload */
  int64_t number;
  MicaTensor* second;
  MicaShared* shared;
} MicaWrapper;

/* --- operators ----------------------------------------------------------- */

#define MICA_FORM_FUNCTIONAL 0
#define MICA_FORM_INPLACE 1
#define MICA_FORM_OUT 2

#define MICA_OPERATOR_VIEW UINT64_C(1)               /* its results share memory with its first argument */
#define MICA_OPERATOR_COMPOSITE UINT64_C(2)          /* has a decomposition into others */
#define MICA_OPERATOR_NOT_DIFFERENTIABLE UINT64_C(4) /* has no gradient by its entry */
#define MICA_OPERATOR_BY_CLASS                                            \
  UINT64_C(8) /* its class says what it computes; of an operator that was \
                 defined at run time only where it runs from data */
#define MICA_OPERATOR_META                                         \
  UINT64_C(16) /* has a meta function, which checks the arguments: \
                  compute_dtype calls it */

#define MICA_ARGUMENT_WRITTEN UINT64_C(1)
#define MICA_ARGUMENT_OPTIONAL UINT64_C(2)
#define MICA_ARGUMENT_KEYWORD UINT64_C(4)
#define MICA_ARGUMENT_ALIAS UINT64_C(8)    /* a result may share its memory */
#define MICA_ARGUMENT_OPERAND UINT64_C(16) /* contraction: an operand of the equation */

typedef struct MicaResultInfo {
  const char* type;
  int32_t tag;      /* as of an argument */
  int32_t alias_of; /* the argument whose memory it shares or which it is, by its schema; -1 */
} MicaResultInfo;

typedef struct MicaArgumentInfo {
  const char* name; /* "self" */
  const char* type; /* "Tensor", "int[]?", without alias annotations' meaning */
  int32_t tag;      /* MICA_VALUE_... that it has where it is given */
  int32_t reserved;
  uint64_t flags;
} MicaArgumentInfo;

/* What the operator's entry says, of one form. Stays as long as the process. */
typedef struct MicaOperatorInfo {
  uint64_t struct_size;
  const char* name;            /* "mica::add.Tensor" */
  const char* schema;          /* canonical, with the namespace: what schema_hash is of */
  const char* class_name;      /* "pointwise", "reduction", "contraction", "view", "custom", ... */
  const char* functional_name; /* of the same entry, or NULL */
  const char* out_name;
  int32_t form;
  int32_t num_args;
  int32_t num_results;
  int32_t dtype_arg; /* the argument that says what dtype is computed in, -1 if none does */
  uint64_t flags;
  uint64_t schema_hash;
  uint64_t written_args;          /* bit i: argument i is written */
  const MicaArgumentInfo* args;   /* num_args */
  const MicaProgram* programs[5]; /* by the kind of the compute dtype: bool, unsigned, signed, floating,
                                     complex; NULL where the entry has none. They number the functional
                                     form's arguments, which are the first of the other forms' */
  const char* equation;           /* contraction: "ij,jk->ik" over the arguments that are operands, in
                                     their order; "" otherwise. The operator is linear in each operand,
                                     and in its other tensors */
  const MicaResultInfo* results;  /* num_results */
  /* reduction, scan, row: the argument that names dimensions, and `keepdim`; -1 if there is none */
  int32_t dims_arg;
  int32_t keepdim_arg;
  int32_t none_dims; /* reduction: 1 where an empty list of dimensions means all */
  int32_t reserved2;
} MicaOperatorInfo;

/* What stands for an operator at a layer or backend. */
#define MICA_AT_NOTHING 0       /* nothing, or the call passes it */
#define MICA_AT_DECOMPOSITION 1 /* the decomposition, in any case */
#define MICA_AT_KERNEL 2

/* --- tensors ------------------------------------------------------------- */

/* How a view was made, which says whether it may be written while gradients are recorded. */
#define MICA_VIEW_DEFAULT 0
#define MICA_VIEW_WITHOUT_GRAD 1
#define MICA_VIEW_IN_INFERENCE 2
#define MICA_VIEW_OF_MANY 3     /* its operator returns several */
#define MICA_VIEW_OF_FUNCTION 4 /* a custom function returned it */

/* How the memory of two tensors overlaps. FULL: the same elements in the same places. */
#define MICA_OVERLAP_NONE 0
#define MICA_OVERLAP_FULL 1
#define MICA_OVERLAP_PARTIAL 2
#define MICA_OVERLAP_UNKNOWN 3 /* strides too tangled to tell */

/* Where a tensor lies and what it is a view of. Borrowed. */
typedef struct MicaTensorDetails {
  int64_t holders;       /* references to the storage: 1 where one tensor alone lies in it */
  int64_t nbytes;        /* of the storage */
  int64_t offset;        /* of the first element, in elements from where the storage begins */
  MicaTensor* base;      /* what it is a view of, which is no view itself; or NULL */
  int32_t view_creation; /* of a view: MICA_VIEW_... */
  int32_t requires_grad; /* itself, whether or not this thread records */
  int32_t base_requires_grad;
  int32_t reserved;
} MicaTensorDetails;

#define MICA_TRAIT_REQUIRES_GRAD UINT64_C(1)
#define MICA_TRAIT_LEAF UINT64_C(2) /* no operator that is recorded made it */
#define MICA_TRAIT_VIEW UINT64_C(4)
#define MICA_TRAIT_WRAPPER UINT64_C(8)   /* of a frame */
#define MICA_TRAIT_RECORDED UINT64_C(16) /* Autograd would record what an operator does with it here */

/* A key set's bits of backends. */
#define MICA_KEYS_OF_BACKENDS ((UINT64_C(1) << 22) - 1)

/* A boxed value that is kept. */
typedef struct MicaKeptValue MicaKeptValue;

/* One view: `byte_offset` from the beginning of the memory. Lists are borrowed. */
typedef void (*MicaViewReceiver)(void* context, MicaIntSpan sizes, MicaIntSpan strides, int64_t byte_offset);

/* --- the table ----------------------------------------------------------- */

typedef struct MicaLayers {
  uint64_t struct_size;
  uint32_t major, minor; /* MICA_LAYERS_MAJOR, MICA_LAYERS_MINOR of the host */
  /* For init. A layer stands `after` (below, nearer to the backend) one neighbour and
   * `before` (above) another; "" or NULL for no bound. "frames" names all that belongs to
   * frames. One of Mica's own layers ("Autocast") has its place: who brings it gives no bounds. */
  MicaStatus (*register_layer)(void* context, const char* name, const char* after, const char* before,
                               int32_t* bit);
  MicaStatus (*register_kind)(void* context, const MicaFrameKindRecord*, int32_t* kind);
  MicaStatus (*register_kernel)(void* context, const MicaLayerKernelRecord*);
  /* what the layer does with each operator, from what its entry says */
  MicaStatus (*register_rule)(void* context, const MicaLayerRuleRecord*);
  /* the layer, or kind, runs the decompositions of composites that it has no kernel for */
  MicaStatus (*decompose_at)(void* context, const char* key);
  /* it has nothing to do for the operator, in spite of its kernel for all others */
  MicaStatus (*fall_through)(void* context, const char* name, const char* key);
  /* Operators. `info` is of an operator's handle. */
  const MicaOperatorInfo* (*operator_info)(void* op);
  /* What the entry says to one layer: operator_policy(op, "autocast") is "lower"; NULL where it says nothing.
   * The same for all forms of an entry of Mica's; a plugin's says it of the functional form. */
  const char* (*operator_policy)(void* op, const char* name);
  /* the dtype that a pointwise, reduction, ... operator computes in for these arguments of the
   * functional form; MICA_DTYPE_NONE where the entry gives none */
  MicaStatus (*compute_dtype)(void* op, const MicaValue* args, int64_t num_args, int32_t* dtype);
  /* Calls the kernel of the highest of `keys`; all else of the call is as of op_call_boxed. */
  MicaStatus (*redispatch)(void* op, uint64_t keys, const MicaValue* args, int64_t num_args,
                           MicaValue* results, int64_t num_results);
  /* The operator as a C function, which does what op_call_boxed does and boxes nothing:
   *   R call(void* op, arguments...)
   * with arguments and R as of a kernel (MicaFunction). `signature` is what the caller takes it for, as of
   * MicaKernelRecord; raises where the operator's schema asks for another. The function is good for as long
   * as the process, whoever replaces kernels meanwhile. NULL where calls are boxed alone: of an operator that
   * was defined at run time, and by a schema that it had before. */
  MicaStatus (*call_of)(void* op, const char* signature, MicaFunction* call);
  /* The keys of a call with these arguments: their tensors', with what this thread includes and
   * without what it excludes. */
  uint64_t (*keys_of)(void* op, const MicaValue* args, int64_t num_args);
  /* Runs the operator's decomposition into others, whose calls begin at the top. */
  MicaStatus (*decompose)(void* op, uint64_t keys, const MicaValue* args, int64_t num_args,
                          MicaValue* results, int64_t num_results);
  /* The layers that this thread's calls include, or exclude, whatever their tensors say; what
   * was before is put back by the same function. Bits of backends and frames are passed over. */
  uint64_t (*exchange_include)(uint64_t keys);
  uint64_t (*exchange_exclude)(uint64_t keys);
  /* This thread's, for as long as the thread lives. */
  const MicaThread* (*thread)(void);
  /* MICA_TRAIT_... of a tensor, and how often its memory was written */
  uint64_t (*tensor_traits)(MicaTensor*);
  uint64_t (*tensor_version)(MicaTensor*);
  MicaStatus (*set_requires_grad)(MicaTensor*, int32_t on);
  /* Its gradient, owned; NULL where it has none. */
  MicaTensorResult (*gradient)(MicaTensor*);
  MicaStatus (*set_gradient)(MicaTensor*, MicaTensor* grad);
  /* With these strides, on this device; seen by no layer and no frame. */
  MicaTensorResult (*tensor_empty_strided)(MicaIntSpan sizes, MicaIntSpan strides, int32_t dtype,
                                           MicaDevice device);
  MicaDevice (*default_device)(void);
  /* The bit of one of Mica's own layers or of a third party's ("Autograd"), for key sets; -1. */
  int32_t (*layer_bit)(const char* name);
  /* Copies what a boxed argument points to, and keeps its tensors and its generator: `copy` is good until
   * `release_value`. */
  MicaStatus (*keep_value)(const MicaValue* value, MicaKeptValue** kept, MicaValue* copy);
  void (*release_value)(MicaKeptValue* kept);
  /* The bit of a third party's layer on one tensor: its calls pass the layer's kernels. */
  uint64_t (*tensor_keys)(MicaTensor*);
  MicaStatus (*tensor_attach)(MicaTensor*, int32_t bit, int32_t on);
  /* Frames. Enters a frame, which frame_exit leaves, on the same thread and innermost first. With `tag`
   * of a frame that was left before, the wrappers of that one are at home again; else 0. */
  MicaStatus (*frame_enter)(int32_t kind, void* payload, uint64_t tag, MicaFrameScope* scope);
  MicaStatus (*frame_exit)(MicaFrameScope* scope);
  /* What a kind's kernel computes in: the frame that was current is left, until it returns. */
  MicaStatus (*frame_leave)(MicaFrameScope* scope, MicaFrame* left);
  void (*frame_return)(MicaFrameScope* scope);
  /* A wrapper of `frame` around `value`; with `base`, a wrapper of the same frame or NULL, a view of it. */
  MicaTensorResult (*wrap)(MicaTensor* value, const MicaFrame* frame, MicaTensor* base, const MicaPayload*);
  /* NULL where the tensor is no wrapper. */
  const MicaWrapper* (*wrapper)(MicaTensor*);
  /* In the current frame: the call in its parent, on the values of its wrappers, and what comes
   * out wrapped without a payload. */
  MicaStatus (*call_in_parent)(void* op, const MicaValue* args, int64_t num_args, MicaValue* results,
                               int64_t num_results);
  /* Another payload for a wrapper of `frame`; `hidden` must be what it was. Other tensors stay as they are.
   */
  MicaStatus (*set_payload)(MicaTensor* wrapper, const MicaFrame* frame, const MicaPayload*);
  /* Another value, of the shape, dtype and device that it shows, for a wrapper of `frame`. */
  MicaStatus (*set_value)(MicaTensor* wrapper, const MicaFrame* frame, MicaTensor* value);
  /* Makes a wrapper show another device than its value's (a fake tensor, whose value is on meta). */
  MicaStatus (*show_device)(MicaTensor* wrapper, MicaDevice device);
  /* What functionalize needs beside. */
  /* Whether this thread's calls are recorded for gradients from here on; what was before. */
  int32_t (*exchange_grad_enabled)(int32_t on);
  /* Opens the plugin that brings the layer ("Autograd"), where there is one that is not open yet. */
  MicaStatus (*open_layer)(const char* name);
  /* As op_find, but NULL where there is none. */
  void* (*find_operator)(const char* name);
  /* In a rule alone (MicaLayerRuleRecord): MICA_AT_... of an operator at another layer or backend. Where that
   * changes, the rule is asked again. */
  int32_t (*operator_at)(void* op, const char* key);
  void (*tensor_details)(MicaTensor*, MicaTensorDetails* out);
  /* Tells its memory from that of other tensors, nothing else: equal for all views. */
  const void* (*tensor_storage)(MicaTensor*);
  /* A view of a tensor's memory, from element `offset` of the storage on and of any dtype, seen by no layer
   * and no frame. `detached`: no gradient flows through it, and it is no view to Autograd. Raises where it
   * leaves the storage. */
  MicaTensorResult (*tensor_view)(MicaTensor*, MicaIntSpan sizes, MicaIntSpan strides, int64_t offset,
                                  int32_t dtype, int32_t detached);
  /* What a view operator makes of its first argument, by its sizes, strides and offset alone: as tensor_view,
   * detached. */
  MicaTensorResult (*view_by)(void* op, const MicaValue* args, int64_t num_args);
  MicaStatus (*set_view_creation)(MicaTensor* view, int32_t creation);
  /* Makes a wrapper lie elsewhere: with these sizes and strides, from element `offset` on in the memory of
   * `of` (which may be the wrapper). NULL: in a storage of its own over the memory that it lies in, whose
   * versions nobody else counts. */
  MicaStatus (*show_memory)(MicaTensor* wrapper, MicaTensor* of, MicaIntSpan sizes, MicaIntSpan strides,
                            int64_t offset);
  /* The call without values: on tensors of the meta device that lie as the arguments do, seen by no layer and
   * no frame. Throws what shapes, dtypes and memory make it throw; results are of the meta device. */
  MicaStatus (*call_on_meta)(void* op, const MicaValue* args, int64_t num_args, MicaValue* results,
                             int64_t num_results);
  /* MICA_OVERLAP_... */
  int32_t (*overlap)(MicaTensor* a, MicaTensor* b);
  /* What a pointwise kernel throws that writes `output` and reads `input`, by these arguments' names, where
   * the two overlap in part; with NULL, where elements of `output` share a place. */
  MicaStatus (*check_overlap)(MicaTensor* output, const char* output_name, MicaTensor* input,
                              const char* input_name);
  /* What a write by the operator throws where the tensor is read-only or was made in inference mode; who
   * watches the tensor is told that it is written next. */
  MicaStatus (*check_writable)(void* op, MicaTensor*);
  /* What Autograd throws for a write by the operator, named `name` (NULL: its own name), that it would
   * record. */
  MicaStatus (*check_recorded_write)(void* op, const char* name, MicaTensor*);
  /* Throws that the operator writes a tensor which the function of `frame` captured. */
  MicaStatus (*refuse_captured)(void* op, const MicaFrame* frame, MicaTensor* written);
  /* After a write: the tensor's next version, which errors say that the operator made (NULL: nobody). */
  void (*mark_written)(void* op, MicaTensor*);
  /* What batched needs beside. */
  /* What a view operator makes of these arguments, which it checks: receive(context, ...) for each. */
  MicaStatus (*views_of)(void* op, const MicaValue* args, int64_t num_args, MicaViewReceiver receive,
                         void* context);
  /* Its version, as of tensor_version, becomes `to` where it is less. */
  void (*raise_version)(MicaTensor*, uint64_t to);
  /* Whether the frame that made the wrapper is entered on this thread: its kind, tag and payload (NULL where
   * it is not). Kind -1 where the tensor is no wrapper. */
  int32_t (*frame_of)(MicaTensor* wrapper, MicaFrame* out);
  /* Another value, less its first `hidden` dimensions, for a wrapper of `frame`, which shows its memory,
   * sizes and strides from now on; NULL: the value that it has, which changed. */
  MicaStatus (*move_wrapper)(MicaTensor* wrapper, const MicaFrame* frame, MicaTensor* value, int64_t hidden);
  /* Before the memory or the version of a tensor is compared: what it shows is brought up to date. */
  MicaStatus (*settle)(MicaTensor*);
  /* Raises where the tensor has no single elements to read: `what`, as in "item()", reads them. */
  MicaStatus (*check_readable)(MicaTensor*, const char* what);
  /* What error messages say of a tensor, "float32[2, 3] on cpu": at most `room` bytes of it; how long it is.
   */
  int64_t (*describe)(MicaTensor*, char* text, int64_t room);
  /* 1 where the host's error has a class of its own, as what a hook or a handler in Python raised: it is to
   * reach the user as it is. */
  int32_t (*has_own_class)(MicaStatus);
  /* As MicaHost::warn, once in a process for each `key`. */
  void (*warn_once)(MicaStr key, MicaStr message);
  /* Of a list of tensors that a boxed call gave: its references, into `out` of its size. A list for a result
   * comes from MicaHost::tensor_list_create. */
  void (*take_list)(MicaValue* result, MicaTensor** out);
  /* What opaque needs. In a rule alone: the key bits of the backends whose kernel for this very form takes
   * opaque tensors. */
  uint64_t (*takes_opaque)(void* op);
  /* Gives an opaque tensor its memory. `is_written`: nobody else uses the tensor now, so that it becomes one
   * like others. */
  MicaStatus (*make_memory)(MicaTensor*, int32_t is_written);
} MicaLayers;

MICA_LAYOUT_ASSERT(sizeof(MicaThread) == 32);
MICA_LAYOUT_ASSERT(offsetof(MicaThread, frame) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaThread, inference_mode) == 25);
MICA_LAYOUT_ASSERT(sizeof(MicaShared) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaWrapper) == 48);
MICA_LAYOUT_ASSERT(offsetof(MicaWrapper, number) == 24);
MICA_LAYOUT_ASSERT(sizeof(MicaLayerCall) == 48);
MICA_LAYOUT_ASSERT(sizeof(MicaLayerKernelRecord) == 72);
MICA_LAYOUT_ASSERT(sizeof(MicaLayerChoice) == 32);
MICA_LAYOUT_ASSERT(sizeof(MicaLayerRuleRecord) == 32);
MICA_LAYOUT_ASSERT(sizeof(MicaFrameKindRecord) == 88);
MICA_LAYOUT_ASSERT(sizeof(MicaFrame) == 24);
MICA_LAYOUT_ASSERT(sizeof(MicaFrameScope) == 96);
MICA_LAYOUT_ASSERT(sizeof(MicaPayload) == 32);
MICA_LAYOUT_ASSERT(sizeof(MicaArgumentInfo) == 32);
MICA_LAYOUT_ASSERT(sizeof(MicaTensorDetails) == 48);
MICA_LAYOUT_ASSERT(offsetof(MicaLayers, register_layer) == 16);

#ifdef __cplusplus
}
#endif
#endif /* MICA_LAYERS_H_ */
