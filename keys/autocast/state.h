// What this thread has switched on, and the table by which others switch it (<mica/autocast.h>).
//
// The key Autocast is included in a thread's calls while any device has autocast enabled, so a
// program without it pays nothing.
#pragma once

#include <cstdint>

#include <mica/autocast.h>

namespace mica::autocast {

// A backend's bit is below the layers'.
inline constexpr int kMaxBackends = 24;

struct State {
  uint64_t enabled = 0;  // a bit for each backend
  int32_t depth = 0;     // contexts entered
  bool cache = true;
  int8_t lower[kMaxBackends];
  constexpr State() : lower() {
    for (int8_t& dtype : lower) dtype = MICA_F16;
    lower[0] = MICA_BF16;  // the CPU's
  }
  bool is_on(int32_t backend) const {
    return backend >= 0 && backend < kMaxBackends && (enabled >> backend & 1) != 0;
  }
};
// Small, so that it fits the static TLS reserve of an object that is opened late, and costs one load.
inline State& CurrentState() {
  static thread_local __attribute__((tls_model("initial-exec"))) State state;
  return state;
}

// Puts the layer into this thread's calls, or takes it out.
void SetEnabled(uint64_t backends);
// While it lives, autocast is off on this thread, unless a context inside switches it on.
class NoAutocast {
 public:
  NoAutocast() : enabled_(CurrentState().enabled) { SetEnabled(0); }
  ~NoAutocast() { SetEnabled(enabled_); }
  NoAutocast(const NoAutocast&) = delete;
  NoAutocast& operator=(const NoAutocast&) = delete;

 private:
  uint64_t enabled_;
};

// The layer's bit; `bit` once, by the plugin's entry.
void SetBit(int32_t bit);
int32_t Bit();

extern const MicaAutocast kTable;

}  // namespace mica::autocast
