#include "keys/autocast/state.h"

#include <atomic>
#include <string>

#include <mica/layer.h>
#include "keys/autocast/cache.h"

namespace mica::autocast {
namespace {

std::atomic<int32_t> g_bit{-1};

int32_t Enabled(int32_t backend) {
  return backend < 0 ? CurrentState().enabled != 0 : CurrentState().is_on(backend);
}

void CheckBackend(int32_t backend) {
  MICA_PLUGIN_CHECK(backend >= 0 && backend < kMaxBackends, MICA_ERROR_VALUE,
                    "The index (" + std::to_string(backend) + ") of autocast is not that of a backend.");
}

MicaStatus SwitchOn(int32_t backend, int32_t on) {
  return plugin::CatchAll([&] {
    CheckBackend(backend);
    const uint64_t bit = uint64_t{1} << backend, all = CurrentState().enabled;
    SetEnabled(on ? all | bit : all & ~bit);
  });
}

MicaStatus SetLower(int32_t backend, int32_t dtype) {
  return plugin::CatchAll([&] {
    CheckBackend(backend);
    MICA_PLUGIN_CHECK(dtype == MICA_F16 || dtype == MICA_BF16, MICA_ERROR_VALUE,
                      "The dtype number (" + std::to_string(dtype) +
                          ") of autocast is not one that it casts to; expected float16 or bfloat16.");
    CurrentState().lower[backend] = static_cast<int8_t>(dtype);
  });
}

// One that was entered in another build of the plugin is left there.
int32_t Leave() {
  int32_t& depth = CurrentState().depth;
  if (depth > 0 && --depth == 0) ClearCache();
  return depth;
}

}  // namespace

void SetBit(int32_t bit) { g_bit.store(bit, std::memory_order_relaxed); }
int32_t Bit() { return g_bit.load(std::memory_order_relaxed); }

void SetEnabled(uint64_t backends) {
  CurrentState().enabled = backends;
  const MicaLayers& layers = *layer::Table();
  const uint64_t key = layer::Bit(Bit()), now = layer::Thread().include;
  layers.exchange_include(backends ? now | key : now & ~key);
}

const MicaAutocast kTable = {
    {sizeof(MicaAutocast), 1, 0},
    &Enabled,
    &SwitchOn,
    [](int32_t backend) -> int32_t {
      return backend >= 0 && backend < kMaxBackends ? CurrentState().lower[backend] : MICA_DTYPE_NONE;
    },
    &SetLower,
    [] { return ++CurrentState().depth; },
    &Leave,
    []() -> int32_t { return CurrentState().cache; },
    [](int32_t on) { CurrentState().cache = on != 0; },
    &ClearCache,
};

}  // namespace mica::autocast
