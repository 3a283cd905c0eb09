// A hash table of atomics, lossy on purpose.
#include "dispatcher/calls/write_log.h"

#include <atomic>
#include <utility>

namespace mica {
namespace {
struct Entry {
  std::atomic<uintptr_t> tag{0};  // storage and version mixed
  std::atomic<const char*> op{nullptr};
};
Entry g_entries[1024];

uintptr_t Tag(const StorageImpl* storage, uint32_t version) {
  return (reinterpret_cast<uintptr_t>(storage) ^ (uintptr_t{version} << 48)) + version;
}
Entry& EntryOf(uintptr_t tag) { return g_entries[(tag * 0x9E3779B97F4A7C15u) >> 54]; }
thread_local constinit WriteWatcher* t_watcher __attribute__((tls_model("initial-exec"))) = nullptr;
}  // namespace

WriteWatcher* SetWriteWatcher(WriteWatcher* watcher) { return std::exchange(t_watcher, watcher); }

void internal::AnnounceWrite(const Tensor& t) {
  if (t_watcher) t_watcher->BeforeWrite(t);
}

void internal::RecordWrite(const Tensor& written, const char* op) {
  const uintptr_t tag = Tag(written.impl()->storage, written.version());
  Entry& e = EntryOf(tag);
  e.tag.store(0, std::memory_order_relaxed);
  e.op.store(op, std::memory_order_release);
  e.tag.store(tag, std::memory_order_release);
}

const char* FindWrite(const Tensor& t, uint32_t version) {
  const uintptr_t tag = Tag(t.impl()->storage, version);
  const Entry& e = EntryOf(tag);
  return e.tag.load(std::memory_order_acquire) == tag ? e.op.load(std::memory_order_acquire) : nullptr;
}

}  // namespace mica
