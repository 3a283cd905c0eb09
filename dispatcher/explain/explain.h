// explain: the layers that a call would pass, and why each slot holds what it
// holds. For people; the text is not parsed by programs.
#pragma once

#include <string>

#include "dispatcher/tables/operator.h"

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
// `args`, all of the call's, let the device say what it does not support; NULL where
// they are not known.
std::string ExplainText(const Operator& op, KeySet keys, const MicaValue* args = nullptr, int64_t n = 0);

}  // namespace mica
