// libcudnn.so.9, imitated: handles, statuses and failures. cudnn_graph.cc has its graphs.
//
// FAKE_CUDNN_VERSION is its version.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define FAKE(type) extern "C" __attribute__((visibility("default"))) type

// The status of a call that is to fail, of those that FakeFail counts; also of a graph's.
FAKE(int) FakeFailure();

namespace {

std::atomic<int> g_handles{0}, g_status{0}, g_failures{0};

}  // namespace

FAKE(int) FakeHandles() { return g_handles; }
FAKE(int) FakeFailure() { return g_failures > 0 && g_failures-- > 0 ? g_status.load() : 0; }
FAKE(void) FakeFail(int status, int times) { g_status = status, g_failures = times; }

FAKE(size_t) cudnnGetVersion() {
  const char* version = std::getenv("FAKE_CUDNN_VERSION");
  return version ? static_cast<size_t>(std::atoi(version)) : 91900;
}
FAKE(const char*) cudnnGetErrorString(int status) { return status == 4004 ? "NO_MEMORY" : "ANOTHER"; }
FAKE(void) cudnnGetLastErrorString(char* text, size_t size) { std::strncpy(text, "words", size); }
FAKE(int) cudnnCreate(void** handle) {
  if (const int failure = FakeFailure()) return failure;
  return *handle = reinterpret_cast<void*>(intptr_t{++g_handles}), 0;
}
FAKE(int) cudnnSetStream(void*, void*) { return 0; }
