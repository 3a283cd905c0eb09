// A plugin in C++17 over the SDK's sugar: a device from a class, an unboxed and two
// boxed kernels, exceptions of every kind, and the standard library in use, so that
// builds by other compilers and with other standard libraries have something to get
// wrong. Mica's tests hold recorded and fresh builds of it to today's host.
#include <mica/device.h>
#include <mica/plugin.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#ifndef VARIANT
#define VARIANT "gcc"
#endif
#define DEVICE "golden." VARIANT

namespace {

using mica::plugin::OwnedTensor;
using mica::plugin::Str;
using mica::plugin::TensorRef;

// Host memory; everything is done when its call returns.
struct Device {
  int32_t Count() { return 2; }
  void Properties(int32_t, MicaDeviceProperties* out) { out->name = "golden device"; }
  int32_t ExchangeDevice(int32_t device) {
    static thread_local int32_t current = 0;
    MICA_PLUGIN_CHECK(device >= 0 && device < 2, MICA_ERROR_VALUE, "golden has two devices.");
    return std::exchange(current, device);
  }
  void* Allocate(int32_t, int64_t size) {
    void* data = std::aligned_alloc(64, static_cast<size_t>((size + 127) / 64 * 64));
    if (!data) throw std::bad_alloc();
    const std::lock_guard<std::mutex> lock(mutex);
    sizes[data] = size;
    return data;
  }
  void Free(int32_t, void* data, int64_t) {
    const std::lock_guard<std::mutex> lock(mutex);
    sizes.erase(data);
    std::free(data);
  }
  uint64_t StreamCreate(int32_t, int32_t) { return ++handles; }
  void StreamDestroy(int32_t, uint64_t) {}
  void StreamSync(int32_t, uint64_t) {}
  uint64_t EventCreate(int32_t) { return ++handles; }
  void EventDestroy(int32_t, uint64_t) {}
  void EventRecord(int32_t, uint64_t, uint64_t) {}
  void EventWait(int32_t, uint64_t, uint64_t) {}
  void EventSync(int32_t, uint64_t) {}
  void Copy(void* to, MicaDevice, const void* from, MicaDevice, int64_t size, uint64_t) {
    std::memmove(to, from, static_cast<size_t>(size));
  }
  void Fill(int32_t, void* data, uint8_t byte, int64_t size, uint64_t) {
    std::memset(data, byte, static_cast<size_t>(size));
  }
  void Quiesce() { Say("golden: quiesce\n"); }
  void Detach() { Say("golden: detach\n"); }
  static void Say(const std::string& text) {
    if (std::getenv("GOLDEN_SAY")) static_cast<void>(!write(2, text.data(), text.size()));
  }

  std::mutex mutex;
  std::map<void*, int64_t> sizes;
  uint64_t handles = 0;
};

void Neg(const MicaCall*, MicaTensor* self, MicaTensor* out) {
  const TensorRef x(self), y(out);
  if (x.dtype() != MICA_F32 || !x.contiguous() || !y.contiguous()) throw mica::plugin::NotImplemented();
  for (int64_t i = 0; i < x.numel(); ++i) y.data<float>()[i] = -x.data<float>()[i];
}

void Affine(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  const TensorRef x(args[0].u.tensor);
  MICA_PLUGIN_CHECK(x.dtype() == MICA_F32 && x.contiguous(), MICA_ERROR_TYPE,
                    "golden affine needs contiguous float32.");
  OwnedTensor y = OwnedTensor::Empty(x.sizes(), x.ndim(), MICA_F32, MicaDevice{0, 0});
  for (int64_t i = 0; i < x.numel(); ++i)
    TensorRef(y.get()).data<float>()[i] = static_cast<float>(x.data<float>()[i] * args[1].u.f + args[2].u.f);
  results[0].tag = MICA_VALUE_TENSOR;
  results[0].u.tensor = y.release();
}

// raise(Tensor x, int which) -> int
void Raise(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  std::ostringstream text;
  std::vector<int64_t> numbers(10);
  std::iota(numbers.begin(), numbers.end(), 0);
  text << "golden sum " << std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
  switch (args[1].u.i) {
    case 0:
      throw std::runtime_error(text.str());
    case 1:
      MICA_PLUGIN_THROW(MICA_ERROR_INDEX, text.str());
    case 2:
      throw std::bad_alloc();
    case 3:
      throw 42;
    case 4:
      std::string().at(1);
      [[fallthrough]];
    default:
      results[0].tag = MICA_VALUE_INT;
      results[0].u.i = 45;
  }
}

void Init(const MicaHost*, const MicaRegistrar* r) {
  static Device* device = new Device();
  mica::plugin::Registrar registrar(r, DEVICE);
  registrar.Device(mica::plugin::DeviceTableOf(*device));
  registrar.Kernel<&Neg>("neg.out");
  mica::plugin::Registrar cpu(r, "cpu");
  cpu.Define("golden_" VARIANT "::affine(Tensor x, float scale, float shift) -> Tensor");
  cpu.Define("golden_" VARIANT "::raise(Tensor x, int which) -> int");
  cpu.Boxed<&Affine>("golden_" VARIANT "::affine");
  cpu.Boxed<&Raise>("golden_" VARIANT "::raise");
}

}  // namespace

MICA_PLUGIN("golden." VARIANT, "Mica tests", "1.0", "", "", "backend:" DEVICE ",operators:golden_" VARIANT,
            Init)
