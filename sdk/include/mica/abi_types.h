/* The types of Mica's plugin ABI that are frozen for good (tier T0): tensors,
 * scalars, spans, boxed values, objects and statuses. Included by <mica/abi.h>, which holds
 * what grows (T1); plugins include that one.
 *
 * Always holds: the same as there. Fields are fixed-width and 8-aligned, and the
 * asserts at the end state every offset that matters. */
#ifndef MICA_ABI_TYPES_H_
#define MICA_ABI_TYPES_H_

#include <stddef.h>
#include <stdint.h>

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
#define MICA_CHANNELS_LAST 2    /* of 4 dimensions */
#define MICA_CHANNELS_LAST_3D 3 /* of 5 */

/* tensor flags, bits 0..31 frozen; bits 32..39 hold the dtype, 40..47 the
 * index of the backend (0 = cpu, 1 = meta); the rest belongs to the host. */
#define MICA_TENSOR_HAS_DATA (UINT64_C(1) << 0)
#define MICA_TENSOR_WRAPPER (UINT64_C(1) << 1)
#define MICA_TENSOR_READ_ONLY (UINT64_C(1) << 2)
#define MICA_TENSOR_CONJUGATE (UINT64_C(1) << 3)
#define MICA_TENSOR_WRAPPED_NUMBER (UINT64_C(1) << 4)
#define MICA_TENSOR_CONTIGUOUS (UINT64_C(1) << 5)
#define MICA_TENSOR_CHANNELS_LAST (UINT64_C(1) << 6)
#define MICA_TENSOR_OPAQUE (UINT64_C(1) << 7) /* no memory to read yet: MicaHost.tensor_payload */
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
  int32_t reserved; /* INT: 1 where i holds the bits of an unsigned number from 2^63 on */
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

/* A value of a type that Mica does not know: a process group, a quantizer. Who makes it lays out what
 * stands behind this head, and sets refcount to 1; from then on only MicaHost.object_retain and
 * object_release change it. A schema takes objects by the name of their type. Only the maker knows the
 * memory behind the head: a kernel that reads it compares `type` with a pointer of its own first. */
struct MicaObject;
/* Stays where it is for good, as its plugin's code does: objects outlive the plugin's being disabled. */
typedef struct MicaObjectType {
  uint64_t struct_size;
  const char* name;                    /* as schemas write it: "acme.Thing" */
  void (*destroy)(struct MicaObject*); /* once, when the last reference goes, on any thread */
  /* Younger than 1.0; NULL unless the objects are payloads of opaque tensors (MicaHost.tensor_opaque). Writes
   * the elements that the object holds into `to`, contiguous and of the tensor's shape, on the current stream
   * of its device. Keeps no reference to it. Several threads may ask at once. */
  struct MicaStatusBody* (*reorder)(struct MicaObject*, MicaTensor* to);
} MicaObjectType;
#define MICA_OBJECT_TYPE_SIZE_1_0 24 /* without `reorder` */
typedef struct MicaObject {
  uint64_t refcount; /* atomic */
  const MicaObjectType* type;
} MicaObject;

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
/* A device does nothing more in this process, whatever is asked of it; others may. */
#define MICA_ERROR_DEVICE_LOST 11
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
#define MICA_VALUE_OBJECT 18  /* borrowed as an argument; a result is owned by its receiver */
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
    MicaObject* object;
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
MICA_LAYOUT_ASSERT(sizeof(MicaObject) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaObject, type) == 8);
MICA_LAYOUT_ASSERT(offsetof(MicaObjectType, name) == 8);
MICA_LAYOUT_ASSERT(offsetof(MicaObjectType, destroy) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaTensorResult) == 16);
MICA_LAYOUT_ASSERT(sizeof(MicaStatusBody) == 64);
MICA_LAYOUT_ASSERT(offsetof(MicaStatusBody, code) == 8);
MICA_LAYOUT_ASSERT(offsetof(MicaStatusBody, message) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaStatusBody, cause) == 56);

#endif /* MICA_ABI_TYPES_H_ */
