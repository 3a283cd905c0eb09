/* A plugin whose init needs Python's lock: it sleeps, then takes the GIL, as one that
 * registers kernels written in Python does. It defines pythonic::seven. */
#include <mica/abi.h>
#include <string.h>
#include <unistd.h>

#define NOTE                                                                              \
  "{\"name\":\"pythonic\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1," \
  "\"abi_minor\":0,\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"operators:pythonic\"}"

__attribute__((section(".note.mica"), aligned(4), used)) static const struct {
  uint32_t name_size, desc_size, type;
  char name[8];
  char desc[(sizeof(NOTE) + 3) / 4 * 4];
} note = {5, sizeof(NOTE) - 1, MICA_NOTE_TYPE, MICA_NOTE_NAME, NOTE};

/* Of the Python that runs this process. */
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
int PyRun_SimpleString(const char* program);

static MicaStatus Seven(const MicaCall* call, const MicaValue* args, int64_t n, MicaValue* results,
                        int64_t num_results) {
  (void)call, (void)args, (void)n, (void)num_results;
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = 7;
  return NULL;
}

MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t host_minor) {
  (void)host_minor;
  static const MicaManifest manifest = {sizeof(MicaManifest), 1, 0, "pythonic", "Mica tests", "1.0", "", "",
                                        "operators:pythonic"};
  return &manifest;
}

MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost* host, const MicaRegistrar* r) {
  (void)host;
  usleep(500000);
  const int state = PyGILState_Ensure();
  PyRun_SimpleString("import time; time.sleep(0.2); print('from the init', flush=True)");
  PyGILState_Release(state);
  MicaStatus status = r->define_operator(r->context, "pythonic::seven(Tensor x) -> int");
  if (status) return status;
  MicaKernelRecord k;
  memset(&k, 0, sizeof(k));
  k.struct_size = sizeof(k);
  k.name = "pythonic::seven";
  k.backend = "cpu";
  k.boxed = Seven;
  return r->register_kernel(r->context, &k);
}
