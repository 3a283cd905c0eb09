// Memory is SVM; a stream is an in-order queue; an event is a marker in a queue.
//
// Copies and fills are queued and return at once. A copy between devices of two
// platforms, which share no context, goes through host memory and waits.
#include "device_table.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime.h"

namespace opencl_device {
namespace {

using mica::plugin::CatchAll;

// An event of the host's: the marker that was recorded last.
struct Event {
  std::mutex mutex;
  cl_event marker = nullptr;
  cl_context context = nullptr;
};
Event& EventAt(uint64_t handle) { return *reinterpret_cast<Event*>(handle); }

// The marker, retained for the caller; NULL when nothing was recorded.
cl_event TakeMarker(Event& event) {
  std::lock_guard<std::mutex> lock(event.mutex);
  if (event.marker) CheckCl(clRetainEvent(event.marker), "clRetainEvent");
  return event.marker;
}

MicaStatus Count(void*, int32_t* out) {
  return CatchAll([&] { *out = static_cast<int32_t>(GetRuntime().devices.size()); });
}

MicaStatus Properties(void*, int32_t index, MicaDeviceProperties* out) {
  return CatchAll([&] {
    const Device& device = DeviceAt(index);
    out->name = device.traits.name.c_str();
    out->total_memory = device.total_memory;
    out->free_memory = device.total_memory - device.used_memory;
  });
}

MicaStatus ExchangeDevice(void*, int32_t index, int32_t* previous) {
  static thread_local int32_t current = 0;
  return CatchAll([&] {
    DeviceAt(index);
    *previous = current;
    current = index;
  });
}

// Memory that an implementation promises may not be there when it is touched (PoCL's
// is the host's), so a device gives out no more than it says to have.
MicaStatus Allocate(void*, int32_t index, int64_t size, void** out) {
  return CatchAll([&] {
    *out = nullptr;
    if (size == 0) return;
    Device& device = DeviceAt(index);
    if (device.used_memory.fetch_add(size) + size <= device.total_memory)
      *out = clSVMAlloc(device.context, CL_MEM_READ_WRITE, static_cast<size_t>(size), 0);
    if (*out) return;
    device.used_memory -= size;
    MICA_PLUGIN_THROW(MICA_ERROR_OUT_OF_MEMORY, "OpenCL has no block of (" + std::to_string(size) +
                                                    ") bytes on the device (opencl:" + std::to_string(index) +
                                                    ").");
  });
}

// The host frees what no stream uses any more, and still: memory of work in flight
// is gone for good, so wait for it. Frees are rare, since the host caches blocks.
MicaStatus Free(void*, int32_t index, void* data, int64_t size) {
  return CatchAll([&] {
    if (!data) return;
    Device& device = DeviceAt(index);
    Finish(device);
    clSVMFree(device.context, data);
    device.used_memory -= size;
  });
}

MicaStatus StreamCreate(void*, int32_t index, int32_t, uint64_t* out) {
  return CatchAll([&] {
    Device& device = DeviceAt(index);
    cl_int error = CL_SUCCESS;
    const cl_command_queue queue =
        clCreateCommandQueueWithProperties(device.context, device.id, nullptr, &error);
    CheckCl(error, "clCreateCommandQueueWithProperties");
    std::lock_guard<std::mutex> lock(device.mutex);
    device.streams.push_back(queue);
    *out = reinterpret_cast<uint64_t>(queue);
  });
}

MicaStatus StreamDestroy(void*, int32_t index, uint64_t stream) {
  return CatchAll([&] {
    Device& device = DeviceAt(index);
    const cl_command_queue queue = device.QueueOf(stream);
    if (queue == device.queue) return;
    CheckCl(clFinish(queue), "clFinish");
    std::lock_guard<std::mutex> lock(device.mutex);
    device.streams.erase(std::remove(device.streams.begin(), device.streams.end(), queue),
                         device.streams.end());
    CheckCl(clReleaseCommandQueue(queue), "clReleaseCommandQueue");
  });
}

MicaStatus StreamSync(void*, int32_t index, uint64_t stream) {
  return CatchAll([&] { CheckCl(clFinish(DeviceAt(index).QueueOf(stream)), "clFinish"); });
}

// OpenCL has no question for a queue. An idle one takes a marker at once, but on a
// thread of its own, so it gets a moment.
MicaStatus StreamQuery(void*, int32_t index, uint64_t stream, int32_t* done) {
  return CatchAll([&] {
    const cl_command_queue queue = DeviceAt(index).QueueOf(stream);
    cl_event marker = nullptr;
    CheckCl(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &marker), "clEnqueueMarkerWithWaitList");
    CheckCl(clFlush(queue), "clFlush");
    const auto limit = std::chrono::steady_clock::now() + std::chrono::microseconds(500);
    cl_int status = CL_QUEUED, error = CL_SUCCESS;
    do {
      std::this_thread::yield();
      error = clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
    } while (error == CL_SUCCESS && status != CL_COMPLETE && std::chrono::steady_clock::now() < limit);
    clReleaseEvent(marker);
    CheckCl(error, "clGetEventInfo");
    *done = status == CL_COMPLETE;
  });
}

MicaStatus DeviceSync(void*, int32_t index) {
  return CatchAll([&] { Finish(DeviceAt(index)); });
}

MicaStatus EventCreate(void*, int32_t, uint64_t* out) {
  return CatchAll([&] { *out = reinterpret_cast<uint64_t>(new Event()); });
}

MicaStatus EventDestroy(void*, int32_t, uint64_t handle) {
  Event& event = EventAt(handle);
  if (event.marker) clReleaseEvent(event.marker);  // queues that wait for it hold it themselves
  delete &event;
  return nullptr;
}

MicaStatus EventRecord(void*, int32_t index, uint64_t handle, uint64_t stream) {
  return CatchAll([&] {
    const Device& device = DeviceAt(index);
    const cl_command_queue queue = device.QueueOf(stream);
    cl_event marker = nullptr;
    CheckCl(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &marker), "clEnqueueMarkerWithWaitList");
    CheckCl(clFlush(queue), "clFlush");  // others wait for it, perhaps on other queues
    Event& event = EventAt(handle);
    std::lock_guard<std::mutex> lock(event.mutex);
    if (event.marker) clReleaseEvent(event.marker);
    event.marker = marker;
    event.context = device.context;
  });
}

MicaStatus EventWait(void*, int32_t index, uint64_t handle, uint64_t stream) {
  return CatchAll([&] {
    Event& event = EventAt(handle);
    const cl_event marker = TakeMarker(event);
    if (!marker) return;
    const Device& device = DeviceAt(index);
    const cl_int error = event.context == device.context
                             ? clEnqueueBarrierWithWaitList(device.QueueOf(stream), 1, &marker, nullptr)
                             : clWaitForEvents(1, &marker);  // of another platform
    clReleaseEvent(marker);
    CheckCl(error, "clEnqueueBarrierWithWaitList");
  });
}

MicaStatus EventSync(void*, int32_t, uint64_t handle) {
  return CatchAll([&] {
    const cl_event marker = TakeMarker(EventAt(handle));
    if (!marker) return;
    const cl_int error = clWaitForEvents(1, &marker);
    clReleaseEvent(marker);
    CheckCl(error, "clWaitForEvents");
  });
}

MicaStatus EventQuery(void*, int32_t, uint64_t handle, int32_t* done) {
  return CatchAll([&] {
    *done = 1;
    const cl_event marker = TakeMarker(EventAt(handle));
    if (!marker) return;
    cl_int status = CL_COMPLETE;
    const cl_int error =
        clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
    clReleaseEvent(marker);
    CheckCl(error, "clGetEventInfo");
    *done = status == CL_COMPLETE;
  });
}

void CopyBetweenPlatforms(void* dst, Device& to, const void* src, Device& from, size_t size) {
  std::vector<char> staging(size);
  Finish(from);
  CheckCl(clEnqueueSVMMemcpy(from.queue, CL_TRUE, staging.data(), src, size, 0, nullptr, nullptr),
          "clEnqueueSVMMemcpy");
  Finish(to);
  CheckCl(clEnqueueSVMMemcpy(to.queue, CL_TRUE, dst, staging.data(), size, 0, nullptr, nullptr),
          "clEnqueueSVMMemcpy");
}

MicaStatus Copy(void*, void* dst, MicaDevice dst_device, const void* src, MicaDevice src_device, int64_t size,
                uint64_t stream) {
  return CatchAll([&] {
    if (size == 0) return;
    const bool to_host = dst_device.backend == 0;
    const bool from_host = src_device.backend == 0;
    Device& device = DeviceAt(to_host ? src_device.index : dst_device.index);
    if (!to_host && !from_host && src_device.index != dst_device.index) {
      Device& from = DeviceAt(src_device.index);
      if (from.context != device.context)
        return CopyBetweenPlatforms(dst, device, src, from, static_cast<size_t>(size));
    }
    const cl_command_queue queue = device.QueueOf(stream);
    CheckCl(clEnqueueSVMMemcpy(queue, CL_FALSE, dst, src, static_cast<size_t>(size), 0, nullptr, nullptr),
            "clEnqueueSVMMemcpy");
    CheckCl(clFlush(queue), "clFlush");
  });
}

MicaStatus Fill(void*, int32_t index, void* data, uint8_t byte, int64_t size, uint64_t stream) {
  return CatchAll([&] {
    if (size == 0) return;
    CheckCl(clEnqueueSVMMemFill(DeviceAt(index).QueueOf(stream), data, &byte, 1, static_cast<size_t>(size), 0,
                                nullptr, nullptr),
            "clEnqueueSVMMemFill");
  });
}

MicaStatus Quiesce(void*) {
  return CatchAll([&] {
    for (const auto& device : GetRuntime().devices) Finish(*device);
  });
}

}  // namespace

const MicaDeviceTable& DeviceTable() {
  static const MicaDeviceTable table = [] {
    MicaDeviceTable t = {};
    t.struct_size = sizeof(t);
    t.major = MICA_ABI_MAJOR;
    t.minor = MICA_ABI_MINOR;
    t.count = Count;
    t.properties = Properties;
    t.exchange_device = ExchangeDevice;
    t.allocate = Allocate;
    t.free = Free;
    t.stream_create = StreamCreate;
    t.stream_destroy = StreamDestroy;
    t.stream_sync = StreamSync;
    t.event_create = EventCreate;
    t.event_destroy = EventDestroy;
    t.event_record = EventRecord;
    t.event_wait = EventWait;
    t.event_sync = EventSync;
    t.copy = Copy;
    t.fill = Fill;
    t.event_query = EventQuery;
    t.stream_query = StreamQuery;
    t.device_sync = DeviceSync;
    t.quiesce = Quiesce;
    return t;
  }();
  return table;
}

}  // namespace opencl_device
