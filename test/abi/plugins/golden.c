/* A plugin in pure C11 that uses the whole border once: a device on host memory, a
 * kernel of the out form, a boxed operator, and `probe`, which calls every function
 * of the host table that a kernel may call and answers with a bit for each that did
 * as ABI 1.0 says. test_golden.py holds recorded builds of it to today's host. */
#include <mica/abi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VARIANT
#define VARIANT "c"
#endif
#define DEVICE "golden." VARIANT
#define NOTE                                                                                           \
  "{\"name\":\"golden." VARIANT                                                                        \
  "\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1,\"abi_minor\":0,\"cpu_features\":" \
  "\"\",\"runtime_version\":\"\",\"provides\":\"backend:" DEVICE ",operators:golden_" VARIANT "\"}"

__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

static const MicaHost* host;

static MicaStr Str(const char* s) { return (MicaStr){s, (int64_t)strlen(s)}; }
static MicaStatus Fail(int64_t code, const char* message) {
  return host->status_create(code, Str(message), __FILE__, __LINE__);
}
static MicaStatus Bare(int code) { return (MicaStatus)(uintptr_t)code; }
static int32_t DTypeOf(const MicaTensor* t) {
  return (int32_t)((t->flags >> MICA_TENSOR_DTYPE_SHIFT) & 0xff);
}
static int64_t Numel(const MicaTensor* t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t->dl.ndim; ++i) n *= t->dl.shape[i];
  return n;
}

/* ---- the device: host memory, everything done when its call returns */

static MicaStatus Count(void* context, int32_t* out) {
  (void)context;
  *out = 2;
  return NULL;
}
static MicaStatus Properties(void* context, int32_t device, MicaDeviceProperties* out) {
  (void)context, (void)device;
  out->name = "golden device";
  out->total_memory = 1 << 30;
  return NULL;
}
static MicaStatus Exchange(void* context, int32_t device, int32_t* previous) {
  static _Thread_local int32_t current;
  (void)context;
  if (device < 0 || device > 1) return Bare(MICA_ERROR_VALUE);
  *previous = current;
  current = device;
  return NULL;
}
static MicaStatus Allocate(void* context, int32_t device, int64_t size, void** out) {
  (void)context, (void)device;
  *out = aligned_alloc(64, (size_t)((size + 127) / 64 * 64));
  return *out ? NULL : Bare(MICA_ERROR_OUT_OF_MEMORY);
}
static MicaStatus Free(void* context, int32_t device, void* data, int64_t size) {
  (void)context, (void)device, (void)size;
  free(data);
  return NULL;
}
static MicaStatus StreamCreate(void* context, int32_t device, int32_t priority, uint64_t* out) {
  static uint64_t next = 1;
  (void)context, (void)device, (void)priority;
  *out = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
  return NULL;
}
static MicaStatus Stream(void* context, int32_t device, uint64_t stream) {
  (void)context, (void)device, (void)stream;
  return NULL;
}
static MicaStatus EventCreate(void* context, int32_t device, uint64_t* out) {
  return StreamCreate(context, device, 0, out);
}
static MicaStatus EventOnStream(void* context, int32_t device, uint64_t event, uint64_t stream) {
  (void)context, (void)device, (void)event, (void)stream;
  return NULL;
}
static MicaStatus Copy(void* context, void* dst, MicaDevice dst_device, const void* src,
                       MicaDevice src_device, int64_t size, uint64_t stream) {
  (void)context, (void)dst_device, (void)src_device, (void)stream;
  memmove(dst, src, (size_t)size);
  return NULL;
}
static MicaStatus Fill(void* context, int32_t device, void* data, uint8_t byte, int64_t size,
                       uint64_t stream) {
  (void)context, (void)device, (void)stream;
  memset(data, byte, (size_t)size);
  return NULL;
}
static MicaStatus EventQuery(void* context, int32_t device, uint64_t event, int32_t* done) {
  (void)context, (void)device, (void)event;
  *done = 1;
  return NULL;
}
static MicaStatus StreamQuery(void* context, int32_t device, uint64_t stream, int32_t* done) {
  return EventQuery(context, device, stream, done);
}
static MicaStatus EventElapsed(void* context, int32_t device, uint64_t start, uint64_t end, double* ms) {
  (void)context, (void)device, (void)start, (void)end;
  *ms = 1.5;
  return NULL;
}
static MicaStatus DeviceSync(void* context, int32_t device) {
  (void)context, (void)device;
  return NULL;
}
static MicaStatus PeerCopy(void* context, void* dst, int32_t dst_device, const void* src, int32_t src_device,
                           int64_t size, uint64_t stream) {
  (void)context, (void)dst_device, (void)src_device, (void)stream;
  memmove(dst, src, (size_t)size);
  return NULL;
}
static MicaStatus Say(const char* what) {
  if (getenv("GOLDEN_SAY")) (void)!write(2, what, strlen(what));
  return NULL;
}
static MicaStatus Quiesce(void* context) {
  (void)context;
  return Say("golden: quiesce\n");
}
static MicaStatus Detach(void* context) {
  (void)context;
  return Say("golden: detach\n");
}

/* ---- kernels */

/* mica::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!), at the device */
static MicaStatus Neg(const MicaCall* call, MicaTensor* self, MicaTensor* out) {
  const int plain = (self->flags & out->flags & MICA_TENSOR_CONTIGUOUS) != 0;
  (void)call;
  if (DTypeOf(self) != MICA_F32 || !plain) return Bare(MICA_ERROR_NOT_IMPLEMENTED);
  for (int64_t i = 0; i < Numel(self); ++i) ((float*)out->dl.data)[i] = -((const float*)self->dl.data)[i];
  return NULL;
}

/* golden_x::affine(Tensor x, float scale, float shift) -> Tensor, boxed, at cpu */
static MicaStatus Affine(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaValue* results,
                         int64_t num_results) {
  const MicaTensor* x = args[0].u.tensor;
  const MicaDevice cpu = {0, 0};
  const MicaIntSpan sizes = {x->dl.shape, x->dl.ndim};
  MicaTensorResult y;
  (void)call, (void)num_args, (void)num_results;
  if (DTypeOf(x) != MICA_F32 || !(x->flags & MICA_TENSOR_CONTIGUOUS))
    return Fail(MICA_ERROR_TYPE, "golden affine needs contiguous float32.");
  y = host->tensor_empty(sizes, MICA_F32, cpu, MICA_CONTIGUOUS);
  if (y.status) return y.status;
  for (int64_t i = 0; i < Numel(x); ++i)
    ((float*)y.value->dl.data)[i] = (float)(((const float*)x->dl.data)[i] * args[1].u.f + args[2].u.f);
  results[0].tag = MICA_VALUE_TENSOR;
  results[0].u.tensor = y.value;
  return NULL;
}

static void SumRange(void* context, int64_t begin, int64_t end) {
  int64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += i;
  __atomic_fetch_add((int64_t*)context, sum, __ATOMIC_RELAXED);
}
static void CountDelete(void* context) { ++*(int*)context; }

/* Drops a status and says whether it was an error. */
static int Failed(MicaStatus s) {
  if (s && (uintptr_t)s >= 4096) s->destroy(s);
  return s != NULL;
}
static int IsNegated(const MicaTensor* x) {
  void* handle = NULL;
  MicaValue arg, result;
  int right;
  if (Failed(host->op_find(Str("mica::neg"), &handle))) return 0;
  memset(&arg, 0, sizeof(arg));
  memset(&result, 0, sizeof(result));
  arg.tag = MICA_VALUE_TENSOR;
  arg.u.tensor = (MicaTensor*)x;
  if (Failed(host->op_call_boxed(handle, &arg, 1, &result, 1)) || result.tag != MICA_VALUE_TENSOR) return 0;
  right = ((float*)result.u.tensor->dl.data)[0] == -((float*)x->dl.data)[0];
  host->tensor_release(result.u.tensor);
  return right;
}
static int ViewsAndMemory(MicaTensor* x) {
  static int deleted;
  float memory[2] = {5, 6};
  const int64_t two = 2, one = 1;
  const MicaIntSpan sizes = {&two, 1}, strides = {&one, 1};
  const MicaDevice cpu = {0, 0};
  const int before = deleted;
  MicaTensorResult view = host->tensor_as_strided(x, sizes, strides, 4);
  MicaTensorResult own =
      host->tensor_from_memory(memory, sizes, strides, MICA_F32, cpu, CountDelete, &deleted);
  int right = !Failed(view.status) && !Failed(own.status) &&
              (char*)view.value->dl.data == (char*)x->dl.data + 4 && own.value->dl.data == memory;
  if (!right) return 0;
  host->tensor_retain(own.value);
  host->tensor_release(own.value);
  right = deleted == before;
  host->tensor_release(own.value);
  host->tensor_release(view.value);
  return right && deleted == before + 1;
}
static int Resizes(void) {
  const int64_t two = 2, five = 5;
  const MicaDevice cpu = {0, 0};
  MicaTensorResult t = host->tensor_empty((MicaIntSpan){&two, 1}, MICA_F32, cpu, MICA_CONTIGUOUS);
  int right = !Failed(t.status) && !Failed(host->tensor_resize(t.value, (MicaIntSpan){&five, 1})) &&
              t.value->dl.shape[0] == 5;
  if (t.value) host->tensor_release(t.value);
  return right;
}
static int AllocatesOnDevice(void) {
  const MicaDevice device = {host->backend_index(Str(DEVICE)), 1};
  void* data = NULL;
  uint64_t stream = 9, previous = 9;
  if (Failed(host->allocate(device, 1000, 0, &data)) || !data) return 0;
  host->free(device, data);
  return !Failed(host->current_stream(device, &stream)) && stream == 0 &&
         !Failed(host->exchange_stream(device, 0, &previous)) && previous == 0;
}
static int Draws(void) {
  const MicaDevice cpu = {0, 0};
  uint32_t a[4] = {0};
  uint64_t b[4] = {0};
  return !Failed(host->random_u32(NULL, cpu, a, 4)) && !Failed(host->random_u64(NULL, cpu, b, 4)) &&
         (a[0] | a[1] | a[2] | a[3]) && (b[0] | b[1] | b[2] | b[3]);
}

/* golden_x::probe(Tensor x) -> int, boxed, at cpu; x is float32, contiguous, of 3 or more */
static MicaStatus Probe(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaValue* results,
                        int64_t num_results) {
  MicaTensor* x = args[0].u.tensor;
  int64_t sum = 0, bits = 0;
  const MicaStr name = host->backend_name(host->backend_index(Str(DEVICE)));
  (void)num_args, (void)num_results;
  host->parallel_for(0, 1000, 10, SumRange, &sum);
  bits |= (int64_t)(sum == 499500) << 0;
  bits |= (int64_t)(host->num_threads() >= 1 && call->num_threads >= 1) << 1;
  bits |= (int64_t)IsNegated(x) << 2;
  bits |= (int64_t)ViewsAndMemory(x) << 3;
  bits |= (int64_t)Resizes() << 4;
  bits |= (int64_t)AllocatesOnDevice() << 5;
  bits |= (int64_t)Draws() << 6;
  bits |= (int64_t)(name.size == (int64_t)strlen(DEVICE) && !memcmp(name.data, DEVICE, sizeof(DEVICE) - 1))
          << 7;
  bits |= (int64_t)(host->extension(Str("no.such.extension"), 0) == NULL) << 8;
  bits |= (int64_t)(host->interrupted() == 0) << 9;
  bits |= (int64_t)(call->host == host && call->struct_size >= sizeof(MicaCall)) << 10;
  host->warn(Str("golden probe was here"));
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = bits;
  return NULL;
}

/* ---- entry */

static MicaStatus RegisterBoxed(const MicaRegistrar* r, const char* name, MicaBoxedFunction f) {
  MicaKernelRecord k = {sizeof(k), name, 0, "cpu", NULL, f, NULL, 0, __FILE__, __LINE__};
  return r->register_kernel(r->context, &k);
}

/* The optional function at GOLDEN_NULL (its number among the optional ones) is taken away. */
static void TakeAway(MicaDeviceTable* table) {
  const char* which = getenv("GOLDEN_NULL");
  void (**first)(void) = (void (**)(void)) & table->event_query;
  if (which) first[atoi(which)] = NULL;
}

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  static const MicaManifest manifest = {sizeof(MicaManifest),
                                        1,
                                        0,
                                        "golden." VARIANT,
                                        "Mica tests",
                                        "1.0",
                                        "",
                                        "",
                                        "backend:" DEVICE ",operators:golden_" VARIANT};
  (void)host_minor;
  return &manifest;
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  static MicaDeviceTable table = {sizeof(table), 1,        0,           NULL,   Count,
                                  Properties,    Exchange, Allocate,    Free,   StreamCreate,
                                  Stream,        Stream,   EventCreate, Stream, EventOnStream,
                                  EventOnStream, Stream,   Copy,        Fill};
  MicaKernelRecord neg = {sizeof(neg), "mica::neg.out", 0,       DEVICE, (MicaFunction)Neg, NULL, NULL,
                          0,           __FILE__,        __LINE__};
  MicaStatus s;
  if (!MICA_IS_1_0(h, r)) return Bare(MICA_ERROR_NOT_IMPLEMENTED);
  host = h;
  table.event_query = EventQuery;
  table.stream_query = StreamQuery;
  table.event_elapsed = EventElapsed;
  table.device_sync = DeviceSync;
  table.peer_copy = PeerCopy;
  table.quiesce = Quiesce;
  table.detach = Detach;
  TakeAway(&table);
  if ((s = r->register_device(r->context, DEVICE, &table))) return s;
  if ((s = r->register_kernel(r->context, &neg))) return s;
  if ((s = r->define_operator(r->context,
                              "golden_" VARIANT "::affine(Tensor x, float scale, float shift) -> Tensor")))
    return s;
  if ((s = r->define_operator(r->context, "golden_" VARIANT "::probe(Tensor x) -> int"))) return s;
  if ((s = RegisterBoxed(r, "golden_" VARIANT "::affine", Affine))) return s;
  return RegisterBoxed(r, "golden_" VARIANT "::probe", Probe);
}
