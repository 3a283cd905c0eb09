// Convolutions by cuDNN, imitated (fake/cudnn_graph.cc): values, which engine the settings choose, and what
// is done where there is no memory. Runs in processes of cuda_test.cc whose environment names the libraries.
#include <dlfcn.h>

#include <algorithm>
#include <memory>

#include <mica/plugin.h>

#include "plugins/cuda/convolutions.h"
#include "plugins/cuda/cudnn.h"
#include "test/support/mica_test.h"
#include "test/unit/gpu/fake_host.h"

namespace cuda::test {
namespace {

using mica::kit::ConvolutionKind;

template <typename... A>
int Fake(const char* function, A... arguments) {
  static void* library = dlopen(MICA_BUILD_DIR "/test/fake_cuda/libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library);
  void* found = dlsym(library, function);
  REQUIRE(found);
  return reinterpret_cast<int (*)(A...)>(found)(arguments...);
}

// Windows of ones over an image of ones: each element of the result is how many of the window's places lie in
// the image, times the channels. `batch` makes shapes differ.
struct Ones {
  explicit Ones(int64_t batch, int64_t groups = 1) {
    auto& shape = problem.convolution.shape;
    shape.dtype = MICA_F32;
    shape.groups = groups;
    const int64_t image[] = {batch, 4, 5, 5}, weight[] = {2, 4 / groups, 3, 3}, result[] = {batch, 2, 3, 3};
    std::copy_n(image, 4, shape.image);
    std::copy_n(weight, 4, shape.weight);
    std::copy_n(result, 4, shape.result);
    for (int d = 0; d < 2; ++d) shape.stride[d] = 2, shape.padding[d] = 1, shape.dilation[d] = 1;
    x.assign(static_cast<size_t>(batch * 4 * 25), 1), w.assign(static_cast<size_t>(2 * 4 / groups * 9), 1);
    y.assign(static_cast<size_t>(batch * 2 * 9), 0);
    problem.convolution.image = x.data(), problem.convolution.weight = w.data();
    problem.convolution.result = y.data();
    problem.workspace = [this](size_t size) {
      if (size > most) throw mica::plugin::Error(MICA_ERROR_OUT_OF_MEMORY, "no memory");
      workspace.resize(size);
      return static_cast<void*>(workspace.data());
    };
  }
  // Runs it, and returns the engine; -1 where cuDNN does not take it.
  int Run() { return GetCudnn().Run(problem) ? Fake("FakeEngine") : -1; }
  bool IsRight() const {
    const float channels = 4.0F / static_cast<float>(problem.convolution.shape.groups);
    return y[0] == 4 * channels && y[1] == 6 * channels && y[4] == 9 * channels && y.back() == 4 * channels;
  }
  gpu::ConvolutionProblem problem;
  std::vector<float> x, w, y;
  std::vector<char> workspace;
  size_t most = 1 << 20;
};

TEST_CASE("convolutions by cuDNN, and the engines that settings choose", "[.][fakes-cudnn]") {
  auto& settings = GetHost().settings;
  settings[MICA_SETTING_CONVOLUTION_LIBRARY] = 1;
  REQUIRE((CudnnMissing().empty() && GetCudnn().Has(0, MICA_F32) && !GetCudnn().Has(0, MICA_I64)));
  int64_t batch = 0;
  for (const int64_t groups : {1, 2}) {
    Ones ones(++batch, groups);
    REQUIRE((ones.Run() == 1 && ones.IsRight()));
    settings[MICA_SETTING_CONVOLUTION_TF32] = 1;
    REQUIRE((ones.Run() == 0 && ones.IsRight()));
    settings[MICA_SETTING_CONVOLUTION_TF32] = 0;
    REQUIRE(ones.Run() == 1);  // a setting that comes back, too
  }
  for (const ConvolutionKind kind : {ConvolutionKind::kBackwardInput, ConvolutionKind::kBackwardWeight}) {
    Ones ones(1);
    ones.problem.convolution.shape.kind = kind;
    std::fill(ones.y.begin(), ones.y.end(), 1.0F);
    REQUIRE(ones.Run() == 1);
    // The middle of the image belongs to one window's middle, its corner to one window as well; a weight's
    // corner meets what lies above and left of it in four windows.
    if (kind == ConvolutionKind::kBackwardInput)
      REQUIRE((ones.x[0] == 2 && ones.x[6] == 8 && ones.x[12] == 2));
    if (kind == ConvolutionKind::kBackwardWeight)
      REQUIRE((ones.w[0] == 4 && ones.w[1] == 6 && ones.w[4] == 9));
  }
  Ones half(1);
  half.problem.convolution.shape.dtype = MICA_F16;
  REQUIRE(half.Run() == -1);
  settings[MICA_SETTING_CONVOLUTION_LIBRARY] = 0;
  REQUIRE(!GetCudnn().Has(0, MICA_F32));
  settings[MICA_SETTING_CONVOLUTION_LIBRARY] = 1;
}

TEST_CASE("convolutions are timed where a program asks, and not where they have to be the same",
          "[.][fakes-cudnn]") {
  auto& settings = GetHost().settings;
  Ones first(10), second(10);
  settings[MICA_SETTING_CONVOLUTION_BENCHMARK] = 1;
  settings[MICA_SETTING_CONVOLUTION_BENCHMARK_LIMIT] = 10;
  REQUIRE((first.Run() == 3 && first.IsRight()));
  const int runs = Fake("FakeConvolutions");
  REQUIRE((second.Run() == 3 && second.IsRight() && Fake("FakeConvolutions") == runs + 1));  // timed once
  settings[MICA_SETTING_CONVOLUTION_BENCHMARK_LIMIT] = 2;                                    // of 1, 2 and 3
  REQUIRE(first.Run() == 2);
  settings[MICA_SETTING_CONVOLUTION_BENCHMARK_LIMIT] = 0;
  REQUIRE(first.Run() == 3);
  for (const char* name : {MICA_SETTING_CONVOLUTION_DETERMINISTIC, MICA_SETTING_DETERMINISTIC}) {
    settings[name] = 1;
    REQUIRE(first.Run() == 1);
    first.most = 0;
    REQUIRE(first.Run() == 3);  // 2 is not the same in every run
    first.most = 1 << 20;
    settings[name] = 0;
  }
  settings[MICA_SETTING_CONVOLUTION_BENCHMARK] = 0;
  REQUIRE(first.Run() == 1);
}

TEST_CASE("convolutions that are recorded take what was timed, and time nothing", "[.][fakes-cudnn]") {
  auto& settings = GetHost().settings;
  const auto record = [](bool is_recording) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(driver);
    reinterpret_cast<void (*)()>(dlsym(driver, is_recording ? "FakeRecord" : "FakeRecordNoMore"))();
  };
  settings[MICA_SETTING_CONVOLUTION_BENCHMARK] = 1;
  Ones ones(30);
  ones.problem.stream = 5;
  record(true);
  const int runs = Fake("FakeConvolutions");
  REQUIRE((ones.Run() == 1 && ones.Run() == 1 && Fake("FakeConvolutions") == runs + 2));
  record(false);
  REQUIRE(ones.Run() == 3);
  record(true);
  REQUIRE(ones.Run() == 3);
  record(false);
  settings[MICA_SETTING_CONVOLUTION_BENCHMARK] = 0;
}

TEST_CASE("convolutions without memory", "[.][fakes-cudnn]") {
  FakeHost& host = GetHost();
  Ones ones(20);
  REQUIRE(ones.Run() == 1);
  ones.most = 0;
  REQUIRE((ones.Run() == 3 && ones.IsRight()));
  ones.most = 1 << 20;
  REQUIRE(ones.Run() == 1);  // for that call alone
  const int no_memory = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, emptied = host.emptied;
  Fake("FakeFail", no_memory, 1);
  REQUIRE((ones.Run() == 1 && host.emptied == emptied + 1));
  REQUIRE(host.warnings.empty());
  Fake("FakeFail", no_memory, 2);
  REQUIRE(ones.Run() == -1);
  REQUIRE(host.warnings.size() == 1);
  REQUIRE_THAT(host.warnings[0], Catch::Matchers::Contains("NO_MEMORY (4004): words. Mica's own kernels"));
  REQUIRE((ones.Run() == 1 && ones.IsRight()));
  Fake("FakeFail", int{CUDNN_STATUS_INTERNAL_ERROR}, 1);
  REQUIRE(ones.Run() == 2);  // what cuDNN cannot build is left out
  REQUIRE(ones.Run() == 2);
}

TEST_CASE("a cuDNN that does not start is left alone, with one warning", "[.][fakes-cudnn-start]") {
  FakeHost& host = GetHost();
  REQUIRE(CudnnMissing().empty());
  Fake("FakeFail", int{CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED}, 2);
  REQUIRE(Ones(1).Run() == -1);  // memory may come back
  host.warnings.clear();
  Fake("FakeFail", int{CUDNN_STATUS_NOT_INITIALIZED}, 1);
  for (int i = 0; i < 3; ++i) REQUIRE(Ones(1).Run() == -1);
  REQUIRE((host.warnings.size() == 1 && host.warnings[0] == CudnnMissing()));
  REQUIRE_THAT(CudnnMissing(), Catch::Matchers::Contains("cudnnCreate failed with ANOTHER (1001): words"));
}

}  // namespace
}  // namespace cuda::test
