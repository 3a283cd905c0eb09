// The debug mode that holds kernels to their schemas: what a backend's kernel does not declare as written
// must be as it was after it, a result must not share memory with an argument unless the schema says so, has
// the shape, dtype and device that the operator's meta function gives, and nobody's references are released.
//
// On by MICA_CHECK_WRITES=1 or SetCheckWrites; then every call copies its arguments.
// Looks at elements on the CPU, of plugins', Python's and the host's kernels alike, and at the rest on all
// devices.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "dispatcher/tables/operator.h"
#include "schema/value.h"
#include "tensor/tensor.h"

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
  WriteCheck(const MicaValue* args, int64_t n, uint64_t written) : args_(args) {
    if (ChecksWrites()) [[unlikely]]
      Remember(args, n, written);
  }
  // Throws a kRuntime Error that names the operator and the argument or result. `results` are
  // the kernel's own (outputs that the host made are not), and released then.
  void Verify(const Operator& op, MicaValue* results, int64_t num_results) const {
    if (on_) [[unlikely]]
      Compare(op, results, num_results);
  }

 private:
  struct Kept {
    int64_t argument;
    Tensor tensor;
    bool written, may_change;  // its elements
    std::string bytes;         // of those that may not change
    Dims sizes, strides;
    const void* data;
  };
  struct KeptObject {
    int64_t argument;
    Value object;
  };
  void Remember(const MicaValue* args, int64_t n, uint64_t written);
  void Compare(const Operator& op, MicaValue* results, int64_t num_results) const;
  void CompareArguments(const Operator& op, const MicaValue* results, int64_t num_results) const;
  void CompareObjects(const Operator& op, const MicaValue* results, int64_t num_results) const;
  void CompareMemory(const Operator& op, const MicaValue* results, int64_t num_results) const;
  void CompareWithMeta(const Operator& op, const MicaValue* results, int64_t num_results) const;
  const MicaValue* args_;
  bool on_ = false;
  std::vector<Kept> kept_;
  std::vector<KeptObject> objects_;
};

}  // namespace mica
