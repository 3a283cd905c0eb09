/* The null device in C11: the border is C, so a backend may be.
 *
 * The backend "null.c" has one device, memory of the host, work that runs at once,
 * and two kernels (add and relu on contiguous float32); everything else runs on the
 * CPU. The manifest, its copy in an ELF note and the two entry symbols, which the
 * C++ side of the SDK writes with one macro, stand here in full. */
#include <mica/abi.h>

#include <stdlib.h>
#include <string.h>

static MicaStatus Bare(int64_t code) { return (MicaStatus)(uintptr_t)code; }

/* ------------------------------------------------------------- the device */

static MicaStatus Count(void* context, int32_t* out) {
  (void)context;
  *out = 1;
  return NULL;
}
static MicaStatus Properties(void* context, int32_t device, MicaDeviceProperties* out) {
  (void)context, (void)device;
  out->name = "the null device in C";
  return NULL;
}
static MicaStatus ExchangeDevice(void* context, int32_t device, int32_t* previous) {
  (void)context, (void)device;
  *previous = 0;
  return NULL;
}
static MicaStatus Allocate(void* context, int32_t device, int64_t size, void** out) {
  (void)context, (void)device;
  *out = aligned_alloc(64, (size_t)((size + 63) / 64 * 64));
  return *out ? NULL : Bare(MICA_ERROR_OUT_OF_MEMORY);
}
static MicaStatus Free(void* context, int32_t device, void* data, int64_t size) {
  (void)context, (void)device, (void)size;
  free(data);
  return NULL;
}

/* Everything is done when its call returns: there is nothing to wait for. */
static MicaStatus StreamCreate(void* context, int32_t device, int32_t priority, uint64_t* out) {
  (void)context, (void)device, (void)priority;
  *out = 1;
  return NULL;
}
static MicaStatus EventCreate(void* context, int32_t device, uint64_t* out) {
  (void)context, (void)device;
  *out = 1;
  return NULL;
}
static MicaStatus Done(void* context, int32_t device, uint64_t handle) {
  (void)context, (void)device, (void)handle;
  return NULL;
}
static MicaStatus DoneOnStream(void* context, int32_t device, uint64_t event, uint64_t stream) {
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

/* ------------------------------------------------------------ the kernels */

static int32_t DType(const MicaTensor* t) { return (int32_t)((t->flags >> MICA_TENSOR_DTYPE_SHIFT) & 0xff); }
static int64_t Numel(const MicaTensor* t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->dl.ndim; ++d) n *= t->dl.shape[d];
  return n;
}
static int Plain(const MicaTensor* t, int64_t numel) {
  return DType(t) == MICA_F32 && (t->flags & MICA_TENSOR_CONTIGUOUS) && Numel(t) == numel;
}

/* add.out(Tensor self, Tensor other, *, Scalar alpha, Tensor(a!) out) */
static MicaStatus Add(const MicaCall* call, MicaTensor* self, MicaTensor* other, MicaScalar alpha,
                      MicaTensor* out) {
  (void)call;
  const int64_t n = Numel(out);
  if (!Plain(self, n) || !Plain(other, n) || !Plain(out, n)) return Bare(MICA_ERROR_NOT_IMPLEMENTED);
  const float scale = alpha.tag == MICA_SCALAR_FLOAT ? (float)alpha.u.f : (float)alpha.u.i;
  const float *x = self->dl.data, *y = other->dl.data;
  float* z = out->dl.data;
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] + scale * y[i];
  return NULL;
}

/* relu.out(Tensor self, *, Tensor(a!) out) */
static MicaStatus Relu(const MicaCall* call, MicaTensor* self, MicaTensor* out) {
  (void)call;
  const int64_t n = Numel(out);
  if (!Plain(self, n) || !Plain(out, n)) return Bare(MICA_ERROR_NOT_IMPLEMENTED);
  const float* x = self->dl.data;
  float* z = out->dl.data;
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays */
  return NULL;
}

/* -------------------------------------------------- manifest and the entry */

#define NOTE                                                                               \
  "{\"name\":\"null.c\",\"vendor\":\"Mica examples\",\"version\":\"1.0\",\"abi_major\":1," \
  "\"abi_minor\":0,\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"backend:null.c\"}"
__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  static const MicaManifest manifest = {
      sizeof(MicaManifest), MICA_ABI_MAJOR, MICA_ABI_MINOR, "null.c", "Mica examples", "1.0", "", "",
      "backend:null.c"};
  (void)host_minor, (void)note;
  return &manifest;
}

static MicaStatus AddKernel(const MicaRegistrar* r, const char* name, MicaFunction function, int64_t line) {
  const MicaKernelRecord record = {.struct_size = sizeof(record),
                                   .name = name,
                                   .backend = "null.c",
                                   .function = function,
                                   .file = __FILE__,
                                   .line = line};
  return r->register_kernel(r->context, &record);
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* h, const MicaRegistrar* r) {
  static const MicaDeviceTable table = {.struct_size = sizeof(table),
                                        .major = MICA_ABI_MAJOR,
                                        .minor = MICA_ABI_MINOR,
                                        .count = Count,
                                        .properties = Properties,
                                        .exchange_device = ExchangeDevice,
                                        .allocate = Allocate,
                                        .free = Free,
                                        .stream_create = StreamCreate,
                                        .stream_destroy = Done,
                                        .stream_sync = Done,
                                        .event_create = EventCreate,
                                        .event_destroy = Done,
                                        .event_record = DoneOnStream,
                                        .event_wait = DoneOnStream,
                                        .event_sync = Done,
                                        .copy = Copy,
                                        .fill = Fill};
  (void)h;
  MicaStatus status = r->register_device(r->context, "null.c", &table);
  if (!status) status = AddKernel(r, "add.out", (MicaFunction)Add, __LINE__);
  if (!status) status = AddKernel(r, "relu.out", (MicaFunction)Relu, __LINE__);
  return status;
}
