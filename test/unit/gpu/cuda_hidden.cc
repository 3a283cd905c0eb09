// Hidden tests of CUDA's driver, for the processes that cuda_test.cc starts: their tags say with which
// libraries.
#include <dlfcn.h>

#include <cstring>
#include <functional>
#include <thread>

#include "plugins/cuda/driver.h"
#include "test/support/mica_test.h"
#include "test/unit/gpu/child.h"

namespace cuda::test {
namespace {

gpu::Driver& Cuda() { return GetCudaDriver(); }

// One of the functions of a fake that are for tests.
int Call(const char* library, const char* function) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(handle);
  auto* found = reinterpret_cast<int (*)()>(dlsym(handle, function));
  REQUIRE(found);
  return found();
}
int CallDriver(const char* function) { return Call("libcuda.so.1", function); }

int64_t CodeOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const mica::plugin::Error& error) {
    return error.code;
  }
  return 0;
}

TEST_CASE("devices are described", "[.][fakes]") {
  REQUIRE(Cuda().Count() == 2);
  const gpu::DeviceInfo info = Cuda().Describe(1);
  REQUIRE((info.name == "Fake H100" && info.architecture == "sm_90" && info.total_memory == 1 << 20));
  REQUIRE((info.warp_size == 32 && info.multiprocessors == 132 && info.max_threads_per_block == 1024));
  REQUIRE(Cuda().ExchangeDevice(1) == 0);
  REQUIRE(Cuda().ExchangeDevice(0) == 1);
  MICA_REQUIRE_ERROR(Cuda().Allocate(2, 1),
                     "The device (cuda:2) does not exist: this process sees (2) CUDA devices.");
  REQUIRE(Cuda().Missing().empty());
}

TEST_CASE("copies go through whichever context is current", "[.][fakes]") {
  char bytes[1000], back[1000] = {};
  std::memset(bytes, 5, sizeof bytes);
  char* p = static_cast<char*>(Cuda().Allocate(0, 1000));
  void* q = Cuda().Allocate(1, 1000);
  Cuda().CopyToDevice(0, p, bytes, 1000, 0);
  REQUIRE(CallDriver("FakeWaits") == 0);
  CallDriver("FakeOtherContext");  // another library's doing
  Cuda().CopyToPeer(1, q, 0, p, 1000, 0);
  Cuda().CopyToHost(1, back, q, 1000, 0);
  REQUIRE(std::memcmp(bytes, back, 1000) == 0);
  REQUIRE(CallDriver("FakeWaits") == 1);  // a copy into pageable memory is waited for
  Cuda().Fill(0, p, 9, 10, 0);
  Cuda().CopyOnDevice(0, p + 100, p, 10, 0);
  REQUIRE((p[105] == 9 && p[110] == 5));
  int64_t free = 0;
  std::thread([&] { free = Cuda().FreeMemory(1); }).join();  // a thread that never used CUDA
  REQUIRE(free < 1 << 20);
  void* pinned = Cuda().PinnedAllocate(100);
  REQUIRE(pinned);
  Cuda().PinnedFree(pinned);
  Cuda().Free(0, p);
  Cuda().Free(1, q);
  Cuda().Free(0, nullptr);
  REQUIRE(Cuda().Allocate(0, 0) == nullptr);
}

TEST_CASE("the driver's errors are sentences", "[.][fakes]") {
  REQUIRE(CodeOf([] { Cuda().Allocate(0, 1 << 30); }) == MICA_ERROR_OUT_OF_MEMORY);
  MICA_REQUIRE_ERROR(Cuda().Allocate(0, 1 << 30),
                     "cuMemAlloc failed on the device (cuda:0) with CUDA_ERROR_OUT_OF_MEMORY (2): out of "
                     "memory. It was asked for (1073741824) bytes, of (1048576) that the device has and (");
  REQUIRE(CodeOf([] { Cuda().PinnedAllocate(1 << 30); }) == MICA_ERROR_OUT_OF_MEMORY);
  MICA_REQUIRE_ERROR(Cuda().PinnedAllocate(1 << 30), "(1073741824) bytes of the host.");
  const uint64_t stream = Cuda().StreamCreate(0, -1), event = Cuda().EventCreate(0, 0);
  REQUIRE((!Cuda().StreamDone(0, stream) && Cuda().StreamDone(0, 0) && !Cuda().EventDone(0, event)));
  Cuda().EventRecord(0, event, stream);
  Cuda().EventWait(0, event, 0);
  Cuda().StreamSync(0, stream);
  Cuda().DeviceSync(0);
  MICA_REQUIRE_ERROR(Cuda().EventSync(0, event),
                     "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered. The fault "
                     "may be of a kernel that was launched earlier; the device is lost for this process.");
  MICA_REQUIRE_ERROR(Cuda().EventElapsed(0, event, event), "Both events must have passed");
  REQUIRE(Cuda().EventElapsed(0, event, event + 1) == 2.5);
  REQUIRE(CodeOf([&] { Cuda().EventSync(0, event); }) == MICA_ERROR_DEVICE_LOST);
  Cuda().EventDestroy(0, event);
  Cuda().StreamDestroy(0, stream);
}

TEST_CASE("the current device is the driver's, and a device is described by numbers", "[.][fakes]") {
  Cuda().FreeMemory(0);
  Cuda().FreeMemory(1);  // now current
  REQUIRE(Cuda().ExchangeDevice(0) == 1);
  CallDriver("FakeOtherContext");  // another library makes none current
  REQUIRE(Cuda().ExchangeDevice(1) == 0);
  REQUIRE(Cuda().ExchangeDevice(0) == 1);
  REQUIRE((Cuda().CanAccessPeer(1, 0) && !Cuda().CanAccessPeer(0, 1)));
  int32_t least = 7, greatest = 7;
  Cuda().PriorityRange(0, &least, &greatest);
  REQUIRE((least == 0 && greatest == -5));
  int64_t value = 0;
  REQUIRE((Cuda().Attribute(0, MICA_ATTRIBUTE_CAPABILITY_MAJOR, &value) && value == 9));
  REQUIRE((Cuda().Attribute(0, "cuda.16", &value) && value == 132));
  for (const char* unknown : {"cuda.16x", "cuda.0", "cuda.99999", "cuda.300", "acme.cores"})
    REQUIRE(!Cuda().Attribute(0, unknown, &value));
  Cuda().EventDestroy(0, Cuda().EventCreate(0, MICA_EVENT_TIMED | MICA_EVENT_SLEEPS));
}

TEST_CASE("modules are loaded and kernels launched", "[.][fakes]") {
  const uint64_t module = Cuda().Load(1, "image");
  MICA_REQUIRE_ERROR(Cuda().Load(0, "X"), "Its log says: bad image");
  MICA_REQUIRE_ERROR(Cuda().Function(module, "x"), "It was asked for the kernel (x).");
  gpu::Launch launch;
  launch.function = Cuda().Function(module, "f");
  int value = 42;
  void* arguments[] = {&value};
  launch.arguments = arguments;
  launch.count = 1;
  Cuda().Run(1, launch);
  REQUIRE(CallDriver("FakeLaunched") == 42);
  value = 43;
  launch.blocks[0] = 0;  // nothing to do
  Cuda().Run(1, launch);
  REQUIRE(CallDriver("FakeLaunched") == 42);
  launch.blocks[0] = 200;
  MICA_REQUIRE_ERROR(Cuda().Run(1, launch), "The launch has (200, 1, 1) blocks of (1, 1, 1) threads.");
}

TEST_CASE("a stream's work is recorded and runs again", "[.][fakes]") {
  const uint64_t module = Cuda().Load(1, "image"), stream = Cuda().StreamCreate(1, 0);
  gpu::Launch launch;
  launch.function = Cuda().Function(module, "f");
  int value = 7;
  void* arguments[] = {&value};
  launch.arguments = arguments;
  launch.count = 1;
  Cuda().Run(1, launch);
  REQUIRE(!Cuda().Capturing(1, stream));
  MICA_REQUIRE_ERROR(Cuda().CaptureBegin(1, 0), "cuStreamBeginCapture");
  Cuda().CaptureBegin(1, stream);
  REQUIRE((Cuda().Capturing(1, stream) && !Cuda().Capturing(1, 0)));
  value = 8;
  launch.stream = stream;
  Cuda().Run(1, launch);
  Cuda().Free(1, Cuda().Allocate(1, 100));  // which the driver forbids to who records
  REQUIRE(CallDriver("FakeCaptureMode") == 0);
  const uint64_t graph = Cuda().CaptureEnd(1, stream);
  REQUIRE((!Cuda().Capturing(1, stream) && CallDriver("FakeLaunched") == 7));
  Cuda().GraphReplay(1, graph, stream);
  REQUIRE((CallDriver("FakeLaunched") == 8 && CallDriver("FakeGraphs") == 1));
  Cuda().GraphDestroy(1, graph);
  REQUIRE(CallDriver("FakeGraphs") == 0);
  CallDriver("FakeRecord");  // as another library does
  REQUIRE((Cuda().Capturing(1, stream) && !Cuda().Capturing(1, 0)));
  CallDriver("FakeRecordNoMore");
  MICA_REQUIRE_ERROR(Cuda().CaptureEnd(1, stream), "What was recorded is lost");
  Cuda().StreamDestroy(1, stream);
}

TEST_CASE("the compiler gets the architecture that it knows", "[.][fakes]") {
  REQUIRE(Cuda().Compiler() == "nvrtc 13.7, options 1");
  const auto compiled = [](const char* text, const char* architecture) {
    return std::string(Cuda().Compile(text, architecture, "add.Tensor").c_str());
  };
  REQUIRE_THAT(compiled("f", "sm_90"), Catch::Matchers::StartsWith("cubin --gpu-architecture=sm_90 ") &&
                                           Catch::Matchers::Contains("--fmad=false"));
  // A text of a newer one is left to the driver, as PTX.
  REQUIRE_THAT(compiled("f", "sm_120"), Catch::Matchers::StartsWith("ptx --gpu-architecture=compute_90 "));
  REQUIRE_THAT(compiled("f", "sm_86"), Catch::Matchers::StartsWith("ptx --gpu-architecture=compute_80 "));
  REQUIRE_THAT(compiled("a\n#pragma MICA_CONTRACT\nb", "sm_80"), Catch::Matchers::Contains("--fmad=true"));
  REQUIRE_THAT(compiled("// #pragma MICA_CONTRACT\n", "sm_80"), Catch::Matchers::Contains("--fmad=false"));
  MICA_REQUIRE_ERROR(compiled("f", "sm_50"), "the oldest architecture that it knows is (sm_75)");
  MICA_REQUIRE_ERROR(compiled("f", "gfx90a"), "The architecture (gfx90a) is not of CUDA");
}

TEST_CASE("a text that NVIDIA's compiler rejects says where", "[.][fakes]") {
  std::string message;
  try {
    Cuda().Compile("BROKEN", "sm_90", "add.Tensor");
  } catch (const mica::plugin::Error& error) {
    message = error.what();
  }
  REQUIRE(message ==
          "NVIDIA's run-time compiler (nvrtc 13.7) does not compile the kernel of (add.Tensor) for (sm_90), "
          "with NVRTC_ERROR_COMPILATION (6):\n"
          "add.Tensor.cu(1): error: BROKEN\nline 2\nline 3\nline 4\nline 5\nline 6");
}

TEST_CASE("copies of pageable memory are waited for", "[.][fakes-pageable]") {
  int value = 7;
  void* p = Cuda().Allocate(0, 4);
  Cuda().CopyToDevice(0, p, &value, 4, 0);
  REQUIRE(CallDriver("FakeWaits") == 1);
}

TEST_CASE("CUDA does not work in the child of a fork", "[.][fakes-fork]") {
  void* p = Cuda().Allocate(0, 100);
  void* pinned = Cuda().PinnedAllocate(100);
  const uint64_t event = Cuda().EventCreate(0, 0);
  const int status = gpu::test::StatusOfFork([&] {
    int told = 0;
    for (const std::function<void()>& body : std::initializer_list<std::function<void()>>{
             [] { Cuda().Count(); }, [] { Cuda().Allocate(0, 1); }, [] { Cuda().DeviceSync(0); }}) {
      try {
        body();
      } catch (const mica::plugin::Error& error) {
        told += std::string(error.what()).find("was forked from one that had used CUDA") != std::string::npos;
      }
    }
    Cuda().Missing();
    // Destructors have nothing to do.
    Cuda().Free(0, p);
    Cuda().PinnedFree(pinned);
    Cuda().EventDestroy(0, event);
    void* fake = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return told + 10 * reinterpret_cast<int (*)()>(dlsym(fake, "FakeCallsInChild"))();
  });
  REQUIRE(status == 3);
  Cuda().Free(0, p);
}

TEST_CASE("what outlives the driver is destroyed without a word", "[.][fakes-end]") {
  void* p = Cuda().Allocate(1, 100);
  const uint64_t event = Cuda().EventCreate(0, 0), stream = Cuda().StreamCreate(0, 0);
  CallDriver("FakeShutDown");
  Cuda().Free(1, p);
  Cuda().EventDestroy(0, event);
  Cuda().StreamDestroy(0, stream);
  MICA_REQUIRE_ERROR(Cuda().Allocate(1, 5), "failed on the device (cuda:1) with an error without a name (4)");
}

TEST_CASE("no device", "[.][fakes-none]") {
  REQUIRE(Cuda().Count() == 0);
  REQUIRE_THAT(Cuda().Missing()[0], Catch::Matchers::Contains("is there, but it sees no device"));
}

TEST_CASE("a driver that does not start", "[.][fakes-refuses]") {
  REQUIRE(Cuda().Count() == 0);
  REQUIRE_THAT(Cuda().Missing()[0],
               Catch::Matchers::Contains("does not start, with CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"));
}

TEST_CASE("nothing of CUDA", "[.][nothing]") {
  if (Cuda().Count() > 0) return;  // a true driver, at a fixed path
  const std::vector<std::string> missing = Cuda().Missing();
  REQUIRE(missing.size() == 1);  // the libraries need the driver
  REQUIRE_THAT(missing[0], Catch::Matchers::StartsWith(
                               "NVIDIA's driver (libcuda.so.1) does not open, so there is no CUDA device: "));
  REQUIRE(Cuda().Compiler() == "nvrtc (missing)");
  MICA_REQUIRE_ERROR(Cuda().Allocate(0, 10), "libcuda.so.1");
  MICA_REQUIRE_ERROR(Cuda().Compile("", "sm_90", "add.Tensor"), "/nowhere");
  Cuda().Free(0, nullptr);
}

}  // namespace
}  // namespace cuda::test
