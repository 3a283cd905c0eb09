// Linear maps of planes, dimension by dimension (planes.cl): interpolation, the gradients of average pooling,
// col2im.
//
// The planes of an image (N, C, ...) lie densely, or, channels last, each image is a plane whose innermost
// dimension is the channels; other layouts are copied. One launch maps all dimensions; what a dimension's map
// is, a text of the caller's says, which stands before planes.cl.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <mica/kit/dense.h>

namespace mica {
namespace kit {
namespace planes {

using plugin::TensorRef;

// One map of the planes of `data` to those of `out`.
class PlaneMap {
 public:
  // `dtype` is how elements are read and written. `data_sizes` are a plane's in `data`, which is an image of
  // the order of `out`; or, NULL, all of it lies in one order, and the caller sets data_plane.
  PlaneMap(const MicaCall* call, const MicaTensor* data, const MicaTensor* out, int32_t dtype, int spatial,
           const int64_t* data_sizes, int most_neighbours = 8)
      : call_(call),
        device_(DeviceOf(call)),
        spatial_(spatial),
        dtype_(dtype),
        data_(data),
        out_(out),
        width_(most_neighbours) {
    CheckDtype(device_, dtype);
    const TensorRef y(out);
    const int leading = y.ndim() - spatial;
    is_image_ = data_sizes != nullptr;
    channels_last_ =
        is_image_ && leading == 2 && !IsDenseImage(y, spatial, false) && IsDenseImage(y, spatial, true);
    for (int d = 0; d < leading; ++d) (channels_last_ && d == 1 ? inner : num_planes) *= y.size(d);
    out_plane = data_plane = inner;
    for (int d = spatial; d-- > 0;) {
      steps[d] = data_plane;
      if (is_image_) data_plane *= data_sizes[d];
      out_plane *= y.size(leading + d);
    }
  }

  int64_t inner = 1, num_planes = 1;      // elements of a place that lie side by side, and planes
  int64_t data_plane = 1, out_plane = 1;  // elements of a plane
  int64_t steps[3] = {};                  // of the data along each dimension

  bool IsSmall(int64_t more = 0) const {
    return std::max({data_plane, out_plane, more}) < (int64_t{1} << 31) - kGroup;
  }

  // In which order a tensor of the map's lies, or is brought.
  std::vector<int64_t> OrderOf(const MicaTensor* tensor) const {
    return ImageStrides(TensorRef(tensor), is_image_ || tensor == out_ ? spatial_ : 0, channels_last_);
  }

  // Chooses how much a work-item computes, makes data dense, and launches. `key` and `text(map)` say what is
  // mapped, `size` (of `out` in the texts' names) and `small` how places count; `add(launch)` adds the
  // arguments of MAPS.
  template <typename T, typename A>
  void Run(Key key, const char* size, bool small, const void* raised, T&& text, A&& add) {
    const Dense from(call_, data_, OrderOf(data_)), to(call_, out_, OrderOf(out_));
    from.Read();
    ChooseShape(from.data(), to.data());
    key.Add(dtype_).Add(spatial_).Add(small).Add(width_).Add(depth_);
    const Kernel& kernel = FindKernel(device_, key, "over_planes", call_->name,
                                      [&] { return Lanes(small) + text() + Text(size); });
    Launch launch(call_, kernel);
    launch.Pointer(from.data()).Pointer(to.data());
    add(launch);
    const int64_t count = out_plane / width_;
    launch.Index(inner / width_, small).Index(count, small);
    for (const int64_t n : {data_plane, out_plane, num_planes}) launch.Value(static_cast<uint64_t>(n));
    launch.Pointer(raised);
    const int64_t rows = (num_planes + depth_ - 1) / depth_;
    launch.Run(count, std::min({rows, int64_t{65535}, device_.max_groups_yz}), 1, kGroup, 1);
    to.Write();
  }

 private:
  static constexpr int64_t kGroup = 256;
  static constexpr int64_t kItems = 1 << 18;  // work-items that hide memory's latency

  // Neighbours by as wide accesses as the device likes, or planes. The fewer there are, the less a work-item
  // takes on, so that all of the device has something to do.
  void ChooseShape(const void* from, const void* to) {
    const int bytes = BytesOf(dtype_);
    width_ = std::min(width_, device_.access_bytes > 0 ? device_.access_bytes / bytes : device_.vector_width);
    const auto fits = [&](const void* p) { return reinterpret_cast<uintptr_t>(p) % (width_ * bytes) == 0; };
    while (width_ > 1 && (inner % width_ != 0 || !fits(from) || !fits(to))) width_ /= 2;
    depth_ = 8 / width_;
    while (depth_ > 1 && (depth_ > num_planes || out_plane / width_ * (num_planes / depth_) < kItems))
      depth_ /= 2;
  }

  std::string Lanes(bool small) const {
    const std::string suffix = Suffix(dtype_);
    return LanesText(device_, {LaneDtype(dtype_), width_}, small) + Define("E", "E_" + suffix) +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, W)") +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, W)");
  }

  std::string Text(const std::string& size) const {
    const auto n = [](int d) { return std::to_string(d); };
    std::string maps, split = "INDEX rest = i / blocks; ";
    std::string sums = "ELEMENTS(" + n(spatial_) + ", from" + n(spatial_ - 1) + ")";
    for (int d = spatial_; d-- > 0;) {
      maps = "MAP(" + n(d) + ") " + maps;
      split += "const INDEX k" + n(d) + " = rest % " + size + n(d) + "; rest /= " + size + n(d) + "; ";
      sums = "SUM(" + n(d) + ", " + n(d + 1) + ", " + (d == 0 ? "i % blocks * W" : "from" + n(d - 1)) + ", " +
             sums + ")";
    }
    return Define("P", n(depth_)) + Define("MAPS", maps) + Define("SPLIT", split) + Define("SUMS", sums) +
           kPlanesText;
  }

  const MicaCall* call_;
  const Device& device_;
  int spatial_;
  int32_t dtype_;
  const MicaTensor* data_;
  const MicaTensor* out_;
  bool is_image_ = true, channels_last_ = false;
  int width_, depth_ = 1;  // W, the most before it is chosen, and P
};

}  // namespace planes
}  // namespace kit
}  // namespace mica
