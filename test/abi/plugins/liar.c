/* A plugin in C11 that is honest unless a LIE_... macro tells it to lie in one way.
 *
 * test_lies.py builds it once for each lie and holds the loader to its answer. The
 * honest build defines `liar::seven() -> int`-like operators on the device "liar.dev"
 * and is the control: it must load. Everything is registered before the lie, so that
 * there is something to take back. */
#include <mica/abi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef NAME
#define NAME "liar"
#endif
#ifndef ABI
#define ABI 1
#endif
#ifndef FEATURES
#define FEATURES ""
#endif
#ifndef PROVIDES
#define PROVIDES "backend:liar.dev,operators:liar"
#endif
#ifndef DEVICE
#define DEVICE "liar.dev"
#endif
#ifndef NOTE
#define NOTE                                                                                    \
  "{\"name\":\"" NAME "\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":" STRING( \
      ABI) ",\"abi_minor\":0,\"cpu_features\":\"" FEATURES                                      \
           "\",\"runtime_version\":\"\",\"provides\":\"" PROVIDES "\"}"
#endif
#define STRING_(x) #x
#define STRING(x) STRING_(x)

#ifndef LIE_NO_NOTE
__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};
#endif

static const MicaHost* host;

/* liar::seven(Tensor x) -> int */
static MicaStatus Seven(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                        int64_t num_results) {
  (void)call, (void)args, (void)n, (void)num_results;
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = 7;
  return NULL;
}

#ifndef LIE_NO_QUERY
MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  (void)host_minor;
  static const MicaManifest manifest = {
#ifdef LIE_MANIFEST_SIZE
      8,
#else
      sizeof(MicaManifest),
#endif
#ifdef LIE_ANSWER_ABI
      2,
#else
      ABI,
#endif
      0,
#ifdef LIE_ANSWER_NAME
      "somebody else",
#else
      NAME,
#endif
      "Mica tests",
      "1.0",
#ifdef LIE_ANSWER_FEATURES
      "avx2",
#else
      FEATURES,
#endif
      "",
      PROVIDES};
#ifdef LIE_NO_MANIFEST
  return NULL;
#endif
  return &manifest;
}
#endif

/* Stands in every slot of the device table: nothing of it is called in these tests. */
static void Slot(void) {}

static MicaStatus RegisterDevice(const MicaRegistrar* r) {
  static MicaDeviceTable table;
  void (**slot)(void) = (void (**)(void)) & table.count;
  for (; (void*)slot <= (void*)&table.fill; ++slot) *slot = Slot;
  table.struct_size = sizeof(table);
  table.major = MICA_ABI_MAJOR;
#ifdef LIE_TABLE_MAJOR
  table.major = 9;
#endif
#ifdef LIE_TABLE_SIZE
  table.struct_size = offsetof(MicaDeviceTable, copy);
#endif
#ifdef LIE_NO_COPY
  table.copy = NULL;
#endif
#ifdef LIE_DEVICE_NAME
  return r->register_device(r->context, "9 no name!", &table);
#endif
#ifdef LIE_NULL_TABLE
  return r->register_device(r->context, "liar.dev", NULL);
#endif
#ifdef LIE_DLPACK
  table.dlpack_type = LIE_DLPACK;
#endif
  return r->register_device(r->context, DEVICE, &table);
}

static MicaStatus RegisterKernel(const MicaRegistrar* r, const char* name, const char* backend,
                                 uint64_t hash) {
  MicaKernelRecord k;
  memset(&k, 0, sizeof(k));
  k.struct_size = sizeof(k);
  k.name = name;
  k.backend = backend;
  k.boxed = Seven;
  k.schema_hash = hash;
#ifdef LIE_RECORD_SIZE
  k.struct_size = 16;
#endif
#ifdef LIE_NO_FUNCTION
  k.boxed = NULL;
#endif
#ifdef LIE_UNBOXED
  k.boxed = NULL;
  k.function = Slot;
#endif
  return r->register_kernel(r->context, &k);
}

#ifndef LIE_NO_INIT
static const MicaRegistrar* kept;
MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  host = h;
  kept = r;
#define TRY(call)                        \
  do {                                   \
    MicaStatus status_ = (call);         \
    if (status_ != NULL) return status_; \
  } while (0)
  TRY(RegisterDevice(r));
  TRY(r->define_operator(r->context, "liar::seven(Tensor x) -> int"));
  TRY(RegisterKernel(r, "liar::seven", "cpu", 0));
#ifdef LIE_DUPLICATE_OPERATOR
  TRY(r->define_operator(r->context, "liar::seven(Tensor x, int y) -> int"));
#endif
#ifdef LIE_TAKEN_OPERATOR
  TRY(r->define_operator(r->context, "mica::add.Tensor(Tensor self) -> Tensor"));
#endif
#ifdef LIE_BAD_SCHEMA
  TRY(r->define_operator(r->context, "liar::bad(Tensr x) -> int"));
#endif
#ifdef LIE_NULL_SCHEMA
  TRY(r->define_operator(r->context, NULL));
#endif
#ifdef LIE_DUPLICATE_KERNEL
  TRY(RegisterKernel(r, "liar::seven", "cpu", 0));
#endif
#ifdef LIE_BACKEND
  TRY(RegisterKernel(r, "mica::neg.out", "somebody.elses", 0));
#endif
#ifdef LIE_NULL_RECORD
  TRY(r->register_kernel(r->context, NULL));
#endif
#ifdef LIE_CLASS
  MicaClassRecord c = {sizeof(c), "no such class", "cpu", (MicaClassFunction)Slot, NULL, NULL, 0};
  TRY(r->register_class(r->context, &c));
#endif
#ifdef LIE_HASH
  TRY(RegisterKernel(r, "mica::neg.out", "cpu", 12345));
#endif
#ifdef LIE_OVERRIDE
  TRY(RegisterKernel(r, "mica::mm.out", "cpu", 0));
#endif
#ifdef LIE_WAITING
  TRY(RegisterKernel(r, "mica::no_such_operator", "cpu", 0));
#endif
#ifdef LIE_HALFWAY
  static const char why[] = "the driver is not there";
  return h->status_create(MICA_ERROR_RUNTIME, (MicaStr){why, sizeof(why) - 1}, __FILE__, __LINE__);
#endif
#ifdef LIE_BARE_STATUS
  return (MicaStatus)(uintptr_t)MICA_ERROR_OUT_OF_MEMORY;
#endif
#ifdef LIE_STATUS_SIZE
  static MicaStatusBody body = {8, 1, NULL, NULL, -1, NULL, 0, NULL};
  return &body;
#endif
#ifdef LIE_SLOW
  usleep(1500000);
  TRY(r->define_operator(r->context, "liar::eight(Tensor x) -> int"));
#endif
#ifdef LIE_MXCSR
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* denormals are zero */
#endif
#ifdef LIE_CRASH
  abort();
#endif
#ifdef LIE_FOREVER
  for (;;) pause();
#endif
  return NULL;
}
#endif

#ifdef LIE_CONSTRUCTOR_MXCSR
__attribute__((constructor)) static void Construct(void) {
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}
#endif
#ifdef LIE_MISSING_SYMBOL
void a_function_of_nowhere(void);
void (*const use_it)(void) = a_function_of_nowhere;
#endif
