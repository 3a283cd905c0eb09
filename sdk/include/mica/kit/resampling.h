// _resample and its transpose: the linear maps of interpolation, forward and back.
//
// Every mode of interpolation is a table a dimension (kernels/composite/resampling.cc), so that one text
// (resampling.cl) says for all of them how a dimension of planes is mapped. The transpose gathers as well: a
// small kernel finds, for each place, the first and the last row of the table that read it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <mica/kit/planes.h>

namespace mica {
namespace kit {
namespace resampling {

using planes::PlaneMap;
using plugin::TensorRef;

// A table, and the dimension that it maps.
struct Table {
  const void* places;
  const void* weights;  // NULL: all 1
  int64_t in, out, taps;
  int64_t readers;  // where those of the dimension begin
  // Of the usual modes: loops are unrolled.
  bool is_fixed() const { return taps == 1 || taps == 2 || taps == 4; }
  int64_t entries() const { return out * taps; }
};

class Tables {
 public:
  // `image` has the sizes that the tables read.
  Tables(const MicaCall* call, const int64_t* image, MicaTensorSpan indices, MicaTensorSpan weights)
      : call_(call), device_(DeviceOf(call)) {
    weight_dtype_ = weights.size == 0 ? -1 : DtypeOf(weights.data[0]);
    if (weight_dtype_ >= 0) CheckDtype(device_, weight_dtype_);
    for (int64_t d = 0; d < indices.size; ++d) {
      const TensorRef places(indices.data[d]);
      const MicaTensor* by = weights.size == 0 ? nullptr : weights.data[d];
      // Made by hand: _upsample's are dense and of one dtype.
      if (!places.contiguous() || (by && (!TensorRef(by).contiguous() || DtypeOf(by) != weight_dtype_)))
        throw plugin::NotImplemented();
      tables_.push_back({places.data<void>(), by ? by->dl.data : nullptr, image[d + 2], places.size(0),
                         places.size(1), num_readers_});
      num_readers_ += 2 * image[d + 2];
      most_ = std::max(most_, tables_.back().entries());
    }
  }

  int spatial() const { return static_cast<int>(tables_.size()); }

  void Run(PlaneMap map, bool transposed) {
    const int64_t most = std::max(most_, num_readers_);
    if (transposed && most >= (int64_t{1} << 31)) throw plugin::NotImplemented();  // rows are uint there
    const bool small = map.IsSmall(most);
    const Raise raise(call_,
                      {MICA_ERROR_INDEX, "An index of a table is out of range for its dimension.", ""});
    std::optional<Workspace> readers;
    if (transposed) FindReaders(map, &readers, small, raise);
    Key key("resampling");
    map.Run(
        AddTo(key.Add(transposed)), transposed ? "in" : "out", small, raise.word(),
        [&] { return Text(transposed); }, [&](Launch& launch) { AddTables(launch, map, readers, small); });
    raise.Check();
  }

 private:
  Key AddTo(Key& key) const {
    key.Add(weight_dtype_);
    for (const Table& t : tables_) key.Add(t.is_fixed() ? t.taps : 0);
    return key;
  }

  void FindReaders(const PlaneMap& map, std::optional<Workspace>* readers, bool small,
                   const Raise& raise) const {
    const int64_t size = num_readers_ * static_cast<int64_t>(sizeof(uint32_t));
    readers->emplace(call_, size);
    TheDriver()->Zero(device_, (*readers)->data(), static_cast<size_t>(size), call_->stream);
    if (most_ == 0) return;
    Key key("readers");
    const Kernel& kernel =
        FindKernel(device_, AddTo(key.Add(spatial()).Add(small)), "find_readers", call_->name, [&] {
          std::string maps, find;
          for (int d = 0; d < spatial(); ++d)
            maps += "MAP(" + std::to_string(d) + ") ", find += "FIND(" + std::to_string(d) + ") ";
          return LanesText(device_, {MICA_F32, 1}, small) + Text(true) + Define("MAPS", maps) +
                 Define("FIND_ALL", find) + kReadersText;
        });
    Launch launch(call_, kernel);
    AddTables(launch, map, *readers, small);
    launch.Pointer(raise.word()).Run(most_, spatial(), 1, 256, 1);
  }

  void AddTables(Launch& launch, const PlaneMap& map, const std::optional<Workspace>& readers,
                 bool small) const {
    for (int d = 0; d < spatial(); ++d) {
      const Table& t = tables_[static_cast<size_t>(d)];
      launch.Pointer(t.places).Pointer(t.weights);
      for (const int64_t n : {t.in, t.out, t.taps, map.steps[d]}) launch.Index(n, small);
      if (readers) launch.Pointer(static_cast<uint32_t*>(readers->data()) + t.readers);
    }
  }

  std::string Text(bool transposed) const {
    const std::string suffix = weight_dtype_ < 0 ? "u8" : Suffix(weight_dtype_);
    std::string text = Define("E_WEIGHT", "E_" + suffix) +
                       Define("WEIGHT(p)", weight_dtype_ < 0 ? "ONE" : "SPLAT_" + suffix + "(p)") +
                       Define("IS_OUTSIDE(at)", weight_dtype_ < 0 ? "true" : "(at) != -1") +
                       (transposed ? Define("TRANSPOSED", "1") : "");
    for (int d = 0; d < spatial(); ++d) {
      const Table& t = tables_[static_cast<size_t>(d)];
      const std::string n = std::to_string(d);
      text += Define("TAPS_" + n, t.is_fixed() ? std::to_string(t.taps) : "taps" + n);
    }
    return text + kResamplingText;
  }

  const MicaCall* call_;
  const Device& device_;
  int32_t weight_dtype_;
  std::vector<Table> tables_;
  int64_t num_readers_ = 0, most_ = 0;  // entries of a table
};

// Without weights elements only move.
inline int32_t BitsOf(int32_t dtype) {
  const int bytes = BytesOf(dtype);
  return bytes == 1 ? MICA_U8 : bytes == 2 ? MICA_U16 : bytes == 4 ? MICA_U32 : MICA_U64;
}

inline void Resample(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensorSpan weights,
                     MicaTensor* out) {
  const TensorRef x(self);
  const bool moves = weights.size == 0;
  if (!moves && x.dtype() < MICA_F16) throw plugin::NotImplemented();
  Tables tables(call, x.sizes(), indices, weights);
  const int32_t dtype = moves ? BitsOf(x.dtype()) : x.dtype();
  if (TensorRef(out).numel() > 0)
    tables.Run(PlaneMap(call, self, out, dtype, tables.spatial(), x.sizes() + 2), false);
}

inline void ResampleBackward(const MicaCall* call, MicaTensor* grad_output, MicaIntSpan sizes,
                             MicaTensorSpan indices, MicaTensorSpan weights, MicaTensor* out) {
  const TensorRef grad(grad_output);
  if (grad.dtype() < MICA_F16) throw plugin::NotImplemented();
  Tables tables(call, sizes.data, indices, weights);
  if (TensorRef(out).numel() > 0)
    tables.Run(PlaneMap(call, grad_output, out, grad.dtype(), tables.spatial(), grad.sizes() + 2), true);
}

inline void RegisterResampling(plugin::Registrar& registrar) {
  registrar.Kernel<&Resample>("_resample.out");
  registrar.Kernel<&ResampleBackward>("_resample_backward.out");
}

}  // namespace resampling
}  // namespace kit
}  // namespace mica
