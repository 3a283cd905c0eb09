// _resample and its transpose: the linear maps of interpolation, forward and back.
//
// Every mode of interpolation is a table a dimension (kernels/composite/resampling.cc), so that one kernel
// text (resampling.cl) computes all of them, over planes that lie densely: those of an image, or, channels
// last, images whose innermost dimension is the channels. Other layouts are copied. The transpose gathers as
// well: a small kernel finds, for each place, the first and the last row of the table that read it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {
namespace resampling {

using plugin::TensorRef;

// The strides of an image (N, C, ...) without gaps.
inline std::vector<int64_t> ImageStrides(const TensorRef& image, bool channels_last) {
  std::vector<int64_t> strides(static_cast<size_t>(image.ndim()));
  int64_t step = channels_last ? image.size(1) : 1;
  for (int d = image.ndim(); d-- > 2;) strides[static_cast<size_t>(d)] = step, step *= image.size(d);
  strides[1] = channels_last ? 1 : step;
  strides[0] = channels_last ? step : step * image.size(1);
  return strides;
}
inline bool HasStrides(const TensorRef& t, const std::vector<int64_t>& strides) {
  for (int d = 0; d < t.ndim(); ++d)
    if (t.size(d) != 1 && t.stride(d) != strides[static_cast<size_t>(d)]) return false;
  return true;
}
inline bool IsChannelsLast(const TensorRef& t) {
  return !HasStrides(t, ImageStrides(t, false)) && HasStrides(t, ImageStrides(t, true));
}

// The memory of an image in one of the two orders: its own, or a workspace.
class Dense {
 public:
  Dense(const MicaCall* call, const MicaTensor* image, bool channels_last)
      : call_(call), image_(image), strides_(ImageStrides(TensorRef(image), channels_last)) {
    const TensorRef t(image);
    if (!HasStrides(t, strides_)) work_.emplace(call, t.numel() * BytesOf(t.dtype()));
  }
  void* data() const { return work_ ? work_->data() : image_->dl.data; }
  void Read() const { Copy(true); }
  void Write() const { Copy(false); }

 private:
  void Copy(bool to_work) const {
    if (!work_) return;
    const TensorRef t(image_);
    Space space;
    space.sizes.assign(t.sizes(), t.sizes() + t.ndim());
    space.Add(image_);
    space.operands.push_back({work_->data(), t.dtype(), strides_});
    if (to_work) std::swap(space.operands[0], space.operands[1]);
    pointwise::CopyPart(call_, std::move(space));
  }

  const MicaCall* call_;
  const MicaTensor* image_;
  std::vector<int64_t> strides_;
  std::optional<Workspace> work_;
};

// A table, and the dimension that it maps.
struct Table {
  const void* places;
  const void* weights;  // NULL: all 1
  int64_t in, out, taps;
  int64_t step = 1;     // of the data from one place to the next: of `in`, or of `out` in the transpose
  int64_t readers = 0;  // where those of the dimension begin
  bool fixed() const {
    return taps == 1 || taps == 2 || taps == 4;
  }  // of the usual modes: loops are unrolled
};

class Resampling {
 public:
  // `image` has the sizes that the tables read.
  Resampling(const MicaCall* call, const MicaTensor* data, const MicaTensor* out, const int64_t* image,
             MicaTensorSpan indices, MicaTensorSpan weights, bool transposed)
      : call_(call), device_(DeviceOf(call)), data_(data), out_(out), transposed_(transposed) {
    const TensorRef x(data), y(out);
    moves_ = weights.size == 0 && !transposed;
    if (!moves_ && x.dtype() < MICA_F16) throw plugin::NotImplemented();
    dtype_ = moves_ ? BitsOf(x.dtype()) : x.dtype();
    weight_dtype_ = weights.size == 0 ? -1 : DtypeOf(weights.data[0]);
    CheckDtype(device_, dtype_);
    channels_last_ = IsChannelsLast(y);
    inner_ = channels_last_ ? y.size(1) : 1;
    planes_ = channels_last_ ? y.size(0) : y.size(0) * y.size(1);
    for (int64_t d = 0; d < indices.size; ++d) AddTable(image[d + 2], indices, weights, d);
    MeasurePlanes();
  }

  void Run() {
    if (TensorRef(out_).numel() == 0) return;
    const Dense from(call_, data_, channels_last_), to(call_, out_, channels_last_);
    from.Read();
    ChooseShape(from.data(), to.data());
    const Raise raise(call_,
                      {MICA_ERROR_INDEX, "An index of a table is out of range for its dimension.", ""});
    std::optional<Workspace> readers;
    if (transposed_) FindReaders(&readers, raise);
    Launch launch(call_, Find("resample"));
    launch.Pointer(from.data()).Pointer(to.data());
    AddTables(launch, readers);
    const int64_t blocks = inner_ / width_, count = out_plane_ / width_;
    launch.Index(blocks, small_).Index(count, small_);
    for (const int64_t n : {data_plane_, out_plane_, planes_}) launch.Value(static_cast<uint64_t>(n));
    launch.Pointer(raise.word());
    const int64_t rows =
        std::min((planes_ + depth_ - 1) / depth_, std::min<int64_t>(65535, device_.max_groups_yz));
    launch.Run(count, rows, 1, kGroup, 1);
    to.Write();
    raise.Check();
  }

 private:
  static constexpr int64_t kGroup = 256;
  static constexpr int64_t kItems = 1 << 18;  // work-items that hide memory's latency

  // Without weights elements only move.
  static int32_t BitsOf(int32_t dtype) {
    const int bytes = BytesOf(dtype);
    return bytes == 1 ? MICA_U8 : bytes == 2 ? MICA_U16 : bytes == 4 ? MICA_U32 : MICA_U64;
  }

  void AddTable(int64_t in, MicaTensorSpan indices, MicaTensorSpan weights, int64_t d) {
    const TensorRef places(indices.data[d]);
    const MicaTensor* by = weights.size == 0 ? nullptr : weights.data[d];
    if (!places.contiguous() || (by && (!TensorRef(by).contiguous() || DtypeOf(by) != weight_dtype_)))
      throw plugin::NotImplemented();  // made by hand; _upsample's are dense and of one dtype
    if (by) CheckDtype(device_, weight_dtype_);
    tables_.push_back({places.data<void>(), by ? by->dl.data : nullptr, in, places.size(0), places.size(1)});
  }

  void MeasurePlanes() {
    data_plane_ = out_plane_ = inner_;
    int64_t readers = 0, most = 0;
    for (size_t d = tables_.size(); d-- > 0;) {
      Table& t = tables_[d];
      t.step = data_plane_;
      t.readers = readers;
      readers += 2 * t.in;
      data_plane_ *= transposed_ ? t.out : t.in;
      out_plane_ *= transposed_ ? t.in : t.out;
      most = std::max(most, t.out * t.taps);
    }
    num_readers_ = readers;
    most = std::max({most, readers, data_plane_, out_plane_});
    small_ = most < (int64_t{1} << 31) - kGroup;
    if (transposed_ && most >= (int64_t{1} << 32)) throw plugin::NotImplemented();  // rows are uint there
  }

  // How much a work-item computes: neighbours by as wide accesses as the device likes, or planes. The fewer
  // there are, the less each takes on, so that all of the device has something to do.
  void ChooseShape(const void* from, const void* to) {
    const int bytes = BytesOf(dtype_);
    width_ = std::min(8, device_.access_bytes > 0 ? device_.access_bytes / bytes : device_.vector_width);
    const auto fits = [&](const void* p) { return reinterpret_cast<uintptr_t>(p) % (width_ * bytes) == 0; };
    while (width_ > 1 && (inner_ % width_ != 0 || !fits(from) || !fits(to))) width_ /= 2;
    depth_ = 8 / width_;
    while (depth_ > 1 && (depth_ > planes_ || out_plane_ / width_ * (planes_ / depth_) < kItems)) depth_ /= 2;
  }

  void FindReaders(std::optional<Workspace>* readers, const Raise& raise) const {
    const int64_t size = num_readers_ * static_cast<int64_t>(sizeof(uint32_t));
    readers->emplace(call_, size);
    TheDriver()->Zero(device_, (*readers)->data(), static_cast<size_t>(size), call_->stream);
    int64_t most = 0;
    for (const Table& t : tables_) most = std::max(most, t.out * t.taps);
    if (most == 0) return;
    Launch launch(call_, Find("find_readers"));
    AddTables(launch, *readers);
    launch.Pointer(raise.word()).Run(most, static_cast<int64_t>(tables_.size()), 1, kGroup, 1);
  }

  void AddTables(Launch& launch, const std::optional<Workspace>& readers) const {
    for (const Table& t : tables_) {
      launch.Pointer(t.places).Pointer(t.weights);
      for (const int64_t n : {t.in, t.out, t.taps, t.step}) launch.Index(n, small_);
      if (readers) launch.Pointer(static_cast<uint32_t*>(readers->data()) + t.readers);
    }
  }

  const Kernel& Find(const char* entry) const {
    Key key("resampling");
    key.Add(dtype_).Add(weight_dtype_).Add(transposed_).Add(moves_).Add(small_).Add(width_).Add(depth_);
    for (const Table& t : tables_) key.Add(t.fixed() ? t.taps : 0);
    return FindKernel(device_, key, entry, call_->name, [&] { return Text(); });
  }

  std::string Text() const {
    const std::string suffix = Suffix(dtype_), width = std::to_string(width_);
    const std::string weights = weight_dtype_ < 0 ? "u8" : Suffix(weight_dtype_);
    const size_t n = tables_.size();
    std::string parameters, split = "INDEX rest = i / blocks; ", find;
    std::string sums = "ELEMENTS(" + std::to_string(n) + ", from" + std::to_string(n - 1) + ")";
    std::string text = LanesText(device_, {LaneDtype(dtype_), width_}, small_);
    for (size_t d = n; d-- > 0;) {
      const std::string k = std::to_string(d), size = (transposed_ ? "in" : "out") + k;
      const Table& t = tables_[d];
      text += Define("TAPS_" + k, t.fixed() ? std::to_string(t.taps) : "taps" + k);
      parameters = "TABLE(" + k + ") " + parameters;
      split += "const INDEX k" + k + " = rest % " + size + "; rest /= " + size + "; ";
      find += "FIND(" + k + ") ";
      sums = "SUM(" + k + ", " + std::to_string(d + 1) + ", " +
             (d == 0 ? "i % blocks * W" : "from" + std::to_string(d - 1)) + ", " + sums + ")";
    }
    return text + Define("P", std::to_string(depth_)) + Define("E", "E_" + suffix) +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, W)") +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, W)") + Define("E_WEIGHT", "E_" + weights) +
           Define("WEIGHT(p)", weight_dtype_ < 0 ? "ONE" : "SPLAT_" + weights + "(p)") +
           Define("IS_OUTSIDE(at)", weight_dtype_ < 0 ? "true" : "(at) != -1") +
           (transposed_ ? Define("TRANSPOSED", "1") : "") + Define("TABLES", parameters) +
           Define("SPLIT", split) + Define("SUMS", sums) + Define("FIND_ALL", find) + kResamplingText +
           (transposed_ ? kResamplingReadersText : "");
  }

  const MicaCall* call_;
  const Device& device_;
  const MicaTensor* data_;
  const MicaTensor* out_;
  bool transposed_, moves_, channels_last_, small_ = true;
  int32_t dtype_, weight_dtype_;
  int64_t inner_, planes_;  // elements behind the last table, and planes
  std::vector<Table> tables_;
  int64_t data_plane_ = 0, out_plane_ = 0, num_readers_ = 0;
  int width_ = 1, depth_ = 1;  // W and P
};

inline void Resample(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensorSpan weights,
                     MicaTensor* out) {
  Resampling(call, self, out, TensorRef(self).sizes(), indices, weights, false).Run();
}

inline void ResampleBackward(const MicaCall* call, MicaTensor* grad_output, MicaIntSpan sizes,
                             MicaTensorSpan indices, MicaTensorSpan weights, MicaTensor* out) {
  Resampling(call, grad_output, out, sizes.data, indices, weights, true).Run();
}

inline void RegisterResampling(plugin::Registrar& registrar) {
  registrar.Kernel<&Resample>("_resample.out");
  registrar.Kernel<&ResampleBackward>("_resample_backward.out");
}

}  // namespace resampling
}  // namespace kit
}  // namespace mica
