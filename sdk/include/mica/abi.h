/* Mica plugin ABI, tiers T0 and T1, in C11.
 *
 * This header is the whole border between Mica and a backend plugin. A plugin
 * includes it (or the C++17 sugar in <mica/plugin.h>), exports two functions and
 * links nothing of Mica. It holds no code, compiles as C11 and as C++17, and
 * states its own layout in the asserts at its end.
 *
 * T0 (frozen for good): MicaTensor, MicaScalar, the spans, MicaValue,
 *   MicaStatus, the names of the two entry symbols.
 * T1 (append-only): MicaHost, MicaRegistrar, MicaDeviceTable, MicaCall,
 *   MicaManifest, MicaKernelRecord. Each begins with its size; a reader asks
 *   "is this field inside the size, and not NULL" and never compares versions.
 *
 * Always holds: integers are fixed-width, little-endian and 64-bit platforms
 * only; strings are UTF-8 (pointer, length), borrowed for the call; whoever
 * allocates owns; no exception, no longjmp and no lock crosses the border.
 */
#ifndef MICA_ABI_H_
#define MICA_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_ABI_MAJOR 1
#define MICA_ABI_MINOR 0

/* ------------------------------------------------------------------ T0 --- */

/* DLPack's types, field for field (DLPack 1.0). */
typedef struct {
  int32_t device_type;
  int32_t device_id;
} MicaDLDevice;
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} MicaDLDataType;
typedef struct {
  void* data;
  MicaDLDevice device;
  int32_t ndim;
  MicaDLDataType dtype;
  int64_t* shape;   /* ndim sizes; never NULL */
  int64_t* strides; /* ndim strides, in elements; never NULL, never negative */
  uint64_t byte_offset;
} MicaDLTensor;

/* dtypes: the number is frozen; it stands in bits 32..39 of a tensor's flags. */
#define MICA_BOOL 0
#define MICA_U8 1
#define MICA_I8 2
#define MICA_U16 3
#define MICA_I16 4
#define MICA_U32 5
#define MICA_I32 6
#define MICA_U64 7
#define MICA_I64 8
#define MICA_F16 9
#define MICA_BF16 10
#define MICA_F32 11
#define MICA_F64 12
#define MICA_C64 13
#define MICA_C128 14
#define MICA_F8E4M3FN 15
#define MICA_F8E5M2 16
#define MICA_DTYPE_COUNT 17
#define MICA_DTYPE_NONE (-1)

/* memory formats */
#define MICA_CONTIGUOUS 0
#define MICA_PRESERVE 1
#define MICA_CHANNELS_LAST 2

/* tensor flags, bits 0..31 frozen; bits 32..39 hold the dtype, 40..47 the
 * index of the backend (0 = cpu, 1 = meta); the rest belongs to the host. */
#define MICA_TENSOR_HAS_DATA (UINT64_C(1) << 0)
#define MICA_TENSOR_WRAPPER (UINT64_C(1) << 1)
#define MICA_TENSOR_READ_ONLY (UINT64_C(1) << 2)
#define MICA_TENSOR_CONJUGATE (UINT64_C(1) << 3)
#define MICA_TENSOR_WRAPPED_NUMBER (UINT64_C(1) << 4)
#define MICA_TENSOR_CONTIGUOUS (UINT64_C(1) << 5)
#define MICA_TENSOR_CHANNELS_LAST (UINT64_C(1) << 6)
#define MICA_TENSOR_OPAQUE (UINT64_C(1) << 7)
#define MICA_TENSOR_DTYPE_SHIFT 32
#define MICA_TENSOR_BACKEND_SHIFT 40

/* The face of a tensor. A plugin reads it and never writes it; `dl.data`
 * already points at the first element (byte_offset is 0). */
typedef struct MicaTensor {
  uint64_t refcount;
  const void* vtable;
  uint64_t flags;
  uint64_t reserved;
  MicaDLTensor dl;
} MicaTensor;

/* A number with its kind; 16 bytes, passed in two registers. A complex number
 * is a borrowed pointer to two doubles (real, imaginary). */
#define MICA_SCALAR_NONE 0
#define MICA_SCALAR_BOOL 1
#define MICA_SCALAR_INT 2
#define MICA_SCALAR_FLOAT 3
#define MICA_SCALAR_COMPLEX 4
typedef struct {
  int32_t tag;
  int32_t reserved;
  union {
    int64_t i; /* BOOL (0 or 1), INT */
    double f;
    const double* c;
  } u;
} MicaScalar;

/* Lists are (pointer, length); length -1 says None. */
typedef struct {
  const char* data;
  int64_t size;
} MicaStr;
typedef struct {
  const int64_t* data;
  int64_t size;
} MicaIntSpan;
typedef struct {
  const double* data;
  int64_t size;
} MicaFloatSpan;
typedef struct {
  const uint8_t* data;
  int64_t size;
} MicaBoolSpan;
typedef struct {
  const MicaScalar* data;
  int64_t size;
} MicaScalarSpan;
typedef struct {
  MicaTensor* const* data; /* an element may be NULL where the schema says Tensor?[] */
  int64_t size;
} MicaTensorSpan;
typedef struct {
  int32_t backend; /* index given at load time; -1 says None */
  int32_t index;
} MicaDevice;
typedef struct {
  int64_t value;
  int64_t has;
} MicaOptInt; /* int?, bool? */
typedef struct {
  double value;
  int64_t has;
} MicaOptFloat;
typedef struct MicaGenerator MicaGenerator; /* opaque */

/* A status: NULL is ok; a value below 4096 is a bare code; otherwise a pointer
 * to this struct, which its receiver destroys exactly once. */
#define MICA_OK 0
#define MICA_ERROR_RUNTIME 1
#define MICA_ERROR_VALUE 2
#define MICA_ERROR_TYPE 3
#define MICA_ERROR_INDEX 4
#define MICA_ERROR_NOT_IMPLEMENTED 5
#define MICA_ERROR_OUT_OF_MEMORY 6
#define MICA_ERROR_INTERNAL 7
#define MICA_ERROR_ZERO_DIVISION 8
#define MICA_ERROR_OVERFLOW 9
#define MICA_ERROR_INTERRUPTED 10
typedef struct MicaStatusBody {
  uint64_t struct_size;
  int64_t code;
  void (*destroy)(struct MicaStatusBody*);
  const char* message;
  int64_t message_length;
  const char* file;
  int64_t line;
  struct MicaStatusBody* cause;
} MicaStatusBody;
typedef MicaStatusBody* MicaStatus;

/* A boxed argument, borrowed for the call: 24 bytes. `tag` follows the schema:
 * an optional that is absent has MICA_VALUE_NONE, whatever its type. */
#define MICA_VALUE_NONE 0
#define MICA_VALUE_TENSOR 1
#define MICA_VALUE_INT 2
#define MICA_VALUE_FLOAT 3
#define MICA_VALUE_BOOL 4
#define MICA_VALUE_SCALAR 5
#define MICA_VALUE_STR 6
#define MICA_VALUE_INTS 7
#define MICA_VALUE_FLOATS 8
#define MICA_VALUE_BOOLS 9
#define MICA_VALUE_SCALARS 10
#define MICA_VALUE_TENSORS 11
#define MICA_VALUE_DTYPE 12
#define MICA_VALUE_DEVICE 13
#define MICA_VALUE_LAYOUT 14
#define MICA_VALUE_MEMORY_FORMAT 15
#define MICA_VALUE_GENERATOR 16
#define MICA_VALUE_COMPLEX 17 /* a result only: two doubles inline */
typedef struct {
  int32_t tag;
  int32_t reserved;
  union {
    MicaTensor* tensor;
    int64_t i; /* INT, BOOL, DTYPE, LAYOUT, MEMORY_FORMAT */
    double f;
    MicaScalar scalar;
    MicaStr str;
    MicaIntSpan ints;
    MicaFloatSpan floats;
    MicaBoolSpan bools;
    MicaScalarSpan scalars;
    MicaTensorSpan tensors;
    MicaDevice device;
    MicaGenerator* generator;
    double complex_parts[2];
  } u;
} MicaValue;

/* A single result and its status, returned in two registers. The tensor is
 * owned by the receiver. */
typedef struct {
  MicaTensor* value;
  MicaStatus status;
} MicaTensorResult;
typedef struct {
  int64_t value;
  MicaStatus status;
} MicaIntResult;
typedef struct {
  double value;
  MicaStatus status;
} MicaFloatResult;

/* ------------------------------------------------------------------ T1 --- */

struct MicaHost;
struct MicaProgram;

/* What a leaf kernel gets as its first argument. */
typedef struct MicaCall {
  uint64_t struct_size;
  const struct MicaHost* host;
  void* context;         /* of the kernel record */
  int32_t compute_dtype; /* the dtype to compute in, after type promotion; -1 if the entry gives none */
  int32_t num_threads;   /* at most this many threads */
  const struct MicaProgram* program; /* of the operator's entry, or NULL */
  const char* name;                  /* "mica::add.Tensor" */
} MicaCall;

/* Kernels. One C function a kernel, its signature derived from the schema:
 *   first `const MicaCall*`, then each argument in the schema's order:
 *     Tensor, Tensor?          MicaTensor*  (NULL is None), borrowed
 *     Tensor[], Tensor?[]      MicaTensorSpan
 *     int, SymInt              int64_t          int?, bool?  MicaOptInt
 *     float                    double           float?       MicaOptFloat
 *     bool                     int32_t
 *     Scalar, Scalar?          MicaScalar (tag NONE is None)
 *     int[], SymInt[], int[]?  MicaIntSpan      float[]      MicaFloatSpan
 *     bool[]                   MicaBoolSpan     Scalar[]     MicaScalarSpan
 *     ScalarType, Layout, MemoryFormat (and ?)  int32_t (-1 is None)
 *     Device, Device?          MicaDevice       str, str?    MicaStr
 *     Generator?               MicaGenerator*   (NULL is the device's default)
 *   and the result:
 *     nothing, or only aliases `(a!)` of arguments   MicaStatus
 *     one Tensor               MicaTensorResult
 *     one int or bool          MicaIntResult    one float    MicaFloatResult
 *     anything else            MicaStatus, and one `MicaValue* results` at the end with
 *                              room for each result; tensors in it are owned by the
 *                              receiver, lists of tensors come from tensor_list_create
 * A backend registers the out form (`add.out`): outputs come with shape, dtype
 * and memory ready, and the other two forms follow. Only an operator whose
 * output size depends on data is registered in its functional form. */
typedef void (*MicaFunction)(void);

/* The boxed form of a leaf kernel: `args` in the schema's order, the outputs of
 * an out form among them; results of other forms go to `results`. */
typedef MicaStatus (*MicaBoxedFunction)(const MicaCall* call, const MicaValue* args, int64_t num_args,
                                        MicaValue* results, int64_t num_results);

/* One kernel for a whole class of operators ("pointwise", "reduction", ...):
 * it gets the operator's program in `call->program`, the arguments of the
 * functional form and the outputs, ready. NOT_IMPLEMENTED passes the call on. */
typedef MicaStatus (*MicaClassFunction)(const MicaCall* call, const MicaValue* args, int64_t num_args,
                                        MicaTensor* const* outputs, int64_t num_outputs);

typedef struct MicaKernelRecord {
  uint64_t struct_size;
  const char* name;        /* "mica::add.out" */
  uint64_t schema_hash;    /* 0: compare names only at run time of the loader */
  const char* backend;     /* "cpu" */
  MicaFunction function;   /* unboxed, or NULL */
  MicaBoxedFunction boxed; /* or NULL */
  void* context;
  uint64_t flags;
  const char* file; /* where it is registered, for explain */
  int64_t line;
} MicaKernelRecord;

typedef struct MicaClassRecord {
  uint64_t struct_size;
  const char* class_name; /* "pointwise" */
  const char* backend;
  MicaClassFunction function;
  void* context;
  const char* file;
  int64_t line;
} MicaClassRecord;

/* An opaque stream or event is a pointer-sized handle of the device's own. */
typedef struct MicaDeviceTable {
  uint64_t struct_size;
  uint32_t major, minor;
  void* context;
  /* mandatory */
  MicaStatus (*count)(void* context, int32_t* out);
  MicaStatus (*properties)(void* context, int32_t device, MicaStr* name, int64_t* total_memory);
  MicaStatus (*exchange_device)(void* context, int32_t device, int32_t* previous);
  MicaStatus (*allocate)(void* context, int32_t device, int64_t size, void** out);
  MicaStatus (*free)(void* context, int32_t device, void* data, int64_t size);
  MicaStatus (*stream_create)(void* context, int32_t device, int32_t priority, uint64_t* out);
  MicaStatus (*stream_destroy)(void* context, uint64_t stream);
  MicaStatus (*stream_sync)(void* context, int32_t device, uint64_t stream);
  MicaStatus (*event_create)(void* context, int32_t device, uint64_t* out);
  MicaStatus (*event_destroy)(void* context, uint64_t event);
  MicaStatus (*event_record)(void* context, uint64_t event, uint64_t stream);
  MicaStatus (*event_wait)(void* context, uint64_t event, uint64_t stream);
  MicaStatus (*event_sync)(void* context, uint64_t event);
  MicaStatus (*copy)(void* context, void* dst, MicaDevice dst_device, const void* src, MicaDevice src_device,
                     int64_t size, uint64_t stream);
  MicaStatus (*fill)(void* context, int32_t device, void* data, uint8_t byte, int64_t size, uint64_t stream);
  /* optional from here on: NULL where the device has none */
  MicaStatus (*pinned_allocate)(void* context, int64_t size, void** out);
  MicaStatus (*pinned_free)(void* context, void* data, int64_t size);
  MicaStatus (*stream_allocate)(void* context, int32_t device, int64_t size, uint64_t stream, void** out);
  MicaStatus (*stream_free)(void* context, int32_t device, void* data, uint64_t stream);
  MicaStatus (*peer_copy)(void* context, void* dst, int32_t dst_device, const void* src, int32_t src_device,
                          int64_t size, uint64_t stream);
  MicaStatus (*ipc_export)(void* context, void* data, uint8_t handle[64]);
  MicaStatus (*ipc_import)(void* context, const uint8_t handle[64], void** data);
  MicaStatus (*generator_get_state)(void* context, int32_t device, uint8_t* state, int64_t* size);
  MicaStatus (*generator_set_state)(void* context, int32_t device, const uint8_t* state, int64_t size);
  MicaStatus (*capture_begin)(void* context, uint64_t stream);
  MicaStatus (*capture_end)(void* context, uint64_t stream, uint64_t* graph);
  MicaStatus (*graph_replay)(void* context, uint64_t graph, uint64_t stream);
  MicaStatus (*graph_destroy)(void* context, uint64_t graph);
  MicaStatus (*profiler_start)(void* context);
  MicaStatus (*profiler_stop)(void* context, MicaStr* json);
  /* *answer: 1 yes, 0 no (and *why says it) */
  MicaStatus (*supports)(void* context, MicaStr op, const MicaValue* args, int64_t num_args, int32_t* answer,
                         MicaStr* why);
  MicaStatus (*quiesce)(void* context);
  MicaStatus (*detach)(void* context);
} MicaDeviceTable;

/* What the host offers. Every function is thread-safe and takes no lock of the
 * plugin's. */
typedef struct MicaHost {
  uint64_t struct_size;
  uint32_t major, minor;
  const char* version; /* of Mica, for messages */
  /* status */
  MicaStatus (*status_create)(int64_t code, MicaStr message, const char* file, int64_t line);
  /* tensors */
  void (*tensor_retain)(MicaTensor*);
  void (*tensor_release)(MicaTensor*);
  MicaTensorResult (*tensor_empty)(MicaIntSpan sizes, int32_t dtype, MicaDevice device,
                                   int32_t memory_format);
  MicaTensorResult (*tensor_as_strided)(MicaTensor* self, MicaIntSpan sizes, MicaIntSpan strides,
                                        int64_t byte_offset);
  MicaTensorResult (*tensor_from_memory)(void* data, MicaIntSpan sizes, MicaIntSpan strides, int32_t dtype,
                                         MicaDevice device, void (*deleter)(void* context), void* context);
  /* a list for a result: `size` NULL elements for the caller to fill */
  MicaTensor** (*tensor_list_create)(int64_t size);
  /* memory: the caching allocator of a device */
  MicaStatus (*allocate)(MicaDevice device, int64_t size, void** out);
  void (*free)(MicaDevice device, void* data);
  /* threads: body(context, begin, end) over chunks of at least `grain` */
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* context, int64_t begin, int64_t end), void* context);
  int32_t (*num_threads)(void);
  /* random: NULL is the device's default. Fills under the generator's lock. */
  MicaStatus (*random_u32)(MicaGenerator*, uint32_t* out, int64_t count);
  MicaStatus (*random_u64)(MicaGenerator*, uint64_t* out, int64_t count);
  /* operators, called through their handle; `op_find` once, then cached */
  MicaStatus (*op_find)(MicaStr name, void** handle);
  MicaStatus (*op_call_boxed)(void* handle, const MicaValue* args, int64_t num_args, MicaValue* results,
                              int64_t num_results);
  /* 1 when the user has asked to stop (Ctrl-C): return INTERRUPTED soon */
  int32_t (*interrupted)(void);
  void (*warn)(MicaStr message);
  /* index of a backend by name, -1 if there is none */
  int32_t (*backend_index)(MicaStr name);
  /* an extension of the host by name, or NULL */
  const void* (*extension)(MicaStr name, uint32_t minimum_minor);
} MicaHost;

/* What a plugin registers with, during its init only. Everything it registers
 * is taken back if init fails. */
typedef struct MicaRegistrar {
  uint64_t struct_size;
  uint32_t major, minor;
  void* context;
  MicaStatus (*register_device)(void* context, const char* name, const MicaDeviceTable*);
  MicaStatus (*register_kernel)(void* context, const MicaKernelRecord*);
  MicaStatus (*register_class)(void* context, const MicaClassRecord*);
  MicaStatus (*define_operator)(void* context, const char* schema);
} MicaRegistrar;

/* The manifest: returned by query, and the same text stands as JSON in the ELF
 * note (name "Mica", type 1), so that it can be read without opening. */
typedef struct MicaManifest {
  uint64_t struct_size;
  uint32_t abi_major, abi_minor;
  const char* name; /* "cpu", "acme.npu" */
  const char* vendor;
  const char* version;
  const char* cpu_features;    /* comma-separated, all needed: "avx2,fma"; "" if none */
  const char* runtime_version; /* of the vendor's driver or library; "" if none */
  const char* provides;        /* comma-separated: "backend:cpu" */
} MicaManifest;
#define MICA_NOTE_NAME "Mica"
#define MICA_NOTE_TYPE 1

/* The two entry symbols. Query touches no driver; init is idempotent. */
#define MICA_PLUGIN_QUERY "mica_plugin_query_v1"
#define MICA_PLUGIN_INIT "mica_plugin_init_v1"
typedef const MicaManifest* (*MicaPluginQuery)(uint32_t host_minor);
typedef MicaStatus (*MicaPluginInit)(const MicaHost* host, const MicaRegistrar* registrar);

#if defined(__GNUC__)
#define MICA_EXPORT __attribute__((visibility("default")))
#else
#define MICA_EXPORT
#endif

/* ------------------------------------------------------------- layout --- */
#ifdef __cplusplus
#define MICA_LAYOUT_ASSERT(c) static_assert(c, #c)
#else
#define MICA_LAYOUT_ASSERT(c) _Static_assert(c, #c)
#endif
MICA_LAYOUT_ASSERT(sizeof(MicaDLTensor) == 48);
MICA_LAYOUT_ASSERT(offsetof(MicaDLTensor, data) == 0);
MICA_LAYOUT_ASSERT(offsetof(MicaDLTensor, device) == 8);
MICA_LAYOUT_ASSERT(offsetof(MicaDLTensor, ndim) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaDLTensor, dtype) == 20);
MICA_LAYOUT_ASSERT(offsetof(MicaDLTensor, shape) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaDLTensor, strides) == 32);
MICA_LAYOUT_ASSERT(offsetof(MicaDLTensor, byte_offset) == 40);
MICA_LAYOUT_ASSERT(sizeof(MicaTensor) == 80);
MICA_LAYOUT_ASSERT(offsetof(MicaTensor, refcount) == 0);
MICA_LAYOUT_ASSERT(offsetof(MicaTensor, vtable) == 8);
MICA_LAYOUT_ASSERT(offsetof(MicaTensor, flags) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaTensor, reserved) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaTensor, dl) == 32);
MICA_LAYOUT_ASSERT(sizeof(MicaScalar) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaScalar, u) == 8);
MICA_LAYOUT_ASSERT(sizeof(MicaStr) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaIntSpan) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaTensorSpan) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaDevice) == 8);
MICA_LAYOUT_ASSERT(sizeof(MicaOptInt) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaValue) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaValue, u) == 8);
MICA_LAYOUT_ASSERT(sizeof(MicaTensorResult) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaStatusBody) == 64);
MICA_LAYOUT_ASSERT(offsetof(MicaStatusBody, code) == 8);
MICA_LAYOUT_ASSERT(offsetof(MicaStatusBody, message) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaStatusBody, cause) == 56);
MICA_LAYOUT_ASSERT(offsetof(MicaHost, status_create) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaRegistrar, context) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaDeviceTable, context) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaKernelRecord, schema_hash) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaManifest, name) == 16);

#ifdef __cplusplus
}
#endif
#endif /* MICA_ABI_H_ */
