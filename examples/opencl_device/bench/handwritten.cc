// The same arithmetic as some of Mica's operators in kernels written by hand: eight
// elements a work-item, and the rest one by one.
//
// bench/pointwise.py loads this library beside the plugin; it has a context and a
// queue of its own on the same device, and works in the plugin's memory, which PoCL
// allows: where arrays lie moves times by a fifth. hand_prepare(name, o, a, b, c,
// elements) gives a handle, hand_run(handle) runs the kernel and waits.
// A formula reads x and y, and z or a mask of bytes, at i; `row` repeats 1,024 elements of y.
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
  bool mask = false;
  bool row = false;
};
constexpr Formula kFormulas[] = {
    {"add", "x + 1.5f * y"},
    {"mul", "x * y"},
    {"mul_row", "x * y", false, true},
    {"where", "MASK ? x : y", true},
    {"sigmoid", "1.0f / (1.0f + exp(-x))"},
    {"gelu", "0.5f * x * (1.0f + erf(x * 0.70710678f))"},
    {"gelu_tanh", "0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x)))"},
    {"addcmul", "x + 0.5f * y * z"},
};

struct Run {
  cl_kernel kernel;
  cl_command_queue queue;
  size_t items;
};

void Check(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  std::fprintf(stderr, "%s failed with the error (%d).\n", what, error);
  std::exit(1);
}

std::string Source(const Formula& formula) {
  const std::string each = formula.text, y_at = formula.row ? "i % 1024" : "i";
  const auto with = [&](const char* mask) {
    const size_t at = each.find("MASK");
    return at == std::string::npos ? each : each.substr(0, at) + mask + each.substr(at + 4);
  };
  const std::string type = formula.mask ? "uchar" : "float";
  return "kernel void f(global float* o, const global float* a, const global float* b, const global " + type +
         "* c,\n"
         "              const uint n) {\n"
         "  uint i = get_global_id(0) * 8;\n"
         "  if (i + 8 <= n) {\n"
         "    const float8 x = vload8(0, a + i), y = vload8(0, b + " +
         y_at + ");\n    const " + type + "8 z = vload8(0, c + i);\n    vstore8(" +
         with("convert_int8(z) != 0") +
         ", 0, o + i);\n"
         "  } else {\n"
         "    for (; i < n; ++i) {\n"
         "      const float x = a[i], y = b[" +
         y_at + "];\n      const " + type + " z = c[i];\n      o[i] = " + with("z") +
         ";\n"
         "    }\n"
         "  }\n"
         "}\n";
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* hand_prepare(const char* name, void* o, const void* a, const void* b, const void* c,
                          unsigned elements) {
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
  const Formula* formula = nullptr;
  for (const Formula& each : kFormulas)
    if (std::strcmp(each.name, name) == 0) formula = &each;
  if (!formula) return nullptr;
  const std::string source = Source(*formula);
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
  const void* const pointers[] = {o, a, b, c};
  for (cl_uint i = 0; i < 4; ++i)
    Check(clSetKernelArgSVMPointer(run->kernel, i, pointers[i]), "clSetKernelArgSVMPointer");
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
