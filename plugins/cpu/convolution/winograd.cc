#include "plugins/cpu/convolution/winograd.h"

#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/convolution/winograd_transforms.h"
#include "plugins/cpu/engine/scratch.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kPlanes = kWinogradPlanes;
// Tiles that go through the three steps together: enough for the products to run at
// full speed (64 rows: 88 GFLOP/s, 32: 54), few enough to stay in cache.
constexpr int64_t kTiles = 64;

// A batch of images as tiles: images, then rows of tiles, then columns.
struct Tiling {
  int64_t rows, columns, count;
  Tiling(int64_t batch, int64_t height, int64_t width)
      : rows((height + 3) / 4), columns((width + 3) / 4), count(batch * rows * columns) {}
};

// Floats from one plane of `n` floats to the next: 36 planes a power of two apart would
// fall on the same lines of the cache (measured: transforms take four times as long).
int64_t PlaneOf(int64_t n) { return n + 16; }

struct Place {
  int64_t image, row, column;
  Place(const Tiling& t, int64_t tile)
      : image(tile / (t.rows * t.columns)), row(tile / t.columns % t.rows), column(tile % t.columns) {}
};

// Four rows of four floats to four columns.
void TransposeFour(const float* from, int64_t from_row, float* to, int64_t to_row) {
  const hn::FixedTag<float, 4> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_row), c = hn::LoadU(d, from + 2 * from_row),
             e = hn::LoadU(d, from + 3 * from_row);
  const auto ab = hn::InterleaveLower(d, a, b), ab2 = hn::InterleaveUpper(d, a, b);
  const auto ce = hn::InterleaveLower(d, c, e), ce2 = hn::InterleaveUpper(d, c, e);
  hn::StoreU(hn::ConcatLowerLower(d, ce, ab), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, ce, ab), d, to + to_row);
  hn::StoreU(hn::ConcatLowerLower(d, ce2, ab2), d, to + 2 * to_row);
  hn::StoreU(hn::ConcatUpperUpper(d, ce2, ab2), d, to + 3 * to_row);
}

// One row of tiles of an image as pixels of adjacent channels: `height` rows from
// `first_row`, columns from `first_column`, zero outside the image.
class Band {
 public:
  Band(const ConvolutionOperand& image, int64_t channels, int64_t height, int64_t width, int64_t rows,
       int64_t columns, float* memory)
      : image_(image),
        channels_(channels),
        height_(height),
        width_(width),
        rows_(rows),
        columns_(columns),
        memory_(memory) {}
  static int64_t Floats(int64_t channels, int64_t rows, int64_t columns) { return rows * columns * channels; }
  int64_t row() const { return columns_ * channels_; }
  const float* at(int64_t column) const { return memory_ + column * channels_; }

  void Load(int64_t image, int64_t first_row, int64_t first_column) {
    if (image == loaded_image_ && first_row == loaded_row_) return;
    loaded_image_ = image;
    loaded_row_ = first_row;
    const auto* data = static_cast<const float*>(image_.data) + image * image_.strides[0];
    const int64_t begin = std::max<int64_t>(0, -first_column),
                  end = std::clamp<int64_t>(width_ - first_column, begin, columns_);
    for (int64_t y = 0; y < rows_; ++y) {
      float* line = memory_ + y * row();
      const int64_t from = first_row + y;
      if (from < 0 || from >= height_) {
        std::memset(line, 0, static_cast<size_t>(row()) * sizeof(float));
        continue;
      }
      std::memset(line, 0, static_cast<size_t>(begin * channels_) * sizeof(float));
      std::memset(line + end * channels_, 0,
                  static_cast<size_t>((columns_ - end) * channels_) * sizeof(float));
      Transpose(data + from * image_.strides[2] + (begin + first_column) * image_.strides[3], end - begin,
                line + begin * channels_);
    }
  }

 private:
  void Transpose(const float* from, int64_t pixels, float* to) const {
    const int64_t channel = image_.strides[1], pixel = image_.strides[3];
    int64_t x = 0;
    if (pixel == 1)
      for (; x + 4 <= pixels; x += 4)
        for (int64_t c = 0; c < channels_; c += 4)
          TransposeFour(from + c * channel + x, channel, to + x * channels_ + c, channels_);
    for (; x < pixels; ++x)
      for (int64_t c = 0; c < channels_; ++c) to[x * channels_ + c] = from[c * channel + x * pixel];
  }

  ConvolutionOperand image_;
  int64_t channels_, height_, width_, rows_, columns_;
  float* memory_;
  int64_t loaded_image_ = -1, loaded_row_ = 0;
};

void Multiply(const LibraryTable& library, int64_t m, int64_t n, int64_t k, MatrixView a, const float* b,
              float* c, bool add) {
  const GemmTask task{MICA_F32, m, n, k, a, {b, n, false}, c, n, {1, 0}, {add ? 1.0 : 0.0, 0}};
  library.blas_gemm(task);
}

// The transformed kernels, kPlanes matrices of (from channels) x (to channels).
// Backward, the kernel is turned by 180 degrees and its channels change places.
void TransformKernels(const ConvolutionTask& t, bool backward, float* planes) {
  const WinogradTransforms& transforms = BestWinogradTransforms();
  const int64_t from = backward ? t.out_channels : t.in_channels,
                to = backward ? t.in_channels : t.out_channels;
  const int64_t *s = t.weight.strides, from_step = backward ? s[0] : s[1], to_step = backward ? s[1] : s[0];
  ParallelFor(from, std::max<int64_t>(1, 2048 / to), 1, t.threads, [&](int64_t begin, int64_t end) {
    float lanes[9 * 8];
    for (int64_t f = begin; f < end; ++f)
      for (int64_t o = 0; o < to; o += 8) {
        const float* w = static_cast<const float*>(t.weight.data) + f * from_step + o * to_step;
        for (int64_t y = 0; y < 3; ++y)
          for (int64_t x = 0; x < 3; ++x) {
            const float* tap = w + y * s[2] + x * s[3];
            float* lane = lanes + (backward ? 8 - (y * 3 + x) : y * 3 + x) * 8;
            for (int64_t j = 0; j < 8; ++j) lane[j] = tap[j * to_step];
          }
        transforms.kernel(lanes, 8, planes + f * to + o, PlaneOf(from * to));
      }
  });
}

// Copies the part of a 4 x 4 tile (row, channel, column) that lies inside the image.
void StoreTile(const float* tile, const ConvolutionOperand& image, int64_t channels, int64_t height,
               int64_t width, const Place& p) {
  const int64_t* s = image.strides;
  const int64_t rows = std::min<int64_t>(4, height - p.row * 4),
                columns = std::min<int64_t>(4, width - p.column * 4);
  float* corner = static_cast<float*>(image.data) + p.image * s[0] + p.row * 4 * s[2] + p.column * 4 * s[3];
  if (columns == 4 && s[3] == 1) {
    for (int64_t y = 0; y < rows; ++y)
      for (int64_t c = 0; c < channels; ++c)
        std::memcpy(corner + c * s[1] + y * s[2], tile + (y * channels + c) * 4, 16);
    return;
  }
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t x = 0; x < columns; ++x)
        corner[c * s[1] + y * s[2] + x * s[3]] = tile[(y * channels + c) * 4 + x];
}

// Tiles of `input` to tiles of `output` with `padding`: forward, and backward to the
// input with the roles changed.
struct Images {
  const ConvolutionOperand &input, &output;
  int64_t in_channels, out_channels;
  const int64_t *in, *out;  // height and width
  int64_t padding[2];
};

void Forward(const ConvolutionTask& t, const LibraryTable& library, const Images& images, bool backward) {
  const WinogradTransforms& transforms = BestWinogradTransforms();
  const int64_t ic = images.in_channels, oc = images.out_channels;
  const int64_t u_plane = PlaneOf(ic * oc), v_plane = PlaneOf(kTiles * ic), m_plane = PlaneOf(kTiles * oc);
  const Temporary kernels(kPlanes * u_plane * 4);
  TransformKernels(t, backward, kernels.data<float>());
  const Tiling tiling(t.batch, images.out[0], images.out[1]);
  const int64_t blocks = (tiling.count + kTiles - 1) / kTiles, columns = tiling.columns * 4 + 2;
  std::atomic<bool> no_memory{false}, stopped{false};
  ParallelFor(blocks, 1, 1, t.threads, [&](int64_t begin, int64_t end) {
    const int64_t band_floats = Band::Floats(ic, 6, columns);
    auto* memory =
        reinterpret_cast<float*>(Scratch((kPlanes * (v_plane + m_plane) + band_floats + 16 * oc) * 4));
    if (!memory) return no_memory.store(true);
    float *v = memory, *m = v + kPlanes * v_plane, *tile_memory = m + kPlanes * m_plane;
    Band band(images.input, ic, images.in[0], images.in[1], 6, columns, tile_memory + 16 * oc);
    for (int64_t block = begin; block < end && !stopped; ++block) {
      if (Interrupted()) stopped = true;
      const int64_t first = block * kTiles, tiles = std::min(kTiles, tiling.count - first);
      for (int64_t i = 0; i < tiles; ++i) {
        const Place p(tiling, first + i);
        band.Load(p.image, p.row * 4 - images.padding[0], -images.padding[1]);
        transforms.input(band.at(p.column * 4), band.row(), ic, v + i * ic, v_plane);
      }
      for (int64_t k = 0; k < kPlanes; ++k)
        Multiply(library, tiles, oc, ic, {v + k * v_plane, ic, false}, kernels.data<float>() + k * u_plane,
                 m + k * m_plane, false);
      for (int64_t i = 0; i < tiles; ++i) {
        transforms.output(m + i * oc, m_plane, oc, backward ? nullptr : static_cast<const float*>(t.bias),
                          tile_memory);
        StoreTile(tile_memory, images.output, oc, images.out[0], images.out[1], Place(tiling, first + i));
      }
    }
  });
  if (stopped) ThrowInterrupted();
  if (no_memory) throw std::bad_alloc();
}

// Each thread adds up 36 matrices of (out channels) x (in channels) over its tiles;
// their sum is transformed back.
void ForWeight(const ConvolutionTask& t, const LibraryTable& library) {
  const WinogradTransforms& transforms = BestWinogradTransforms();
  const int64_t ic = t.in_channels, oc = t.out_channels;
  const int64_t v_plane = PlaneOf(kTiles * ic), g_plane = PlaneOf(kTiles * oc), sum_plane = PlaneOf(ic * oc),
                size = kPlanes * sum_plane;
  const Tiling tiling(t.batch, t.out[0], t.out[1]);
  const int64_t blocks = (tiling.count + kTiles - 1) / kTiles, columns = tiling.columns * 4 + 2;
  const int64_t parts = std::min<int64_t>(t.threads, blocks);
  const Temporary sums(parts * size * 4);
  std::atomic<bool> no_memory{false}, stopped{false};
  ParallelFor(parts, 1, 1, t.threads, [&](int64_t begin, int64_t end) {
    const int64_t in_band = Band::Floats(ic, 6, columns), out_band = Band::Floats(oc, 4, columns);
    auto* memory =
        reinterpret_cast<float*>(Scratch((kPlanes * (v_plane + g_plane) + in_band + out_band) * 4));
    if (!memory) return no_memory.store(true);
    float *v = memory, *g = v + kPlanes * v_plane, *bands = g + kPlanes * g_plane;
    Band in(t.input, ic, t.in[0], t.in[1], 6, columns, bands),
        out(t.output, oc, t.out[0], t.out[1], 4, columns, bands + in_band);
    for (int64_t part = begin; part < end; ++part) {
      float* sum = sums.data<float>() + part * size;
      const int64_t from = blocks * part / parts, to = blocks * (part + 1) / parts;
      for (int64_t block = from; block < to && !stopped; ++block) {
        if (Interrupted()) stopped = true;
        const int64_t first = block * kTiles, tiles = std::min(kTiles, tiling.count - first);
        for (int64_t i = 0; i < tiles; ++i) {
          const Place p(tiling, first + i);
          in.Load(p.image, p.row * 4 - t.padding[0], -t.padding[1]);
          out.Load(p.image, p.row * 4, 0);
          transforms.input(in.at(p.column * 4), in.row(), ic, v + i * ic, v_plane);
          transforms.gradient(out.at(p.column * 4), out.row(), oc, g + i * oc, g_plane);
        }
        for (int64_t k = 0; k < kPlanes; ++k)
          Multiply(library, oc, ic, tiles, {g + k * g_plane, oc, true}, v + k * v_plane, sum + k * sum_plane,
                   block > from);
      }
    }
  });
  if (stopped) ThrowInterrupted();
  if (no_memory) throw std::bad_alloc();
  const int64_t* s = t.weight.strides;
  ParallelFor(oc, std::max<int64_t>(1, 2048 / ic), 1, t.threads, [&](int64_t begin, int64_t end) {
    float total[kPlanes * 8], kernel[9 * 8];
    for (int64_t o = begin; o < end; ++o)
      for (int64_t i = 0; i < ic; i += 8) {
        for (int64_t k = 0; k < kPlanes; ++k) {
          const float* sum = sums.data<float>() + k * sum_plane + o * ic + i;
          std::memcpy(total + k * 8, sum, 8 * sizeof(float));
          for (int64_t part = 1; part < parts; ++part)
            for (int64_t j = 0; j < 8; ++j) total[k * 8 + j] += sum[part * size + j];
        }
        transforms.weight(total, 8, 8, kernel);
        float* w = static_cast<float*>(t.weight.data) + o * s[0] + i * s[1];
        for (int64_t y = 0; y < 3; ++y)
          for (int64_t x = 0; x < 3; ++x)
            for (int64_t j = 0; j < 8; ++j) w[j * s[1] + y * s[2] + x * s[3]] = kernel[(y * 3 + x) * 8 + j];
      }
  });
}

}  // namespace

bool WinogradFits(const ConvolutionTask& t) {
  if (t.spatial != 2 || t.groups != 1 || t.in_channels % 8 != 0 || t.out_channels % 8 != 0) return false;
  for (int d = 0; d < 2; ++d)
    if (t.kernel[d] != 3 || t.stride[d] != 1 || t.dilation[d] != 1 || t.padding[d] > 2) return false;
  if (std::min(t.in_channels, t.out_channels) < 16) return false;
  // Tiles that stick out of the image are work for nothing.
  const bool backward = t.kind == ConvolutionKind::kBackwardInput;
  const int64_t height = (backward ? t.in : t.out)[0], width = (backward ? t.in : t.out)[1];
  const Tiling tiling(t.batch, height, width);
  return tiling.count >= kTiles && tiling.rows * tiling.columns * 16 * 2 <= height * width * 3;
}

void Winograd(const ConvolutionTask& t, const LibraryTable& library) {
  switch (t.kind) {
    case ConvolutionKind::kForward:
      return Forward(
          t, library,
          {t.input, t.output, t.in_channels, t.out_channels, t.in, t.out, {t.padding[0], t.padding[1]}},
          false);
    case ConvolutionKind::kBackwardInput:
      return Forward(t, library,
                     {t.output,
                      t.input,
                      t.out_channels,
                      t.in_channels,
                      t.out,
                      t.in,
                      {2 - t.padding[0], 2 - t.padding[1]}},
                     true);
    case ConvolutionKind::kBackwardWeight:
      return ForWeight(t, library);
  }
}

}  // namespace mica::cpu
