// A device table from a C++17 class: header-only sugar over MicaDeviceTable.
//
// Use it to write the device of a backend as a class with ordinary methods, which
// may throw; each is reached through a thunk that catches everything. The mandatory
// methods are listed below, and one that lacks does not compile;
// optional ones are taken where the class has them. Not for devices in C: those fill
// the table themselves (examples/null_device_c). Cost: one indirect call and a try
// block a call.
//
//   struct Npu {
//     int32_t Count();
//     void Properties(int32_t device, MicaDeviceProperties* out);
//     int32_t ExchangeDevice(int32_t device);           // returns the previous one
//     void* Allocate(int32_t device, int64_t size);     // throws std::bad_alloc
//     void Free(int32_t device, void* data, int64_t size);
//     uint64_t StreamCreate(int32_t device, int32_t priority);
//     void StreamDestroy(int32_t device, uint64_t stream);
//     void StreamSync(int32_t device, uint64_t stream);
//     uint64_t EventCreate(int32_t device);
//     void EventDestroy(int32_t device, uint64_t event);
//     void EventRecord(int32_t device, uint64_t event, uint64_t stream);
//     void EventWait(int32_t device, uint64_t event, uint64_t stream);
//     void EventSync(int32_t device, uint64_t event);
//     void Copy(void* to, MicaDevice to_device, const void* from, MicaDevice from_device,
//               int64_t size, uint64_t stream);
//     void Fill(int32_t device, void* data, uint8_t byte, int64_t size, uint64_t stream);
//     // optional
//     bool EventQuery(int32_t device, uint64_t event);  // done?
//     bool StreamQuery(int32_t device, uint64_t stream);
//     double EventElapsed(int32_t device, uint64_t start, uint64_t end);  // milliseconds
//     void DeviceSync(int32_t device);
//     void PeerCopy(void* to, int32_t to_device, const void* from, int32_t from_device,
//                   int64_t size, uint64_t stream);
//     // memory in the order of a stream; both or neither
//     void* StreamAllocate(int32_t device, int64_t size, uint64_t stream);
//     void StreamFree(int32_t device, void* data, uint64_t stream);
//     void* PinnedAllocate(int64_t size);               // host memory; both or neither
//     void PinnedFree(void* data, int64_t size);
//     // recorded work: all four or none
//     void CaptureBegin(int32_t device, uint64_t stream);
//     uint64_t CaptureEnd(int32_t device, uint64_t stream);  // the graph
//     void GraphReplay(int32_t device, uint64_t graph, uint64_t stream);
//     void GraphDestroy(int32_t device, uint64_t graph);
//     // NULL when its kernels take such a call, else why not, in memory that stays
//     const char* Supports(std::string_view op, const MicaValue* args, int64_t num_args);
//     void Quiesce();
//     void Detach();
//     uint64_t EventCreateWith(int32_t device, uint64_t flags);  // MICA_EVENT_*
//     void PriorityRange(int32_t device, int32_t* least, int32_t* greatest);
//     bool PeerAccess(int32_t device, int32_t peer);
//     int64_t Attribute(int32_t device, MicaStr key);  // throws NotImplemented for a strange key
//     int64_t DlpackType();  // DLPack's number for the memory, asked once, when the table is made
//   };
//   static Npu npu;
//   registrar.Device(mica::plugin::DeviceTableOf(npu));
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <mica/plugin.h>

namespace mica {
namespace plugin {

// The thunk of one method. Results go to the last argument of the table's
// function, a pointer, where the method returns one.
template <typename D, auto kMethod, typename Signature>
struct DeviceThunk;
template <typename D, auto kMethod, typename... A>
struct DeviceThunk<D, kMethod, void (D::*)(A...)> {
  static MicaStatus Call(void* context, A... a) noexcept {
    return CatchAll([&] { (static_cast<D*>(context)->*kMethod)(a...); });
  }
};
// `Out` is the type that the table writes: bool answers are int32_t there.
template <typename D, auto kMethod, typename Out, typename R, typename... A>
struct DeviceThunk<D, kMethod, std::pair<Out, R (D::*)(A...)>> {
  static MicaStatus Call(void* context, A... a, Out* out) noexcept {
    return CatchAll([&] { *out = static_cast<Out>((static_cast<D*>(context)->*kMethod)(a...)); });
  }
};

template <typename D>
MicaStatus SupportsThunk(void* context, MicaStr op, const MicaValue* args, int64_t num_args, int32_t* answer,
                         MicaStr* why) noexcept {
  return CatchAll([&] {
    const std::string_view name(op.data, static_cast<size_t>(op.size));
    const char* reason = static_cast<D*>(context)->Supports(name, args, num_args);
    *answer = reason == nullptr;
    *why = Str(reason ? reason : "");
  });
}

#define MICA_DEVICE_VOID_(field, method) table.field = &DeviceThunk<D, &D::method, decltype(&D::method)>::Call
#define MICA_DEVICE_RESULT_(field, method, out) \
  table.field = &DeviceThunk<D, &D::method, std::pair<out, decltype(&D::method)>>::Call
#define MICA_DEVICE_HAS_(method)           \
  template <typename D, typename = void>   \
  struct Has##method : std::false_type {}; \
  template <typename D>                    \
  struct Has##method<D, std::void_t<decltype(&D::method)>> : std::true_type {};
MICA_DEVICE_HAS_(EventQuery)
MICA_DEVICE_HAS_(StreamQuery)
MICA_DEVICE_HAS_(EventElapsed)
MICA_DEVICE_HAS_(DeviceSync)
MICA_DEVICE_HAS_(PeerCopy)
MICA_DEVICE_HAS_(PinnedAllocate)
MICA_DEVICE_HAS_(StreamAllocate)
MICA_DEVICE_HAS_(CaptureBegin)
MICA_DEVICE_HAS_(Supports)
MICA_DEVICE_HAS_(Quiesce)
MICA_DEVICE_HAS_(Detach)
MICA_DEVICE_HAS_(EventCreateWith)
MICA_DEVICE_HAS_(PriorityRange)
MICA_DEVICE_HAS_(PeerAccess)
MICA_DEVICE_HAS_(Attribute)
MICA_DEVICE_HAS_(DlpackType)
#undef MICA_DEVICE_HAS_

// The table of `device`, which lives as long as the process.
template <typename D>
MicaDeviceTable DeviceTableOf(D& device) {
  MicaDeviceTable table{};
  table.struct_size = sizeof(table);
  table.major = MICA_ABI_MAJOR;
  table.minor = MICA_ABI_MINOR;
  table.context = &device;
  MICA_DEVICE_RESULT_(count, Count, int32_t);
  MICA_DEVICE_VOID_(properties, Properties);
  MICA_DEVICE_RESULT_(exchange_device, ExchangeDevice, int32_t);
  MICA_DEVICE_RESULT_(allocate, Allocate, void*);
  MICA_DEVICE_VOID_(free, Free);
  MICA_DEVICE_RESULT_(stream_create, StreamCreate, uint64_t);
  MICA_DEVICE_VOID_(stream_destroy, StreamDestroy);
  MICA_DEVICE_VOID_(stream_sync, StreamSync);
  MICA_DEVICE_RESULT_(event_create, EventCreate, uint64_t);
  MICA_DEVICE_VOID_(event_destroy, EventDestroy);
  MICA_DEVICE_VOID_(event_record, EventRecord);
  MICA_DEVICE_VOID_(event_wait, EventWait);
  MICA_DEVICE_VOID_(event_sync, EventSync);
  MICA_DEVICE_VOID_(copy, Copy);
  MICA_DEVICE_VOID_(fill, Fill);
  if constexpr (HasEventQuery<D>::value) MICA_DEVICE_RESULT_(event_query, EventQuery, int32_t);
  if constexpr (HasStreamQuery<D>::value) MICA_DEVICE_RESULT_(stream_query, StreamQuery, int32_t);
  if constexpr (HasEventElapsed<D>::value) MICA_DEVICE_RESULT_(event_elapsed, EventElapsed, double);
  if constexpr (HasDeviceSync<D>::value) MICA_DEVICE_VOID_(device_sync, DeviceSync);
  if constexpr (HasPeerCopy<D>::value) MICA_DEVICE_VOID_(peer_copy, PeerCopy);
  if constexpr (HasPinnedAllocate<D>::value) {
    MICA_DEVICE_RESULT_(pinned_allocate, PinnedAllocate, void*);
    MICA_DEVICE_VOID_(pinned_free, PinnedFree);
  }
  if constexpr (HasStreamAllocate<D>::value) {
    MICA_DEVICE_RESULT_(stream_allocate, StreamAllocate, void*);
    MICA_DEVICE_VOID_(stream_free, StreamFree);
  }
  if constexpr (HasCaptureBegin<D>::value) {
    MICA_DEVICE_VOID_(capture_begin, CaptureBegin);
    MICA_DEVICE_RESULT_(capture_end, CaptureEnd, uint64_t);
    MICA_DEVICE_VOID_(graph_replay, GraphReplay);
    MICA_DEVICE_VOID_(graph_destroy, GraphDestroy);
  }
  if constexpr (HasSupports<D>::value) table.supports = &SupportsThunk<D>;
  if constexpr (HasQuiesce<D>::value) MICA_DEVICE_VOID_(quiesce, Quiesce);
  if constexpr (HasDetach<D>::value) MICA_DEVICE_VOID_(detach, Detach);
  if constexpr (HasEventCreateWith<D>::value)
    MICA_DEVICE_RESULT_(event_create_with, EventCreateWith, uint64_t);
  if constexpr (HasPriorityRange<D>::value) MICA_DEVICE_VOID_(priority_range, PriorityRange);
  if constexpr (HasPeerAccess<D>::value) MICA_DEVICE_RESULT_(peer_access, PeerAccess, int32_t);
  if constexpr (HasAttribute<D>::value) MICA_DEVICE_RESULT_(attribute, Attribute, int64_t);
  if constexpr (HasDlpackType<D>::value) table.dlpack_type = device.DlpackType();
  return table;
}
#undef MICA_DEVICE_VOID_
#undef MICA_DEVICE_RESULT_

}  // namespace plugin
}  // namespace mica
