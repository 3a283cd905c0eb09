// Warnings that a process gives once.
#include "dispatcher/calls/warn_once.h"

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "dispatcher/plugins/host.h"

namespace mica {
namespace {

std::atomic<bool> g_always{false};

bool IsFirst(std::string_view key) {
  static std::mutex lock;
  static auto* given = new std::set<std::string, std::less<>>;
  std::lock_guard guard(lock);
  return given->emplace(key).second;
}

}  // namespace

void WarnOnce(std::string_view key, std::string_view message) {
  if (IsFirst(key) || IsWarnAlways()) HostWarn(message);
}

void WarnAlways(bool always) { g_always.store(always, std::memory_order_relaxed); }
bool IsWarnAlways() { return g_always.load(std::memory_order_relaxed); }

}  // namespace mica
