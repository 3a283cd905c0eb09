// Convolution and its gradients, by the driver's library or on the tiled product
// (kernels/convolution.cl).
//
// A transposed convolution is the gradient for the input of the ordinary one, so
// three kinds serve all six operators: what is written is the result, the image or
// the weight. A library takes tensors that are dense, and all in one layout: others
// are copied for it.
#pragma once

#include <cstring>
#include <utility>

#include <mica/kit/dense.h>
#include <mica/kit/gemm.h>
#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {
namespace convolution {

using plugin::TensorRef;

using Kind = ConvolutionKind;

// As in convolution.cl.
struct Shape {
  int32_t channels, filters;
  int32_t image[3], window[3], result[3], stride[3], padding[3], dilation[3];
  int32_t image_stride[5], weight_stride[5], result_stride[5];
};

struct Geometry {
  MicaIntSpan stride, padding, dilation;
  int64_t groups;
};

inline int32_t At(const MicaIntSpan& span, int d) {
  return static_cast<int32_t>(span.data[span.size == 1 ? 0 : d]);
}

inline int64_t LastOffset(const TensorRef& t) {
  int64_t last = 0;
  for (int d = 0; d < t.ndim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return last;
}

inline Shape MakeShape(const TensorRef& image, const TensorRef& weight, const TensorRef& result,
                       const Geometry& g) {
  const int spatial = image.ndim() - 2;
  if (spatial < 1 || spatial > 3) throw plugin::NotImplemented();
  for (const TensorRef& t : {image, weight, result})
    if (LastOffset(t) >= (int64_t{1} << 31)) throw plugin::NotImplemented();
  Shape s = {};
  s.channels = static_cast<int32_t>(image.size(1) / g.groups);
  s.filters = static_cast<int32_t>(result.size(1) / g.groups);
  for (int i = 0; i < 3; ++i) {
    const int d = i - (3 - spatial);  // missing dimensions come first
    s.image[i] = s.window[i] = s.result[i] = s.stride[i] = s.dilation[i] = 1;
    if (d < 0) continue;
    s.image[i] = static_cast<int32_t>(image.size(d + 2));
    s.window[i] = static_cast<int32_t>(weight.size(d + 2));
    s.result[i] = static_cast<int32_t>(result.size(d + 2));
    s.stride[i] = At(g.stride, d);
    s.padding[i] = At(g.padding, d);
    s.dilation[i] = At(g.dilation, d);
  }
  const auto strides = [&](const TensorRef& t, int32_t* to) {
    to[0] = static_cast<int32_t>(t.stride(0));
    to[1] = static_cast<int32_t>(t.stride(1));
    for (int d = 0; d < spatial; ++d) to[2 + (3 - spatial) + d] = static_cast<int32_t>(t.stride(d + 2));
  };
  strides(image, s.image_stride);
  strides(weight, s.weight_stride);
  strides(result, s.result_stride);
  return s;
}

// y = x + bias, in place.
inline void AddBias(const MicaCall* call, const MicaTensor* tensor, const MicaTensor* bias) {
  static const MicaInstruction code[] = {{MICA_OP_LOAD, 0, 0, 0, 0, 0},
                                         {MICA_OP_LOAD, 1, 0, 0, 0, 1},
                                         {MICA_OP_ADD, 2, 0, 1, 0, 0},
                                         {MICA_OP_STORE, 255, 2, 0, 0, 0}};
  static const int32_t inputs[] = {0, 1};
  static const MicaProgram program = [] {
    MicaProgram p = pointwise::IdentityProgram();
    p.source = "self + bias";
    p.hint = "";
    p.num_inputs = 2;
    p.num_registers = 3;
    p.input_args = inputs;
    p.main = {code, 4};
    return p;
  }();
  pointwise::Call c;
  c.call = call;
  c.program = &program;
  c.lane = LaneDtype(DtypeOf(tensor));
  c.num_outputs = 1;
  c.space.sizes.assign(tensor->dl.shape, tensor->dl.shape + tensor->dl.ndim);
  c.space.Add(tensor);
  c.space.Add(tensor);
  Operand by_channel{bias->dl.data, DtypeOf(bias), std::vector<int64_t>(c.space.sizes.size(), 0)};
  by_channel.strides[1] = TensorRef(bias).stride(0);
  c.space.operands.push_back(std::move(by_channel));
  c.inputs = {{1, {}}, {2, {}}};
  pointwise::Enqueue(c);
}

// The layout that most of the elements have already; channels first where none has either.
inline bool PreferChannelsLast(const TensorRef& x, const TensorRef& w, const TensorRef& y) {
  int64_t first = 0, last = 0;
  for (const TensorRef& t : {x, w, y}) {
    const int spatial = t.ndim() - 2;
    const bool is_first = IsDenseImage(t, spatial, false), is_last = IsDenseImage(t, spatial, true);
    if (is_first && !is_last) first += t.numel();
    if (is_last && !is_first) last += t.numel();
  }
  return last > first;
}

// The convolution by the driver's library; false where it has none for it.
inline bool RunByLibrary(const MicaCall* call, Kind kind, MicaTensor* image, MicaTensor* weight,
                         MicaTensor* result, MicaTensor* bias, const Geometry& g) {
  const TensorRef x(image), w(weight), y(result);
  const Device& device = DeviceOf(call);
  const int spatial = x.ndim() - 2;
  if (spatial < 1 || spatial > 3 || !TheDriver()->HasConvolutions(device, x.dtype())) return false;
  ConvolutionCall c;
  c.shape.kind = kind;
  c.shape.dtype = x.dtype();
  c.shape.spatial = spatial;
  c.shape.channels_last = PreferChannelsLast(x, w, y);
  c.shape.groups = g.groups;
  for (int d = 0; d < spatial + 2; ++d)
    c.shape.image[d] = x.size(d), c.shape.weight[d] = w.size(d), c.shape.result[d] = y.size(d);
  for (int d = 0; d < spatial; ++d) {
    c.shape.stride[d] = At(g.stride, d);
    c.shape.padding[d] = At(g.padding, d);
    c.shape.dilation[d] = At(g.dilation, d);
  }
  const bool channels_last = c.shape.channels_last != 0;
  // As a library takes them.
  const auto dense = [&](const MicaTensor* tensor) {
    return Dense(call, tensor, ImageStrides(TensorRef(tensor), spatial, channels_last), 16);
  };
  const Dense dense_x = dense(image), dense_w = dense(weight), dense_y = dense(result);
  const Dense& written = kind == Kind::kForward ? dense_y : kind == Kind::kBackwardInput ? dense_x : dense_w;
  for (const Dense* operand : {&dense_x, &dense_w, &dense_y})
    if (operand != &written) operand->Read();
  c.image = dense_x.data(), c.weight = dense_w.data(), c.result = dense_y.data();
  if (!TheDriver()->Convolve(device, c, call)) return false;
  written.Write();
  if (bias) AddBias(call, kind == Kind::kForward ? result : image, bias);
  return true;
}

inline const char* MacroOf(Kind kind) {
  return kind == Kind::kForward         ? "FORWARD"
         : kind == Kind::kBackwardInput ? "BACKWARD_INPUT"
                                        : "BACKWARD_WEIGHT";
}

inline void Run(const MicaCall* call, Kind kind, MicaTensor* image, MicaTensor* weight, MicaTensor* result,
                MicaTensor* bias, const Geometry& g) {
  const TensorRef x(image), w(weight), y(result);
  const int32_t dtype = x.dtype();
  const int32_t lane = ProductLane(DeviceOf(call), dtype);
  if (w.dtype() != dtype || y.dtype() != dtype || (bias && DtypeOf(bias) != dtype))
    throw plugin::NotImplemented();
  if (x.numel() == 0 || w.numel() == 0 || y.numel() == 0) throw plugin::NotImplemented();
  if (RunByLibrary(call, kind, image, weight, result, bias, g)) return;
  const Shape s = MakeShape(x, w, y, g);
  Key key("convolution");
  const bool unit = s.stride[0] == 1 && s.stride[1] == 1 && s.stride[2] == 1;
  key.Add(kind).Add(dtype).Add(unit);
  const Device& device = DeviceOf(call);
  const Kernel& kernel = FindKernel(device, key, "gemm", call->name, [&] {
    const std::string suffix = Suffix(dtype);
    return LanesText(device, {lane, 1}, true) + Define("ELEMENT", "E_" + suffix) +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, 1)") +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, 1)") + Define(MacroOf(kind), "1") +
           (unit ? Define("UNIT_STRIDE", "1") : "") + kConvolutionText + kGemmText;
  });
  Launch launch(call, kernel);
  const void* first = kind == Kind::kForward ? x.data<void>() : y.data<void>();
  const void* second = kind == Kind::kBackwardWeight ? x.data<void>() : w.data<void>();
  const void* third = kind == Kind::kForward         ? y.data<void>()
                      : kind == Kind::kBackwardInput ? x.data<void>()
                                                     : w.data<void>();
  launch.Pointer(first).Pointer(second).Pointer(bias ? TensorRef(bias).data<void>() : nullptr);
  launch.Value(static_cast<int32_t>(bias ? TensorRef(bias).stride(0) : 0)).Pointer(third).Value(s);
  const int64_t windows = int64_t{s.window[0]} * s.window[1] * s.window[2];
  const int64_t places = int64_t{s.image[0]} * s.image[1] * s.image[2] * x.size(0);
  const int64_t results = int64_t{s.result[0]} * s.result[1] * s.result[2] * y.size(0);
  if (kind == Kind::kForward)
    RunGemm(launch, s.filters, results, s.channels * windows, g.groups);
  else if (kind == Kind::kBackwardInput)
    RunGemm(launch, s.channels, places, s.filters * windows, g.groups);
  else
    RunGemm(launch, s.filters, s.channels * windows, results, g.groups);
}

inline void Convolution(const MicaCall* call, MicaTensor* input, MicaTensor* weight, MicaTensor* bias,
                        MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t transposed,
                        MicaIntSpan, int64_t groups, MicaTensor* out) {
  const Geometry g{stride, padding, dilation, groups};
  if (transposed)
    Run(call, Kind::kBackwardInput, out, weight, input, bias, g);
  else
    Run(call, Kind::kForward, input, weight, out, bias, g);
}

inline void BackwardInput(const MicaCall* call, MicaTensor* grad_output, MicaTensor* weight, MicaIntSpan,
                          MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t transposed,
                          MicaIntSpan, int64_t groups, MicaTensor* out) {
  const Geometry g{stride, padding, dilation, groups};
  if (transposed)
    Run(call, Kind::kForward, grad_output, weight, out, nullptr, g);
  else
    Run(call, Kind::kBackwardInput, out, weight, grad_output, nullptr, g);
}

inline void BackwardWeight(const MicaCall* call, MicaTensor* grad_output, MicaTensor* input, MicaIntSpan,
                           MicaIntSpan stride, MicaIntSpan padding, MicaIntSpan dilation, int32_t transposed,
                           MicaIntSpan, int64_t groups, MicaTensor* out) {
  const Geometry g{stride, padding, dilation, groups};
  if (transposed)
    Run(call, Kind::kBackwardWeight, grad_output, out, input, nullptr, g);
  else
    Run(call, Kind::kBackwardWeight, input, out, grad_output, nullptr, g);
}

inline void RegisterConvolution(plugin::Registrar& registrar) {
  registrar.Kernel<&Convolution>("convolution.out");
  registrar.Kernel<&BackwardInput>("_convolution_backward_input.out");
  registrar.Kernel<&BackwardWeight>("_convolution_backward_weight.out");
}

}  // namespace convolution
}  // namespace kit
}  // namespace mica
