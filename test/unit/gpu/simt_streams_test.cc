// Streams of the simulated GPU: what is ordered, what is late, and when errors come.
#include <cstdlib>
#include <thread>

#include "test/unit/gpu/child.h"
#include "test/unit/gpu/simt_fixture.h"

namespace simt::test {
namespace {

struct Stream {
  explicit Stream(int device = 0) : device(device), handle(Simt().StreamCreate(device, 0)) {}
  ~Stream() { Simt().StreamDestroy(device, handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  const int device;
  const uint64_t handle;
};

struct Event {
  Event() : handle(Simt().EventCreate(0, 0)) {}
  ~Event() { Simt().EventDestroy(0, handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  const uint64_t handle;
};

// Streams whose tasks begin only when somebody waits, while it lives.
struct Late {
  Late() { setenv("MICA_SIMT_LATE", "60000", 1); }
  ~Late() { unsetenv("MICA_SIMT_LATE"); }
};

TEST_CASE("events order two streams", "[gpu][simt][streams]") {
  Stream first, second;
  Event filled, read;
  Array<int> out(64), next(std::vector<int>{0});
  Simt().DeviceSync(0);
  REQUIRE(Simt().EventDone(0, filled.handle));  // nothing was recorded
  for (int k = 0; k < 20; ++k) {
    Simt().Fill(0, next.data(), 0, 4, first.handle);
    for (int i = 0; i < 20; ++i) Run(Function("append"), {1, 1, first.handle}, out.data(), next.data());
    Simt().EventRecord(0, filled.handle, first.handle);
    Simt().EventWait(0, filled.handle, second.handle);
    REQUIRE(next.Values(second.handle)[0] == 20);
    Simt().EventRecord(0, read.handle, second.handle);
    Simt().EventWait(0, read.handle, first.handle);
  }
  Simt().EventSync(0, read.handle);
  REQUIRE(Simt().EventDone(0, filled.handle));
  REQUIRE(Simt().EventElapsed(0, filled.handle, read.handle) >= 0);
}

TEST_CASE("without an event, another stream reads too early", "[gpu][simt][streams]") {
  const Late late;
  Stream first, second;
  Array<int> x(std::vector<int>{1});
  Simt().DeviceSync(0);
  Simt().Fill(0, x.data(), 0, 4, first.handle);
  REQUIRE(x.Values(second.handle)[0] == 1);
  REQUIRE(!Simt().StreamDone(0, first.handle));
  REQUIRE(x.Values(first.handle)[0] == 0);
}

TEST_CASE("a copy of pinned memory is late", "[gpu][simt][streams]") {
  const Late late;
  Stream stream;
  Array<int> x(2);
  int* pinned = static_cast<int*>(Simt().PinnedAllocate(8));
  pinned[0] = 5;
  Simt().CopyToDevice(0, x.data(), pinned, 4, stream.handle);
  REQUIRE(!Simt().StreamDone(0, stream.handle));
  pinned[0] = 6;  // too early
  Simt().CopyToHost(0, pinned + 1, x.data(), 4, stream.handle);
  REQUIRE(pinned[1] == -1);
  Simt().StreamSync(0, stream.handle);
  REQUIRE(pinned[1] == 6);
  REQUIRE(Simt().StreamDone(0, stream.handle));
  Simt().PinnedFree(pinned);
  MICA_REQUIRE_ERROR(Simt().PinnedFree(&pinned), "memory that is not pinned");
}

TEST_CASE("queued work begins by itself", "[gpu][simt][streams]") {
  Stream stream;
  Array<int> x(2);
  Simt().Fill(0, x.data(), 0, 8, stream.handle);
  for (int i = 0; i < 5000 && !Simt().StreamDone(0, stream.handle); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(Simt().StreamDone(0, stream.handle));
}

TEST_CASE("a copy between devices waits for what it needs", "[gpu][simt][streams]") {
  const std::vector<float> values = Counted<float>(1000);
  Array<float> x(values), y(1000, 1);
  Simt().DeviceSync(0);
  Simt().CopyToPeer(1, y.data(), 0, x.data(), x.Bytes(), 0);
  REQUIRE(y.Values() == values);
}

TEST_CASE("handles that do not exist are sentences", "[gpu][simt][streams]") {
  Event event;
  MICA_REQUIRE_ERROR(Simt().StreamSync(0, 999999), "has no stream (999999)");
  MICA_REQUIRE_ERROR(Simt().EventSync(0, 999999), "There is no event (999999)");
  MICA_REQUIRE_ERROR(Simt().EventRecord(1, event.handle, 0), "is recorded on the simulated GPU (1)");
  MICA_REQUIRE_ERROR(Simt().EventElapsed(0, event.handle, event.handle), "once both were recorded");
}

TEST_CASE("a process ends with work queued and an error that nobody asked for", "[gpu][simt][streams]") {
  REQUIRE_THAT(gpu::test::RunHidden("[simt-end]", {}),
               Catch::Matchers::Contains("nothing waited for an error of the simulated GPU"));
}

}  // namespace
}  // namespace simt::test
