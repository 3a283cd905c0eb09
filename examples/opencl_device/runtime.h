// The OpenCL runtime as this plugin sees it: platforms, devices, queues, errors.
//
// Every device that can hold coarse-grained shared virtual memory (SVM) and
// compile kernels becomes one device of the backend "opencl", numbered over all
// platforms. SVM is what makes a tensor's `data` a pointer that views can offset;
// a device without it is left out, and Init says so. All devices of a platform
// share one context. Streams are in-order command queues; stream 0 is the device's
// own queue. Everything here lives as long as the process.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <mica/kit/driver.h>

namespace opencl_device {

struct Device {
  mica::kit::Device traits;  // index and name among them
  cl_device_id id;
  cl_context context;  // of its platform
  cl_command_queue queue;
  int64_t total_memory;
  std::atomic<int64_t> used_memory{0};  // what `allocate` gave out
  std::string build_options;
  std::mutex mutex;  // guards `streams`
  std::vector<cl_command_queue> streams;

  // The queue of a stream; 0 is the default one.
  cl_command_queue QueueOf(uint64_t stream) const {
    return stream == 0 ? queue : reinterpret_cast<cl_command_queue>(stream);
  }
};

// Found once, at the first call.
struct Runtime {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::string> left_out;  // one sentence for each device that cannot be used
};
const Runtime& GetRuntime();

// The device of an index of the host's; throws a value error.
Device& DeviceAt(int64_t index);

// Throws what an error of OpenCL means: out of memory, or a run-time error that
// names the function and the number.
void CheckCl(cl_int error, const char* function);

// Waits for all queues of the device.
void Finish(Device& device);

}  // namespace opencl_device
