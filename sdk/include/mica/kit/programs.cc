#include "programs.h"

#include <memory>
#include <unordered_map>

namespace opencl_device {
namespace {

struct Program {
  cl_program program = nullptr;
  std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels;
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, Program> programs;
};
Cache& GetCache() {
  static Cache* cache = new Cache();  // never destroyed: threads may outlive statics
  return *cache;
}

std::string KeyOn(const Device& device, const std::string& key) {
  return std::string(reinterpret_cast<const char*>(&device.index), sizeof(device.index)) + key;
}

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

cl_program Compile(Device& device, const char* operator_name, const std::string& source) {
  const char* text = source.c_str();
  cl_int error = CL_SUCCESS;
  const cl_program program = clCreateProgramWithSource(device.context, 1, &text, nullptr, &error);
  CheckCl(error, "clCreateProgramWithSource");
  error = clBuildProgram(program, 1, &device.id, device.build_options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  const std::string log = BuildLog(program, device);
  clReleaseProgram(program);
  MICA_PLUGIN_THROW(MICA_ERROR_RUNTIME, "The OpenCL kernel of " + std::string(operator_name) +
                                            " does not compile on the device (" + device.name + "), error (" +
                                            std::to_string(error) + "): " + log);
}

}  // namespace

namespace internal {

Kernel* Lookup(Device& device, const std::string& key, const char* entry) {
  Cache& cache = GetCache();
  std::lock_guard<std::mutex> lock(cache.mutex);
  const auto program = cache.programs.find(KeyOn(device, key));
  if (program == cache.programs.end()) return nullptr;
  const auto kernel = program->second.kernels.find(entry);
  return kernel == program->second.kernels.end() ? nullptr : kernel->second.get();
}

// Compiles under the lock: two threads never compile one program twice.
Kernel& Build(Device& device, const std::string& key, const char* entry, const char* operator_name,
              const std::string& source) {
  Cache& cache = GetCache();
  std::lock_guard<std::mutex> lock(cache.mutex);
  Program& program = cache.programs[KeyOn(device, key)];
  if (!program.program) program.program = Compile(device, operator_name, source);
  std::unique_ptr<Kernel>& kernel = program.kernels[entry];
  if (!kernel) {
    auto made = std::make_unique<Kernel>();
    cl_int error = CL_SUCCESS;
    made->kernel = clCreateKernel(program.program, entry, &error);
    CheckCl(error, "clCreateKernel");
    kernel = std::move(made);
  }
  return *kernel;
}

}  // namespace internal

void Launch::Run(int64_t x, int64_t y, int64_t z, int64_t group_x, int64_t group_y) {
  const size_t local[3] = {static_cast<size_t>(group_x), static_cast<size_t>(group_y), 1};
  const size_t global[3] = {(static_cast<size_t>(x) + local[0] - 1) / local[0] * local[0],
                            (static_cast<size_t>(y) + local[1] - 1) / local[1] * local[1],
                            static_cast<size_t>(z)};
  CheckCl(clEnqueueNDRangeKernel(queue_, kernel_, 3, nullptr, global, local, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
  // An implementation may compile when a kernel first runs, for sizes of a kind (PoCL
  // does, on a thread of its own). That must be over before the process may end: the
  // compiler's static objects end before anybody can wait for the queues.
  int bit = 0;
  while (bit < 63 && global[0] * global[1] * global[2] >> bit > 1) ++bit;
  const bool is_new = (owner_.sizes_seen >> bit & 1) == 0;
  owner_.sizes_seen |= uint64_t{1} << bit;
  CheckCl(is_new ? clFinish(queue_) : clFlush(queue_), "clFinish");
}

MicaDevice PlaceOf(const MicaCall* call) {
  static const int32_t backend = mica::plugin::Host()->backend_index(mica::plugin::Str("opencl"));
  return {backend, call->device_index};
}

Workspace::Workspace(const MicaCall* call, int64_t size) : place_(PlaceOf(call)) {
  mica::plugin::Check(mica::plugin::Host()->allocate(place_, size, call->stream, &data_));
}
Workspace::~Workspace() { mica::plugin::Host()->free(place_, data_); }

Flag::Flag(const MicaCall* call) : call_(call) {
  mica::plugin::Check(mica::plugin::Host()->allocate(PlaceOf(call), sizeof(cl_int), call->stream, &data_));
  const cl_int zero = 0;
  CheckCl(clEnqueueSVMMemFill(DeviceOf(call).QueueOf(call->stream), data_, &zero, sizeof(zero), sizeof(zero),
                              0, nullptr, nullptr),
          "clEnqueueSVMMemFill");
}
Flag::~Flag() { mica::plugin::Host()->free(PlaceOf(call_), data_); }

int Flag::Read() const {
  cl_int value = 0;
  CheckCl(clEnqueueSVMMemcpy(DeviceOf(call_).QueueOf(call_->stream), CL_TRUE, &value, data_, sizeof(value), 0,
                             nullptr, nullptr),
          "clEnqueueSVMMemcpy");
  return value;
}

}  // namespace opencl_device
