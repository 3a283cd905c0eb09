// A backend whose driver is not there: it has no device, and says why as its answer about the first.
#include <mica/device.h>

#include <cstdlib>
#include <stdexcept>

namespace {

struct Absent {
  int32_t Count() { return 0; }
  void Properties(int32_t, MicaDeviceProperties*) {
#ifdef CRASHES
    std::abort();
#endif
    throw std::runtime_error("the driver libabsent.so does not open");
  }
  int32_t ExchangeDevice(int32_t) { return 0; }
  void* Allocate(int32_t, int64_t) { throw std::bad_alloc(); }
  void Free(int32_t, void*, int64_t) {}
  uint64_t StreamCreate(int32_t, int32_t) { return 0; }
  void StreamDestroy(int32_t, uint64_t) {}
  void StreamSync(int32_t, uint64_t) {}
  uint64_t EventCreate(int32_t) { return 0; }
  void EventDestroy(int32_t, uint64_t) {}
  void EventRecord(int32_t, uint64_t, uint64_t) {}
  void EventWait(int32_t, uint64_t, uint64_t) {}
  void EventSync(int32_t, uint64_t) {}
  void Copy(void*, MicaDevice, const void*, MicaDevice, int64_t, uint64_t) {}
  void Fill(int32_t, void*, uint8_t, int64_t, uint64_t) {}
};

void Init(const MicaHost*, const MicaRegistrar* r) {
  static Absent absent;
  mica::plugin::Registrar(r, "absent").Device(mica::plugin::DeviceTableOf(absent));
}

}  // namespace

MICA_PLUGIN("absent", "Mica tests", "1.0", "", "", "backend:absent", Init)
