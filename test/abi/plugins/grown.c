/* Three plugins of one source, years apart.
 *
 * As it is: the operator grown::scale, which has got an argument `factor` since, with a
 * decomposition. With -DLONG_AGO: a kernel for the CPU that was built when the operator
 * was grown::scale(Tensor self) -> Tensor; it answers the number 70, whatever it is
 * given. -DLONG_AGO=HASH is one for a schema that the operator never had. With -DCALLER=N: the operator
 * caller::scaled, whose kernel calls grown::scale with N arguments, as plugins did then with one. */
#include <mica/operators.h>
#include <string.h>

#define EARLIER "grown::scale(Tensor self) -> Tensor"
#ifdef LONG_AGO
#define NAME "long_ago"
#define PROVIDES ""
#elif defined(CALLER)
#define NAME "caller"
#define PROVIDES ""
#else
#define NAME "grown"
#define PROVIDES "operators:grown"
#endif
#define NOTE                                                          \
  "{\"name\":\"" NAME                                                 \
  "\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1," \
  "\"abi_minor\":0,\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"" PROVIDES "\"}"

__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

static const MicaHost* host;

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  (void)host_minor;
  static const MicaManifest manifest = {
      sizeof(MicaManifest), 1, 0, NAME, "Mica tests", "1.0", "", "", PROVIDES};
  return &manifest;
}

/* mica::mul.Scalar(self, other) */
static MicaStatus Times(MicaValue self, MicaScalar other, MicaValue* result) {
  static const char name[] = "mica::mul.Scalar";
  void* op;
  MicaStatus status = host->op_find((MicaStr){name, sizeof(name) - 1}, &op);
  if (status) return status;
  MicaValue args[2] = {self};
  args[1].tag = MICA_VALUE_SCALAR;
  args[1].u.scalar = other;
  return host->op_call_boxed(op, args, 2, result, 1);
}

#ifdef LONG_AGO
static MicaStatus Scale(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                        int64_t num_results) {
  (void)call, (void)num_results;
  static const char why[] = "The kernel was built for one argument.";
  if (n != 1)
    return host->status_create(MICA_ERROR_RUNTIME, (MicaStr){why, sizeof(why) - 1}, __FILE__, __LINE__);
  const MicaScalar seventy = {MICA_SCALAR_INT, 0, {70}};
  return Times(args[0], seventy, results);
}

static uint64_t Hash(const char* text) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *text; ++text) h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
  return h;
}
#elif defined(CALLER)
static MicaStatus Scaled(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                         int64_t num_results) {
  (void)call, (void)n;
  static const char name[] = "grown::scale";
  void* op;
  MicaStatus status = host->op_find((MicaStr){name, sizeof(name) - 1}, &op);
  if (status) return status;
  const MicaValue given[3] = {args[0]};
  return host->op_call_boxed(op, given, CALLER, results, num_results);
}
#else
/* In parts: grown::scale(Tensor self, *, Scalar factor=2) */
static MicaStatus Parts(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                        int64_t num_results) {
  (void)call, (void)n, (void)num_results;
  return Times(args[0], args[1].u.scalar, results);
}
#endif

#if defined(LONG_AGO) || defined(CALLER)
static MicaStatus Boxed(const MicaRegistrar* r, const char* name, MicaBoxedFunction boxed, uint64_t hash) {
  MicaKernelRecord k;
  memset(&k, 0, sizeof(k));
  k.struct_size = sizeof(k);
  k.name = name;
  k.backend = "cpu";
  k.boxed = boxed;
  k.schema_hash = hash;
  return r->register_kernel(r->context, &k);
}
#endif

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  host = h;
#ifdef LONG_AGO
  return Boxed(r, "grown::scale", Scale, LONG_AGO > 1 ? LONG_AGO : Hash(EARLIER));
#elif defined(CALLER)
  MicaStatus status = r->define_operator(r->context, "caller::scaled(Tensor self) -> Tensor");
  return status ? status : Boxed(r, "caller::scaled", Scaled, 0);
#else
  static const char name[] = MICA_OPERATORS_EXTENSION;
  const MicaOperatorsExtension* extension = h->extension((MicaStr){name, sizeof(name) - 1}, 0);
  static const char* const earlier[] = {EARLIER, NULL};
  MicaOperatorRecord record;
  memset(&record, 0, sizeof(record));
  record.struct_size = sizeof(record);
  record.schema = "grown::scale(Tensor self, *, Scalar factor=2) -> Tensor";
  record.doc = "self * factor";
  record.composite = Parts;
  record.earlier = earlier;
#ifdef WRONG
  static const char* const wrong[] = {"grown::scale(Tensor self, int times) -> Tensor", NULL};
  record.earlier = wrong;
#endif
#ifdef SHORT /* a record from before there was `earlier` */
  record.struct_size = offsetof(MicaOperatorRecord, earlier);
#endif
  return extension->define(r->context, &record);
#endif
}
