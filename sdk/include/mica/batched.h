/* vmap, for those who enter its frames (the Python package) or ask about its rules, in C11: the
 * payload of a frame of the kind "vmap", and the table that its plugin offers as the extension
 * MICA_BATCHED_EXTENSION. Append-only.
 */
#ifndef MICA_BATCHED_H_
#define MICA_BATCHED_H_

#include <mica/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_BATCHED_EXTENSION "mica.batched"

/* What random operators do under vmap. */
#define MICA_BATCH_ERROR 0     /* raise */
#define MICA_BATCH_SAME 1      /* one draw for all examples */
#define MICA_BATCH_DIFFERENT 2 /* one draw for each example */

typedef struct MicaBatch {
  int64_t size; /* examples */
  int32_t randomness;
  int32_t reserved;
} MicaBatch;

typedef struct MicaBatched {
  MicaTable table;
  /* The number of the frame kind, for MicaLayers::frame_enter. */
  int32_t (*kind)(void);
  /* Where the batch rule of an operator's handle comes from: "class", "by hand", "decomposition",
   * "loop" or "refused". */
  const char* (*rule_source)(void* op);
} MicaBatched;

#ifdef __cplusplus
}
#endif
#endif /* MICA_BATCHED_H_ */
