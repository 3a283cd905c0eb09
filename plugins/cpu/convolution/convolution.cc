#include "plugins/cpu/convolution/convolution.h"

#include <algorithm>
#include <optional>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/contraction/open_libraries.h"
#include "plugins/cpu/convolution/unfolded.h"
#include "plugins/cpu/convolution/winograd.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/lanes/lanes.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

int64_t At(MicaIntSpan span, int32_t d) { return span.size == 1 ? span.data[0] : span.data[d]; }

struct Geometry {
  MicaIntSpan stride, padding, dilation;
  int64_t groups;
};

// An operand of a task: the tensor's memory where it has the task's dtype, with any strides, those
// of a broadcast too; a copy in that dtype otherwise.
class Operand {
 public:
  Operand(MicaTensor* tensor, int32_t dtype, bool written, int32_t threads) : tensor_(tensor) {
    const TensorRef t(tensor);
    int64_t dense = 1;
    for (int32_t d = t.ndim() - 1; d >= 0; --d) {
      strides_[d] = dense;
      dense *= t.size(d);
    }
    if (t.dtype() == dtype) {
      data_ = t.data<void>();
      std::copy(t.strides(), t.strides() + t.ndim(), strides_);
      Normalize(t);
    } else if (written) {
      output_.emplace(tensor, dtype, threads);
      data_ = output_->data<void>();
    } else {
      input_.emplace(tensor, dtype, threads);
      data_ = const_cast<void*>(input_->data<void>());
    }
  }
  ConvolutionOperand get() const {
    ConvolutionOperand operand;
    operand.data = data_;
    std::copy(strides_, strides_ + TensorRef(tensor_).ndim(), operand.strides);
    return operand;
  }
  void Finish() {
    if (output_) output_->Finish();
  }

 private:
  // The stride of a dimension of size 1 says nothing; one value of it keeps equal
  // layouts equal, so that they share a primitive.
  void Normalize(const TensorRef& t) {
    for (int32_t d = t.ndim() - 1; d >= 0; --d)
      if (t.size(d) == 1) strides_[d] = d + 1 < t.ndim() ? strides_[d + 1] * t.size(d + 1) : 1;
  }

  MicaTensor* tensor_;
  void* data_;
  int64_t strides_[5];
  std::optional<DenseInput> input_;
  std::optional<DenseOutput> output_;
};

// Half types are computed in float32; -1 for a dtype without products.
int32_t ComputeDtype(int32_t dtype) {
  return IsFloat(dtype) ? LaneOf(dtype) : IsInteger(dtype) || IsComplex(dtype) ? dtype : -1;
}

void Transposed(float* dst, const float* src, int64_t batch, int64_t rows, int64_t columns, int32_t threads) {
  const int64_t sizes[] = {batch, columns, rows}, from[] = {rows * columns, 1, columns},
                to[] = {rows * columns, rows, 1};
  CopyStrided(sizeof(float), 3, sizes, src, from, dst, to, threads);
}

// Multiplications in one call of oneDNN, after which the host is asked for a Ctrl-C.
constexpr int64_t kStep = int64_t{1} << 32;

int64_t WorkOfImage(const ConvolutionTask& t) {
  int64_t work = t.out_channels * (t.in_channels / t.groups);
  for (int32_t d = 0; d < t.spatial; ++d) work *= t.out[d] * t.kernel[d];
  return work;
}

ConvolutionTask Images(const ConvolutionTask& t, int64_t first, int64_t count) {
  ConvolutionTask part = t;
  part.batch = count;
  for (ConvolutionOperand* operand : {&part.input, &part.output})
    operand->data = static_cast<float*>(operand->data) + first * operand->strides[0];
  return part;
}

// The gradient for the weight over batches of images, added up: false as below.
bool AddImages(const ConvolutionTask& task, int64_t step, const LibraryTable& library) {
  const int32_t ndim = task.spatial + 2;
  int64_t sizes[5] = {task.out_channels, task.in_channels / task.groups}, dense[5], count = 1;
  std::copy(task.kernel, task.kernel + task.spatial, sizes + 2);
  for (int32_t d = ndim; d-- > 0; count *= sizes[d]) dense[d] = count;
  const Temporary sum(count * static_cast<int64_t>(sizeof(float))),
      more(count * static_cast<int64_t>(sizeof(float)));
  for (int64_t first = 0; first < task.batch; first += step) {
    if (first > 0 && Interrupted()) ThrowInterrupted();
    ConvolutionTask part = Images(task, first, std::min(step, task.batch - first));
    part.weight.data = first == 0 ? sum.data() : more.data();
    std::copy(dense, dense + ndim, part.weight.strides);
    if (!library.convolution(part)) return false;
    for (int64_t i = 0; i < count && first > 0; ++i) sum.data<float>()[i] += more.data<float>()[i];
  }
  CopyStrided(sizeof(float), ndim, sizes, sum.data(), dense, task.weight.data, task.weight.strides,
              task.threads);
  return true;
}

// oneDNN, over some images at a time where the whole batch takes long. False where it has no kernel.
bool LibraryConvolution(const ConvolutionTask& task, const LibraryTable& library) {
  const int64_t step = std::max<int64_t>(1, kStep / WorkOfImage(task));
  if (step >= task.batch) return library.convolution(task);
  if (task.kind == ConvolutionKind::kBackwardWeight) return AddImages(task, step, library);
  for (int64_t first = 0; first < task.batch; first += step) {
    if (first > 0 && Interrupted()) ThrowInterrupted();
    if (!library.convolution(Images(task, first, std::min(step, task.batch - first)))) return false;
  }
  return true;
}

ConvolutionTask TaskOf(ConvolutionKind kind, const TensorRef& in, const TensorRef& w, const TensorRef& out,
                       const Geometry& g, int32_t threads) {
  ConvolutionTask task;
  task.kind = kind;
  task.dtype = ComputeDtype(in.dtype());
  task.spatial = in.ndim() - 2;
  task.threads = threads;
  task.batch = in.size(0);
  task.in_channels = in.size(1);
  task.out_channels = out.size(1);
  task.groups = g.groups;
  for (int32_t d = 0; d < task.spatial; ++d) {
    task.in[d] = in.size(d + 2);
    task.out[d] = out.size(d + 2);
    task.kernel[d] = w.size(d + 2);
    task.stride[d] = At(g.stride, d);
    task.padding[d] = At(g.padding, d);
    task.dilation[d] = At(g.dilation, d);
  }
  task.transpose = Transposed;
  return task;
}

void RunTask(const ConvolutionTask& task, const LibraryTable& library) {
  if (task.dtype != MICA_F32) return UnfoldedConvolution(task);
  if (WinogradFits(task))
    Winograd(task, library);
  else if (!LibraryConvolution(task, library))
    UnfoldedConvolution(task);
}

// Runs one task; `input`, `weight` and `output` as the ordinary convolution sees them. A bias, or NULL, is
// the output's, or the input's where that is made.
void Run(const MicaCall* call, ConvolutionKind kind, MicaTensor* input, MicaTensor* weight,
         MicaTensor* output, MicaTensor* bias, const Geometry& g) {
  const TensorRef in(input), w(weight), out(output);
  const LibraryTable* library = Libraries();
  const int32_t spatial = in.ndim() - 2, threads = ThreadsOf(call);
  if (!library || spatial < 1 || spatial > 3 || ComputeDtype(in.dtype()) < 0 || w.dtype() != in.dtype() ||
      out.dtype() != in.dtype())
    throw plugin::NotImplemented();
  ConvolutionTask task = TaskOf(kind, in, w, out, g, threads);
  Operand x(input, task.dtype, kind == ConvolutionKind::kBackwardInput, threads),
      y(weight, task.dtype, kind == ConvolutionKind::kBackwardWeight, threads),
      z(output, task.dtype, kind == ConvolutionKind::kForward, threads);
  task.input = x.get();
  task.weight = y.get();
  task.output = z.get();
  std::optional<DenseInput> dense_bias;
  if (bias) dense_bias.emplace(bias, task.dtype, threads);
  const void* numbers = bias ? dense_bias->data<void>() : nullptr;
  if (kind == ConvolutionKind::kForward) task.bias = numbers;
  RunTask(task, *library);
  if (bias && kind == ConvolutionKind::kBackwardInput) {
    task.bias = numbers;
    AddBiasToInput(task);
  }
  x.Finish();
  y.Finish();
  z.Finish();
}

bool AnyEmpty(const TensorRef& a, const TensorRef& b) { return a.numel() == 0 || b.numel() == 0; }

}  // namespace

void Convolution(const MicaCall* call, MicaTensor* input, MicaTensor* weight, MicaTensor* bias,
                 MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t transposed,
                 MicaIntSpan, int64_t groups, MicaTensor* out) {
  if (AnyEmpty(input, weight)) throw plugin::NotImplemented();
  const Geometry g{stride, padding, dilation, groups};
  if (transposed)
    Run(call, ConvolutionKind::kBackwardInput, out, weight, input, bias, g);
  else
    Run(call, ConvolutionKind::kForward, input, weight, out, bias, g);
}

void ConvolutionBackwardInput(const MicaCall* call, MicaTensor* grad_output, MicaTensor* weight, MicaIntSpan,
                              MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation,
                              int32_t transposed, MicaIntSpan, int64_t groups, MicaTensor* out) {
  if (AnyEmpty(grad_output, weight)) throw plugin::NotImplemented();
  const Geometry g{stride, padding, dilation, groups};
  if (transposed)
    Run(call, ConvolutionKind::kForward, grad_output, weight, out, nullptr, g);
  else
    Run(call, ConvolutionKind::kBackwardInput, out, weight, grad_output, nullptr, g);
}

void ConvolutionBackwardWeight(const MicaCall* call, MicaTensor* grad_output, MicaTensor* input, MicaIntSpan,
                               MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation,
                               int32_t transposed, MicaIntSpan, int64_t groups, MicaTensor* out) {
  if (AnyEmpty(grad_output, input)) throw plugin::NotImplemented();
  const Geometry g{stride, padding, dilation, groups};
  if (transposed)
    Run(call, ConvolutionKind::kBackwardWeight, grad_output, out, input, nullptr, g);
  else
    Run(call, ConvolutionKind::kBackwardWeight, input, out, grad_output, nullptr, g);
}

void RegisterConvolution(plugin::Registrar& r) {
  r.Kernel<&Convolution>("convolution.out");
  r.Kernel<&ConvolutionBackwardInput>("_convolution_backward_input.out");
  r.Kernel<&ConvolutionBackwardWeight>("_convolution_backward_weight.out");
  r.Kernel<&Col2im>("col2im.out");
  r.Kernel<&UnfoldBackward>("unfold_backward.out");
}

}  // namespace mica::cpu
