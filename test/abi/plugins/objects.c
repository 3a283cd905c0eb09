/* A plugin in C11 whose operators make and take objects of a type of its own, `objects.Number`.
 * Honest unless a LIE_... macro tells it to lie in one way; test_object_plugin.py builds it once for each. */
#include <mica/abi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NOTE                                                                             \
  "{\"name\":\"objects\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1," \
  "\"abi_minor\":0,\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"operators:objects\"}"
__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

static const MicaHost* host;

typedef struct {
  MicaObject head;
  int64_t value;
} Number;

static _Atomic int64_t alive;
static void Destroy(MicaObject* o) {
  atomic_fetch_sub(&alive, 1);
  free(o);
}
static const MicaObjectType number_type = {sizeof(MicaObjectType), "objects.Number", Destroy};
static const MicaObjectType other_type = {sizeof(MicaObjectType), "objects.Other", Destroy};
static const MicaObjectType nameless_type = {sizeof(MicaObjectType), NULL, Destroy};

static Number* NewNumber(int64_t value) {
  Number* const n = malloc(sizeof(Number));
  n->head.refcount = 1;
  n->head.type = &number_type;
  n->value = value;
  atomic_fetch_add(&alive, 1);
  return n;
}

static void GiveObject(MicaValue* result, MicaObject* o) {
  result->tag = MICA_VALUE_OBJECT;
  result->u.object = o;
}
static void GiveInt(MicaValue* result, int64_t i) {
  result->tag = MICA_VALUE_INT;
  result->u.i = i;
}

#define KERNEL(name)                                                                                 \
  static MicaStatus name(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results, \
                         int64_t num_results)
#define UNUSED (void)call, (void)args, (void)n, (void)results, (void)num_results

/* objects::make(int value) -> objects.Number */
KERNEL(Make) {
  UNUSED;
  Number* const made = NewNumber(args[0].u.i);
  GiveObject(&results[0], &made->head);
#ifdef LIE_OTHER_TYPE
  made->head.type = &other_type;
#endif
#ifdef LIE_NAMELESS_TYPE
  made->head.type = &nameless_type;
#endif
#ifdef LIE_NO_TYPE
  made->head.type = NULL;
#endif
#ifdef LIE_NULL
  results[0].u.object = NULL;
#endif
#ifdef LIE_NO_REFERENCE
  made->head.refcount = 0;
#endif
#ifdef LIE_INT
  GiveInt(&results[0], 3);
#endif
  return NULL;
}

/* objects::make_other() -> objects.Other: of an own type, which the others do not take */
KERNEL(MakeOther) {
  UNUSED;
  Number* const made = NewNumber(0);
  made->head.type = &other_type;
  GiveObject(&results[0], &made->head);
  return NULL;
}

/* objects::value(objects.Number number) -> int */
KERNEL(ValueOf) {
  UNUSED;
  MicaObject* const o = args[0].u.object;
  if (o->type != &number_type) {
    static const char why[] = "objects::value reads numbers of this plugin alone.";
    return host->status_create(MICA_ERROR_TYPE, (MicaStr){why, sizeof(why) - 1}, __FILE__, __LINE__);
  }
  GiveInt(&results[0], ((Number*)o)->value);
#ifdef LIE_RELEASE
  host->object_release(o);
#endif
#ifdef LIE_RELEASE_TWICE
  static MicaObject dead = {0, &other_type};
  host->object_release(&dead);
#endif
  return NULL;
}

/* objects::same(objects.Number? number=None) -> objects.Number? */
KERNEL(Same) {
  UNUSED;
  if (args[0].tag == MICA_VALUE_NONE) {
    results[0].tag = MICA_VALUE_NONE;
    return NULL;
  }
  host->object_retain(args[0].u.object);
  GiveObject(&results[0], args[0].u.object);
  return NULL;
}

/* objects::alive() -> int: how many there are */
KERNEL(Alive) {
  UNUSED;
  GiveInt(&results[0], atomic_load(&alive));
  return NULL;
}

/* objects::drop(objects.Number number) -> (): the last reference goes on a thread that knows no Python */
static void* Release(void* object) {
  host->object_release(object);
  return NULL;
}
KERNEL(Drop) {
  UNUSED;
  pthread_t thread;
  host->object_retain(args[0].u.object);
  if (pthread_create(&thread, NULL, Release, args[0].u.object) == 0) pthread_detach(thread);
  return NULL;
}

/* objects::ask(int how) -> int: calls objects::value with an object (0), and with what is none of its type */
KERNEL(Ask) {
  UNUSED;
  static void* handle;
  if (!handle) {
    const MicaStatus status = host->op_find((MicaStr){"objects::value", 14}, &handle);
    if (status) return status;
  }
  Number* const number = NewNumber(11);
  MicaObject stranger = {1, &other_type};
  MicaObject untyped = {1, NULL};
  MicaValue arg;
  memset(&arg, 0, sizeof(arg));
  GiveObject(&arg, &number->head);
  if (args[0].u.i == 1) arg.u.object = &stranger;
  if (args[0].u.i == 2) arg.u.object = &untyped;
  if (args[0].u.i == 3) arg.u.object = NULL;
  if (args[0].u.i == 4) arg.tag = MICA_VALUE_NONE;
  if (args[0].u.i == 5) GiveInt(&arg, 5);
  const MicaStatus status = host->op_call_boxed(handle, &arg, 1, results, 1);
  host->object_release(&number->head);
  return status;
}

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  (void)host_minor;
  static const MicaManifest manifest = {sizeof(MicaManifest), 1, 0, "objects", "Mica tests", "1.0", "", "",
                                        "operators:objects"};
  return &manifest;
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  if (!MICA_IS_1_0(h, r) || !MICA_HAS(h, object_release))
    return (MicaStatus)(uintptr_t)MICA_ERROR_NOT_IMPLEMENTED;
  host = h;
  static const struct {
    const char *name, *schema;
    MicaBoxedFunction function;
  } operators[] = {{"objects::make", "objects::make(int value) -> objects.Number", Make},
                   {"objects::make_other", "objects::make_other() -> objects.Other", MakeOther},
                   {"objects::value", "objects::value(objects.Number number) -> int", ValueOf},
                   {"objects::same", "objects::same(objects.Number? number=None) -> objects.Number?", Same},
                   {"objects::drop", "objects::drop(objects.Number number) -> ()", Drop},
                   {"objects::alive", "objects::alive() -> int", Alive},
                   {"objects::ask", "objects::ask(int how) -> int", Ask}};
  for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); ++i) {
    MicaStatus status = r->define_operator(r->context, operators[i].schema);
    if (status) return status;
    MicaKernelRecord k;
    memset(&k, 0, sizeof(k));
    k.struct_size = sizeof(k);
    k.name = operators[i].name;
    k.backend = "cpu";
    k.boxed = operators[i].function;
    status = r->register_kernel(r->context, &k);
    if (status) return status;
  }
  (void)nameless_type;
  return NULL;
}
