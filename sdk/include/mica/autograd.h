/* Gradients, for those who ask for them, look at the graph, hook into it, or bring a backward of their
 * own (the Python package, a compiler, a library for distributed training), in C11: the table that the
 * plugin of the layer "Autograd" offers as the extension MICA_AUTOGRAD_EXTENSION. Append-only.
 *
 * Arguments are borrowed for the call. Tensors and nodes that come back are owned by the receiver, who
 * gives them back by MicaHost::tensor_release and `node_release`. NULL among tensors says that there is
 * no gradient, or no tensor. Call the functions from any thread; two threads may run backward at once.
 * What has no status cannot fail.
 */
#ifndef MICA_AUTOGRAD_H_
#define MICA_AUTOGRAD_H_

#include <mica/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_AUTOGRAD_EXTENSION "mica.autograd"

/* The face of a node of the backward graph, which is counted. */
typedef struct MicaNode {
  void* object; /* the language binding's object for the node, which autograd neither reads nor counts */
} MicaNode;

typedef struct MicaHook MicaHook;               /* by which a hook is taken away */
typedef struct MicaSavedTensor MicaSavedTensor; /* a tensor kept for a backward, with its version */
typedef struct MicaSavedCopies MicaSavedCopies; /* what is saved while copy on write stands */

/* An object of the caller's, the first argument of the function that it stands beside. Autograd keeps it,
 * also where the call fails, and calls `destroy` (which may be NULL) once, on any thread, when nobody
 * calls the function any more. */
typedef struct MicaHeld {
  void* object;
  void (*destroy)(void* object);
} MicaHeld;

/* Hooks. `grad` is NULL where only other results of its node got a gradient; a result of NULL keeps it. */
typedef MicaTensorResult (*MicaTensorHook)(void* object, MicaTensor* grad);
/* After the gradient was added to leaf.grad. */
typedef MicaStatus (*MicaAccumulateHook)(void* object, MicaTensor* leaf);
/* Before a node runs. The elements of `grads` are owned by the list: who puts another tensor into it
 * releases the one that was there. */
typedef MicaStatus (*MicaNodeHook)(void* object, MicaTensor** grads, int64_t n);
/* After it ran; `grad_inputs` may be changed in the same way. */
typedef MicaStatus (*MicaNodePostHook)(void* object, MicaTensor** grad_inputs, int64_t num_inputs,
                                       MicaTensor* const* grad_outputs, int64_t num_outputs);

/* Sees what autograd holds for others; nonzero takes it over: the visitor destroys it, and what it
 * belonged to is not called any more. */
typedef int32_t (*MicaVisitHeld)(void* to, const MicaHeld* held);

/* Where a gradient goes: input `input_nr` of `node`. */
typedef struct MicaEdge {
  MicaNode* node;
  int64_t input_nr;
} MicaEdge;

/* Where backward starts, or what a gradient is asked for: a tensor or, where that is NULL, the edge into
 * which its gradient flows. */
typedef struct MicaGradientPoint {
  MicaTensor* tensor;
  MicaEdge edge;
} MicaGradientPoint;
typedef struct MicaGradientPoints {
  const MicaGradientPoint* data;
  int64_t size;
} MicaGradientPoints;

/* What one result of a node's forward looked like; `sizes` lives as long as the node. */
typedef struct MicaNodeResult {
  int32_t defined; /* 0 where no gradient flows; the rest is empty then */
  int32_t dtype;
  MicaDevice device;
  MicaIntSpan sizes;
} MicaNodeResult;

/* Flags of a backward. */
#define MICA_BACKWARD_RETAIN_GRAPH UINT64_C(1)
#define MICA_BACKWARD_CREATE_GRAPH UINT64_C(2)
#define MICA_BACKWARD_ALLOW_UNUSED UINT64_C(4)      /* `gradients` alone */
#define MICA_BACKWARD_MATERIALIZE_GRADS UINT64_C(8) /* `gradients` alone: zeros for unused inputs */

/* Flags of anomaly mode. */
#define MICA_ANOMALY_ON UINT64_C(1)        /* a node that fails reports the stack of its forward */
#define MICA_ANOMALY_CHECK_NAN UINT64_C(2) /* a gradient that holds a NaN is an error */

/* What is kept in place of a saved tensor: `pack` makes it under no_grad, `unpack` gives the tensor back.
 * Both are called with held.object. Of a struct that is too short for `held`, that is not kept. */
typedef struct MicaSavedTensorHooks {
  uint64_t struct_size;
  MicaStatus (*pack)(void* object, MicaTensor* t, MicaHeld* packed);
  MicaTensorResult (*unpack)(void* object, void* packed);
  MicaHeld held;
} MicaSavedTensorHooks;

/* A custom function's backward, as long as the process lives. Each takes the object that its node was made
 * with; `backward` alone may not be NULL. */
typedef struct MicaCustomFunction {
  uint64_t struct_size;
  /* `grads`: one for each output of the forward (zeros in the place of NULL where the node materializes
   * them). `gradients` has a NULL for each of the `n` inputs that the node was made of, in order, to be
   * filled with owned tensors. Grad mode is on if and only if the caller asked for create_graph. */
  MicaStatus (*backward)(void* object, MicaTensorSpan grads, MicaTensor** gradients, int64_t n);
  /* Drops what was saved. */
  void (*release_saved)(void* object);
  /* The last reference to the node is gone: nonzero if it took a new one, so that the node lives on. */
  int32_t (*keep)(void* object, MicaNode* node);
  /* Shows the objects that it holds to a garbage collector. */
  void (*visit_held)(void* object, void* to, MicaVisitHeld visit);
  /* With the node, or at once where none is made. */
  void (*destroy)(void* object);
} MicaCustomFunction;

/* A custom function's call once its forward has run. */
typedef struct MicaCustomOutputs {
  uint64_t struct_size;
  MicaTensorSpan inputs;             /* those that custom_node was given; others are refused */
  MicaTensorSpan outputs;            /* what the forward returned; NULL for values that are no tensors */
  MicaTensorSpan dirty;              /* of the outputs, inputs that it wrote */
  MicaTensorSpan non_differentiable; /* of the outputs */
  int64_t materialize_grads;
} MicaCustomOutputs;

typedef struct MicaAutograd {
  MicaTable table;

  /* ---- tensors. 1 also for a view whose base got a history after the view was made. */
  MicaIntResult (*requires_grad)(MicaTensor* t);
  /* Leaves of floating and complex dtypes alone. */
  MicaStatus (*set_requires_grad)(MicaTensor* t, int32_t on);
  MicaIntResult (*is_leaf)(MicaTensor* t);
  MicaTensorResult (*grad)(MicaTensor* t);
  /* NULL clears; else shape, dtype and device must be the tensor's. */
  MicaStatus (*set_grad)(MicaTensor* t, MicaTensor* grad);
  /* NULL of a leaf. */
  MicaStatus (*grad_fn)(MicaTensor* t, MicaNode** node);
  MicaIntResult (*output_nr)(MicaTensor* t);
  /* Where its gradient goes: of a leaf, the node that adds to its grad; a NULL node if it requires none. */
  MicaStatus (*gradient_edge)(MicaTensor* t, MicaEdge* edge);
  /* Shares storage and version, and has no history. */
  MicaTensorResult (*detach)(MicaTensor* t);
  /* Refused on views. */
  MicaStatus (*detach_in_place)(MicaTensor* t);
  /* A view becomes an ordinary tensor; the history that it has through its base becomes its own. */
  MicaStatus (*leave_base)(MicaTensor* view);
  /* An alias without history, where writes count as writes to `t`; and its replacement. */
  MicaTensorResult (*data)(MicaTensor* t);
  MicaStatus (*set_data)(MicaTensor* t, MicaTensor* data);
  MicaStatus (*retain_grad)(MicaTensor* t);
  MicaIntResult (*retains_grad)(MicaTensor* t);
  /* The error of a write by the operator of that name, if `t` must not be written while gradients are
   * recorded. */
  MicaStatus (*check_in_place)(MicaTensor* t, const char* op);

  /* ---- hooks. Of one node run, in this order: those of its tensors (tensor by tensor, as each got its first
   * one), what retain_grad asks for, those before the node, those on accumulation, those after it.
   * `hook` gets a handle, which holds neither tensor nor node; NULL: it is not asked for. */
  MicaStatus (*add_tensor_hook)(MicaTensor* t, MicaTensorHook function, MicaHeld held, MicaHook** hook);
  MicaStatus (*add_accumulate_hook)(MicaTensor* leaf, MicaAccumulateHook function, MicaHeld held,
                                    MicaHook** hook);
  MicaStatus (*add_node_hook)(MicaNode* node, MicaNodeHook function, MicaHeld held, MicaHook** hook);
  MicaStatus (*add_node_post_hook)(MicaNode* node, MicaNodePostHook function, MicaHeld held, MicaHook** hook);
  /* Takes the hook away, if it is there still; and gives the handle back, which takes nothing away. */
  void (*hook_remove)(MicaHook* hook);
  void (*hook_release)(MicaHook* hook);

  /* ---- nodes */
  void (*node_retain)(MicaNode* node);
  void (*node_release)(MicaNode* node);
  /* Of a node whose last reference may be gone: 0 if it is, and the node must not be used. */
  int32_t (*node_retain_living)(MicaNode* node);
  /* 1 if the caller's reference is the only one; never of a leaf's node. */
  int32_t (*node_held_once)(MicaNode* node);
  /* "AddBackward0"; lives as long as the node. */
  MicaStr (*node_name)(MicaNode* node);
  /* Grows along each thread's forward. */
  uint64_t (*node_sequence)(MicaNode* node);
  /* Edges to where its gradients flow; a NULL node where none does. */
  int64_t (*node_num_next)(MicaNode* node);
  MicaStatus (*node_next)(MicaNode* node, int64_t i, MicaEdge* edge);
  /* Of a node that adds to a leaf's grad, the leaf; NULL of others. */
  MicaTensor* (*node_variable)(MicaNode* node);
  int64_t (*node_num_results)(MicaNode* node);
  MicaStatus (*node_result)(MicaNode* node, int64_t i, MicaNodeResult* result);
  /* What a node keeps for its backward, by the names that its formula reads. */
  MicaStatus (*saved_names)(MicaNode* node, void* to, void (*name)(void* to, MicaStr name));
  MicaIntResult (*has_saved)(MicaNode* node, MicaStr name);
  /* Gives `take` a tensor, a list of tensors or a plain value, borrowed. */
  MicaStatus (*saved)(MicaNode* node, MicaStr name, void* to, void (*take)(void* to, const MicaValue* value));
  /* Packs a saved tensor (number `index` of a list) now; once for each. */
  MicaStatus (*hook_saved)(MicaNode* node, MicaStr name, int64_t index, const MicaSavedTensorHooks* hooks);

  /* ---- running. Adds to the grad of the leaves, or of `inputs` alone if there are any. `grads` may be
   * empty: ones for scalar tensors. `found` has room for a gradient of each input. */
  MicaStatus (*backward)(MicaGradientPoints outputs, MicaTensorSpan grads, MicaGradientPoints inputs,
                         uint64_t flags);
  MicaStatus (*gradients)(MicaGradientPoints outputs, MicaGradientPoints inputs, MicaTensorSpan grad_outputs,
                          uint64_t flags, MicaTensor** found);
  /* Of the backward that runs on this thread, from 1; 0 if none does. */
  uint64_t (*backward_number)(void);
  /* Whether that backward runs the node, or hands out the gradient that arrives there. */
  MicaIntResult (*will_run)(MicaNode* node);
  /* Called when that backward ends. */
  MicaStatus (*queue_callback)(MicaStatus (*function)(void* object), MicaHeld held);
  /* Called every few nodes of any backward; an error stops it. NULL: nobody is. */
  void (*set_interrupt_check)(MicaStatus (*check)(void));

  /* ---- anomaly mode, of nodes that are made from now on */
  void (*set_anomaly_mode)(uint64_t flags);
  uint64_t (*anomaly_mode)(void);
  /* `record` gives `write` the present stack as text, `report` is told of a node that fails; either may
   * be NULL. Both are called with held.object. */
  MicaStatus (*set_anomaly_hooks)(MicaStatus (*record)(void* object, void* to,
                                                       void (*write)(void* to, MicaStr text)),
                                  MicaStatus (*report)(void* object, MicaStr text), MicaHeld held);

  /* ---- saving. `owner`: the node that saves it, or NULL; `is_output`: it is one of the owner's results.
   * The owner may go first. */
  MicaStatus (*save)(MicaTensor* t, MicaNode* owner, int32_t is_output, MicaSavedTensor** saved);
  /* An error if the tensor was written since. */
  MicaTensorResult (*saved_unpack)(MicaSavedTensor* saved);
  void (*saved_release)(MicaSavedTensor* saved);
  /* What this thread saves from here to the pop goes through the hooks. */
  MicaStatus (*push_saved_tensor_hooks)(const MicaSavedTensorHooks* hooks);
  MicaStatus (*pop_saved_tensor_hooks)(void);
  /* With a message, pushing hooks on this thread raises it; NULL allows them. `before`, unless it is NULL,
   * is given the message that stood before, if one did. */
  MicaStatus (*forbid_saved_tensor_hooks)(const MicaStr* message, void* to,
                                          void (*before)(void* to, MicaStr message));
  /* What this thread saves from here to the pop is copied just before this thread writes it in place. */
  MicaStatus (*push_copy_on_write)(MicaSavedCopies** copies);
  MicaStatus (*pop_copy_on_write)(void);
  /* Gives `take` what is still saved so, or of it the copies alone, borrowed. */
  MicaStatus (*saved_copies)(MicaSavedCopies* copies, int32_t only_copies, void* to,
                             void (*take)(void* to, MicaTensor* t));
  void (*saved_copies_release)(MicaSavedCopies* copies);

  /* ---- custom functions, in this order: custom_node, the forward under no grad, custom_finish, save for
   * each tensor that the backward needs. The node is NULL if grad mode is off or no input requires grad.
   * `inputs` may hold NULL for arguments that are no tensors. */
  MicaStatus (*custom_node)(const MicaCustomFunction* function, void* object, MicaStr name,
                            MicaTensorSpan inputs, MicaNode** node);
  /* Gives the outputs their history, and each to `results`; an input that was returned unwritten becomes a
   * view of itself. `node` may be NULL. */
  MicaStatus (*custom_finish)(MicaNode* node, const MicaCustomOutputs* call, MicaTensor** results);
  /* The object of a node that was made with `function`; NULL of other nodes. */
  void* (*custom_object)(MicaNode* node, const MicaCustomFunction* function);

  /* ---- the thread's current frame, of the kind "grad": a tensor of it that requires grad there */
  MicaTensorResult (*grad_input)(MicaTensor* value);
  /* Of the kind "jvp": a dual number of it; NULL is the tangent zero. */
  MicaTensorResult (*dual)(MicaTensor* value, MicaTensor* tangent);
  /* The tangent of a dual number, NULL if it is zero. Call it outside of the number's frame. */
  MicaTensorResult (*tangent)(MicaTensor* dual);

  /* ---- for the binding of a language, which guarantees to its garbage collector that nothing else uses
   * the tensor or node meanwhile: what is held for hooks, custom functions and `node_data`, unless
   * somebody is about to use it. Of a tensor: its own, and those of its node if it alone holds that. */
  void (*visit_held)(MicaTensor* t, void* to, MicaVisitHeld visit);
  void (*node_visit_held)(MicaNode* node, void* to, MicaVisitHeld visit);
  /* One more object for the node, held. */
  void* (*node_data)(MicaNode* node);
  MicaStatus (*set_node_data)(MicaNode* node, MicaHeld data);
} MicaAutograd;

MICA_LAYOUT_ASSERT(sizeof(MicaHeld) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaGradientPoint) == 24);
MICA_LAYOUT_ASSERT(sizeof(MicaNodeResult) == 32);
MICA_LAYOUT_ASSERT(sizeof(MicaSavedTensorHooks) == 40);
MICA_LAYOUT_ASSERT(sizeof(MicaCustomFunction) == 48);
MICA_LAYOUT_ASSERT(sizeof(MicaCustomOutputs) == 80);

#ifdef __cplusplus
}
#endif
#endif /* MICA_AUTOGRAD_H_ */
