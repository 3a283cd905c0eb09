// Layer normalisation over rows; see layer_norm.h. Forwards, rows that do not lie together are copied first;
// gradients of such are left to the operators that it is made of. Each row is read from memory once and then
// from cache. Half types have their statistics and compute in float32; their weight and bias may be of either
// dtype.
#include "plugins/cpu/reduce/layer_norm.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include <mica/plugin.h>
#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/reduce/row_loops.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;

// Elements between two questions for a Ctrl-C: some milliseconds of gradients.
constexpr int64_t kPatience = 1 << 20;

// Rows of `length` elements of a tensor; declines what has none.
struct Rows {
  Rows(const MicaTensor* input, MicaIntSpan normalized_shape)
      : dtype(DtypeOf(input)), lane(LaneOf(dtype)), size(DtypeSize(dtype)), lane_size(DtypeSize(lane)) {
    const int ndim = input->dl.ndim;
    const int64_t trailing = normalized_shape.size;
    bool fits = HasRowLoops(dtype) && trailing >= 1 && trailing <= ndim && ndim <= 16;
    for (int d = 0; fits && d < ndim; ++d) {
      const int64_t own = d - (ndim - trailing);
      fits &= own < 0 || input->dl.shape[d] == normalized_shape.data[own];
      (own < 0 ? count : length) *= input->dl.shape[d];
      statistics[d] = own < 0 ? input->dl.shape[d] : 1;
    }
    if (!fits || count == 0 || length == 0) throw plugin::NotImplemented();
  }

  // Declines an optional tensor of another dtype or number of elements.
  void Expect(const MicaTensor* tensor, int64_t elements, bool may_be_lanes = false) const {
    if (tensor == nullptr) return;
    int64_t n = 1;
    for (int d = 0; d < tensor->dl.ndim; ++d) n *= tensor->dl.shape[d];
    const int32_t own = DtypeOf(tensor);
    const bool readable = own == dtype || (may_be_lanes && own == lane);
    if (!readable || n != elements) throw plugin::NotImplemented();
  }

  int32_t dtype, lane;
  int64_t size, lane_size;
  int64_t count = 1, length = 1;
  int64_t statistics[16] = {};
};

const char* Data(const MicaTensor* tensor) {
  return tensor == nullptr ? nullptr : static_cast<const char*>(tensor->dl.data);
}

char* Row(MicaTensor* tensor, int64_t offset) {
  return tensor == nullptr ? nullptr : static_cast<char*>(tensor->dl.data) + offset;
}

// An optional tensor of `n` elements in the lane's dtype: itself, or a copy.
class Lanes {
 public:
  Lanes(const Rows& rows, const MicaTensor* tensor, int64_t n) : data_(Data(tensor)), size_(rows.lane_size) {
    rows.Expect(tensor, n, true);
    if (tensor == nullptr) return;
    if ((tensor->flags & MICA_TENSOR_CONTIGUOUS) == 0) throw plugin::NotImplemented();
    if (DtypeOf(tensor) == rows.lane) return;
    copy_.resize(static_cast<size_t>(n));
    DirectCast(rows.dtype, MICA_F32)(copy_.data(), data_, nullptr, nullptr, n);
    data_ = reinterpret_cast<const char*>(copy_.data());
  }
  const char* at(int64_t i) const { return data_ == nullptr ? nullptr : data_ + i * size_; }

 private:
  const char* data_;
  int64_t size_;
  std::vector<float> copy_;
};

OwnedTensor Like(const MicaTensor* tensor) {
  return OwnedTensor::Empty(tensor->dl.shape, tensor->dl.ndim, DtypeOf(tensor), MicaDevice{0, 0});
}

void Give(MicaValue* result, OwnedTensor tensor) {
  *result = {};
  result->tag = tensor.get() != nullptr ? MICA_VALUE_TENSOR : MICA_VALUE_NONE;
  result->u.tensor = tensor.release();
}

void Narrow(const std::vector<double>& values, MicaTensor* tensor) {
  const int64_t n = static_cast<int64_t>(values.size());
  const int32_t dtype = DtypeOf(tensor);
  if (const Primitive cast = DirectCast(MICA_F64, dtype)) {
    cast(tensor->dl.data, values.data(), nullptr, nullptr, n);
    return;
  }
  std::vector<float> middle(values.begin(), values.end());
  DirectCast(MICA_F32, dtype)(tensor->dl.data, middle.data(), nullptr, nullptr, n);
}

}  // namespace

void NativeLayerNorm(const MicaCall* call, MicaTensor* input, MicaIntSpan normalized_shape,
                     MicaTensor* weight, MicaTensor* bias, double eps, MicaValue* results) {
  const Rows rows(input, normalized_shape);
  const Lanes scale(rows, weight, rows.length), shift(rows, bias, rows.length);
  OwnedTensor out = Like(input);
  OwnedTensor mean = OwnedTensor::Empty(rows.statistics, input->dl.ndim, rows.lane, MicaDevice{0, 0});
  OwnedTensor rstd = OwnedTensor::Empty(rows.statistics, input->dl.ndim, rows.lane, MicaDevice{0, 0});
  const DenseInput data(input, rows.dtype, ThreadsOf(call));
  const RowLoops& loops = RowLoopsOf(rows.dtype);
  const int64_t bytes = rows.length * rows.size;
  ParallelSteps(rows.count, std::max<int64_t>(1, 16384 / rows.length), 1, ThreadsOf(call),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    loops.layer_norm(Row(out.get(), r * bytes), data.data<char>() + r * bytes, scale.at(0),
                                     shift.at(0), rows.length, eps, Row(mean.get(), r * rows.lane_size),
                                     Row(rstd.get(), r * rows.lane_size));
                  }
                });
  Give(&results[0], std::move(out));
  Give(&results[1], std::move(mean));
  Give(&results[2], std::move(rstd));
}

void NativeLayerNormBackward(const MicaCall* call, MicaTensor* grad_out, MicaTensor* input,
                             MicaIntSpan normalized_shape, MicaTensor* mean, MicaTensor* rstd,
                             MicaTensor* weight, MicaTensor* bias, MicaBoolSpan output_mask,
                             MicaValue* results) {
  const Rows rows(input, normalized_shape);
  rows.Expect(grad_out, rows.count * rows.length);
  const Lanes means(rows, mean, rows.count), rstds(rows, rstd, rows.count);
  const Lanes scale(rows, weight, rows.length);
  // Sums over rows that lie otherwise are those of the reductions, which add in pairs.
  if ((input->flags & grad_out->flags & MICA_TENSOR_CONTIGUOUS) == 0) throw plugin::NotImplemented();
  const bool wants_weight = output_mask.data[1] != 0 && weight != nullptr;
  const bool wants_bias = output_mask.data[2] != 0;
  OwnedTensor dx = output_mask.data[0] != 0 ? Like(input) : OwnedTensor();
  const size_t n = static_cast<size_t>(rows.length);
  std::vector<double> dweight(wants_weight ? n : 0), dbias(wants_bias ? n : 0);
  std::mutex mutex;
  const RowLoops& loops = RowLoopsOf(rows.dtype);
  const int64_t bytes = rows.length * rows.size;
  StopSign sign;
  ParallelFor(rows.count, std::max<int64_t>(1, 16384 / rows.length), 1, ThreadsOf(call),
              [&](int64_t begin, int64_t end) {
                const Watched watched(&sign);
                Patience patience(kPatience);
                std::vector<double> own_weight(dweight.size()), own_bias(dbias.size());
                for (int64_t r = begin; r < end && !patience.Ends(rows.length); ++r) {
                  loops.layer_norm_backward(
                      Row(dx.get(), r * bytes), wants_weight ? own_weight.data() : nullptr,
                      wants_bias ? own_bias.data() : nullptr, Data(grad_out) + r * bytes,
                      Data(input) + r * bytes, scale.at(0), rows.length, means.at(r), rstds.at(r));
                }
                const std::lock_guard<std::mutex> lock(mutex);
                for (size_t i = 0; i < own_weight.size(); ++i) dweight[i] += own_weight[i];
                for (size_t i = 0; i < own_bias.size(); ++i) dbias[i] += own_bias[i];
              });
  sign.ThrowIfRaised();
  const auto vector = [&](bool wanted, const MicaTensor* like, const std::vector<double>& values) {
    if (!wanted) return OwnedTensor();
    OwnedTensor t = like != nullptr ? Like(like)
                                    : OwnedTensor::Empty(normalized_shape.data, normalized_shape.size,
                                                         rows.dtype, MicaDevice{0, 0});
    Narrow(values, t.get());
    return t;
  };
  OwnedTensor for_weight = vector(wants_weight, weight, dweight);
  OwnedTensor for_bias = vector(wants_bias, bias, dbias);
  Give(&results[0], std::move(dx));
  Give(&results[1], std::move(for_weight));
  Give(&results[2], std::move(for_bias));
}

void RegisterLayerNorm(plugin::Registrar& registrar) {
  registrar.Kernel<NativeLayerNorm>("native_layer_norm");
  registrar.Kernel<NativeLayerNormBackward>("native_layer_norm_backward");
}

}  // namespace mica::cpu
