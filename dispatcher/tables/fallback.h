// The CPU fallback: one boxed kernel that runs any operator of any backend on the
// CPU, for what the backend has no kernel for.
//
// Tensor arguments are copied to the CPU, the operator runs there, results and
// written arguments (through views too) are copied back. A random operator draws
// from the device's generator. It is the last resort of a backend's slot, and of a
// kernel that answers NOT_IMPLEMENTED. The first one of a process is a warning; with
// MICA_FALLBACK=warn each operator's first one is, with allow none, and error refuses it.
// Every call is counted, and `explain` shows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dispatcher/tables/operator.h"

namespace mica {

// A BoxedFunction without context.
void RunOnCpu(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
              MicaValue* results);

enum class FallbackPolicy { kOnce, kAllow, kWarn, kError };
// The environment variable MICA_FALLBACK until it is set; kOnce without either.
FallbackPolicy GetFallbackPolicy();
void SetFallbackPolicy(FallbackPolicy policy);
// "once", "allow", "warn", "error"; anything else is a kValue Error.
FallbackPolicy ParseFallbackPolicy(std::string_view text);
const char* Name(FallbackPolicy policy);

struct FallbackCount {
  std::string backend, op;
  int64_t calls;
};
std::vector<FallbackCount> FallbackCounts();
// Whether anything was said of a fallback, so that a summary at exit is due.
bool WasFallbackSaid();
void ResetFallbackCounts();

}  // namespace mica
