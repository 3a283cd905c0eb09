// A plugin that reads the host's settings: settings::read(name, otherwise), and settings::empty_cache() asks
// the host to give a device's idle memory back.
#include <mica/memory.h>
#include <mica/plugin.h>

#include <string>

namespace {

void Read(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const std::string name(args[0].u.str.data, static_cast<size_t>(args[0].u.str.size));
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = mica::plugin::Setting(name.c_str(), args[1].u.i).value();
}

void EmptyCache(const MicaCall*, const MicaValue*, int64_t, MicaValue* results, int64_t) {
  const auto* memory = mica::plugin::Extension<MicaMemory>(MICA_MEMORY_EXTENSION, 1, 0);
  mica::plugin::Check(memory->empty_cache(MicaDevice{0, 0}));
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = 0;
}

void Init(const MicaHost* host, const MicaRegistrar* r) {
  const auto memory = [&](uint32_t minor) {
    return host->extension(mica::plugin::Str(MICA_MEMORY_EXTENSION), minor);
  };
  MICA_PLUGIN_CHECK(memory(1) && !memory(2), MICA_ERROR_INTERNAL,
                    "The host's extension mica.memory is not of version 1.1.");
  static const mica::plugin::Option depth("settings.depth", 3), again("settings.depth", 4),
      nameless("depth", 5);
  MICA_PLUGIN_CHECK(again.value() == depth.value() && nameless.value() == 5, MICA_ERROR_INTERNAL,
                    "An option has two places.");
  mica::plugin::Registrar registrar(r, "cpu");
  registrar.Define("settings::read(str name, int otherwise) -> int");
  registrar.Boxed<&Read>("settings::read");
  registrar.Define("settings::empty_cache() -> int");
  registrar.Boxed<&EmptyCache>("settings::empty_cache");
}

}  // namespace

MICA_PLUGIN("settings", "Mica tests", "1.0", "", "", "operators:settings", Init)
