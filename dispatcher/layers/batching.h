// What a vmap frame carries as its payload: shared by the layer Batched (keys/batched),
// which computes with it, and those who enter such a frame (the Python binding).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dispatcher/tables/operator.h"

namespace mica::frames {

// What random operators do under vmap.
enum class Randomness : uint8_t {
  kError,      // raise
  kSame,       // one draw for all examples
  kDifferent,  // one draw for each example
};

struct Batch {
  int64_t size = 0;  // examples
  Randomness randomness = Randomness::kError;
};

// Where an operator's batch rule comes from ("class", "by hand", "decomposition", "loop",
// "refused"), which the layer Batched says once it is loaded.
using BatchRuleSource = const char* (*)(const Operator& op);
void SetBatchRuleSource(BatchRuleSource source);
const char* BatchRuleOf(const Operator& op);  // throws where the layer cannot be loaded

// What a plugin's record says in `batch_rule`: an operator of the same arguments, each tensor with the
// batch in front, which computes the operator for all examples. "" of operators without one.
void SetPluginBatchRule(std::string_view op, std::string rule);
std::string PluginBatchRule(std::string_view op);

}  // namespace mica::frames
