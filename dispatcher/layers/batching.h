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
// "refused").
const char* BatchRuleOf(const Operator& op);  // throws where the layer cannot be loaded

// What the layer Batched offers.
inline constexpr const char* kBatchingExtension = "mica.batching";
struct BatchingLayer {
  const char* (*rule_source)(const Operator& op);
};

// What a plugin's record says in `batch_rule`: an operator of the same arguments, each tensor with the
// batch in front, which computes the operator for all examples. "" of operators without one.
void SetPluginBatchRule(std::string_view op, std::string rule);
std::string PluginBatchRule(std::string_view op);

}  // namespace mica::frames
