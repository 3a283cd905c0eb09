/* Starts another plugin under a host table of another size, as an older or newer Mica
 * would have it: SHIM_PLUGIN is its path, SHIM_SIZE the size that the table states
 * (the rest of it is poison: a call there ends the process with status 86), SHIM_NULL
 * the number of a slot that is NULL. */
#include <dlfcn.h>
#include <mica/abi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PROVIDES
#define PROVIDES "nothing"
#endif

#define NOTE                                                                          \
  "{\"name\":\"shim\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1," \
  "\"abi_minor\":0,\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"" PROVIDES "\"}"
__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

static void Poison(void) {
  static const char text[] = "a function beyond the table's size was called\n";
  (void)!write(2, text, sizeof(text) - 1);
  _exit(86);
}

/* As large as any size that is asked for; what lies beyond the real table is poison. */
static union {
  MicaHost host;
  void (*slots[128])(void);
} table;

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  static const MicaManifest manifest = {
      sizeof(MicaManifest), 1, 0, "shim", "Mica tests", "1.0", "", "", PROVIDES};
  (void)host_minor;
  return &manifest;
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* real, const MicaRegistrar* registrar) {
  const char* path = getenv("SHIM_PLUGIN");
  const char* size = getenv("SHIM_SIZE");
  const char* null = getenv("SHIM_NULL");
  void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  MicaPluginInit init = library ? (MicaPluginInit)dlsym(library, MICA_PLUGIN_INIT) : NULL;
  const uint64_t stated = size ? (uint64_t)atoll(size) : sizeof(MicaHost);
  uint64_t i;
  if (!init) return (MicaStatus)(uintptr_t)MICA_ERROR_VALUE;
  for (i = 0; i < sizeof(table.slots) / sizeof(table.slots[0]); ++i) table.slots[i] = Poison;
  memcpy(&table, real, stated < sizeof(MicaHost) ? stated : sizeof(MicaHost));
  table.host.struct_size = stated;
  if (null) table.slots[atoi(null)] = NULL;
  return init(&table.host, registrar);
}
