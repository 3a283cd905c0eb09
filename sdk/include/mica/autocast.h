/* Autocast, for those who switch it on (the Python package), in C11: this thread's state, which
 * the plugin of the layer "Autocast" offers as the extension MICA_AUTOCAST_EXTENSION.
 *
 * `backend` is an index as of MicaHost::backend_index. A thread begins with autocast off,
 * float16 as the lower dtype of every backend but the CPU, whose is bfloat16. Casts of
 * parameters are kept until the outermost context is left. Append-only.
 */
#ifndef MICA_AUTOCAST_H_
#define MICA_AUTOCAST_H_

#include <mica/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_AUTOCAST_EXTENSION "mica.autocast"

typedef struct MicaAutocast {
  MicaTable table;
  /* 1 where it is on, for any backend with -1 */
  int32_t (*enabled)(int32_t backend);
  MicaStatus (*set_enabled)(int32_t backend, int32_t on);
  int32_t (*lower_dtype)(int32_t backend);
  /* MICA_ERROR_VALUE for others than MICA_F16 and MICA_BF16, as for a backend's index that there is not */
  MicaStatus (*set_lower_dtype)(int32_t backend, int32_t dtype);
  /* Contexts: the new depth. Leaving the outermost one empties the cache. */
  int32_t (*enter)(void);
  int32_t (*leave)(void);
  int32_t (*cache_enabled)(void);
  void (*set_cache_enabled)(int32_t on);
  void (*clear_cache)(void);
} MicaAutocast;

#ifdef __cplusplus
}
#endif
#endif /* MICA_AUTOCAST_H_ */
