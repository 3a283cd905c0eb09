// The debug mode that holds kernels to their schemas: what a backend's kernel does not
// declare as written must be as it was after it, and a result must not share memory
// with an argument unless the schema says so.
//
// On by MICA_CHECK_WRITES=1 or SetCheckWrites; then every call copies its arguments.
// Looks at tensors on the CPU, of plugins', Python's and the host's kernels alike.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "dispatcher/tables/operator.h"

namespace mica {

namespace internal {
extern std::atomic<bool> g_check_writes;
}
inline bool ChecksWrites() { return internal::g_check_writes.load(std::memory_order_relaxed); }
bool SetCheckWrites(bool on);  // what it was

// Made before a kernel runs, asked after it. Costs one load where the mode is off.
class WriteCheck {
 public:
  // `written` has a bit for each argument that the kernel writes.
  WriteCheck(const MicaValue* args, int64_t n, uint64_t written) {
    if (ChecksWrites()) [[unlikely]]
      Remember(args, n, written);
  }
  // Throws a kRuntime Error that names the operator and the argument. `results` are
  // the kernel's own (outputs that the host made are not).
  void Verify(const Operator& op, const MicaValue* results, int64_t num_results) const {
    if (!kept_.empty()) [[unlikely]]
      Compare(op, results, num_results);
  }

 private:
  struct Kept {
    int64_t argument;
    const MicaTensor* tensor;
    std::string bytes;
  };
  void Remember(const MicaValue* args, int64_t n, uint64_t written);
  void Compare(const Operator& op, const MicaValue* results, int64_t num_results) const;
  std::vector<Kept> kept_;
};

}  // namespace mica
