// grid_sample: sums of elements at any places of a plane (sampling.cl), the places given or computed.
//
// _weighted_gather takes places and weights from memory, as the compositions of grid_sampler_2d and _3d make
// them, and has its two gradients here. grid_sampler_2d and _3d themselves run where nothing requires grad,
// linear and nearest: a work-item computes its taps (grid.cl). What they decline (the cubic mode, half types)
// is composed. The gradient of the image adds up by atomics, which decide on the order: where a program wants
// the same results in every run, it goes on to the CPU.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include <mica/kit/scatter.h>

namespace mica {
namespace kit {
namespace sampling {

using plugin::NotImplemented;
using plugin::OwnedTensor;
using plugin::TensorRef;

// As in sampling.cl and grid.cl.
struct Layout {
  int64_t n, c, at;
};
struct Samples {
  uint64_t batch, channels, length, places;
  uint64_t parts, each;
  Layout plane, side, index, weight;
};
template <int kDims>
struct Plane {
  int64_t size[kDims], step[kDims];
};

inline Layout LayoutOf(const TensorRef& t) { return {t.stride(0), t.stride(1), t.stride(2)}; }

// What a work-item does with its taps, as sampling.cl names it.
enum class Map : int32_t { kGather, kScatter, kWeights };

class Sampling {
 public:
  static constexpr int64_t kGroup = 128;
  static constexpr int64_t kItems = 1 << 18;  // work-items that hide memory's latency
  static constexpr int64_t kMostTaps = 16;    // that registers hold

  Sampling(const MicaCall* call, Map map, int32_t dtype, int64_t taps)
      : call_(call), device_(DeviceOf(call)), map_(map), dtype_(dtype), taps_(taps) {
    if (dtype < MICA_F16 || taps > kMostTaps) throw NotImplemented();
    CheckDtype(device_, dtype);
  }

  // `key` and `taps_text` (FIND_TAPS, TAP_PARAMETERS and what they need) say where taps come from;
  // `add(launch)` adds those arguments.
  template <typename F>
  void Run(Samples s, const void* planes, const void* sides, Key key, const std::string& taps_text,
           F&& add) const {
    // A point's channels are shared where there are few points; each sum of WEIGHTS is one work-item's.
    const uint64_t chunk = channels();
    s.each = std::max<uint64_t>(s.channels, 1);
    while (map_ != Map::kWeights && s.each > chunk &&
           s.batch * s.length * ((s.channels + s.each - 1) / s.each) < static_cast<uint64_t>(kItems))
      s.each = ((s.each + 1) / 2 + chunk - 1) / chunk * chunk;
    s.parts = std::max<uint64_t>((s.channels + s.each - 1) / s.each, 1);
    const Raise raise(call_, {MICA_ERROR_INDEX, "An index is out of range for the places of a plane.", ""});
    key.Add(map_).Add(dtype_).Add(taps_);
    const Kernel& kernel =
        FindKernel(device_, key, "over_taps", call_->name, [&] { return Text(taps_text); });
    Launch launch(call_, kernel);
    launch.Pointer(planes).Pointer(sides).Value(s);
    add(launch);
    launch.Pointer(raise.word());
    const int64_t rows = std::min<int64_t>(static_cast<int64_t>(s.batch * s.parts),
                                           std::min<int64_t>(65535, device_.max_groups_yz));
    launch.Run(static_cast<int64_t>(s.length), rows, 1, kGroup, 1);
    raise.Check();
  }

 private:
  uint64_t channels() const { return taps_ > 8 ? 2 : 4; }

  std::string Text(const std::string& taps_text) const {
    const std::string suffix = Suffix(dtype_);
    const int32_t lane = LaneDtype(dtype_);
    const bool gathers = map_ == Map::kGather, scatters = map_ == Map::kScatter;
    return LanesText(device_, {lane, 1}, false) + (scatters ? AtomicsText(lane) : "") +
           Define("TAPS", std::to_string(taps_)) + Define("CHANNELS", std::to_string(channels())) +
           Define(gathers    ? "GATHER"
                  : scatters ? "SCATTER"
                             : "WEIGHTS",
                  "1") +
           Define("E", "E_" + suffix) + Define("E_PLANE", scatters ? "LANE" : "E") +
           Define("PLANE", scatters ? "" : "const") + Define("SIDE", gathers ? "" : "const") +
           Define("LOAD(p)", "LOAD_" + suffix + "(p, 1)") +
           Define("STORE(v, p)", "STORE_" + suffix + "(v, p, 1)") + taps_text + kSamplingText;
  }

  const MicaCall* call_;
  const Device& device_;
  Map map_;
  int32_t dtype_;
  int64_t taps_;
};

// Taps from memory: -1 is no place, and `weights`, where a map reads them, are of the elements' dtype.
inline void RunFromMemory(const MicaCall* call, Map map, void* planes, Layout plane, int64_t places,
                          const MicaTensor* side, const MicaTensor* indices, const MicaTensor* weights) {
  const TensorRef y(side), at(indices), w(weights);
  const Sampling sampling(call, map, y.dtype(), at.size(1));
  Samples s = {};
  s.batch = static_cast<uint64_t>(y.size(0)), s.channels = static_cast<uint64_t>(y.size(1));
  s.length = static_cast<uint64_t>(y.size(2)), s.places = static_cast<uint64_t>(places);
  s.plane = plane, s.side = LayoutOf(y), s.index = LayoutOf(at), s.weight = LayoutOf(w);
  if (at.numel() == 0 || (map == Map::kGather && y.numel() == 0)) return;
  const bool reads = map != Map::kWeights;
  const std::string text =
      Define("TAP_PARAMETERS", std::string("const global long* indices, ") + (reads ? "const " : "") +
                                   "global E* " + (reads ? "weights, " : "out, ")) +
      Define("FIND_TAPS",
             std::string("UNROLL for (int k = 0; k < TAPS; ++k) { "
                         "const long at = indices[n * s.index.n + k * s.index.c + l * s.index.at]; "
                         "is_inside[k] = (ulong)at < s.places; from[k] = at * s.plane.at; "
                         "if (!is_inside[k] && at != -1) *raised = 1; ") +
                 (reads ? "weight[k] = LOAD(weights + n * s.weight.n + k * s.weight.c + l * s.weight.at); "
                        : "") +
                 "}");
  sampling.Run(s, planes, y.data<void>(), Key("weighted"), text,
               [&](Launch& launch) { launch.Pointer(at.data<void>()).Pointer(w.data<void>()); });
}

inline void WeightedGather(const MicaCall* call, MicaTensor* self, MicaTensor* indices, MicaTensor* weights,
                           MicaTensor* out) {
  const TensorRef x(self);
  RunFromMemory(call, Map::kGather, x.data<void>(), LayoutOf(x), x.size(2), out, indices, weights);
}

inline void WeightedScatter(const MicaCall* call, MicaTensor* grad_output, MicaTensor* indices,
                            MicaTensor* weights, int64_t places, MicaTensor* out) {
  const TensorRef x(out), at(indices);
  scatter::CheckDeterministic(at.numel() > 1);
  const scatter::Target target(call, out, LaneDtype(x.dtype()), true);
  target.Zero();
  if (x.numel() > 0)
    RunFromMemory(call, Map::kScatter, target.data(), {x.size(1) * places, places, 1}, places, grad_output,
                  indices, weights);
  target.Finish();
}

inline void WeightedGatherWeights(const MicaCall* call, MicaTensor* grad_output, MicaTensor* self,
                                  MicaTensor* indices, MicaTensor* out) {
  const TensorRef x(self);
  RunFromMemory(call, Map::kWeights, x.data<void>(), LayoutOf(x), x.size(2), grad_output, indices, out);
}

template <int kDims>
MicaTensor* GridSampler(const MicaCall* call, MicaTensor* input, MicaTensor* grid, int64_t interpolation_mode,
                        int64_t padding_mode, int32_t align_corners) {
  const TensorRef x(input), points(grid);
  // What is wrong with the call is for the composition to say.
  if (x.ndim() != kDims + 2 || points.ndim() != kDims + 2 || x.dtype() != points.dtype() ||
      interpolation_mode < 0 || interpolation_mode > 1 || padding_mode < 0 || padding_mode > 2 ||
      x.size(0) != points.size(0) || points.size(-1) != kDims || x.numel() == 0 || points.numel() == 0)
    throw NotImplemented();
  if (x.dtype() != MICA_F32 && x.dtype() != MICA_F64) throw NotImplemented();
  const bool linear = interpolation_mode == 0, align = align_corners != 0;
  const Sampling sampling(call, Map::kGather, x.dtype(), linear ? 1 << kDims : 1);
  int64_t sizes[kDims + 2] = {x.size(0), x.size(1)};
  Plane<kDims> plane;
  Samples s = {};
  s.batch = static_cast<uint64_t>(x.size(0)), s.channels = static_cast<uint64_t>(x.size(1));
  s.length = 1;
  for (int d = 0; d < kDims; ++d) {
    plane.size[d] = x.size(d + 2), plane.step[d] = x.stride(d + 2);
    s.length *= static_cast<uint64_t>(sizes[d + 2] = points.size(d + 1));
  }
  const auto length = static_cast<int64_t>(s.length);
  s.plane = {x.stride(0), x.stride(1), 0}, s.side = {x.size(1) * length, length, 1};
  std::optional<Workspace> dense;
  if (!points.contiguous()) {
    dense.emplace(call, points.numel() * points.itemsize());
    pointwise::CopyToDense(call, dense->data(), points.dtype(), grid);
  }
  OwnedTensor out = OwnedTensor::Empty(sizes, kDims + 2, x.dtype(), PlaceOf(call));
  const std::string dims = std::to_string(kDims);
  const std::string text =
      Define("DIMS", dims) + (linear ? Define("LINEAR", "1") : "") +
      (align ? Define("ALIGN_CORNERS", "1") : "") + Define("PADDING", std::to_string(padding_mode)) +
      kGridText + Define("TAP_PARAMETERS", "const global LANE* points, const Plane p,") +
      Define("FIND_TAPS", "find_taps(points + (n * s.length + l) * DIMS, p, is_inside, from, weight);");
  Key key("grid");
  key.Add(kDims).Add(linear).Add(align).Add(padding_mode);
  sampling.Run(s, x.data<void>(), TensorRef(out.get()).data<void>(), key, text, [&](Launch& launch) {
    launch.Pointer(dense ? dense->data() : points.data<void>()).Value(plane);
  });
  return out.release();
}

inline void RegisterSampling(plugin::Registrar& registrar) {
  registrar.Kernel<&WeightedGather>("_weighted_gather.out");
  registrar.Kernel<&WeightedScatter>("_weighted_scatter.out");
  registrar.Kernel<&WeightedGatherWeights>("_weighted_gather_weights.out");
  registrar.Kernel<&GridSampler<2>>("grid_sampler_2d");
  registrar.Kernel<&GridSampler<3>>("grid_sampler_3d");
}

}  // namespace sampling
}  // namespace kit
}  // namespace mica
