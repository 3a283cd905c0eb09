// The CPU fallback: one boxed kernel that runs any operator of any backend on the
// CPU, for what the backend has no kernel for.
//
// Tensor arguments are copied to the CPU, the operator runs there, results and
// written arguments (through views too) are copied back. A random operator draws
// from the device's generator. It is the last resort of a backend's slot, and of a
// kernel that answers NOT_IMPLEMENTED; `explain` shows it, MICA_FALLBACK=warn says
// it once an operator, MICA_FALLBACK=error refuses it, and every call is counted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dispatcher/tables/operator.h"

namespace mica {

// A BoxedFunction without context.
void RunOnCpu(const BoxedKernel& k, const Operator& op, KeySet keys, const MicaValue* args, int64_t n,
              MicaValue* results);

enum class FallbackPolicy { kAllow, kWarn, kError };
// The environment variable MICA_FALLBACK until it is set; kAllow without either.
FallbackPolicy GetFallbackPolicy();
void SetFallbackPolicy(FallbackPolicy policy);
// "allow", "warn", "error"; anything else is a kValue Error.
FallbackPolicy ParseFallbackPolicy(std::string_view text);
const char* Name(FallbackPolicy policy);

struct FallbackCount {
  std::string backend, op;
  int64_t calls;
};
std::vector<FallbackCount> FallbackCounts();
void ResetFallbackCounts();

}  // namespace mica
