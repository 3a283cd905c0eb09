// libcudnn.so.9, imitated: forward convolutions of float, and algorithms that differ in what a test sees.
//
// It lists four algorithms: 0 rounds to TF32 and 1 is exact, both take a workspace; 2 is exact and adds up in
// any order; 3 is exact and takes no workspace. Algorithm i takes 8 - 2 i milliseconds of the imitated
// driver's clock, and the host 20 to queue 3, which counts where the device has nothing to do meanwhile.
// FAKE_CUDNN_VERSION is its version. cudnn_graph.cc has its graphs.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#define FAKE(type) extern "C" __attribute__((visibility("default"))) type

// The status of a call that is to fail, of those that FakeFail counts; also of a graph's.
FAKE(int) FakeFailure();

namespace {

constexpr int kNotSupported = 3000, kDefault = 0, kFma = 3;
constexpr size_t kWorkspace = 4096;

struct Tensor {
  int type = 0;
  std::vector<int> sizes, strides;
};
struct Convolution {
  std::vector<int> padding, stride, dilation;
  int groups = 1, math = 0;
};
struct Found {  // cudnnConvolutionFwdAlgoPerf_t
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};

std::atomic<int> g_handles{0}, g_status{0}, g_failures{0}, g_runs{0};
int g_algorithm = -1, g_math = -1;

void Pass(double milliseconds, double idle) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* clock = driver ? dlsym(driver, "FakeClock") : nullptr;
  if (clock) reinterpret_cast<void (*)(double, double)>(clock)(milliseconds, idle);
}

int List(const Tensor* x, const Convolution* convolution, int most, int* count, Found* found) {
  if (x->type != 0) return kNotSupported;
  *count = 0;
  for (int i = 0; i < 4 && *count < most; ++i) {
    const int math = i == 0 ? kDefault : kFma;
    if (i == 0 && convolution->math == kFma) continue;
    found[(*count)++] = {i, 0, 1.0F, i == 3 ? 0 : kWorkspace, i != 2, math, {}};
  }
  return 0;
}

int Begin(const Convolution* convolution, int algorithm, void* workspace, size_t size) {
  if (const int failure = FakeFailure()) return failure;
  if ((algorithm == 3) != (size == 0) || (size && !workspace)) return 2000;
  if (workspace) std::memset(workspace, 1, size);
  ++g_runs;
  g_algorithm = algorithm, g_math = convolution->math;
  Pass(8 - 2 * algorithm, algorithm == 3 ? 20 : 0);
  return 0;
}

}  // namespace

FAKE(int) FakeHandles() { return g_handles; }
FAKE(int) FakeAlgorithm() { return g_algorithm; }  // of the last convolution
FAKE(int) FakeMath() { return g_math; }
FAKE(int) FakeRuns() { return g_runs; }
FAKE(int) FakeFailure() { return g_failures > 0 && g_failures-- > 0 ? g_status.load() : 0; }
FAKE(void) FakeFail(int status, int times) { g_status = status, g_failures = times; }

FAKE(size_t) cudnnGetVersion() {
  const char* version = std::getenv("FAKE_CUDNN_VERSION");
  return version ? static_cast<size_t>(std::atoi(version)) : 91900;
}
FAKE(const char*) cudnnGetErrorString(int status) { return status == 4004 ? "NO_MEMORY" : "ANOTHER"; }
FAKE(void) cudnnGetLastErrorString(char* text, size_t size) { std::strncpy(text, "words", size); }
FAKE(int) cudnnCreate(void** handle) {
  if (const int failure = FakeFailure()) return failure;
  return *handle = reinterpret_cast<void*>(intptr_t{++g_handles}), 0;
}
FAKE(int) cudnnSetStream(void*, void*) { return 0; }

FAKE(int) cudnnCreateTensorDescriptor(Tensor** tensor) { return *tensor = new Tensor, 0; }
FAKE(int) cudnnDestroyTensorDescriptor(Tensor* tensor) { return delete tensor, 0; }
FAKE(int)
cudnnSetTensorNdDescriptor(Tensor* tensor, int type, int ndim, const int* sizes, const int* strides) {
  *tensor = {type, {sizes, sizes + ndim}, {strides, strides + ndim}};
  return 0;
}
FAKE(int) cudnnCreateFilterDescriptor(Tensor** filter) { return *filter = new Tensor, 0; }
FAKE(int) cudnnDestroyFilterDescriptor(Tensor* filter) { return delete filter, 0; }
FAKE(int) cudnnSetFilterNdDescriptor(Tensor* filter, int type, int, int ndim, const int* sizes) {
  return *filter = {type, {sizes, sizes + ndim}, {}}, 0;
}
FAKE(int) cudnnCreateConvolutionDescriptor(Convolution** convolution) {
  return *convolution = new Convolution, 0;
}
FAKE(int) cudnnDestroyConvolutionDescriptor(Convolution* convolution) { return delete convolution, 0; }
FAKE(int)
cudnnSetConvolutionNdDescriptor(Convolution* convolution, int ndim, const int* padding, const int* stride,
                                const int* dilation, int, int) {
  convolution->padding.assign(padding, padding + ndim);
  convolution->stride.assign(stride, stride + ndim);
  convolution->dilation.assign(dilation, dilation + ndim);
  return 0;
}
FAKE(int) cudnnSetConvolutionGroupCount(Convolution* convolution, int groups) {
  return convolution->groups = groups, 0;
}
FAKE(int) cudnnSetConvolutionMathType(Convolution* convolution, int math) {
  return convolution->math = math, 0;
}

FAKE(int)
cudnnGetConvolutionForwardAlgorithm_v7(void*, Tensor* x, Tensor*, Convolution* convolution, Tensor*, int most,
                                       int* count, Found* found) {
  return List(x, convolution, most, count, found);
}
FAKE(int)
cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, Tensor* w, Tensor*, Convolution* convolution, Tensor*,
                                            int most, int* count, Found* found) {
  return List(w, convolution, most, count, found);
}
FAKE(int)
cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, Tensor* x, Tensor*, Convolution* convolution, Tensor*,
                                              int most, int* count, Found* found) {
  return List(x, convolution, most, count, found);
}

// Two spatial dimensions, by the definition.
FAKE(int)
cudnnConvolutionForward(void*, const float* alpha, Tensor* x, const float* x_data, Tensor* w,
                        const float* w_data, Convolution* convolution, int algorithm, void* workspace,
                        size_t size, const float* beta, Tensor* y, float* y_data) {
  if (const int failure = Begin(convolution, algorithm, workspace, size)) return failure;
  if (*alpha != 1 || *beta != 0 || x->sizes.size() != 4) return 2000;
  const auto &in = x->sizes, &window = w->sizes, &out = y->sizes;
  const auto at = [](const Tensor* t, int n, int c, int h, int v) {
    return n * t->strides[0] + c * t->strides[1] + h * t->strides[2] + v * t->strides[3];
  };
  const int filters = out[1] / convolution->groups;
  for (int n = 0; n < out[0]; ++n)
    for (int k = 0; k < out[1]; ++k)
      for (int i = 0; i < out[2]; ++i)
        for (int j = 0; j < out[3]; ++j) {
          float sum = 0;
          for (int c = 0; c < window[1]; ++c)
            for (int a = 0; a < window[2]; ++a)
              for (int b = 0; b < window[3]; ++b) {
                const int h =
                    i * convolution->stride[0] + a * convolution->dilation[0] - convolution->padding[0];
                const int v =
                    j * convolution->stride[1] + b * convolution->dilation[1] - convolution->padding[1];
                if (h < 0 || v < 0 || h >= in[2] || v >= in[3]) continue;
                sum += x_data[at(x, n, k / filters * window[1] + c, h, v)] *
                       w_data[((k * window[1] + c) * window[2] + a) * window[3] + b];
              }
          y_data[at(y, n, k, i, j)] = sum;
        }
  return 0;
}
FAKE(int)
cudnnConvolutionBackwardData(void*, const void*, Tensor*, const void*, Tensor*, const void*,
                             Convolution* convolution, int algorithm, void* workspace, size_t size,
                             const void*, Tensor*, void*) {
  return Begin(convolution, algorithm, workspace, size);
}
FAKE(int)
cudnnConvolutionBackwardFilter(void*, const void*, Tensor*, const void*, Tensor*, const void*,
                               Convolution* convolution, int algorithm, void* workspace, size_t size,
                               const void*, Tensor*, void*) {
  return Begin(convolution, algorithm, workspace, size);
}
