/* What a plugin may ask of the host's caching allocators beyond MicaHost's allocate and free, in C11.
 *
 * The host offers this table as the extension MICA_MEMORY_EXTENSION. Append-only.
 */
#ifndef MICA_MEMORY_H_
#define MICA_MEMORY_H_

#include <mica/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_MEMORY_EXTENSION "mica.memory"

typedef struct MicaMemory {
  MicaTable head; /* 1.0 */
  /* Gives all idle blocks of a device's allocator back to the device, which may wait for it. For a plugin
   * whose vendor's library has found no memory, before it tries again; the host's own `allocate` does so by
   * itself. */
  MicaStatus (*empty_cache)(MicaDevice device);
  /* Since 1.1, which to ask `extension` for. Says that each block of the backend is to be memory of its own,
   * as `allocate` of its table gave it, where blocks are cut from larger pieces otherwise. For a device that
   * watches the bounds of what it gave; called while the plugin is initialised. */
  MicaStatus (*keep_blocks_whole)(MicaStr backend);
} MicaMemory;

MICA_LAYOUT_ASSERT(offsetof(MicaMemory, empty_cache) == sizeof(MicaTable));
MICA_LAYOUT_ASSERT(offsetof(MicaMemory, keep_blocks_whole) == sizeof(MicaTable) + 8);

#ifdef __cplusplus
}
#endif
#endif /* MICA_MEMORY_H_ */
