// explain: the layers that a call would pass, and why each slot holds what it
// holds. For people; the text is not parsed by programs.
#pragma once

#include <string>

#include "mica/dispatcher/operator.h"

namespace mica {

enum class SlotReason {
  kKernel,
  kClassKernel,
  kStructured,
  kView,
  kComposite,
  kPortable,
  kFallback,
  kFallthrough,
  kMissing,
  kMetaOnly
};

struct SlotExplanation {
  int bit;
  std::string key;  // "Autograd", "cpu"
  SlotReason reason;
  std::string plugin;  // "autograd (/path/mica_autograd.so)", or "mica"
  std::string detail;  // one sentence
};

// The slots that a call with `keys` passes, outermost first; the last one is
// where it ends.
std::vector<SlotExplanation> ExplainCall(const Operator& op, KeySet keys);
std::string ExplainText(const Operator& op, KeySet keys);

}  // namespace mica
