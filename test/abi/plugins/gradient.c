/* A compiler's or a trainer's view of gradients, in C11: finds Autograd's table by name, hooks into a
 * graph, runs backward, reads gradients, walks the graph, and brings a backward of its own.
 *
 * test_gradient::backward(Tensor x) -> str: what the hooks saw, the gradients of x, and the nodes, of
 *   sum(x * x);
 * test_gradient::custom(Tensor x) -> Tensor: x, with a backward that multiplies the gradient by x;
 * test_gradient::orphan(Tensor x) -> str: what a saved result is while its node lives, and after;
 * test_gradient::wrong(Tensor x, int what) -> str: calls that are refused, by number;
 * test_gradient::held() -> int: objects that the table was given and did not destroy yet.
 * MINOR is the least minor version that is asked for. */
#include <mica/autograd.h>
#include <mica/operators.h>
#include <stdio.h>
#include <string.h>

#ifndef MINOR
#define MINOR 0
#endif

#define NOTE                                                                                              \
  "{\"name\":\"gradient\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1,\"abi_minor\":0," \
  "\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"operators:test_gradient\"}"

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

static MicaStatus find(const MicaAutograd** table) {
  *table = host->extension(str(MICA_AUTOGRAD_EXTENSION), MINOR);
  if (*table && (*table)->table.major == 1) return NULL;
  return host->status_create(MICA_ERROR_RUNTIME, str("nobody differentiates here"), __FILE__, __LINE__);
}

static char text[1000];
static void say(const char* format, const char* words, double number) {
  const size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, format, words, number);
}
static double first(const MicaTensor* t) { return t ? *(const float*)t->dl.data : -1; }

/* ---- operators */

static MicaStatus call(const char* name, MicaTensor* a, MicaTensor* b, MicaTensor** result) {
  void* op = NULL;
  TRY(host->op_find(str(name), &op));
  MicaValue args[2] = {{0}}, out = {0};
  args[0].tag = MICA_VALUE_TENSOR;
  args[0].u.tensor = a;
  args[1].tag = b ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
  args[1].u.tensor = b;
  TRY(host->op_call_boxed(op, args, 2, &out, 1));
  *result = out.u.tensor;
  return NULL;
}
static MicaStatus multiply(MicaTensor* a, MicaTensor* b, MicaTensor** product) {
  return call("mica::mul.Tensor", a, b, product);
}
static MicaStatus sum(MicaTensor* t, MicaTensor** total) { return call("mica::sum", t, NULL, total); }

/* ---- hooks */

static int64_t held;
static int token;
static void destroy(void* object) { held -= object == &token; }
static MicaHeld hold(void) { return ++held, (MicaHeld){&token, &destroy}; }

static MicaTensorResult square(void* object, MicaTensor* grad) {
  MicaTensorResult r = {NULL, NULL};
  say("tensor%s %g; ", object == &token ? "" : "?", first(grad));
  r.status = multiply(grad, grad, &r.value);
  return r;
}
static MicaStatus before(void* object, MicaTensor** grads, int64_t n) {
  (void)object;
  say("before%s %g; ", n == 1 ? "" : "?", first(grads[0]));
  MicaTensor* squared = NULL;
  TRY(multiply(grads[0], grads[0], &squared));
  host->tensor_release(grads[0]);
  grads[0] = squared;
  return NULL;
}
static MicaStatus after(void* object, MicaTensor** inputs, int64_t num_inputs, MicaTensor* const* outputs,
                        int64_t num_outputs) {
  (void)object;
  say("after%s %g", num_inputs == 2 && num_outputs == 1 ? "" : "?", first(outputs[0]));
  say("%s to %g; ", "", first(inputs[0]));
  return NULL;
}
static MicaStatus accumulated(void* object, MicaTensor* leaf) {
  (void)object;
  say("leaf%s %g; ", "", first(leaf));
  return NULL;
}

/* ---- the graph */

static void say_name(MicaStr name) {
  char copy[40] = "";
  memcpy(copy, name.data, (size_t)(name.size < 39 ? name.size : 39));
  say("%s", copy, 0);
}
static void name_of(void* to, MicaStr name) {
  (void)to;
  say(" %s", "", 0);
  say_name(name);
}
static void take(void* to, const MicaValue* value) {
  *(double*)to = value->tag == MICA_VALUE_TENSOR ? first(value->u.tensor) : -1;
}

/* Each node's name and what it saves, down the first edges; in the end, the leaf. */
static MicaStatus walk(const MicaAutograd* a, MicaNode* node, const MicaTensor* leaf) {
  while (node) {
    const MicaStr name = a->node_name(node);
    double kept = 0;
    MicaTensor* variable = a->node_variable(node);
    say_name(name);
    MicaStatus status = a->saved_names(node, NULL, &name_of);
    const MicaIntResult saves = a->has_saved(node, str("other"));
    if (!status && saves.value) status = a->saved(node, str("other"), &kept, &take);
    if (!status && saves.value) say("%s=%g", "", kept);
    if (variable) say(" of %s%g", variable == leaf ? "x " : "? ", first(variable));
    if (variable) host->tensor_release(variable);
    MicaEdge next = {NULL, 0};
    if (!status && a->node_num_next(node)) status = a->node_next(node, 0, &next);
    a->node_release(node);
    TRY(status);
    say(next.node ? " > " : ";", "", 0);
    node = next.node;
  }
  return NULL;
}

static MicaStatus show_grad(const MicaAutograd* a, MicaTensor* x) {
  const MicaTensorResult grad = a->grad(x);
  TRY(grad.status);
  say("grad%s %g; ", "", first(grad.value));
  if (grad.value) host->tensor_release(grad.value);
  return a->set_grad(x, NULL);
}

static MicaStatus hook_and_run(const MicaAutograd* a, MicaTensor* x, MicaTensor* y, MicaTensor* loss) {
  MicaHook *hook = NULL, *node_hook = NULL;
  MicaNode* node = NULL;
  const MicaGradientPoint from = {loss, {NULL, 0}}, to = {x, {NULL, 0}};
  const MicaGradientPoints none = {NULL, 0}, output = {&from, 1}, input = {&to, 1};
  const MicaTensorSpan ones = {NULL, 0};
  TRY(a->add_tensor_hook(y, &square, hold(), &hook));
  TRY(a->grad_fn(y, &node));
  TRY(a->add_node_hook(node, &before, hold(), &node_hook));
  TRY(a->add_node_post_hook(node, &after, hold(), NULL));
  TRY(a->add_accumulate_hook(x, &accumulated, hold(), NULL));
  a->node_release(node);
  TRY(a->backward(output, ones, none, MICA_BACKWARD_RETAIN_GRAPH));
  TRY(show_grad(a, x));
  a->hook_remove(hook);
  a->hook_release(hook);
  a->hook_remove(node_hook);
  a->hook_release(node_hook);
  TRY(a->backward(output, ones, none, MICA_BACKWARD_RETAIN_GRAPH));
  TRY(show_grad(a, x));
  MicaTensor* found = NULL;
  TRY(a->gradients(output, input, ones, MICA_BACKWARD_RETAIN_GRAPH, &found));
  say("gradient%s %g; ", "", first(found));
  host->tensor_release(found);
  TRY(a->grad_fn(loss, &node));
  return walk(a, node, x);
}

static MicaStatus backward(const MicaCall* c, const MicaValue* args, int64_t n, MicaValue* results,
                           int64_t num_results) {
  (void)c, (void)n, (void)num_results;
  const MicaAutograd* a = NULL;
  MicaTensor *y = NULL, *loss = NULL, *x = args[0].u.tensor;
  TRY(find(&a));
  TRY(multiply(x, x, &y));
  MicaStatus status = sum(y, &loss);
  text[0] = 0;
  if (!status) status = hook_and_run(a, x, y, loss);
  if (loss) host->tensor_release(loss);
  host->tensor_release(y);
  results[0].tag = MICA_VALUE_STR;
  results[0].u.str = str(text);
  return status;
}

/* ---- a backward of its own: its object is a saved tensor's handle, kept beside the table */

typedef struct {
  const MicaAutograd* table;
  MicaSavedTensor* saved;
} Kept;
static Kept kept;

static MicaStatus times_saved(void* object, MicaTensorSpan grads, MicaTensor** gradients, int64_t n) {
  const Kept* k = object;
  if (!k->saved)
    return host->status_create(MICA_ERROR_RUNTIME, str("the tensor is freed"), __FILE__, __LINE__);
  const MicaTensorResult x = k->table->saved_unpack(k->saved);
  TRY(x.status);
  const MicaStatus status = n == 1 ? multiply(grads.data[0], x.value, &gradients[0]) : NULL;
  host->tensor_release(x.value);
  return status;
}
static void release_saved(void* object) {
  Kept* k = object;
  if (k->saved) k->table->saved_release(k->saved);
  k->saved = NULL;
}
static void destroy_custom(void* object) {
  release_saved(object);
  --held;
}
static const MicaCustomFunction function = {
    sizeof(MicaCustomFunction), &times_saved, &release_saved, NULL, NULL, &destroy_custom};

static MicaStatus custom(const MicaCall* c, const MicaValue* args, int64_t n, MicaValue* results,
                         int64_t num_results) {
  (void)c, (void)n, (void)num_results;
  MicaTensor* x = args[0].u.tensor;
  MicaNode* node = NULL;
  MicaTensor* result = NULL;
  TRY(find(&kept.table));
  ++held;
  TRY(kept.table->custom_node(&function, &kept, str("TimesSavedBackward"), (MicaTensorSpan){&x, 1}, &node));
  const MicaTensorResult copy = kept.table->detach(x);
  TRY(copy.status);
  const MicaCustomOutputs outputs = {
      .struct_size = sizeof outputs, .inputs = {&x, 1}, .outputs = {&copy.value, 1}, .materialize_grads = 1};
  MicaStatus status = kept.table->custom_finish(node, &outputs, &result);
  host->tensor_release(copy.value);
  if (!status && node) status = kept.table->save(x, node, 0, &kept.saved);
  if (node) kept.table->node_release(node);
  TRY(status);
  results[0].tag = MICA_VALUE_TENSOR;
  results[0].u.tensor = result;
  return NULL;
}

/* What was saved of a node's result, unpacked after the node and the result are gone. */
static MicaStatus orphan(const MicaCall* c, const MicaValue* args, int64_t n, MicaValue* results,
                         int64_t num_results) {
  (void)c, (void)n, (void)num_results;
  MicaTensor *x = args[0].u.tensor, *result = NULL;
  MicaNode* node = NULL;
  MicaSavedTensor* saved = NULL;
  const MicaAutograd* a = NULL;
  TRY(find(&a));
  ++held;
  TRY(a->custom_node(&function, &kept, str("OrphanBackward"), (MicaTensorSpan){&x, 1}, &node));
  const MicaTensorResult copy = a->detach(x);
  TRY(copy.status);
  const MicaCustomOutputs outputs = {
      .struct_size = sizeof outputs, .inputs = {&x, 1}, .outputs = {&copy.value, 1}};
  TRY(a->custom_finish(node, &outputs, &result));
  TRY(a->save(result, node, 1, &saved));
  const MicaTensorResult before = a->saved_unpack(saved);
  TRY(before.status);
  text[0] = 0;
  say("%s %g, ", a->requires_grad(before.value).value ? "differentiable" : "?", first(before.value));
  host->tensor_release(before.value);
  host->tensor_release(copy.value);
  host->tensor_release(result);
  a->node_release(node);
  const MicaTensorResult after_node = a->saved_unpack(saved);
  TRY(after_node.status);
  say("%s %g", a->requires_grad(after_node.value).value ? "?" : "plain", first(after_node.value));
  host->tensor_release(after_node.value);
  a->saved_release(saved);
  results[0].tag = MICA_VALUE_STR;
  results[0].u.str = str(text);
  return NULL;
}

/* ---- what is refused */

/* A call that custom_finish is told other inputs of, or twice. */
static MicaStatus finish_wrongly(const MicaAutograd* a, MicaTensor* x, int64_t what) {
  const MicaTensorResult copy = a->detach(x);
  TRY(copy.status);
  MicaNode* node = NULL;
  MicaTensor *xs[] = {x, x}, *result = NULL;
  ++held;
  MicaStatus status =
      a->custom_node(&function, &kept, str("TwoInputsBackward"), (MicaTensorSpan){xs, 2}, &node);
  if (what == 12) xs[1] = copy.value;
  const MicaCustomOutputs outputs = {
      .struct_size = sizeof outputs, .inputs = {xs, what == 11 ? 1 : 2}, .outputs = {&copy.value, 1}};
  if (!status) status = a->custom_finish(node, &outputs, &result);
  if (result) host->tensor_release(result);
  if (!status) status = a->custom_finish(node, &outputs, &result);
  if (node) a->node_release(node);
  host->tensor_release(copy.value);
  return status;
}

static MicaStatus wrong(const MicaCall* c, const MicaValue* args, int64_t n, MicaValue* results,
                        int64_t num_results) {
  (void)c, (void)n, (void)num_results;
  const MicaAutograd* a = NULL;
  MicaTensor *x = args[0].u.tensor, *y = NULL;
  MicaNode* node = NULL;
  MicaEdge edge = {NULL, 0};
  TRY(find(&a));
  TRY(a->gradient_edge(x, &edge));
  const MicaGradientPoint point = {NULL, {edge.node, 7}};
  const MicaSavedTensorHooks short_hooks = {8, NULL, NULL, hold()};
  MicaStatus status = NULL;
  switch (args[1].u.i) {
    case 0:
      status = a->grad(NULL).status;
      break;
    case 1:
      status = a->add_tensor_hook(x, NULL, hold(), NULL);
      break;
    case 2:
      status = a->node_next(edge.node, 3, &edge);
      break;
    case 3:
      status = a->backward((MicaGradientPoints){&point, 1}, (MicaTensorSpan){NULL, 0},
                           (MicaGradientPoints){NULL, 0}, 0);
      break;
    case 4:
      status = a->backward((MicaGradientPoints){NULL, 0}, (MicaTensorSpan){NULL, 0},
                           (MicaGradientPoints){NULL, 0}, 64);
      break;
    case 5:
      status = a->push_saved_tensor_hooks(&short_hooks);
      break;
    case 6:
      status = a->custom_finish(edge.node, &(MicaCustomOutputs){.struct_size = 80}, &y);
      break;
    case 7:
      status = a->grad_input(x).status;
      break;
    case 8:
      status = a->will_run(edge.node).status;
      break;
    case 9:
      status = a->saved_unpack(NULL).status;
      break;
    case 10:
      status = a->custom_node(NULL, NULL, str("?"), (MicaTensorSpan){NULL, 0}, &node);
      break;
    default:
      status = finish_wrongly(a, x, args[1].u.i);
  }
  destroy(short_hooks.held.object);
  if (edge.node) a->node_release(edge.node);
  results[0].tag = MICA_VALUE_STR;
  results[0].u.str = str("no error");
  return status;
}

static MicaStatus count(const MicaCall* c, const MicaValue* args, int64_t n, MicaValue* results,
                        int64_t num_results) {
  (void)c, (void)args, (void)n, (void)num_results;
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = held;
  return NULL;
}

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t minor) {
  (void)minor;
  static const MicaManifest manifest = {
      sizeof(MicaManifest), 1, 0, "gradient", "Mica tests", "1.0", "", "", "operators:test_gradient"};
  return &manifest;
}

/* Composites: what they call comes from the top, where a backend's kernel calls below the layers. */
static MicaStatus define(const MicaRegistrar* r, const char* schema, MicaBoxedFunction composite) {
  const MicaOperatorsExtension* operators = host->extension(str(MICA_OPERATORS_EXTENSION), 0);
  MicaOperatorRecord op = {0};
  op.struct_size = sizeof op;
  op.schema = schema;
  op.composite = composite;
  return operators->define(r->context, &op);
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  if (!MICA_IS_1_0(h, r)) return (MicaStatus)MICA_ERROR_NOT_IMPLEMENTED;
  host = h;
  TRY(define(r, "test_gradient::backward(Tensor x) -> str", &backward));
  TRY(define(r, "test_gradient::custom(Tensor x) -> Tensor", &custom));
  TRY(define(r, "test_gradient::orphan(Tensor x) -> str", &orphan));
  TRY(define(r, "test_gradient::wrong(Tensor x, int what) -> str", &wrong));
  return define(r, "test_gradient::held() -> int", &count);
}
