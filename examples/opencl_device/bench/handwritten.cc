// The same arithmetic as some of Mica's operators in kernels written by hand: eight
// elements a work-item, and the rest one by one.
//
// bench/pointwise.py loads this library beside the plugin; it has a context and a
// queue of its own on the same device. hand_prepare(name, elements) gives a handle,
// hand_run(handle) runs the kernel and waits, hand_result reads an element.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Formula {
  const char* name;
  const char* text;
};
constexpr Formula kFormulas[] = {
    {"add", "x + 1.5f * y"},
    {"mul", "x * y"},
    {"gelu", "0.5f * x * (1.0f + erf(x * 0.70710678f))"},
    {"gelu_tanh", "0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)))"},
    {"addcmul", "x + 0.5f * y * z"},
};

struct Run {
  cl_kernel kernel;
  cl_command_queue queue;
  float* result;
  size_t items;
};

void Check(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  std::fprintf(stderr, "%s failed with the error (%d).\n", what, error);
  std::exit(1);
}

std::string Source(const char* text) {
  const std::string each = text;
  return "kernel void f(global float* o, const global float* a, const global float* b, const global float* "
         "c,\n"
         "              const uint n) {\n"
         "  const uint i = get_global_id(0) * 8;\n"
         "  if (i + 8 <= n) {\n"
         "    const float8 x = vload8(0, a + i), y = vload8(0, b + i), z = vload8(0, c + i);\n"
         "    vstore8(" +
         each +
         ", 0, o + i);\n"
         "  } else {\n"
         "    for (uint k = i; k < n; ++k) {\n"
         "      const float x = a[k], y = b[k], z = c[k];\n"
         "      o[k] = " +
         each +
         ";\n"
         "    }\n"
         "  }\n"
         "}\n";
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// The inputs are i % 1000 / 250 - 2, i % 7 and i % 3.
EXPORT void* hand_prepare(const char* name, unsigned elements) {
  static cl_context context = nullptr;
  static cl_device_id device = nullptr;
  cl_int error = CL_SUCCESS;
  if (!context) {
    cl_platform_id platform = nullptr;
    Check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    Check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    Check(error, "clCreateContext");
  }
  const char* text = nullptr;
  for (const Formula& formula : kFormulas)
    if (std::strcmp(formula.name, name) == 0) text = formula.text;
  if (!text) return nullptr;
  const std::string source = Source(text);
  const char* pointer = source.c_str();
  const cl_program program = clCreateProgramWithSource(context, 1, &pointer, nullptr, &error);
  Check(error, "clCreateProgramWithSource");
  Check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  auto* run = new Run();
  run->kernel = clCreateKernel(program, "f", &error);
  Check(error, "clCreateKernel");
  run->queue = clCreateCommandQueueWithProperties(context, device, nullptr, &error);
  Check(error, "clCreateCommandQueueWithProperties");
  run->items = ((elements + 7) / 8 + 63) / 64 * 64;
  for (cl_uint i = 0; i < 4; ++i) {
    auto* data = static_cast<float*>(clSVMAlloc(context, CL_MEM_READ_WRITE, elements * sizeof(float), 0));
    Check(clEnqueueSVMMap(run->queue, CL_TRUE, CL_MAP_WRITE, data, elements * sizeof(float), 0, nullptr,
                          nullptr),
          "clEnqueueSVMMap");
    for (unsigned k = 0; k < elements; ++k)
      data[k] = i == 1 ? static_cast<float>(k % 1000) / 250 - 2 : static_cast<float>(k % (i == 2 ? 7 : 3));
    Check(clEnqueueSVMUnmap(run->queue, data, 0, nullptr, nullptr), "clEnqueueSVMUnmap");
    if (i == 0) run->result = data;
    Check(clSetKernelArgSVMPointer(run->kernel, i, data), "clSetKernelArgSVMPointer");
  }
  Check(clSetKernelArg(run->kernel, 4, sizeof(elements), &elements), "clSetKernelArg");
  return run;
}

EXPORT void hand_run(void* handle) {
  auto* run = static_cast<Run*>(handle);
  const size_t group = 64;
  Check(clEnqueueNDRangeKernel(run->queue, run->kernel, 1, nullptr, &run->items, &group, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
  Check(clFinish(run->queue), "clFinish");
}

EXPORT float hand_result(void* handle, unsigned index) {
  auto* run = static_cast<Run*>(handle);
  float value = 0;
  Check(clEnqueueSVMMemcpy(run->queue, CL_TRUE, &value, run->result + index, sizeof(value), 0, nullptr,
                           nullptr),
        "clEnqueueSVMMemcpy");
  return value;
}
