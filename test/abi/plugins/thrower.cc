// A plugin whose entry lets a C++ exception pass the border: init, or query with
// LIE_QUERY. What it registered before must be taken back.
#include <mica/plugin.h>

#include <stdexcept>

MICA_PLUGIN_NOTE_(
    "{\"name\":\"thrower\",\"vendor\":\"Mica tests\",\"version\":\"1.0\",\"abi_major\":1,"
    "\"abi_minor\":0,\"cpu_features\":\"\",\"runtime_version\":\"\",\"provides\":\"operators:thrower\"}")

extern "C" MICA_EXPORT const MicaManifest* mica_plugin_query_v1(uint32_t) {
  static const MicaManifest manifest = {sizeof(MicaManifest), 1, 0, "thrower", "Mica tests", "1.0", "", "",
                                        "operators:thrower"};
#ifdef LIE_QUERY
  throw std::runtime_error("thrown in query");
#endif
  return &manifest;
}

extern "C" MICA_EXPORT MicaStatus mica_plugin_init_v1(const MicaHost*, const MicaRegistrar* r) {
  const MicaStatus s = r->define_operator(r->context, "thrower::op(Tensor x) -> int");
  if (s != nullptr) return s;
#ifdef LIE_THROW_INT
  throw 42;
#else
  throw std::runtime_error("thrown in init");
#endif
}
