#include "runtime.h"

#include <cstdlib>

namespace opencl_device {
namespace {

template <typename T>
T Info(cl_device_id id, cl_device_info what) {
  T value{};
  CheckCl(clGetDeviceInfo(id, what, sizeof(value), &value, nullptr), "clGetDeviceInfo");
  return value;
}

std::string InfoText(cl_device_id id, cl_device_info what) {
  size_t size = 0;
  CheckCl(clGetDeviceInfo(id, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string text(size, '\0');
  CheckCl(clGetDeviceInfo(id, what, size, text.data(), nullptr), "clGetDeviceInfo");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

// Why a device cannot be used; empty when it can.
std::string Obstacle(cl_device_id id) {
  cl_device_svm_capabilities svm = 0;  // a device before OpenCL 2.0 does not know the question
  const cl_int asked = clGetDeviceInfo(id, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, nullptr);
  if (asked != CL_SUCCESS || (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) == 0)
    return "it has no coarse-grained shared virtual memory, which tensors need";
  if (!Info<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE)) return "it has no compiler";
  if (!Info<cl_bool>(id, CL_DEVICE_ENDIAN_LITTLE)) return "it is big-endian";
  return "";
}

std::unique_ptr<Device> MakeDevice(cl_device_id id, cl_context context, int32_t index) {
  auto device = std::make_unique<Device>();
  device->traits.index = index;
  device->id = id;
  device->context = context;
  device->traits.name = InfoText(id, CL_DEVICE_NAME);
  device->total_memory = static_cast<int64_t>(Info<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE));
  device->traits.has_f64 = Info<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  const auto width = Info<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  device->traits.vector_width = width >= 16 ? 16 : width >= 8 ? 8 : 4;
  device->build_options = "-cl-std=CL1.2 -w";
  if (Info<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    device->build_options += " -cl-fp32-correctly-rounded-divide-sqrt";
  cl_int error = CL_SUCCESS;
  device->queue = clCreateCommandQueueWithProperties(context, id, nullptr, &error);
  CheckCl(error, "clCreateCommandQueueWithProperties");
  return device;
}

void AddPlatform(cl_platform_id platform, Runtime* runtime) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) return;
  std::vector<cl_device_id> ids(count), usable;
  CheckCl(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr), "clGetDeviceIDs");
  for (const cl_device_id id : ids) {
    const std::string obstacle = Obstacle(id);
    if (obstacle.empty()) {
      usable.push_back(id);
    } else {
      runtime->left_out.push_back("The OpenCL device (" + InfoText(id, CL_DEVICE_NAME) +
                                  ") is not used because " + obstacle + ".");
    }
  }
  if (usable.empty()) return;
  cl_int error = CL_SUCCESS;
  const cl_context context =
      clCreateContext(nullptr, static_cast<cl_uint>(usable.size()), usable.data(), nullptr, nullptr, &error);
  CheckCl(error, "clCreateContext");
  for (const cl_device_id id : usable)
    runtime->devices.push_back(MakeDevice(id, context, static_cast<int32_t>(runtime->devices.size())));
}

void FinishAll() {
  for (const auto& device : GetRuntime().devices) {
    for (const cl_command_queue queue : device->streams) clFinish(queue);
    clFinish(device->queue);
  }
}

Runtime* FindDevices() {
  auto runtime = std::make_unique<Runtime>();
  cl_uint count = 0;
  // An ICD loader without any platform answers with an error of its own.
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) CheckCl(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  for (const cl_platform_id platform : platforms) {
    try {
      AddPlatform(platform, runtime.get());
    } catch (const std::exception& error) {  // the others may do
      runtime->left_out.push_back(std::string("An OpenCL platform is not used: ") + error.what());
    }
  }
  // Registered after the implementation's libraries were loaded, so it runs before
  // their static objects end.
  std::atexit(FinishAll);
  return runtime.release();
}

}  // namespace

const Runtime& GetRuntime() {
  static const Runtime* runtime = FindDevices();  // never destroyed: tensors may outlive statics
  return *runtime;
}

Device& DeviceAt(int64_t index) {
  const auto& devices = GetRuntime().devices;
  MICA_PLUGIN_CHECK(index >= 0 && index < static_cast<int64_t>(devices.size()), MICA_ERROR_VALUE,
                    "The device (opencl:" + std::to_string(index) + ") does not exist; OpenCL has (" +
                        std::to_string(devices.size()) + ") usable devices.");
  return *devices[static_cast<size_t>(index)];
}

void CheckCl(cl_int error, const char* function) {
  if (error == CL_SUCCESS) return;
  const bool memory = error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_HOST_MEMORY ||
                      error == CL_OUT_OF_RESOURCES;
  MICA_PLUGIN_THROW(memory ? MICA_ERROR_OUT_OF_MEMORY : MICA_ERROR_RUNTIME,
                    "The OpenCL function (" + std::string(function) + ") failed with the error (" +
                        std::to_string(error) + ").");
}

void Finish(Device& device) {
  std::vector<cl_command_queue> queues;
  {
    std::lock_guard<std::mutex> lock(device.mutex);
    queues = device.streams;
  }
  queues.push_back(device.queue);
  for (const cl_command_queue queue : queues) CheckCl(clFinish(queue), "clFinish");
}

}  // namespace opencl_device
