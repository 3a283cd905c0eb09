#include "plugins/cpu/contraction/dense.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

constexpr MicaDevice kCpu{0, 0};
constexpr int32_t kMostDims = 64;  // of any tensor
// Elements that make a second thread worth waking.
constexpr int64_t kGrain = 32768;

void DenseStrides(const plugin::TensorRef& tensor, int64_t* strides) {
  int64_t step = 1;
  for (int32_t d = tensor.ndim() - 1; d >= 0; --d) {
    strides[d] = step;
    step *= tensor.size(d);
  }
}

}  // namespace

Temporary::Temporary(int64_t bytes) {
  const MicaHost* host = plugin::Host();
  if (host && host->allocate)
    plugin::Check(host->allocate(kCpu, bytes, 0, &data_));
  else
    data_ = std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64));
  if (!data_ && bytes) throw std::bad_alloc();
}

Temporary::~Temporary() {
  if (!data_) return;
  const MicaHost* host = plugin::Host();
  if (host && host->allocate)
    host->free(kCpu, data_);
  else
    std::free(data_);
}

void Convert(int32_t from, const void* src, int32_t to, void* dst, int64_t n, int32_t threads) {
  const Primitive cast = DirectCast(from, to);
  const int64_t in = DtypeSize(from), out = DtypeSize(to);
  ParallelFor(n, kGrain, kBlock, threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kBlock)
      cast(static_cast<char*>(dst) + i * out, static_cast<const char*>(src) + i * in, nullptr, nullptr,
           std::min(kBlock, end - i));
  });
}

DenseInput::DenseInput(const MicaTensor* tensor, int32_t dtype, int32_t threads) {
  const plugin::TensorRef t(tensor);
  data_ = t.data<void>();
  const int64_t n = t.numel();
  if (!t.contiguous()) {
    int64_t strides[kMostDims];
    DenseStrides(t, strides);
    copy_ = Temporary(n * t.itemsize());
    CopyStrided(t.itemsize(), t.ndim(), t.sizes(), data_, t.strides(), copy_.data(), strides, threads);
    data_ = copy_.data();
  }
  if (t.dtype() != dtype) {
    Temporary converted(n * DtypeSize(dtype));
    Convert(t.dtype(), data_, dtype, converted.data(), n, threads);
    copy_ = std::move(converted);
    data_ = copy_.data();
  }
}

DenseOutput::DenseOutput(MicaTensor* tensor, int32_t dtype, int32_t threads)
    : tensor_(tensor), dtype_(dtype), threads_(threads) {
  const plugin::TensorRef t(tensor);
  data_ = t.data<void>();
  if (t.contiguous() && t.dtype() == dtype) return;
  copy_ = Temporary(t.numel() * DtypeSize(dtype));
  data_ = copy_.data();
}

void DenseOutput::Finish() {
  const plugin::TensorRef t(tensor_);
  if (data_ == t.data<void>()) return;
  const int64_t n = t.numel();
  const void* from = data_;
  Temporary converted;
  if (t.dtype() != dtype_) {
    void* to = t.data<void>();
    if (!t.contiguous()) {
      converted = Temporary(n * t.itemsize());
      to = converted.data();
    }
    Convert(dtype_, from, t.dtype(), to, n, threads_);
    if (t.contiguous()) return;
    from = to;
  }
  int64_t strides[kMostDims];
  DenseStrides(t, strides);
  CopyStrided(t.itemsize(), t.ndim(), t.sizes(), from, strides, t.data<void>(), t.strides(), threads_);
}

}  // namespace mica::cpu
