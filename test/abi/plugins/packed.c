/* A plugin in C11 whose tensors lie in a layout of its own, which no strides describe: from the last element
 * to the first. `packed::pack` makes such a tensor, `packed::halve` and `packed::held` take them as they are,
 * for everybody else the payload's `reorder` writes the elements out.
 * Honest unless a LIE_... macro tells it to lie in one way; test_opaque.py builds it once for each. */
#include <mica/abi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NOTE                                                                            \
  "{\"name\":\"packed\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1," \
  "\"abi_minor\":0,\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"operators:packed\"}"
__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

static const MicaHost* host;
#ifndef DEVICE
#define DEVICE 0, 0
#endif

typedef struct {
  MicaObject head;
  int64_t count, item;
  char* elements; /* in reverse */
} Reversed;

static _Atomic int64_t alive, reorders, failing;
static void Destroy(MicaObject* o) {
  atomic_fetch_sub(&alive, 1);
  free(((Reversed*)o)->elements);
  free(o);
}
static MicaStatus Fail(const char* message) {
  return host->status_create(MICA_ERROR_RUNTIME, (MicaStr){message, (int64_t)strlen(message)}, __FILE__,
                             __LINE__);
}
static MicaStatus Reorder(MicaObject* o, MicaTensor* to) {
  const Reversed* const r = (const Reversed*)o;
  if (atomic_load(&failing)) return Fail("the packed elements are out of reach");
  atomic_fetch_add(&reorders, 1);
  for (int64_t i = 0; i < r->count; ++i)
    memcpy((char*)to->dl.data + i * r->item, r->elements + (r->count - 1 - i) * r->item, (size_t)r->item);
#ifdef LIE_KEEP
  host->tensor_retain(to);
#endif
#ifdef LIE_KEEP_VIEW
  host->tensor_as_strided(to, (MicaIntSpan){NULL, 0}, (MicaIntSpan){NULL, 0}, 0);
#endif
#ifdef LIE_RESIZE
  const int64_t size = 3;
  return host->tensor_resize(to, (MicaIntSpan){&size, 1});
#endif
#ifdef LIE_DECLINE
  return (MicaStatus)(uintptr_t)MICA_ERROR_NOT_IMPLEMENTED;
#endif
  return NULL;
}
#ifdef LIE_NO_REORDER
static const MicaObjectType type = {sizeof(MicaObjectType), "packed.Reversed", Destroy, NULL};
#elif defined LIE_OLD_TYPE
static const MicaObjectType type = {MICA_OBJECT_TYPE_SIZE_1_0, "packed.Reversed", Destroy, Reorder};
#else
static const MicaObjectType type = {sizeof(MicaObjectType), "packed.Reversed", Destroy, Reorder};
#endif

static Reversed* NewReversed(int64_t count, int64_t item) {
  Reversed* const r = malloc(sizeof(Reversed));
  *r = (Reversed){{1, &type}, count, item, malloc((size_t)(count * item + 1))};
  atomic_fetch_add(&alive, 1);
  return r;
}

static int64_t Count(const MicaTensor* t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->dl.ndim; ++d) n *= t->dl.shape[d];
  return n;
}
static int32_t DTypeOf(const MicaTensor* t) { return (int32_t)(t->flags >> MICA_TENSOR_DTYPE_SHIFT & 0xff); }

/* An opaque tensor that shows what `like` does; the payload is given up. */
static MicaStatus Give(const MicaTensor* like, Reversed* payload, MicaValue* result) {
  const MicaTensorResult made =
      host->tensor_opaque((MicaIntSpan){like->dl.shape, like->dl.ndim}, DTypeOf(like), (MicaDevice){DEVICE},
#ifdef LIE_NULL
                          NULL);
#else
                          &payload->head);
#endif
  host->object_release(&payload->head);
  result->tag = MICA_VALUE_TENSOR;
  result->u.tensor = made.value;
  return made.status;
}

#define KERNEL(name)                                                                                 \
  static MicaStatus name(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results, \
                         int64_t num_results)
#define UNUSED (void)call, (void)args, (void)n, (void)results, (void)num_results

/* The elements of a tensor in memory, whatever its strides. */
static Reversed* Packed(const MicaTensor* t) {
  const int64_t count = Count(t), item = t->dl.dtype.bits / 8 * t->dl.dtype.lanes;
  Reversed* const r = NewReversed(count, item);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, place = 0;
    for (int32_t d = t->dl.ndim; d-- > 0;) {
      place += rest % t->dl.shape[d] * t->dl.strides[d];
      rest /= t->dl.shape[d];
    }
    memcpy(r->elements + (count - 1 - i) * item, (const char*)t->dl.data + place * item, (size_t)item);
  }
  return r;
}

/* packed::pack(Tensor x) -> Tensor */
KERNEL(Pack) {
  UNUSED;
  return Give(args[0].u.tensor, Packed(args[0].u.tensor), &results[0]);
}

/* packed::halve(Tensor x) -> Tensor, of float32: opaque again, with no element put into memory */
KERNEL(Halve) {
  UNUSED;
  const MicaTensor* const x = args[0].u.tensor;
  if (DTypeOf(x) != MICA_F32) return (MicaStatus)(uintptr_t)MICA_ERROR_NOT_IMPLEMENTED;
  MicaObject* given = NULL;
  const MicaStatus status = host->tensor_payload(args[0].u.tensor, &type, &given);
  if (status) return status;
  Reversed* const from = given ? (Reversed*)given : Packed(x);
  Reversed* const half = NewReversed(from->count, from->item);
  for (int64_t i = 0; i < from->count; ++i) ((float*)half->elements)[i] = ((float*)from->elements)[i] / 2;
  host->object_release(&from->head);
  return Give(x, half, &results[0]);
}

/* packed::held(Tensor x) -> bool: whether it is opaque, and nobody has asked for its elements */
KERNEL(Held) {
  UNUSED;
  MicaObject* given = NULL;
  const MicaStatus status = host->tensor_payload(args[0].u.tensor, &type, &given);
  results[0].tag = MICA_VALUE_BOOL;
  results[0].u.i = given != NULL;
  if (given) host->object_release(given);
  return status;
}

#ifdef DECLINES
/* mica::neg of one that takes opaque tensors, and then does not: the kernel that it replaced serves */
KERNEL(Decline) {
  UNUSED;
  return (MicaStatus)(uintptr_t)MICA_ERROR_NOT_IMPLEMENTED;
}
#endif

/* packed::count(str what) -> int: "alive" payloads, "reorders"; packed::fail(bool on) -> int */
KERNEL(CountOf) {
  UNUSED;
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = atomic_load(args[0].u.str.size == 5 ? &alive : &reorders);
  return NULL;
}
KERNEL(FailFromNow) {
  UNUSED;
  atomic_store(&failing, args[0].u.i);
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = 0;
  return NULL;
}

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  (void)host_minor;
  static const MicaManifest manifest = {sizeof(MicaManifest), 1, 0, "packed", "Mica tests", "1.0", "", "",
                                        "operators:packed"};
  return &manifest;
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  if (!MICA_IS_1_0(h, r) || !MICA_HAS(h, tensor_payload))
    return (MicaStatus)(uintptr_t)MICA_ERROR_NOT_IMPLEMENTED;
  host = h;
  static const struct {
    const char *name, *schema;
    MicaBoxedFunction function;
    uint64_t flags;
  } operators[] = {{"packed::pack", "packed::pack(Tensor x) -> Tensor", Pack, 0},
                   {"packed::halve", "packed::halve(Tensor x) -> Tensor", Halve, MICA_KERNEL_TAKES_OPAQUE},
                   {"packed::held", "packed::held(Tensor x) -> bool", Held, MICA_KERNEL_TAKES_OPAQUE},
#ifdef DECLINES
                   {"mica::neg", NULL, Decline, MICA_KERNEL_TAKES_OPAQUE},
#endif
                   {"packed::count", "packed::count(str what) -> int", CountOf, 0},
                   {"packed::fail", "packed::fail(bool on) -> int", FailFromNow, 0}};
  for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); ++i) {
    MicaStatus status = operators[i].schema ? r->define_operator(r->context, operators[i].schema) : NULL;
    if (status) return status;
    MicaKernelRecord k;
    memset(&k, 0, sizeof(k));
    k.struct_size = sizeof(k);
    k.name = operators[i].name;
    k.backend = "cpu";
    k.boxed = operators[i].function;
    k.flags = operators[i].flags;
    status = r->register_kernel(r->context, &k);
    if (status) return status;
  }
  return NULL;
}
