#include "test/unit/gpu/fake_host.h"

#include <cstdlib>

#include <mica/memory.h>
#include <mica/plugin.h>

namespace cuda::test {
namespace {

FakeHost& State() {
  static auto& state = *new FakeHost;
  return state;
}

std::string Text(MicaStr text) { return {text.data, static_cast<size_t>(text.size)}; }

MicaStatus Allocate(MicaDevice, int64_t size, uint64_t, void** out) {
  if (State().refused > 0) return --State().refused, mica::plugin::BareStatus(MICA_ERROR_OUT_OF_MEMORY);
  ++State().in_use;
  *out = std::malloc(static_cast<size_t>(size));
  return nullptr;
}
void Free(MicaDevice, void* data) {
  --State().in_use;
  std::free(data);
}
MicaStatus EmptyCache(MicaDevice) { return ++State().emptied, nullptr; }
MicaStatus KeepWhole(MicaStr) { return nullptr; }
const int64_t* FindSetting(MicaStr name) { return &State().settings[Text(name)]; }

const void* Extension(MicaStr name, uint32_t) {
  static const MicaMemory memory = {{sizeof(MicaMemory), 1, 1}, &EmptyCache, &KeepWhole};
  static const MicaSettings settings = {{sizeof(MicaSettings), 1, 0}, &FindSetting};
  return Text(name) == MICA_MEMORY_EXTENSION     ? static_cast<const void*>(&memory)
         : Text(name) == MICA_SETTINGS_EXTENSION ? &settings
                                                 : nullptr;
}

}  // namespace

FakeHost& GetHost() {
  static const MicaHost host = [] {
    MicaHost made{};
    made.struct_size = sizeof made;
    made.allocate = &Allocate;
    made.free = &Free;
    made.backend_index = [](MicaStr) { return int32_t{1}; };
    made.warn = [](MicaStr message) { State().warnings.push_back(Text(message)); };
    made.extension = &Extension;
    return made;
  }();
  mica::plugin::Host() = &host;
  return State();
}

}  // namespace cuda::test
