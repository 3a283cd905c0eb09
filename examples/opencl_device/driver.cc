#include "driver.h"

#include <memory>
#include <mutex>

#include "runtime.h"

namespace opencl_device {
namespace {

// A cl_kernel holds its arguments, so a launch holds the kernel's lock from its first
// argument to the enqueue.
struct Entry {
  cl_kernel kernel = nullptr;
  std::mutex mutex;
  uint64_t sizes_seen = 0;  // bit n: was launched with 2^n work-items or so
};

// The first lines of what the compiler says.
std::string BuildLog(cl_program program, const Device& device) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  size_t end = 0;
  for (int line = 0; line < 6 && end != std::string::npos; ++line) end = log.find('\n', end + 1);
  return log.substr(0, end);
}

class OpenClDriver final : public mica::kit::Driver {
 public:
  const char* backend() const override { return "opencl"; }
  const mica::kit::Device& DeviceAt(int64_t index) override { return opencl_device::DeviceAt(index).traits; }

  void* Compile(const mica::kit::Device& traits, const std::string& text, const char* what) override {
    const Device& device = opencl_device::DeviceAt(traits.index);
    const char* source = text.c_str();
    cl_int error = CL_SUCCESS;
    const cl_program program = clCreateProgramWithSource(device.context, 1, &source, nullptr, &error);
    CheckCl(error, "clCreateProgramWithSource");
    error = clBuildProgram(program, 1, &device.id, device.build_options.c_str(), nullptr, nullptr);
    if (error == CL_SUCCESS) return program;
    const std::string log = BuildLog(program, device);
    clReleaseProgram(program);
    MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, "The OpenCL kernel of " + std::string(what) +
                                              " does not compile on the device (" + device.traits.name +
                                              "), error (" + std::to_string(error) + "): " + log);
  }

  void* Entry(const mica::kit::Device&, void* module, const char* name) override {
    auto entry = std::make_unique<opencl_device::Entry>();
    cl_int error = CL_SUCCESS;
    entry->kernel = clCreateKernel(static_cast<cl_program>(module), name, &error);
    CheckCl(error, "clCreateKernel");
    return entry.release();  // stays, as its module does
  }

  void Launch(const mica::kit::Device& traits, void* handle, const mica::kit::Argument* arguments,
              size_t count, const mica::kit::Grid& grid, uint64_t stream) override {
    auto& entry = *static_cast<opencl_device::Entry*>(handle);
    const cl_command_queue queue = opencl_device::DeviceAt(traits.index).QueueOf(stream);
    std::lock_guard<std::mutex> lock(entry.mutex);
    for (cl_uint i = 0; i < count; ++i) {
      const mica::kit::Argument& a = arguments[i];
      if (a.is_pointer)
        CheckCl(clSetKernelArgSVMPointer(entry.kernel, i, *static_cast<void* const*>(a.bytes)),
                "clSetKernelArgSVMPointer");
      else
        CheckCl(clSetKernelArg(entry.kernel, i, a.size, a.bytes), "clSetKernelArg");
    }
    size_t global[3], local[3], items = 1;
    for (int d = 0; d < 3; ++d) {
      local[d] = static_cast<size_t>(grid.items[d]);
      global[d] = static_cast<size_t>(grid.groups[d]) * local[d];
      items *= global[d];
    }
    CheckCl(clEnqueueNDRangeKernel(queue, entry.kernel, 3, nullptr, global, local, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel");
    // An implementation may compile when a kernel first runs, for sizes of a kind (PoCL
    // does, on a thread of its own). That must be over before the process may end: the
    // compiler's static objects end before anybody can wait for the queues.
    int bit = 0;
    while (bit < 63 && items >> bit > 1) ++bit;
    const bool is_new = (entry.sizes_seen >> bit & 1) == 0;
    entry.sizes_seen |= uint64_t{1} << bit;
    CheckCl(is_new ? clFinish(queue) : clFlush(queue), "clFinish");
  }

  void Zero(const mica::kit::Device& traits, void* data, size_t size, uint64_t stream) override {
    const uint8_t zero = 0;
    CheckCl(clEnqueueSVMMemFill(opencl_device::DeviceAt(traits.index).QueueOf(stream), data, &zero, 1, size,
                                0, nullptr, nullptr),
            "clEnqueueSVMMemFill");
  }

  void Read(const mica::kit::Device& traits, void* to, const void* from, size_t size,
            uint64_t stream) override {
    CheckCl(clEnqueueSVMMemcpy(opencl_device::DeviceAt(traits.index).QueueOf(stream), CL_TRUE, to, from, size,
                               0, nullptr, nullptr),
            "clEnqueueSVMMemcpy");
  }
};

}  // namespace

mica::kit::Driver& GetDriver() {
  static auto* driver = new OpenClDriver();  // never destroyed: tensors may outlive statics
  return *driver;
}

}  // namespace opencl_device
