/* Mica plugin ABI, tiers T0 and T1, in C11.
 *
 * This header is the whole border between Mica and a backend plugin. A plugin
 * includes it (or the C++17 sugar in <mica/plugin.h>), exports two functions and
 * links nothing of Mica. It holds no code, compiles as C11 and as C++17, and
 * states its own layout in the asserts at its end.
 *
 * T0 (frozen for good, in abi_types.h): MicaTensor, MicaScalar, the spans, MicaValue,
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

#include <mica/abi_types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_ABI_MAJOR 1
#define MICA_ABI_MINOR 0

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
  int32_t device_index;              /* of the backend's device to run on */
  int32_t reserved;
  uint64_t stream; /* of that device to run on; 0 is its default stream */
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
 *     acme.Thing, acme.Thing?  MicaObject*      (NULL is None), borrowed; any name with a dot in it
 *   and the result:
 *     nothing, or only aliases `(a!)` of arguments   MicaStatus
 *     one Tensor               MicaTensorResult
 *     one int or bool          MicaIntResult    one float    MicaFloatResult
 *     anything else            MicaStatus, and one `MicaValue* results` at the end with
 *                              room for each result; tensors in it are owned by the
 *                              receiver, and so are objects; lists of tensors come from
 *                              tensor_list_create
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
 * functional form and the outputs, ready. NOT_IMPLEMENTED passes the call on.
 *
 * A device other than cpu sees tensors of its own alone. A 0-d CPU tensor (a
 * Python number is one) reaches its unboxed and boxed kernels as a 0-d tensor of
 * the device in the compute dtype, and its class kernels as MICA_VALUE_SCALAR in
 * the tensor's place. */
typedef MicaStatus (*MicaClassFunction)(const MicaCall* call, const MicaValue* args, int64_t num_args,
                                        MicaTensor* const* outputs, int64_t num_outputs);

/* The same for many calls of one operator at once: `foreach` operators and optimizers' steps over lists of
 * tensors. `args` holds num_args values for each of the `num_rows` calls, one call after another, and
 * `outputs` likewise num_outputs; call->program and call->compute_dtype are those of all. Shapes differ from
 * call to call; within one every tensor is dense and has the shape of its outputs, or has one element and no
 * dimension. No call writes what another reads or writes. NOT_IMPLEMENTED, before anything is written: the
 * host makes the calls one by one. */
typedef MicaStatus (*MicaClassListFunction)(const MicaCall* call, const MicaValue* args, int64_t num_args,
                                            MicaTensor* const* outputs, int64_t num_outputs,
                                            int64_t num_rows);

/* Of a functional form's kernel: its arguments may be opaque tensors, which others never see
 * (MicaHost.tensor_payload says what lies behind one). */
#define MICA_KERNEL_TAKES_OPAQUE (UINT64_C(1) << 0)

typedef struct MicaKernelRecord {
  uint64_t struct_size;
  const char* name;        /* "mica::add.out" */
  uint64_t schema_hash;    /* 0: compare names only at run time of the loader */
  const char* backend;     /* "cpu" */
  MicaFunction function;   /* unboxed, or NULL */
  MicaBoxedFunction boxed; /* or NULL */
  void* context;
  uint64_t flags;   /* MICA_KERNEL_..., 0 for none */
  const char* file; /* where it is registered, for explain */
  int64_t line;
  /* Younger than 1.0. What `function` is in C: a letter for each parameter behind the MicaCall (signature.h
   * has them), '>', and the result's: "ttst>v". The kernel is left out, with a sentence, where its operator's
   * schema asks for something else. NULL: not said, and the plugin answers for it. */
  const char* signature;
} MicaKernelRecord;

typedef struct MicaClassRecord {
  uint64_t struct_size;
  const char* class_name; /* "pointwise" */
  const char* backend;
  MicaClassFunction function;
  void* context;
  const char* file;
  int64_t line;
  /* Younger than 1.0; of "pointwise" alone. NULL: lists run call by call. */
  MicaClassListFunction list_function;
} MicaClassRecord;

/* What a device says of itself. The host sets struct_size and zeroes the rest. */
typedef struct MicaDeviceProperties {
  uint64_t struct_size;
  const char* name;     /* of the hardware, for people; lives as long as the plugin */
  int64_t total_memory; /* bytes; -1 unknown */
  int64_t free_memory;  /* bytes; -1 unknown */
  uint64_t dtypes;      /* bit d: memory of dtype d may be held; 0 says all */
  /* Younger than 1.0: set where struct_size reaches behind them. */
  const char*
      architecture; /* what kernels are compiled for, "sm_90"; NULL unknown; lives as long as the plugin */
  int32_t multiprocessors; /* 0 unknown */
  int32_t warp_size;       /* work-items that run in step; 0 unknown */
} MicaDeviceProperties;

/* What an event is for; the device need not provide what is not asked for. */
#define MICA_EVENT_TIMED (UINT64_C(1) << 0)  /* event_elapsed measures from it or to it */
#define MICA_EVENT_SLEEPS (UINT64_C(1) << 1) /* event_sync gives the processor to other threads meanwhile */

/* Keys of MicaDeviceTable.attribute that hosts ask for; a device answers others of its own, too. */
#define MICA_ATTRIBUTE_CAPABILITY_MAJOR "capability_major" /* 9 of 9.0, as torch.cuda has it */
#define MICA_ATTRIBUTE_CAPABILITY_MINOR "capability_minor"

/* A device. Streams and events are handles of the device's own; stream 0 is the
 * default stream, which always exists. Work of one stream runs in order; the
 * device may run everything at once and keep no queue at all. `device` is the
 * index that a handle belongs to. An event may be destroyed while work still waits
 * for it.
 *
 * Memory is an address that views offset in bytes: `data + n` is the n-th byte of
 * a block. `copy` has the device's memory at one end or both, and host memory
 * (backend 0) at the other; it may return before it is done, and the host keeps
 * both ends alive until the stream is past it. A stream in `copy` is the one of
 * the destination's device, unless that is the host.
 *
 * The current device belongs to the thread and the driver. Where a backend has several, the host makes the
 * device that a call names (of a copy: whose stream it is) current before the call, of the table or of a
 * kernel, and afterwards the one that was, as other libraries of the process see it; so a function may change
 * it and need not put it back. `count`, `supports`, `quiesce` and `detach` name no device.
 *
 * Once any call, or a kernel, has answered MICA_ERROR_DEVICE_LOST, the host calls nothing of that device any
 * more but `quiesce`, `detach`, and `exchange_device`, which only moves a number. */
typedef struct MicaDeviceTable {
  uint64_t struct_size;
  uint32_t major, minor;
  void* context;
  /* mandatory */
  MicaStatus (*count)(void* context, int32_t* out);
  MicaStatus (*properties)(void* context, int32_t device, MicaDeviceProperties* out);
  MicaStatus (*exchange_device)(void* context, int32_t device, int32_t* previous); /* of this thread */
  MicaStatus (*allocate)(void* context, int32_t device, int64_t size, void** out);
  MicaStatus (*free)(void* context, int32_t device, void* data, int64_t size);
  MicaStatus (*stream_create)(void* context, int32_t device, int32_t priority, uint64_t* out);
  MicaStatus (*stream_destroy)(void* context, int32_t device, uint64_t stream);
  MicaStatus (*stream_sync)(void* context, int32_t device, uint64_t stream);
  MicaStatus (*event_create)(void* context, int32_t device, uint64_t* out);
  MicaStatus (*event_destroy)(void* context, int32_t device, uint64_t event);
  MicaStatus (*event_record)(void* context, int32_t device, uint64_t event, uint64_t stream);
  MicaStatus (*event_wait)(void* context, int32_t device, uint64_t event, uint64_t stream);
  MicaStatus (*event_sync)(void* context, int32_t device, uint64_t event);
  MicaStatus (*copy)(void* context, void* dst, MicaDevice dst_device, const void* src, MicaDevice src_device,
                     int64_t size, uint64_t stream);
  MicaStatus (*fill)(void* context, int32_t device, void* data, uint8_t byte, int64_t size, uint64_t stream);
  /* optional from here on: NULL where the device has none. "Reserved": no host of 1.0
   * calls it, and docs/abi.md says what for. */
  /* *done: 1 when the work before the record is done. Without it, the host waits. */
  MicaStatus (*event_query)(void* context, int32_t device, uint64_t event, int32_t* done);
  /* *done: 1 when the stream has no work left */
  MicaStatus (*stream_query)(void* context, int32_t device, uint64_t stream, int32_t* done);
  MicaStatus (*event_elapsed)(void* context, int32_t device, uint64_t start, uint64_t end,
                              double* milliseconds);
  /* all streams of the device; without it, the host waits for those it knows */
  MicaStatus (*device_sync)(void* context, int32_t device);
  /* host memory that the device reads and writes while the host goes on: `copy` of it
   * need not be done when it returns */
  MicaStatus (*pinned_allocate)(void* context, int64_t size, void** out);
  MicaStatus (*pinned_free)(void* context, void* data, int64_t size);
  /* memory that the stream is the first to use, and that goes back behind its work: both or neither */
  MicaStatus (*stream_allocate)(void* context, int32_t device, int64_t size, uint64_t stream, void** out);
  MicaStatus (*stream_free)(void* context, int32_t device, void* data, uint64_t stream);
  MicaStatus (*peer_copy)(void* context, void* dst, int32_t dst_device, const void* src, int32_t src_device,
                          int64_t size, uint64_t stream);
  /* reserved, from here to generator_set_state */
  MicaStatus (*ipc_export)(void* context, int32_t device, void* data, uint8_t handle[64]);
  MicaStatus (*ipc_import)(void* context, int32_t device, const uint8_t handle[64], void** data);
  MicaStatus (*generator_get_state)(void* context, int32_t device, uint8_t* state, int64_t* size);
  MicaStatus (*generator_set_state)(void* context, int32_t device, const uint8_t* state, int64_t size);
  /* Recorded work: all four or none. From capture_begin on, what is queued on the stream, and on streams that
   * wait for an event recorded in it, is kept and not run, until capture_end, in the same thread, makes a
   * graph of it or says why there is none; either way the stream then runs again. The graph runs in the order
   * of the stream of graph_replay, as often as it is asked to, and never twice at once. Other threads go on
   * calling the device meanwhile, which does not make the recording fail. No graph runs when it is destroyed.
   */
  MicaStatus (*capture_begin)(void* context, int32_t device, uint64_t stream);
  MicaStatus (*capture_end)(void* context, int32_t device, uint64_t stream, uint64_t* graph);
  MicaStatus (*graph_replay)(void* context, int32_t device, uint64_t graph, uint64_t stream);
  MicaStatus (*graph_destroy)(void* context, int32_t device, uint64_t graph);
  /* reserved */
  MicaStatus (*profiler_start)(void* context);
  MicaStatus (*profiler_stop)(void* context, MicaStr* json);
  /* Asked before a kernel of the device runs. `op` is the operator's functional form
   * ("mica::add.Tensor") where it has one, `args` are that form's arguments. *answer: 1
   * yes; 0 no, and *why says it, in memory that stays: the call goes on as if the kernel
   * had answered NOT_IMPLEMENTED. */
  MicaStatus (*supports)(void* context, MicaStr op, const MicaValue* args, int64_t num_args, int32_t* answer,
                         MicaStr* why);
  /* at exit: wait for all work; then late calls are no longer made */
  MicaStatus (*quiesce)(void* context);
  MicaStatus (*detach)(void* context);
  /* Younger than 1.0, and no function: DLPack's number for the memory (2 is CUDA, 10 ROCm, 14 oneAPI), whose
   * tensors other libraries then take and give; streams travel as handles. 0, or a table that ends before:
   * what the backend's name says (docs/abi.md), else 12, an extension device. */
  int64_t dlpack_type;
  /* Younger than 1.0, as all that follows. An event of MICA_EVENT_* flags; without it, event_create makes
   * all. */
  MicaStatus (*event_create_with)(void* context, int32_t device, uint64_t flags, uint64_t* out);
  /* the priorities that stream_create takes, from *least (0 or more) to *greatest (0 or less), which goes
   * first; others are never asked for. Without it, any number is. */
  MicaStatus (*priority_range)(void* context, int32_t device, int32_t* least, int32_t* greatest);
  /* *can: 1 where kernels of `device` can read memory of `peer`. Without it, none can. */
  MicaStatus (*peer_access)(void* context, int32_t device, int32_t peer, int32_t* can);
  /* A number that describes the device, by a key (MICA_ATTRIBUTE_* or one of the vendor's, which begins with
   * its name: "acme.cores"); NOT_IMPLEMENTED for a key that it does not know. */
  MicaStatus (*attribute)(void* context, int32_t device, MicaStr key, int64_t* out);
} MicaDeviceTable;

/* Words of a Philox 4x32-10 generator that a kernel makes: word i is word `offset + i` of `seed`. In work
 * that is recorded (capture_begin), `recorded` is not NULL: memory of the device with two words, a seed and
 * an offset that is a multiple of 4, which each replay sets anew. The kernel reads them when it runs, and
 * word i is word `recorded[1] + offset + i` of seed `recorded[0]`. */
typedef struct MicaRandomWords {
  uint64_t seed, offset;
  const uint64_t* recorded;
} MicaRandomWords;

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
  /* new sizes, contiguous, for a kernel that learns the size of its output late;
   * the old contents are lost. What was read of the tensor's face must be read anew. */
  MicaStatus (*tensor_resize)(MicaTensor*, MicaIntSpan sizes);
  /* a list for a result: `size` NULL elements for the caller to fill */
  MicaTensor** (*tensor_list_create)(int64_t size);
  /* memory: the caching allocator of a device. The block belongs to `stream`: it
   * may be freed as soon as its last use is queued there. */
  MicaStatus (*allocate)(MicaDevice device, int64_t size, uint64_t stream, void** out);
  void (*free)(MicaDevice device, void* data);
  /* says that `stream`, not the block's own, uses the tensor's memory: it is not
   * given out again before that is done */
  MicaStatus (*record_stream)(MicaTensor*, uint64_t stream);
  /* the stream of this thread for a device; a kernel has it in its call already */
  MicaStatus (*current_stream)(MicaDevice device, uint64_t* out);
  MicaStatus (*exchange_stream)(MicaDevice device, uint64_t stream, uint64_t* previous);
  /* threads: body(context, begin, end) over chunks of at least `grain` */
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* context, int64_t begin, int64_t end), void* context);
  int32_t (*num_threads)(void);
  /* random: a NULL generator is the device's default. Fills under its lock. */
  MicaStatus (*random_u32)(MicaGenerator*, MicaDevice device, uint32_t* out, int64_t count);
  MicaStatus (*random_u64)(MicaGenerator*, MicaDevice device, uint64_t* out, int64_t count);
  /* Takes `count` words of a Philox 4x32-10 generator (the default of every device
   * but the CPU) for a kernel to make: word i is word (*offset + i) of *seed. */
  MicaStatus (*random_philox)(MicaGenerator*, MicaDevice device, int64_t count, uint64_t* seed,
                              uint64_t* offset);
  /* operators, called through their handle; `op_find` once, then cached. A kernel's
   * call runs at the tensors' backend, below autograd and every other layer. */
  MicaStatus (*op_find)(MicaStr name, void** handle);
  MicaStatus (*op_call_boxed)(void* handle, const MicaValue* args, int64_t num_args, MicaValue* results,
                              int64_t num_results);
  /* 1 when the user has asked to stop (Ctrl-C): return INTERRUPTED soon */
  int32_t (*interrupted)(void);
  void (*warn)(MicaStr message);
  /* index of a backend by name, -1 if there is none; and back, "" if there is none */
  int32_t (*backend_index)(MicaStr name);
  MicaStr (*backend_name)(int32_t index);
  /* a table by name, the host's or one that a plugin registered: NULL if nobody offers it, or only an older
   * one than `minimum_minor`. Its major version is the asker's to compare, and each member's presence
   * (MICA_HAS). Ask when it is needed, not once for all: a plugin that is disabled offers nothing. */
  const void* (*extension)(MicaStr name, uint32_t minimum_minor);
  /* Younger than 1.0: ask with MICA_HAS. As random_philox, for kernels that can be recorded, too. */
  MicaStatus (*random_words)(MicaGenerator*, MicaDevice device, int64_t count, MicaRandomWords* out);
  /* Younger than 1.0, too. One more reference to an object, and one less, the last of which destroys it. */
  void (*object_retain)(MicaObject*);
  void (*object_release)(MicaObject*);
  /* Younger than 1.0, too. Frees the array of a list that an operator gave, not the tensors in it. */
  void (*tensor_list_free)(MicaTensor* const* list);
  /* Younger than 1.0, too. A tensor whose elements lie in `payload`, in a layout of its maker's, whose type
   * has `reorder`; it takes a reference of its own. It is contiguous to whoever asks, and has no memory until
   * somebody reads or writes its elements in any other way than by its payload. */
  MicaTensorResult (*tensor_opaque)(MicaIntSpan sizes, int32_t dtype, MicaDevice device, MicaObject* payload);
  /* What tensor_opaque was given, a reference for the caller, where it is of that type. NULL where it is not,
   * or does not say what the tensor's elements are, or no longer: then its face has them, and is read after
   * this. */
  MicaStatus (*tensor_payload)(MicaTensor*, const MicaObjectType* type, MicaObject** out);
} MicaHost;

/* What every table begins with, an extension's too. */
typedef struct MicaTable {
  uint64_t struct_size;
  uint32_t major, minor;
} MicaTable;

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
  /* Younger than 1.0: ask with MICA_HAS. Offers a table of the plugin's own to other plugins, who find it by
   * name with MicaHost.extension from the end of this init on, and no longer while the plugin is disabled.
   * The table begins with a MicaTable and stays where it is for good, as the plugin's code does; its name
   * begins with the plugin's or vendor's ("acme.collectives"). A manifest that `provides`
   * "extension:acme.collectives" has the plugin opened when somebody asks for it. */
  MicaStatus (*register_extension)(void* context, const char* name, const MicaTable* table);
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

/* The sizes that tables and records had in ABI 1.0. A reader takes anything that is
 * as large, and asks for each member that came later. */
#define MICA_HOST_SIZE_1_0 224
#define MICA_REGISTRAR_SIZE_1_0 56
#define MICA_KERNEL_RECORD_SIZE_1_0 80
#define MICA_CLASS_RECORD_SIZE_1_0 56
#define MICA_MANIFEST_SIZE_1_0 64
#define MICA_DEVICE_PROPERTIES_SIZE_1_0 40

/* Whether a table has a member: it lies inside the table's size and is not NULL.
 * Needed for members that are younger than 1.0, and for optional ones. */
#define MICA_HAS(table, member)                                                                      \
  ((uint64_t)((const char*)(&(table)->member + 1) - (const char*)(table)) <= (table)->struct_size && \
   (table)->member != NULL)

/* Whether host and registrar have all of 1.0, which an init asks once. If not, it
 * returns the bare code NOT_IMPLEMENTED: it needs more of its host. */
#define MICA_IS_1_0(host, registrar) \
  ((host)->struct_size >= MICA_HOST_SIZE_1_0 && (registrar)->struct_size >= MICA_REGISTRAR_SIZE_1_0)

/* ------------------------------------------------------------- layout --- */
MICA_LAYOUT_ASSERT(sizeof(MicaHost) >= MICA_HOST_SIZE_1_0);
MICA_LAYOUT_ASSERT(sizeof(MicaRegistrar) >= MICA_REGISTRAR_SIZE_1_0);
MICA_LAYOUT_ASSERT(sizeof(MicaKernelRecord) >= MICA_KERNEL_RECORD_SIZE_1_0);
MICA_LAYOUT_ASSERT(sizeof(MicaClassRecord) >= MICA_CLASS_RECORD_SIZE_1_0);
MICA_LAYOUT_ASSERT(sizeof(MicaManifest) >= MICA_MANIFEST_SIZE_1_0);
MICA_LAYOUT_ASSERT(sizeof(MicaObjectType) >= MICA_OBJECT_TYPE_SIZE_1_0);
MICA_LAYOUT_ASSERT(offsetof(MicaObjectType, reorder) == MICA_OBJECT_TYPE_SIZE_1_0);
MICA_LAYOUT_ASSERT(sizeof(MicaCall) == 64);
MICA_LAYOUT_ASSERT(offsetof(MicaCall, compute_dtype) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaCall, device_index) == 48);
MICA_LAYOUT_ASSERT(offsetof(MicaCall, stream) == 56);
MICA_LAYOUT_ASSERT(sizeof(MicaDeviceProperties) >= MICA_DEVICE_PROPERTIES_SIZE_1_0);
MICA_LAYOUT_ASSERT(offsetof(MicaHost, status_create) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaHost, extension) == 24 + 24 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaHost, random_words) == 24 + 25 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaHost, object_retain) == 24 + 26 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaHost, tensor_list_free) == 24 + 28 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaHost, tensor_payload) == 24 + 30 * 8);
MICA_LAYOUT_ASSERT(sizeof(MicaRandomWords) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaRegistrar, context) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaRegistrar, define_operator) == 24 + 3 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaRegistrar, register_extension) == 24 + 4 * 8);
MICA_LAYOUT_ASSERT(sizeof(MicaTable) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaDeviceTable, context) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaDeviceTable, count) == 24);
MICA_LAYOUT_ASSERT(offsetof(MicaDeviceTable, event_query) == 24 + 15 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaDeviceTable, detach) == 24 + 36 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaDeviceTable, dlpack_type) == 24 + 37 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaDeviceTable, event_create_with) == 24 + 38 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaDeviceTable, attribute) == 24 + 41 * 8);
MICA_LAYOUT_ASSERT(offsetof(MicaKernelRecord, schema_hash) == 16);
MICA_LAYOUT_ASSERT(offsetof(MicaKernelRecord, line) == 72);
MICA_LAYOUT_ASSERT(offsetof(MicaClassRecord, line) == 48);
MICA_LAYOUT_ASSERT(offsetof(MicaClassRecord, list_function) == 56);
MICA_LAYOUT_ASSERT(offsetof(MicaManifest, name) == 16);

#ifdef __cplusplus
}
#endif
#endif /* MICA_ABI_H_ */
