#include "plugins/gpu/kit_driver.h"

#include <algorithm>
#include <optional>

#include <mica/kit/programs.h>

namespace gpu {

// The key holds all that a binary depends on; a text is long, but read once a process.
std::string KitDriver::Binary(const std::string& text, const std::string& architecture, const char* what) {
  const std::string key = driver_.Compiler() + '\n' + architecture + '\n' + text;
  std::string binary;
  if (cache_.Find(key, &binary)) return binary;
  binary = driver_.Compile(text, architecture, what);
  cache_.Keep(key, binary);
  return binary;
}

void* KitDriver::Compile(const mica::kit::Device& device, const std::string& text, const char* what) {
  const std::string whole = driver_.Prelude() + text;
  const std::string binary = Binary(whole, devices_.At(device.index).info.architecture, what);
  return reinterpret_cast<void*>(driver_.Load(device.index, binary));
}

void* KitDriver::Entry(const mica::kit::Device&, void* module, const char* name) {
  return reinterpret_cast<void*>(driver_.Function(reinterpret_cast<uint64_t>(module), name));
}

void KitDriver::Launch(const mica::kit::Device& device, void* entry, const mica::kit::Argument* arguments,
                       size_t count, const mica::kit::Grid& grid, uint64_t stream) {
  constexpr size_t kMost = 256;
  MICA_PLUGIN_CHECK(
      count <= kMost && grid.groups[0] <= INT32_MAX && grid.groups[1] <= 65535 && grid.groups[2] <= 65535,
      MICA_ERROR_INTERNAL,
      "A launch of (" + std::to_string(grid.groups[0]) + ", " + std::to_string(grid.groups[1]) + ", " +
          std::to_string(grid.groups[2]) + ") blocks is more than a GPU takes.");
  void* values[kMost];
  size_t sizes[kMost];
  for (size_t i = 0; i < count; ++i) {
    values[i] = const_cast<void*>(arguments[i].bytes);
    sizes[i] = arguments[i].size;
  }
  gpu::Launch launch;
  launch.function = reinterpret_cast<uint64_t>(entry);
  for (int d = 0; d < 3; ++d) {
    launch.blocks[d] = static_cast<uint32_t>(grid.groups[d]);
    launch.threads[d] = static_cast<uint32_t>(grid.items[d]);
  }
  launch.arguments = values;
  launch.sizes = sizes;
  launch.count = count;
  launch.stream = stream;
  driver_.Run(device.index, launch);
}

void KitDriver::Zero(const mica::kit::Device& device, void* data, size_t size, uint64_t stream) {
  driver_.Fill(device.index, data, 0, static_cast<int64_t>(size), stream);
}

void KitDriver::Read(const mica::kit::Device& device, void* to, const void* from, size_t size,
                     uint64_t stream) {
  MICA_PLUGIN_CHECK(
      !driver_.Capturing(device.index, stream), MICA_ERROR_RUNTIME,
      "The host reads what the device (" + std::string(driver_.backend()) + ":" +
          std::to_string(device.index) +
          ") has computed, to know the size of a result or whether it is right; while its work "
          "is recorded into a graph it computes nothing. Call the operator before the recording "
          "or after it.");
  driver_.CopyToHost(device.index, to, from, static_cast<int64_t>(size), stream);
  driver_.StreamSync(device.index, stream);
  devices_.At(device.index).errors.Raise();
}

namespace {

void SetNumber(const MicaScalar& scalar, double* out) {
  out[0] = out[1] = 0;
  if (scalar.tag == MICA_SCALAR_COMPLEX) {
    out[0] = scalar.u.c[0], out[1] = scalar.u.c[1];
  } else {
    out[0] = scalar.tag == MICA_SCALAR_FLOAT ? scalar.u.f : static_cast<double>(scalar.u.i);
  }
}

GemmMatrix MatrixOf(const mica::kit::MatrixProduct::Matrix& m) { return {m.data, m.row, m.column, m.batch}; }

}  // namespace

bool KitDriver::Multiply(const mica::kit::Device& device, const mica::kit::MatrixProduct& product,
                         uint64_t stream) {
  if (!products_) return false;
  GemmProblem problem;
  problem.device = device.index;
  problem.stream = stream;
  problem.dtype = product.dtype;
  problem.m = product.m, problem.n = product.n, problem.k = product.k, problem.batch = product.batches;
  SetNumber(product.alpha, problem.alpha);
  SetNumber(product.beta, problem.beta);
  problem.a = MatrixOf(product.a), problem.b = MatrixOf(product.b), problem.c = MatrixOf(product.out);
  problem.row = product.row;
  return products_->Gemm(problem);
}

int64_t KitDriver::ProductAlignment(const mica::kit::Device&, int32_t dtype) {
  return products_ ? products_->Alignment(dtype) : 0;
}

bool KitDriver::HasConvolutions(const mica::kit::Device& device, int32_t dtype) {
  return convolutions_ && convolutions_->Has(device.index, dtype);
}

bool KitDriver::Convolve(const mica::kit::Device& device, const mica::kit::ConvolutionCall& convolution,
                         const MicaCall* call) {
  if (!convolutions_) return false;
  std::optional<mica::kit::Workspace> workspace;
  ConvolutionProblem problem;
  problem.device = device.index;
  problem.stream = call->stream;
  problem.convolution = convolution;
  problem.workspace = [&](size_t size) {
    workspace.emplace(call, static_cast<int64_t>(size));
    return workspace->data();
  };
  return convolutions_->Run(problem);
}

void* KitDriver::LateWord(const mica::kit::Device& device, const MicaCall* call,
                          const mica::kit::LateError& error) {
  return devices_.At(device.index).errors.WordOf(call->name, error);
}

}  // namespace gpu
