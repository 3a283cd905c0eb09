// The host's side of a device: what it waits for, what it keeps alive, which memory
// it gives out again, which tables it refuses.
#include "dispatcher/devices/device_copy.h"
#include "dispatcher/devices/streams.h"
#include "dispatcher/plugins/plugins.h"
#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/fallback.h"
#include "tensor/allocator.h"
#include "test/support/mica_test.h"
#include "test/unit/dispatcher/lazy_device.h"
#include "test/unit/dispatcher/test_operators.h"

namespace mica::testing {
namespace {

Device LazyPlace(int16_t index = 0) {
  Lazy();
  return {static_cast<int16_t>(BackendIndex("lazy")), index};
}

// A stream that is held for good.
StreamRef NewStream(Device device) {
  static auto& held = *new std::vector<Stream>();
  return held.emplace_back(Stream::Create(device, 0)).ref();
}

Tensor Counting(int64_t n) {
  Tensor t = EmptyTensor({n}, DType::kF32, Device{});
  for (int64_t i = 0; i < n; ++i) t.data_as<float>()[i] = static_cast<float>(i);
  return t;
}

TEST_CASE("copies to and from a device are there when they return", "[dispatcher]") {
  const Tensor there = OnDevice(Counting(100), LazyPlace());
  const Tensor back = OnHost(there);
  CHECK(back.data_as<float>()[99] == 99);
  CHECK(there.device() == LazyPlace());
}

TEST_CASE("a copy that does not wait keeps both ends alive", "[dispatcher]") {
  const Tensor there = EmptyTensor({1000}, DType::kF32, LazyPlace());
  {
    const Tensor source = Counting(1000);
    CopyValues(there, source, true);
  }
  for (int i = 0; i < 4; ++i) EmptyTensor({1000}, DType::kF32, Device{}).data_as<float>()[999] = -1;
  SynchronizeDevice(LazyPlace());
  CHECK(OnHost(there).data_as<float>()[999] == 999);
}

TEST_CASE("what a copy that does not wait kept goes when its device was waited for", "[dispatcher]") {
  Storage memory;
  {
    const Tensor there = EmptyTensor({1000}, DType::kF32, LazyPlace());
    memory = there.storage();
    const Tensor source = Counting(1000);
    CopyValues(there, source, true);
    source.data_as<float>()[0] = -1;  // not pinned, so that it was copied aside
  }
  CHECK(memory->use_count() == 2);
  SynchronizeDevice(LazyPlace());
  CHECK(memory->use_count() == 1);
  CHECK(static_cast<const float*>(memory->data())[0] == 0);
}

TEST_CASE("peers copy without the host, in the order of both streams", "[dispatcher]") {
  const int before = Lazy().peer_copies;
  const Tensor there = OnDevice(OnDevice(Counting(50), LazyPlace(0)), LazyPlace(1));
  CHECK(Lazy().peer_copies == before + 1);
  CHECK(OnHost(there).data_as<float>()[49] == 49);
}

TEST_CASE("memory goes back to the stream it came from", "[dispatcher]") {
  const StreamRef one = NewStream(LazyPlace()), two = NewStream(LazyPlace());
  const auto address_on = [&](const StreamRef& s) {
    const uint64_t before = ExchangeStream(s.device, s.handle);
    void* data = EmptyTensor({100000}, DType::kF32, s.device).data();
    ExchangeStream(s.device, before);
    return data;
  };
  void* const first = address_on(one);
  CHECK(address_on(two) != first);
  CHECK(address_on(one) == first);
}

TEST_CASE("memory used on another stream waits for that stream", "[dispatcher]") {
  const StreamRef home = NewStream(LazyPlace()), other = NewStream(LazyPlace());
  const uint64_t before = ExchangeStream(home.device, home.handle);
  void* address;
  {
    const Tensor t = EmptyTensor({70000}, DType::kF32, home.device);
    address = t.data();
    RecordStream(t, other.handle);
  }
  CHECK(EmptyTensor({70000}, DType::kF32, home.device).data() != address);
  SynchronizeStream(other);
  const Tensor keep = EmptyTensor({70000}, DType::kF32, home.device);
  const Tensor again = EmptyTensor({70000}, DType::kF32, home.device);
  CHECK((keep.data() == address || again.data() == address));
  ExchangeStream(home.device, before);
}

TEST_CASE("an event that memory waits for is known to the build that made it alone", "[dispatcher]") {
  static int asked = 0;  // of the build that takes the place
  const int backend = LazyPlace().backend;
  const MicaDeviceTable* const made_by = DeviceTable(backend);
  MicaDeviceTable other = *made_by;
  other.event_query = [](void*, int32_t, uint64_t, int32_t* done) -> MicaStatus {
    ++asked, *done = 1;
    return nullptr;
  };
  other.event_sync = other.event_destroy = [](void*, int32_t, uint64_t) -> MicaStatus {
    ++asked;
    return nullptr;
  };
  const StreamRef stream = NewStream(LazyPlace());
  const int events = Lazy().events_alive;
  RecordStream(EmptyTensor({90000}, DType::kF32, LazyPlace()), stream.handle);
  REQUIRE(Lazy().events_alive == events + 1);
  PublishDeviceTable("lazy", KeepDeviceTable(other));
  EmptyTensor({90000}, DType::kF32, LazyPlace());  // asks which events have passed
  AllocatorFor(LazyPlace()).EmptyCache();          // waits for the others
  PublishDeviceTable("lazy", made_by);
  CHECK(asked == 0);
  CHECK(Lazy().events_alive == events);
}

TEST_CASE("a full device is emptied, tried again, and then said", "[dispatcher]") {
  const int64_t memory = Lazy().memory;
  AllocatorFor(LazyPlace()).EmptyCache();
  Lazy().memory = Lazy().in_use + (int64_t{3} << 20);
  EmptyTensor({2 << 20}, DType::kU8, LazyPlace());  // idle afterwards
  const Tensor t = EmptyTensor({(2 << 20) + (1 << 19)}, DType::kU8, LazyPlace());
  MICA_REQUIRE_ERROR(EmptyTensor({2 << 20}, DType::kU8, LazyPlace()),
                     "The device lazy:0 has no memory for a request of 2097152 bytes");
  Lazy().memory = memory;
}

TEST_CASE("events order streams, and are queried without waiting", "[dispatcher]") {
  const StreamRef one = NewStream(LazyPlace()), two = NewStream(LazyPlace());
  Event e;
  CHECK(e.Query());
  e.Record(one);
  CHECK(!e.Query());
  e.Wait(two);
  SynchronizeStream(two);
  CHECK(e.Query());
  CHECK(QueryStream({LazyPlace(), 0}) == false);  // an event of its own, in a queue that waits
  MICA_REQUIRE_ERROR(e.Record(NewStream(LazyPlace(1))), "belongs to the device (lazy:0)");
}

TEST_CASE("a kernel runs on the device and stream of its tensors", "[dispatcher]") {
  const Tensor t = EmptyTensor({2}, DType::kF32, LazyPlace(1));
  static MicaCall seen;
  static int32_t current;
  auto scope = Scope::Create("seen", "");
  REQUIRE(scope->Define("test::seen(Tensor x) -> int", {}).ok());
  MicaKernelRecord record{};
  record.struct_size = sizeof(record);
  record.name = "test::seen";
  record.backend = "lazy";
  record.boxed = [](const MicaCall* call, const MicaValue*, int64_t, MicaValue* results, int64_t) {
    seen = *call;
    current = Lazy().current;
    results[0].tag = MICA_VALUE_INT;
    results[0].u.i = 1;
    return MicaStatus{nullptr};
  };
  REQUIRE(scope->AddLeaf(record).ok());
  REQUIRE(scope->Commit().ok());
  const StreamRef s = NewStream(LazyPlace(1));
  const uint64_t before = ExchangeStream(s.device, s.handle);
  Lazy().current = 0;
  CHECK(CallWithTensor(GetOperator("test::seen"), t) == 1);
  CHECK(seen.device_index == 1);
  CHECK(seen.stream == s.handle);
  CHECK(current == 1);
  CHECK(Lazy().current == 0);  // as it was
  Lazy().current = 7;          // by another library, behind the host's back
  CHECK(CallWithTensor(GetOperator("test::seen"), t) == 1);
  CHECK(current == 1);
  CHECK(Lazy().current == 7);
  Lazy().current = 0;
  ExchangeStream(s.device, before);
}

TEST_CASE("an operator without a kernel runs on the CPU, and is counted", "[dispatcher]") {
  ResetFallbackCounts();
  const Tensor t = OnDevice(Counting(4), LazyPlace());
  auto scope = Scope::Create("doubled", "");
  REQUIRE(scope->Define("test::host_only(Tensor x) -> int", {}).ok());
  scope->AddBoxedKernel("test::host_only", "cpu", Leaf("on the cpu"), {});
  REQUIRE(scope->Commit().ok());
  Trace().clear();
  CHECK(CallWithTensor(GetOperator("test::host_only"), t) == 8);
  CHECK(Trace() == std::vector<std::string>{"on the cpu"});
  const std::vector<FallbackCount> counts = FallbackCounts();
  REQUIRE(counts.size() == 1);
  CHECK(counts[0].backend == "lazy");
  CHECK(counts[0].op == "test::host_only");
}

TEST_CASE("a table without a mandatory function is refused by its name", "[dispatcher]") {
  MicaDeviceTable table = plugin::DeviceTableOf(Lazy());
  table.event_wait = nullptr;
  CHECK(std::string(RegisterDeviceTable("lame", &table).message()) ==
        "The device table of (lame) lacks the mandatory function `event_wait`.");
  table = plugin::DeviceTableOf(Lazy());
  table.struct_size = offsetof(MicaDeviceTable, copy);
  CHECK(std::string(RegisterDeviceTable("lame", &table).message()).find("`copy`") != std::string::npos);
}

TEST_CASE("the host table finds backends and their streams", "[dispatcher]") {
  const MicaHost& host = *HostTable();
  const int32_t backend = host.backend_index({"lazy", 4});
  CHECK(backend == LazyPlace().backend);
  const MicaStr name = host.backend_name(backend);
  CHECK(std::string(name.data, static_cast<size_t>(name.size)) == "lazy");
  CHECK(host.backend_name(99).size == 0);
  uint64_t stream = 1;
  CHECK(host.current_stream({backend, 0}, &stream) == nullptr);
  CHECK(stream == 0);
  uint64_t seed, offset, next;
  REQUIRE(host.random_philox(nullptr, {backend, 0}, 10, &seed, &offset) == nullptr);
  REQUIRE(host.random_philox(nullptr, {backend, 0}, 1, &seed, &next) == nullptr);
  CHECK(next == offset + 10);
  const MicaStatus refused = host.random_philox(nullptr, {0, 0}, 1, &seed, &offset);
  REQUIRE(refused != nullptr);
  CHECK(std::string(refused->message).find("mt19937") != std::string::npos);
  DropStatus(refused);
}

TEST_CASE("a stream that nobody holds serves the next, and ends with its plugin", "[dispatcher]") {
  DestroyIdleStreams(-1);
  const int made = Lazy().streams_made, destroyed = Lazy().streams_destroyed;
  uint64_t first;
  {
    const Stream one = Stream::Create(LazyPlace(), 0);
    const Stream same = Stream::Share(one.ref());
    first = one.ref().handle;
    CHECK(Stream::Create(LazyPlace(), 0).ref().handle != first);
  }
  CHECK(Lazy().streams_made == made + 2);
  const Stream again = Stream::Create(LazyPlace(), 0);
  CHECK(again.ref().handle == first);
  CHECK(Lazy().streams_made == made + 2);
  CHECK(Stream::Create(LazyPlace(), 1).ref().handle != first);  // another priority
  CHECK(Lazy().streams_destroyed == destroyed);
  DestroyIdleStreams(again.ref().device.backend);
  CHECK(Lazy().streams_destroyed == destroyed + 2);
  CHECK(again.live());
}

TEST_CASE("a current stream is held by its thread, and its memory outlives it", "[dispatcher]") {
  void* data;
  {
    const Stream s = Stream::Create(LazyPlace(), 0);
    ExchangeStream(LazyPlace(), s.ref().handle);
    data = EmptyTensor({300000}, DType::kF32, LazyPlace()).data();
  }
  const int destroyed = Lazy().streams_destroyed;
  DestroyIdleStreams(-1);
  CHECK(Lazy().streams_destroyed == destroyed);
  ExchangeStream(LazyPlace(), 0);
  DestroyIdleStreams(-1);
  CHECK(Lazy().streams_destroyed == destroyed + 1);
  CHECK(EmptyTensor({300000}, DType::kF32, LazyPlace()).data() == data);  // now stream 0's
}

TEST_CASE("a tensor of a device grows with its contents", "[dispatcher]") {
  const Tensor t = OnDevice(Counting(5), LazyPlace());
  const void* before = t.data();
  ResizeTensor(t, {100000}, {1});
  CHECK(t.data() != before);
  CHECK(OnHost(t).data_as<float>()[4] == 4);
}
}  // namespace
}  // namespace mica::testing
