/* A third party's layer and frame kind in C11, honest unless a LIE_... macro tells it to err
 * in one way. The layer counts the calls that pass it and passes them on; the kind goes on in
 * the parent and negates what `mica::neg` makes twice over, by an unboxed kernel.
 *
 * test_layers.py builds it once for each error and holds the loader to its answer. All is
 * registered before an init fails, so that there is something to take back. */
#include <mica/layers.h>
#include <string.h>

#ifndef NAME
#define NAME "layer"
#endif
#ifndef LAYER
#define LAYER "test.count"
#endif
#ifndef AFTER
#define AFTER "frames"
#endif
#ifndef BEFORE
#define BEFORE "autograd"
#endif
#ifndef MINOR
#define MINOR MICA_LAYERS_MINOR
#endif
#define NOTE                                                                                                \
  "{\"name\":\"" NAME                                                                                       \
  "\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1,\"abi_minor\":0,\"cpu_features\":\"\"," \
  "\"runtime_version\":\"\",\"provides\":\"layer:" LAYER ",operators:test_layer\"}"

__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

static const MicaHost* host;
static const MicaLayers* layers;
static int32_t bit, kind;
static int64_t calls;

static MicaStr str(const char* s) { return (MicaStr){s, (int64_t)strlen(s)}; }

static MicaStatus count(uint64_t keys, const MicaLayerCall* call, const MicaValue* args, int64_t n,
                        MicaValue* results, int64_t num_results) {
  ++calls;
  const uint64_t own = UINT64_C(1) << bit;
  const uint64_t before = call->layers->exchange_exclude(call->thread->exclude | own);
  const MicaStatus status =
      call->layers->redispatch(call->op, keys & (own - 1), args, n, results, num_results);
  call->layers->exchange_exclude(before);
  return status;
}

/* Of the kind: mica::neg, unboxed, is the identity. */
static MicaTensorResult identity(void* context, uint64_t keys, MicaTensor* self) {
  (void)context;
  (void)keys;
  host->tensor_retain(self);
  return (MicaTensorResult){self, NULL};
}
static MicaStatus in_parent(uint64_t keys, const MicaLayerCall* call, const MicaValue* args, int64_t n,
                            MicaValue* results, int64_t num_results) {
  (void)keys;
  return call->layers->call_in_parent(call->op, args, n, results, num_results);
}

/* test_layer::calls() -> int */
static MicaStatus calls_so_far(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                               int64_t num_results) {
  (void)call, (void)args, (void)n, (void)num_results;
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = calls;
  return NULL;
}

/* test_layer::attach(Tensor(a!) self, bool on) -> (): the layer's bit on one tensor */
static MicaStatus attach(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                         int64_t num_results) {
  (void)call, (void)n, (void)results, (void)num_results;
#ifdef LIE_ATTACH
  return layers->tensor_attach(args[0].u.tensor, 48, 1);
#else
  return layers->tensor_attach(args[0].u.tensor, bit, (int32_t)args[1].u.i);
#endif
}

/* Status by status, so that the first that is bad is init's answer. */
#define TRY(call)                      \
  do {                                 \
    const MicaStatus status_ = (call); \
    if (status_) return status_;       \
  } while (0)

static MicaStatus define(const MicaRegistrar* r, const char* schema, const char* name, MicaBoxedFunction f) {
  MicaKernelRecord k = {0};
  k.struct_size = sizeof k;
  k.name = name;
  k.backend = "cpu";
  k.boxed = f;
  TRY(r->define_operator(r->context, schema));
  return r->register_kernel(r->context, &k);
}

/* For RULE: mica::exp passes the layer; for two others the choice is none that there is. */
__attribute__((unused)) static void choose(void* context, void* op, MicaLayerChoice* out) {
  (void)context;
  const char* name = layers->operator_info(op)->name;
  if (strcmp(name, "mica::exp") == 0) out->what = MICA_CHOICE_PASS;
  if (strcmp(name, "mica::neg") == 0) out->what = MICA_CHOICE_KERNEL; /* of no function: nothing */
  if (strcmp(name, "mica::sin") == 0) out->what = 77;                 /* no such choice: nothing */
}

static MicaStatus register_kernels(const MicaRegistrar* r) {
  MicaLayerKernelRecord k = {0};
  k.struct_size = sizeof k;
  k.key = LAYER;
  k.boxed = &count;
#ifdef LIE_KEY
  k.key = "somebody.elses";
#endif
#ifdef LIE_TWO_FUNCTIONS
  k.function = (MicaFunction)&identity;
#endif
#ifdef LIE_NO_FUNCTION
  k.boxed = NULL;
#endif
#ifdef LIE_RECORD_SIZE
  k.struct_size = 16;
#endif
  TRY(layers->register_kernel(r->context, &k));
#ifdef RULE
  const MicaLayerRuleRecord rule = {RULE};
  TRY(layers->register_rule(r->context, &rule));
#endif
  k.key = NAME ".kind";
  k.boxed = &in_parent;
  TRY(layers->register_kernel(r->context, &k));
  k.name = "mica::neg";
  k.boxed = NULL;
  k.function = (MicaFunction)&identity;
  void* neg = NULL;
  TRY(host->op_find(str("mica::neg"), &neg));
  k.schema_hash = layers->operator_info(neg)->schema_hash;
#ifdef LIE_HASH
  k.schema_hash += 1;
#endif
#ifdef LIE_NO_HASH
  k.schema_hash = 0;
#endif
  return layers->register_kernel(r->context, &k);
}

static MicaStatus start(const MicaRegistrar* r) {
  layers = host->extension(str(MICA_LAYERS_EXTENSION), MINOR);
  if (!layers)
    return host->status_create(MICA_ERROR_RUNTIME, str("this Mica has no such table of layers"), __FILE__,
                               __LINE__);
  TRY(layers->register_layer(r->context, LAYER, AFTER, BEFORE, &bit));
#ifdef LIE_FULL
  char filler[] = "filler.A";
  for (; filler[7] <= 'Z'; ++filler[7]) TRY(layers->register_layer(r->context, filler, AFTER, BEFORE, NULL));
#endif
  MicaFrameKindRecord record = {0};
  record.struct_size = sizeof record;
  record.name = NAME ".kind";
  record.after_escape = "Keep what the test returns instead.";
#ifdef LIE_KIND_SIZE
  record.struct_size = 8;
#endif
#ifdef LIE_KIND_NAME
  record.name = "grad";
#endif
  TRY(layers->register_kind(r->context, &record, &kind));
  TRY(register_kernels(r));
  TRY(define(r, "test_layer::calls() -> int", "test_layer::calls", &calls_so_far));
  TRY(define(r, "test_layer::attach(Tensor(a!) self, bool on) -> ()", "test_layer::attach", &attach));
#ifdef LIE_HALFWAY
  return host->status_create(MICA_ERROR_RUNTIME, str("the licence is not there"), __FILE__, __LINE__);
#endif
  return NULL;
}

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t minor) {
  (void)minor;
  static const MicaManifest manifest = {
      sizeof(MicaManifest), 1, 0, NAME, "Mica tests", "1.0", "", "", "layer:" LAYER ",operators:test_layer"};
  return &manifest;
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  if (!MICA_IS_1_0(h, r)) return (MicaStatus)MICA_ERROR_NOT_IMPLEMENTED;
  host = h;
  return start(r);
}
