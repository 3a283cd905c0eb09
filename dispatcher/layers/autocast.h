// Autocast: what a thread has switched on, and what the layer of that name (keys/autocast)
// offers to the bindings and to operators that are registered at run time.
//
// The key Autocast is included in a thread's calls while any device has autocast enabled,
// so a program without it pays nothing. The state is the thread's own: a new thread starts
// with autocast off. Casts of parameters are kept in a cache that lives until the outermost
// context is left (depth 0).
#pragma once

#include <array>
#include <cstdint>

#include "dispatcher/tables/operator.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/key_set.h"

namespace mica {

// What happens to the floating tensors among an operator's arguments; float64 stays.
enum class AutocastPolicy : uint8_t {
  kNone,     // nothing
  kLower,    // to the device's lower dtype
  kFloat32,  // to float32
  kPromote,  // to float32 where one of them is float32, else to the lower dtype
  kParts,    // nothing itself: a composite that decomposes at the layer, where each part has its own
  kWhole,    // nothing, nor to its parts
};

// An operator's policies: torch's lists for the CPU and for accelerators differ.
struct AutocastPolicies {
  AutocastPolicy cpu = AutocastPolicy::kNone;
  AutocastPolicy other = AutocastPolicy::kNone;
};
// "lower", "float32", "promote"; kNone for anything else.
AutocastPolicy AutocastPolicyNamed(const char* name);

struct AutocastState {
  uint32_t enabled = 0;  // a bit for each backend
  std::array<DType, keys::kBackendCount> dtypes;
  bool cache = true;
  int depth = 0;  // contexts entered
  AutocastState();
};
AutocastState& CurrentAutocast();

// Opens the layer's plugin on first use.
void SetAutocastEnabled(int backend, bool enabled);
// float16 and bfloat16 alone are lower dtypes; raises for others.
void SetAutocastDType(int backend, DType dtype);
// The new depth; at 0 the thread's cache is emptied.
int EnterAutocast();
int LeaveAutocast();
void ClearAutocastCache();

// The layer's kernel of an operator with these policies, for AddBoxedKernel.
BoxedKernel AutocastKernel(AutocastPolicies policies);

// While it lives, autocast is off on this thread, unless a context inside switches it on:
// an operator's own work, backward formulas, batch rules.
class NoAutocast {
 public:
  NoAutocast();
  ~NoAutocast();
  NoAutocast(const NoAutocast&) = delete;
  NoAutocast& operator=(const NoAutocast&) = delete;

 private:
  uint32_t enabled_;
};

// What the plugin offers.
inline constexpr const char* kAutocastExtension = "mica.autocast";
struct AutocastLayer {
  BoxedFunction run;      // of AutocastKernel
  void (*clear_cache)();  // this thread's
};

}  // namespace mica
