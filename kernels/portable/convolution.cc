// Convolution of any number of spatial dimensions, its gradients, and windows as
// columns.
//
// One bilinear relation serves all: for each window w of the grid, kernel
// position k and pair of channels,
//   grid[n, a, w]  ~  weight[a, b, k] * image[n, b, place(w, k)].
// A convolution reads the image and adds to the grid; a transposed one reads the
// grid and adds to the image; gradients add to whichever of the three is asked.
#include "kernels/portable/lanes.h"
#include "kernels/portable/windows.h"
#include "mica/kernels/portable_declarations.h"

namespace mica::portable {

WindowTable::WindowTable(IntSpan image_sizes, IntSpan grid, IntSpan kernel, IntSpan stride, IntSpan padding,
                         IntSpan dilation) {
  for (int64_t s : image_sizes) image *= s;
  for (int64_t s : grid) positions *= s;
  for (int64_t s : kernel) taps *= s;
  at.reserve(static_cast<size_t>(positions * taps));
  const int64_t dims = image_sizes.size();
  Patience patience;
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t k = 0; k < taps; ++k) {
      int64_t place = 0, plane = 1, position = p, tap = k;
      for (int64_t d = dims - 1; d >= 0; --d) {
        const int64_t x = position % grid[d] * ListAt(stride, d, 1) - ListAt(padding, d, 0) +
                          tap % kernel[d] * ListAt(dilation, d, 1);
        if (x < 0 || x >= image_sizes[d])
          place = INT64_MIN;  // stays negative: sizes are below it
        else if (place >= 0)
          place += x * plane;
        plane *= image_sizes[d];
        position /= grid[d];
        tap /= kernel[d];
      }
      at.push_back(place < 0 ? -1 : place);
    }
    patience.Spend(taps);
  }
}

namespace {

IntSpan Spatial(IntSpan sizes) { return sizes.subspan(2, sizes.size() - 2); }

// The sizes of the three tensors of the relation above.
struct Relation {
  int64_t batch, groups, grid_channels, image_channels;  // channels of one group
  WindowTable table;

  Relation(IntSpan image, IntSpan grid, IntSpan weight, IntSpan stride, IntSpan padding, IntSpan dilation,
           int64_t g)
      : batch(image[0]),
        groups(g),
        grid_channels(weight[0] / g),
        image_channels(weight[1]),
        table(Spatial(image), Spatial(grid), Spatial(weight), stride, padding, dilation) {}

  // Calls f(place in grid, place in weight, place in image) for each product.
  template <typename F>
  void ForEach(F&& f) const {
    Patience patience;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t a = 0; a < groups * grid_channels; ++a)
        for (int64_t b = 0; b < image_channels; ++b) {
          const int64_t grid = (n * groups * grid_channels + a) * table.positions;
          const int64_t weight = (a * image_channels + b) * table.taps;
          const int64_t image = ((n * groups + a / grid_channels) * image_channels + b) * table.image;
          for (int64_t p = 0; p < table.positions; ++p) {
            for (int64_t k = 0; k < table.taps; ++k) {
              const int64_t place = table.at[static_cast<size_t>(p * table.taps + k)];
              if (place >= 0)
                f(static_cast<size_t>(grid + p), static_cast<size_t>(weight + k),
                  static_cast<size_t>(image + place));
            }
            patience.Spend(table.taps);
          }
        }
  }
};

template <typename T>
std::vector<T> Zeros(const Tensor& like) {
  return std::vector<T>(static_cast<size_t>(like.numel()), T(0));
}

// out = grid from image and weight, or image from grid and weight (transposed).
template <typename T>
void Convolve(const Relation& r, const std::vector<T>& in, const std::vector<T>& weight, bool to_image,
              std::vector<T>& out) {
  if (to_image)
    r.ForEach([&](size_t g, size_t w, size_t i) { out[i] += in[g] * weight[w]; });
  else
    r.ForEach([&](size_t g, size_t w, size_t i) { out[g] += in[i] * weight[w]; });
}

}  // namespace

void convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntSpan stride,
                 IntSpan padding, IntSpan dilation, bool transposed, IntSpan, int64_t groups,
                 const Tensor& out) {
  const Relation r(transposed ? out.sizes() : input.sizes(), transposed ? input.sizes() : out.sizes(),
                   weight.sizes(), stride, padding, dilation, groups);
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    std::vector<T> result = Zeros<T>(out);
    Convolve(r, ToLanes<T>(input), ToLanes<T>(weight), transposed, result);
    if (bias.defined()) {
      const std::vector<T> b = ToLanes<T>(bias);
      const Around channels(out.sizes(), 1);
      for (size_t i = 0; i < result.size(); ++i)
        result[i] += b[i / static_cast<size_t>(channels.inner) % b.size()];
    }
    FromLanes(result, out);
  });
}

void _convolution_backward_input(const Tensor& grad_output, const Tensor& weight, IntSpan, IntSpan stride,
                                 IntSpan padding, IntSpan dilation, bool transposed, IntSpan, int64_t groups,
                                 const Tensor& out) {
  const Relation r(transposed ? grad_output.sizes() : out.sizes(),
                   transposed ? out.sizes() : grad_output.sizes(), weight.sizes(), stride, padding, dilation,
                   groups);
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    std::vector<T> result = Zeros<T>(out);
    Convolve(r, ToLanes<T>(grad_output), ToLanes<T>(weight), !transposed, result);
    FromLanes(result, out);
  });
}

void _convolution_backward_weight(const Tensor& grad_output, const Tensor& input, IntSpan, IntSpan stride,
                                  IntSpan padding, IntSpan dilation, bool transposed, IntSpan, int64_t groups,
                                  const Tensor& out) {
  const Tensor& image_of = transposed ? grad_output : input;
  const Tensor& grid_of = transposed ? input : grad_output;
  const Relation r(image_of.sizes(), grid_of.sizes(), out.sizes(), stride, padding, dilation, groups);
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> image = ToLanes<T>(image_of), grid = ToLanes<T>(grid_of);
    std::vector<T> result = Zeros<T>(out);
    r.ForEach([&](size_t g, size_t w, size_t i) { result[w] += grid[g] * image[i]; });
    FromLanes(result, out);
  });
}

namespace {

// The two last sizes, and the windows over them.
WindowTable PlaneWindows(IntSpan plane, IntSpan kernel, IntSpan dilation, IntSpan padding, IntSpan stride) {
  Dims taps, grid;
  for (int64_t d = 0; d < 2; ++d) {
    taps.push_back(ListAt(kernel, d, 1));
    const int64_t reach = ListAt(dilation, d, 1) * (taps.back() - 1) + 1;
    grid.push_back((plane[d] + 2 * ListAt(padding, d, 0) - reach) / ListAt(stride, d, 1) + 1);
  }
  return WindowTable(plane, grid, taps, stride, padding, dilation);
}

// Calls f(place in columns [planes, taps, positions], place in images).
template <typename F>
void ForEachColumn(const WindowTable& t, int64_t planes, F&& f) {
  Patience patience;
  for (int64_t c = 0; c < planes; ++c)
    for (int64_t p = 0; p < t.positions; ++p) {
      patience.Spend(t.taps);
      for (int64_t k = 0; k < t.taps; ++k) {
        const int64_t place = t.at[static_cast<size_t>(p * t.taps + k)];
        if (place >= 0)
          f(static_cast<size_t>((c * t.taps + k) * t.positions + p),
            static_cast<size_t>(c * t.image + place));
      }
    }
}

}  // namespace

void col2im(const Tensor& self, IntSpan, IntSpan kernel_size, IntSpan dilation, IntSpan padding,
            IntSpan stride, const Tensor& out) {
  const WindowTable table =
      PlaneWindows(out.sizes().subspan(out.ndim() - 2, 2), kernel_size, dilation, padding, stride);
  VisitLane(LaneOf(out.dtype()), [&]<typename T>() {
    const std::vector<T> columns = ToLanes<T>(self);
    std::vector<T> image = Zeros<T>(out);
    ForEachColumn(table, self.numel() / std::max<int64_t>(table.taps * table.positions, 1),
                  [&](size_t c, size_t i) { image[i] += columns[c]; });
    FromLanes(image, out);
  });
}

}  // namespace mica::portable
