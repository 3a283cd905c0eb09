// Which operator wrote a storage last: for the error that says so. And who wants to
// know of a write before it happens.
//
// A small table of the most recent writes to storages that somebody watches
// (Autograd watches what it saves), so an ordinary write pays one test. An entry
// may be overwritten by another storage's; then the error does not name the write.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace mica {

namespace internal {
void RecordWrite(const Tensor& written, const char* op);
void AnnounceWrite(const Tensor& t);
}  // namespace internal

// Told of this thread's writes to storages that are watched, before they happen.
class WriteWatcher {
 public:
  virtual void BeforeWrite(const Tensor& written) = 0;

 protected:
  ~WriteWatcher() = default;
};
// NULL for none; the one before.
WriteWatcher* SetWriteWatcher(WriteWatcher* watcher);
inline void AnnounceWrite(const Tensor& t) {
  if (__builtin_expect(t.impl()->storage->watched(), 0)) internal::AnnounceWrite(t);
}

// After a write, when the version is the new one. Called again for the same
// version, the later name stays: a composite puts its own in place of its part's.
// `op` lives as long as the process.
inline void LogWrite(const Tensor& written, const char* op) {
  if (__builtin_expect(written.impl()->storage->watched(), 0)) internal::RecordWrite(written, op);
}
// The operator that gave the storage that version, or NULL.
const char* FindWrite(const Tensor& t, uint32_t version);

}  // namespace mica
