// native_layer_norm and its gradient in one kernel each, for devices that are wide.
//
// What these decline (other devices, layouts and dtypes, no elements) runs as the operators'
// decompositions, in eight passes. Statistics of half types are float32. The gradients use
// the given mean and rstd; the sums of a column are made in the same order every time.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {
namespace normalization {

using plugin::NotImplemented;
using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr int64_t kItems = 1 << 17;  // work-items that hide memory's latency
constexpr int64_t kKept = 128;       // bytes of the rows that a member keeps in registers

// The rows of an input, and how teams share them.
struct Rows {
  const Device& device;
  int32_t dtype, lane;
  int64_t count = 1, length = 1, stride = 0;  // of a row to the next
  std::vector<int64_t> statistics;            // the sizes of mean and rstd
  bool small;
  int team = 1, group = 128, chunk = 1, parts = 0, fold = 1;

  // `operands`: how many rows a member keeps at once. `gaps`: whether there may be some between rows of a
  // matrix.
  Rows(const MicaCall* call, const MicaTensor* input, MicaIntSpan normalized_shape, int operands,
       bool gaps = false)
      : device(DeviceOf(call)), dtype(DtypeOf(input)) {
    const TensorRef t(input);
    const int64_t ndim = t.ndim(), trailing = normalized_shape.size;
    if (!device.is_wide || device.access_bytes == 0 || dtype < MICA_F16 || dtype > MICA_F64 ||
        !(t.contiguous() || (gaps && HasDenseRows(t))) || trailing < 1 || trailing > ndim)
      throw NotImplemented();
    CheckDtype(device, dtype);
    lane = LaneDtype(dtype);
    for (int d = 0; d < ndim; ++d) {
      const int64_t own = d - (ndim - trailing);
      if (own >= 0 && t.size(d) != normalized_shape.data[own]) throw NotImplemented();
      (own < 0 ? count : length) *= t.size(d);
      statistics.push_back(own < 0 ? t.size(d) : 1);
    }
    if (count == 0 || length == 0) throw NotImplemented();
    stride = t.contiguous() ? length : t.stride(0);
    small = count * stride < (int64_t{1} << 30);
    chunk = std::max(1, device.access_bytes / BytesOf(dtype));
    while (team < 512 && team * chunk < length && (team * chunk * 4 < length || count * team < kItems))
      team *= 2;
    group = std::max(group, team);
    while (fold * fold < team) fold *= 2;
    const int64_t step = int64_t{team} * chunk, needed = (length + step - 1) / step;
    if (needed * chunk * BytesOf(dtype) * operands <= kKept) parts = static_cast<int>(needed);
  }

  // Declines a tensor that is not `n` floats, one after another, that lanes hold.
  void Expect(const MicaTensor* tensor, int64_t n) const {
    if (!tensor) return;
    const TensorRef t(tensor);
    const bool fits = t.dtype() >= MICA_F16 && t.dtype() <= lane && t.contiguous() && t.numel() == n;
    if (!fits) throw NotImplemented();
  }
  static bool HasDenseRows(const TensorRef& t) {
    return t.ndim() == 2 && t.stride(1) == 1 && t.stride(0) >= t.size(1);
  }
  bool IsWhole() const { return length % chunk == 0; }
  int64_t Groups() const { return (count * team + group - 1) / group; }
  Key KeyOf(const char* kind) const {
    Key key("normalization");
    key.Add(kind).Add(dtype).Add(team).Add(parts).Add(IsWhole()).Add(small);
    return key;
  }
  std::string Text(const std::string& defines, const char* kernels) const {
    return LanesText(device, {lane, 1}, small) + Number("CHUNK", chunk) + Number("TEAM", team) +
           Number("ROWS", group / team) + Number("FOLD", fold) + Number("PARTS", parts) +
           Number("WHOLE", IsWhole()) + Element("INPUT", dtype) + defines + kReduceText + kNormalizationText +
           kernels;
  }
  static std::string Number(const char* name, int n) { return Define(name, std::to_string(n)); }
  // How the elements of an operand are typed, read and written; "" for no operand.
  static std::string Element(const std::string& name, int32_t of) {
    if (of < 0) return "";
    const std::string suffix = Suffix(of);
    return Define("E_" + name, "E_" + suffix) + Define("LOAD_" + name + "(p)", "LOAD_" + suffix + "(p, 1)") +
           Define("STORE_" + name + "(v, p)", "STORE_" + suffix + "(v, p, 1)");
  }
};

inline int32_t DtypeOrNone(const MicaTensor* tensor) { return tensor ? DtypeOf(tensor) : -1; }
inline const void* DataOf(const MicaTensor* tensor) { return tensor ? tensor->dl.data : nullptr; }

// The arguments of kernels that count in INDEX.
inline void AddIndices(Launch& launch, const Rows& rows, std::initializer_list<int64_t> values) {
  for (const int64_t value : values) launch.Index(value, rows.small);
}

inline void RunGroups(Launch& launch, int64_t groups, int64_t group) {
  if (groups > INT32_MAX) throw NotImplemented();
  launch.Run(groups * group, group);
}

inline OwnedTensor Like(const MicaCall* call, const MicaTensor* tensor) {
  return OwnedTensor::Empty(tensor->dl.shape, tensor->dl.ndim, DtypeOf(tensor), PlaceOf(call));
}

inline void Give(MicaValue* result, OwnedTensor tensor) {
  *result = {};
  result->tag = tensor.get() != nullptr ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
  result->u.tensor = tensor.release();
}

inline void NativeLayerNorm(const MicaCall* call, MicaTensor* input, MicaIntSpan normalized_shape,
                            MicaTensor* weight, MicaTensor* bias, double eps, MicaValue* results) {
  const Rows rows(call, input, normalized_shape, 1);
  rows.Expect(weight, rows.length);
  rows.Expect(bias, rows.length);
  Key key = rows.KeyOf("forward");
  key.Add(DtypeOrNone(weight)).Add(DtypeOrNone(bias));
  const Kernel& kernel = FindKernel(rows.device, key, "normalize", call->name, [&] {
    return rows.Text(Rows::Element("WEIGHT", DtypeOrNone(weight)) + Rows::Element("BIAS", DtypeOrNone(bias)),
                     kNormalizationForwardText);
  });
  const auto ndim = static_cast<int64_t>(rows.statistics.size());
  OwnedTensor out = Like(call, input);
  OwnedTensor mean = OwnedTensor::Empty(rows.statistics.data(), ndim, rows.lane, PlaceOf(call));
  OwnedTensor rstd = OwnedTensor::Empty(rows.statistics.data(), ndim, rows.lane, PlaceOf(call));
  {
    Launch launch(call, kernel);
    launch.Pointer(DataOf(input)).Pointer(DataOf(weight)).Pointer(DataOf(bias));
    if (rows.lane == MICA_F64)
      launch.Value(eps);
    else
      launch.Value(static_cast<float>(eps));
    AddIndices(launch, rows, {rows.count, rows.length});
    for (const OwnedTensor* made : {&out, &mean, &rstd}) launch.Pointer(DataOf(made->get()));
    RunGroups(launch, rows.Groups(), rows.group);
  }
  Give(&results[0], std::move(out));
  Give(&results[1], std::move(mean));
  Give(&results[2], std::move(rstd));
}

// What the kernels of the gradient read, in the kernels' order of arguments.
struct Inputs {
  const MicaTensor* tensors[4];  // gradient, input, mean, rstd
  void AddTo(Launch& launch) const {
    for (const MicaTensor* tensor : tensors) launch.Pointer(DataOf(tensor));
  }
  int32_t Statistic() const { return DtypeOf(tensors[2]); }
};

inline OwnedTensor InputGradient(const MicaCall* call, const Rows& rows, const Inputs& inputs,
                                 const MicaTensor* weight) {
  Key key = rows.KeyOf("backward");
  key.Add(DtypeOrNone(weight)).Add(inputs.Statistic());
  const Kernel& kernel = FindKernel(rows.device, key, "input_gradient", call->name, [&] {
    return rows.Text(
        Rows::Element("WEIGHT", DtypeOrNone(weight)) + Rows::Element("STATISTIC", inputs.Statistic()),
        kNormalizationBackwardText);
  });
  OwnedTensor out = Like(call, inputs.tensors[1]);
  Launch launch(call, kernel);
  inputs.AddTo(launch);
  launch.Pointer(DataOf(weight));
  AddIndices(launch, rows, {rows.count, rows.length});
  launch.Pointer(DataOf(out.get()));
  RunGroups(launch, rows.Groups(), rows.group);
  return out;
}

// Adds up the columns into `of_weight` and `of_bias`, which have one dtype; one of them may be none.
inline void ParameterGradients(const MicaCall* call, Rows rows, const Inputs& inputs,
                               const MicaTensor* of_weight, const MicaTensor* of_bias) {
  constexpr int64_t kGroup = 256;
  rows.team = rows.fold = 1, rows.parts = 0;  // one text for all lengths of rows
  const MicaTensor* first = of_weight ? of_weight : of_bias;
  const int sums = of_weight && of_bias ? 2 : 1;
  int columns = 1;  // chunks of neighbours that a group has of a row
  while (columns < 32 && columns * rows.chunk < rows.length) columns *= 2;
  const int64_t of_group = int64_t{columns} * rows.chunk, lanes = kGroup / columns;
  const int64_t blocks = (rows.length + of_group - 1) / of_group;
  // Twice as many work-items as hide latency, but eight rows for each at the least.
  const int64_t pieces =
      std::max<int64_t>(1, std::min(2 * kItems / (blocks * kGroup), rows.count / (8 * lanes)));
  const int32_t parameter = DtypeOf(first);
  Key key = rows.KeyOf("parameters");
  key.Add(columns).Add(of_weight != nullptr).Add(of_bias != nullptr).Add(parameter).Add(inputs.Statistic());
  const auto text = [&] {
    return rows.Text((of_weight ? Define("WANTS_WEIGHT", "1") : std::string()) +
                         (of_bias ? Define("WANTS_BIAS", "1") : "") + Rows::Number("SUMS", sums) +
                         Rows::Number("COLUMNS", columns) + Rows::Element("PARAMETER", parameter) +
                         Rows::Element("STATISTIC", inputs.Statistic()),
                     kNormalizationColumnsText);
  };
  const Workspace partial(call, sums * pieces * rows.length * BytesOf(rows.lane));
  {
    Launch launch(call, FindKernel(rows.device, key, "parameter_part", call->name, text));
    inputs.AddTo(launch);
    AddIndices(launch, rows, {rows.count, rows.length, blocks, pieces});
    launch.Pointer(partial.data());
    RunGroups(launch, blocks * pieces, kGroup);
  }
  Launch launch(call, FindKernel(rows.device, key, "parameter_rest", call->name, text));
  const int64_t rest_blocks = (rows.length + 31) / 32;
  launch.Pointer(partial.data());
  AddIndices(launch, rows, {rows.length, rest_blocks, pieces});
  launch.Pointer(DataOf(first)).Pointer(DataOf(of_bias));
  RunGroups(launch, rest_blocks * sums, kGroup);
}

inline void NativeLayerNormBackward(const MicaCall* call, MicaTensor* grad_out, MicaTensor* input,
                                    MicaIntSpan normalized_shape, MicaTensor* mean, MicaTensor* rstd,
                                    MicaTensor* weight, MicaTensor* bias, MicaBoolSpan output_mask,
                                    MicaValue* results) {
  (void)bias;
  const Rows rows(call, input, normalized_shape, 2);
  const TensorRef gradient(grad_out);
  if (gradient.dtype() != rows.dtype || gradient.numel() != rows.count * rows.length ||
      DtypeOf(mean) != DtypeOf(rstd))
    throw NotImplemented();
  rows.Expect(mean, rows.count);
  rows.Expect(rstd, rows.count);
  rows.Expect(weight, rows.length);
  // A gradient that was expanded, as that of a sum, has no rows.
  OwnedTensor dense;
  if (!gradient.contiguous()) {
    dense = OwnedTensor::Empty(gradient.sizes(), gradient.ndim(), rows.dtype, PlaceOf(call));
    pointwise::CopyTensor(call, dense.get(), grad_out);
  }
  const Inputs inputs{{dense.get() ? dense.get() : grad_out, input, mean, rstd}};
  OwnedTensor made[3];
  if (output_mask.data[0]) made[0] = InputGradient(call, rows, inputs, weight);
  const auto vector = [&] {
    return OwnedTensor::Empty(normalized_shape.data, normalized_shape.size,
                              weight ? DtypeOf(weight) : rows.dtype, PlaceOf(call));
  };
  if (output_mask.data[1] && weight) made[1] = vector();
  if (output_mask.data[2]) made[2] = vector();
  if (made[1].get() || made[2].get()) ParameterGradients(call, rows, inputs, made[1].get(), made[2].get());
  for (int i = 0; i < 3; ++i) Give(&results[i], std::move(made[i]));
}

inline void RegisterNormalization(plugin::Registrar& registrar) {
  registrar.Kernel<&NativeLayerNorm>("native_layer_norm");
  registrar.Kernel<&NativeLayerNormBackward>("native_layer_norm_backward");
}

}  // namespace normalization
}  // namespace kit
}  // namespace mica
