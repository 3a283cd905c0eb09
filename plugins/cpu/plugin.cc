// The entry of the CPU plugin: its manifest, the device table of "cpu", and what
// it registers. Kernels of each folder come in through the Register functions of
// kernels.h.
#include <cstdlib>
#include <cstring>

#include <mica/plugin.h>
#include "plugins/cpu/attention/attention.h"
#include "plugins/cpu/contraction/products.h"
#include "plugins/cpu/convolution/convolution.h"
#include "plugins/cpu/engine/factory.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/targets.h"
#include "plugins/cpu/fft/fft.h"
#include "plugins/cpu/indexing/indexing.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/linalg/linalg.h"
#include "plugins/cpu/normalization/normalization.h"
#include "plugins/cpu/pooling/pooling.h"
#include "plugins/cpu/random/random.h"
#include "plugins/cpu/recurrent/recurrent.h"
#include "plugins/cpu/reduce/distances.h"
#include "plugins/cpu/reduce/reduction.h"
#include "plugins/cpu/resampling/resampling.h"
#include "plugins/cpu/sorting/sorting.h"

namespace mica::cpu {
namespace {

using plugin::BareStatus;

MicaStatus Count(void*, int32_t* out) {
  *out = 1;
  return nullptr;
}

MicaStatus Properties(void*, int32_t, MicaDeviceProperties* out) {
  out->name = "cpu";
  return nullptr;
}

MicaStatus ExchangeDevice(void*, int32_t device, int32_t* previous) {
  *previous = 0;
  return device == 0 ? nullptr : BareStatus(MICA_ERROR_VALUE);
}

MicaStatus Allocate(void*, int32_t, int64_t size, void** out) {
  *out = std::aligned_alloc(64, static_cast<size_t>((size + 63) / 64 * 64));
  return *out != nullptr || size == 0 ? nullptr : BareStatus(MICA_ERROR_OUT_OF_MEMORY);
}

MicaStatus Free(void*, int32_t, void* data, int64_t) {
  std::free(data);
  return nullptr;
}

// Everything on this device is done when its call returns: streams and events
// have nothing to wait for.
MicaStatus StreamCreate(void*, int32_t, int32_t, uint64_t* out) {
  *out = 0;
  return nullptr;
}
MicaStatus StreamDestroy(void*, int32_t, uint64_t) { return nullptr; }
MicaStatus StreamSync(void*, int32_t, uint64_t) { return nullptr; }
MicaStatus EventCreate(void*, int32_t, uint64_t* out) {
  *out = 0;
  return nullptr;
}
MicaStatus EventDestroy(void*, int32_t, uint64_t) { return nullptr; }
MicaStatus EventRecord(void*, int32_t, uint64_t, uint64_t) { return nullptr; }
MicaStatus EventWait(void*, int32_t, uint64_t, uint64_t) { return nullptr; }
MicaStatus EventSync(void*, int32_t, uint64_t) { return nullptr; }

MicaStatus Copy(void*, void* dst, MicaDevice, const void* src, MicaDevice, int64_t size, uint64_t) {
  std::memcpy(dst, src, static_cast<size_t>(size));
  return nullptr;
}

MicaStatus Fill(void*, int32_t, void* data, uint8_t byte, int64_t size, uint64_t) {
  std::memset(data, byte, static_cast<size_t>(size));
  return nullptr;
}

MicaDeviceTable DeviceTable() {
  MicaDeviceTable table = {};
  table.struct_size = sizeof(table);
  table.major = MICA_ABI_MAJOR;
  table.minor = MICA_ABI_MINOR;
  table.count = Count;
  table.properties = Properties;
  table.exchange_device = ExchangeDevice;
  table.allocate = Allocate;
  table.free = Free;
  table.stream_create = StreamCreate;
  table.stream_destroy = StreamDestroy;
  table.stream_sync = StreamSync;
  table.event_create = EventCreate;
  table.event_destroy = EventDestroy;
  table.event_record = EventRecord;
  table.event_wait = EventWait;
  table.event_sync = EventSync;
  table.copy = Copy;
  table.fill = Fill;
  return table;
}

// A class kernel's C function. NOT_IMPLEMENTED goes back as a bare code, which
// sends the call on to the portable kernels.
template <void (*kFunction)(const MicaCall*, const MicaValue*, int64_t, MicaTensor* const*, int64_t)>
MicaStatus Entry(const MicaCall* call, const MicaValue* args, int64_t num_args, MicaTensor* const* outputs,
                 int64_t num_outputs) noexcept {
  try {
    kFunction(call, args, num_args, outputs, num_outputs);
    return nullptr;
  } catch (const plugin::Error& error) {
    if (error.code == MICA_ERROR_NOT_IMPLEMENTED) return BareStatus(MICA_ERROR_NOT_IMPLEMENTED);
    return plugin::StatusOfCurrentException();
  } catch (...) {
    return plugin::StatusOfCurrentException();
  }
}

void RegisterClass(const MicaRegistrar* registrar, const char* name, MicaClassFunction function,
                   int64_t line) {
  MicaClassRecord record = {};
  record.struct_size = sizeof(record);
  record.class_name = name;
  record.backend = "cpu";
  record.function = function;
  record.file = __FILE__;
  record.line = line;
  plugin::Check(registrar->register_class(registrar->context, &record));
}

void Init(const MicaHost*, const MicaRegistrar* registrar) {
  LimitTargets();
  plugin::Registrar r(registrar, "cpu");
  static const MicaDeviceTable table = DeviceTable();
  r.Device(table);
  RegisterClass(registrar, "pointwise", Entry<RunPointwise>, __LINE__);
  RegisterClass(registrar, "reduction", Entry<RunReduction>, __LINE__);
  RegisterClass(registrar, "scan", Entry<RunScan>, __LINE__);
  RegisterClass(registrar, "row", Entry<RunRow>, __LINE__);
  RegisterClass(registrar, "gather", Entry<RunGather>, __LINE__);
  RegisterClass(registrar, "fold", Entry<RunFold>, __LINE__);
  RegisterClass(registrar, "factory", Entry<RunFactory>, __LINE__);
  RegisterCopy(r);
  RegisterLayerNorm(r);
  RegisterAttention(r);
  RegisterContraction(r);
  RegisterConvolution(r);
  RegisterMaxPooling(r);
  RegisterAveragePooling(r);
  RegisterResampling(r);
  RegisterIndexing(r);
  RegisterNormalization(r);
  RegisterRandom(r);
  RegisterRecurrent(r);
  RegisterSorting(r);
  RegisterSearching(r);
  RegisterSelection(r);
  RegisterConsecutive(r);
  RegisterDistances(r);
  RegisterLinalg(r);
  RegisterFft(r);
}

}  // namespace
}  // namespace mica::cpu

MICA_PLUGIN("cpu", "Mica", "0.1", "sse4.2,pclmul,aes", "", "backend:cpu", ::mica::cpu::Init)
