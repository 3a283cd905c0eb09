// Interpolation: one table of places and weights for each spatial dimension.
//
// Every mode is a linear map along each dimension by itself, so all of them are one
// operator, _resample, over tables that are made here: for each place of the output the
// places it reads (-1: none) and their weights. As torch, coordinates are computed in
// float32 unless the image is float64 or of bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "dispatcher/devices/pinned_memory.h"
#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/composite_declarations.h"
#include "mica/ops/_resample.h"
#include "mica/ops/_to_copy.h"
#include "mica/ops/add.h"
#include "mica/ops/clamp.h"
#include "mica/ops/contiguous.h"
#include "mica/ops/floor.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace mica::composite {
namespace {

struct Side {
  int64_t in, out;
  bool align;
  double scale;  // how many times larger the output is, as the caller says; 0: he does not
};

// Places and weights in rows of `taps`.
struct Table {
  int64_t taps = 0;
  std::vector<int64_t> places;
  std::vector<double> weights;
};

template <typename Real>
Real StepOf(const Side& s) {
  if (s.align) return s.out > 1 ? static_cast<Real>(s.in - 1) / static_cast<Real>(s.out - 1) : Real(0);
  return s.scale > 0 ? static_cast<Real>(1.0 / s.scale) : static_cast<Real>(s.in) / static_cast<Real>(s.out);
}

// Where output place `i` lies in the input, pixels being areas unless corners align.
template <typename Real>
Real SourceOf(const Side& s, int64_t i) {
  const Real step = StepOf<Real>(s);
  return s.align ? step * static_cast<Real>(i) : step * (static_cast<Real>(i) + Real(0.5)) - Real(0.5);
}

template <typename Real>
Table Nearest(Side s, bool exact) {
  Table t{1, {}, {}};
  s.align = false;
  const Real step = StepOf<Real>(s), shift = exact ? Real(0.5) : Real(0);
  for (int64_t i = 0; i < s.out; ++i)
    t.places.push_back(
        std::min(static_cast<int64_t>(std::floor((static_cast<Real>(i) + shift) * step)), s.in - 1));
  return t;
}

template <typename Real>
Table Linear(const Side& s) {
  Table t{2, {}, {}};
  for (int64_t i = 0; i < s.out; ++i) {
    const Real at = s.in == s.out ? static_cast<Real>(i) : std::max(SourceOf<Real>(s, i), Real(0));
    const int64_t first = std::min(static_cast<int64_t>(at), s.in - 1);
    const Real rest = std::clamp(at - static_cast<Real>(first), Real(0), Real(1));
    // What is not resized reads no neighbour, whose NaN would spread in spite of its weight of 0.
    t.places.insert(t.places.end(), {first, s.in == s.out ? first : std::min(first + 1, s.in - 1)});
    t.weights.insert(t.weights.end(), {Real(1) - rest, rest});
  }
  return t;
}

// Keys' cubic kernel at distance x.
template <typename Real>
Real Cubic(Real x, Real a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : Real(0);
}

template <typename Real>
Table Bicubic(const Side& s) {
  Table t{4, {}, {}};
  for (int64_t i = 0; i < s.out; ++i) {
    const Real at = SourceOf<Real>(s, i);
    const int64_t first = std::min(static_cast<int64_t>(std::floor(at)), s.in - 1);
    const Real rest = std::clamp(at - static_cast<Real>(first), Real(0), Real(1));
    for (int64_t k = -1; k <= 2; ++k) {
      t.places.push_back(std::clamp<int64_t>(first + k, 0, s.in - 1));
      t.weights.push_back(Cubic(static_cast<Real>(k) - rest, Real(-0.75)));
    }
  }
  return t;
}

template <typename Real>
Real Lanczos(Real x) {
  if (x == 0) return 1;
  if (std::fabs(x) >= 3) return 0;
  const Real p = static_cast<Real>(M_PI) * x;
  return std::sin(p) / p * (std::sin(p / 3) / (p / 3));
}

// A filter over all input pixels that an output pixel covers, as Pillow's.
template <typename Real, typename Filter>
Table Antialiased(const Side& s, Real reach, Filter filter) {
  const Real step = StepOf<Real>(s);
  const Real support = step >= 1 ? reach * step : reach, shrink = step >= 1 ? Real(1) / step : Real(1);
  Table t{static_cast<int64_t>(std::ceil(support)) * 2 + 1, {}, {}};
  for (int64_t i = 0; i < s.out; ++i) {
    const Real center = step * (static_cast<Real>(i) + Real(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + Real(0.5)), 0);
    const int64_t past = std::min(static_cast<int64_t>(center + support + Real(0.5)), s.in);
    const int64_t count = std::clamp<int64_t>(past - first, 0, t.taps);
    Real sum = 0;
    const size_t begin = t.weights.size();
    for (int64_t k = 0; k < t.taps; ++k) {
      const Real w =
          k < count ? filter((static_cast<Real>(k + first) - center + Real(0.5)) * shrink) : Real(0);
      t.places.push_back(k < count ? first + k : -1);
      t.weights.push_back(w);
      sum += w;
    }
    if (sum != 0)
      for (size_t k = begin; k < t.weights.size(); ++k) t.weights[k] = static_cast<Real>(t.weights[k]) / sum;
  }
  return t;
}

template <typename Real>
Table TableOf(std::string_view mode, const Side& s) {
  if (mode == "nearest") return Nearest<Real>(s, false);
  if (mode == "nearest-exact") return Nearest<Real>(s, true);
  if (mode == "linear") return Linear<Real>(s);
  if (mode == "cubic") return Bicubic<Real>(s);
  if (mode == "linear-aa")
    return Antialiased<Real>(s, 1, [](Real x) { return std::max(Real(1) - std::fabs(x), Real(0)); });
  if (mode == "cubic-aa") return Antialiased<Real>(s, 2, [](Real x) { return Cubic(x, Real(-0.5)); });
  MICA_CHECK_VALUE(mode == "lanczos-aa", "Mode (", std::string(mode), ") of resampling is unknown.");
  return Antialiased<Real>(s, 3, [](Real x) { return Lanczos(x); });
}

// From pinned memory, if the device has some: the host does not wait, and a graph records the copy.
Tensor OnDevice(const Tensor& t, Device device) {
  if (t.device() == device) return t;
  const bool pins = HasPinnedMemory(device.backend);
  return ops::_to_copy(pins ? PinMemory(t, device.backend) : t, std::nullopt, std::nullopt, device,
                       /*pin_memory=*/std::nullopt, /*non_blocking=*/pins);
}

Tensor Places(const Table& table, Device device) {
  const auto taps = table.taps, rows = static_cast<int64_t>(table.places.size()) / taps;
  const Tensor t = EmptyTensor({rows, taps}, DType::kI64, Device());
  std::copy(table.places.begin(), table.places.end(), t.data_as<int64_t>());
  return OnDevice(t, device);
}

Tensor Weights(const Table& table, DType dtype, Device device) {
  const auto taps = table.taps, rows = static_cast<int64_t>(table.weights.size()) / taps;
  const Tensor t = EmptyTensor({rows, taps}, dtype, Device());
  if (dtype == DType::kF64)
    std::copy(table.weights.begin(), table.weights.end(), t.data_as<double>());
  else
    std::transform(table.weights.begin(), table.weights.end(), t.data_as<float>(),
                   [](double w) { return static_cast<float>(w); });
  return OnDevice(t, device);
}

// Adds the weights of places that a row reads twice, at an edge, in the first of them. Gives the
// largest weight on the way, which decides on the bits.
double MergeEdges(Table& t) {
  double most = 0;
  for (size_t row = 0; row < t.weights.size(); row += static_cast<size_t>(t.taps)) {
    for (size_t k = row; k < row + static_cast<size_t>(t.taps); ++k) {
      const auto begin = t.places.begin() + static_cast<std::ptrdiff_t>(row);
      const auto first =
          static_cast<size_t>(std::find(begin, t.places.end(), t.places[k]) - t.places.begin());
      if (first != k) t.weights[first] += std::exchange(t.weights[k], 0);
      most = std::max(most, t.weights[first]);
    }
  }
  return most;
}

// The weights in 16 bits, as torch and Pillow have them for images of bytes.
Table InShorts(Table t) {
  const double most = MergeEdges(t);
  int bits = 0;
  while (bits < 22 && static_cast<int64_t>(0.5 + most * std::ldexp(1.0, bits + 1)) < (1 << 15)) ++bits;
  for (double& w : t.weights) w = std::ldexp(std::trunc(std::ldexp(w, bits) + (w < 0 ? -0.5 : 0.5)), -bits);
  return t;
}

// Images of bytes are rounded after each dimension, the last of which goes first.
Tensor OfBytes(const Tensor& image, const std::vector<Table>& tables) {
  // Strides that are channels_last by their sizes of 1 alone are not kept, as in torch.
  Tensor x = meta::StridesInFormatOf(image, image.sizes()).empty() ? ops::contiguous(image) : image;
  for (size_t d = tables.size(); d-- > 0;) {
    std::vector<Tensor> places, weights;
    for (size_t k = 0; k < tables.size(); ++k) {
      Table same{1, {}, {}};
      for (int64_t i = 0; k != d && i < x.sizes()[static_cast<int64_t>(k) + 2]; ++i) {
        same.places.push_back(i);
        same.weights.push_back(1);
      }
      const Table table = k == d ? InShorts(tables[k]) : same;
      places.push_back(Places(table, x.device()));
      weights.push_back(Weights(table, DType::kF32, x.device()));
    }
    const Tensor exact =
        ops::add(ops::_resample(ops::_to_copy(x, DType::kF32), places, weights), Scalar(0.5));
    x = ops::_to_copy(ops::clamp(ops::floor(exact), Scalar(0), Scalar(255)), DType::kU8);
  }
  return x;
}

}  // namespace

Tensor _upsample(const Tensor& self, IntSpan output_size, std::string_view mode, bool align_corners,
                 std::optional<double> scale0, std::optional<double> scale1, std::optional<double> scale2) {
  const int64_t spatial = output_size.size(), first = self.ndim() - spatial;
  MICA_CHECK(first == 2, "Number of dimensions (", self.ndim(), ") of `self` with shape ",
             ShapeText(self.sizes()), " is not (", spatial + 2,
             "); expected batch, channels and a dimension for each of the sizes ", ShapeText(output_size),
             ".");
  const std::array<std::optional<double>, 3> scales = {scale0, scale1, scale2};
  const bool bytes = self.dtype() == DType::kU8, nearest = mode.substr(0, 7) == "nearest";
  const bool wide = self.dtype() == DType::kF64 || (bytes && !nearest);
  MICA_CHECK_IMPLEMENTED(IsFloating(self.dtype()) || self.dtype() == DType::kU8,
                         "Interpolation in the mode (", std::string(mode), ") is not implemented for '",
                         ScalarTypeName(self.dtype()), "'; use a floating dtype or uint8.");
  // Raises where there is no room for the result, before tables of its size are made.
  Dims sizes = ToDims(self.sizes().subspan(0, first));
  for (const int64_t size : output_size) sizes.push_back(std::max<int64_t>(size, 0));
  EmptyTensor(sizes, self.dtype(), self.device());
  std::vector<Table> tables;
  for (int64_t d = 0; d < spatial; ++d) {
    const Side side{self.sizes()[first + d], output_size[d], align_corners,
                    scales[static_cast<size_t>(d)].value_or(0)};
    MICA_CHECK(side.in > 0 && side.out > 0 && self.sizes()[1] > 0, "Size (", side.in, ") of dimension (",
               first + d, ") of `self` with shape ", ShapeText(self.sizes()), " and the wanted size (",
               side.out, ") are not all positive.");
    CheckedNumel({side.out, 64});
    tables.push_back(wide ? TableOf<double>(mode, side) : TableOf<float>(mode, side));
  }
  if (bytes && !nearest) return OfBytes(self, tables);
  std::vector<Tensor> places, weights;
  for (const Table& table : tables) {
    places.push_back(Places(table, self.device()));
    if (!nearest) weights.push_back(Weights(table, wide ? DType::kF64 : DType::kF32, self.device()));
  }
  return ops::_resample(self, places, weights);
}

}  // namespace mica::composite
