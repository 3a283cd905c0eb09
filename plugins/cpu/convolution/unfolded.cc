// Convolutions as products; see unfolded.h.
//
// For one image and one group, `columns` has a row for each channel and tap and a column for
// each place of the output: forward is output = weight @ columns, backward is columns =
// weight^T @ output, added up where the columns came from, and weight += output @ columns^T.
// Columns exist for a block of places at a time. A unit of work writes memory of its own (an
// image's group; for the weight, a group), and units are divided among threads; where there
// are fewer of them than threads, threads share the steps of a unit.
#include "plugins/cpu/convolution/unfolded.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>
#include <new>
#include <optional>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/contraction/gemm.h"
#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

// Bytes of a block of columns, which stays in a core's cache.
constexpr int64_t kColumnBytes = 1 << 20;
constexpr int64_t kLeastPlaces = 16;
constexpr int64_t kGrain = 1 << 15;  // elements that make a second thread worth waking

// A tensor of the task, or its dense copy where a product cannot take it as it lies: the
// dimensions from `first` on must be one dimension of equal steps.
template <class T>
class Flat {
 public:
  Flat(const ConvolutionOperand& operand, const int64_t* sizes, int32_t ndim, int32_t first, bool read,
       int32_t threads)
      : operand_(operand), ndim_(ndim), threads_(threads) {
    std::copy(sizes, sizes + ndim, sizes_);
    std::copy(operand.strides, operand.strides + ndim, strides_);
    data_ = static_cast<T*>(operand.data);
    bool flat = true;
    for (int32_t d = first; d + 1 < ndim; ++d) flat &= strides_[d] == strides_[d + 1] * sizes_[d + 1];
    if (flat && strides_[ndim - 1] != 0) return;
    int64_t count = 1;
    for (int32_t d = ndim; d-- > 0;) {
      strides_[d] = count;
      count *= sizes_[d];
    }
    copy_.emplace(count * static_cast<int64_t>(sizeof(T)));
    data_ = copy_->data<T>();
    if (read) CopyStrided(sizeof(T), ndim, sizes_, operand.data, operand.strides, data_, strides_, threads);
  }
  void WriteBack() const {
    if (copy_)
      CopyStrided(sizeof(T), ndim_, sizes_, data_, strides_, operand_.data, operand_.strides, threads_);
  }
  T* at(int64_t i, int64_t j) const { return data_ + i * strides_[0] + j * strides_[1]; }
  int64_t stride(int32_t d) const { return strides_[d]; }
  int64_t step() const { return strides_[ndim_ - 1]; }

 private:
  const ConvolutionOperand& operand_;
  int32_t ndim_, threads_;
  int64_t sizes_[5], strides_[5];
  T* data_;
  std::optional<Temporary> copy_;
};

// The geometry of a task in three spatial dimensions, the missing ones in front.
struct Windows {
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t taps = 1, places = 1;

  explicit Windows(const ConvolutionTask& t) {
    for (int32_t d = 0; d < 3; ++d) {
      const int32_t from = d - (3 - t.spatial);
      const bool is = from >= 0;
      in[d] = is ? t.in[from] : 1;
      out[d] = is ? t.out[from] : 1;
      kernel[d] = is ? t.kernel[from] : 1;
      stride[d] = is ? t.stride[from] : 1;
      padding[d] = is ? t.padding[from] : 0;
      dilation[d] = is ? t.dilation[from] : 1;
      taps *= kernel[d];
      places *= out[d];
    }
  }

  // Walks the places [begin, end) line by line under one tap: body(offset of the line's first
  // place from `begin`, places of it, the first and the one after the last of these whose
  // input lies inside the image, and that first one's position in each dimension).
  template <class Body>
  void ForLines(int64_t tap, int64_t begin, int64_t end, Body body) const {
    const int64_t shift[3] = {tap / (kernel[1] * kernel[2]) * dilation[0] - padding[0],
                              tap / kernel[2] % kernel[1] * dilation[1] - padding[1],
                              tap % kernel[2] * dilation[2] - padding[2]};
    const int64_t first = shift[2] >= 0 ? 0 : (-shift[2] + stride[2] - 1) / stride[2];
    const int64_t last = shift[2] >= in[2] ? 0 : (in[2] - 1 - shift[2]) / stride[2] + 1;
    for (int64_t place = begin; place < end;) {
      const int64_t x = place % out[2], line = place / out[2];
      const int64_t n = std::min(out[2] - x, end - place);
      const int64_t at[2] = {line / out[1] * stride[0] + shift[0], line % out[1] * stride[1] + shift[1]};
      int64_t from = std::clamp<int64_t>(first - x, 0, n), to = std::clamp<int64_t>(last - x, from, n);
      if (at[0] < 0 || at[0] >= in[0] || at[1] < 0 || at[1] >= in[1]) from = to = 0;
      body(place - begin, n, from, to, at[0], at[1], (x + from) * stride[2] + shift[2]);
      place += n;
    }
  }
};

template <class T>
struct Image {
  T* data;             // of a group's first channel
  int64_t channel;     // from a channel to the next
  int64_t strides[3];  // of the spatial dimensions
};

template <class T>
Image<T> ImageOf(const ConvolutionTask& t, int64_t batch, int64_t group) {
  Image<T> image{};
  const int64_t* s = t.input.strides;
  image.data = static_cast<T*>(t.input.data) + batch * s[0] + group * (t.in_channels / t.groups) * s[1];
  image.channel = s[1];
  for (int32_t d = 0; d < t.spatial; ++d) image.strides[3 - t.spatial + d] = s[2 + d];
  return image;
}

// One row of columns, from an image or added to it.
template <class T>
void FillRow(const Windows& w, const Image<T>& image, int64_t row, int64_t begin, int64_t end, T* to) {
  const T* channel = image.data + row / w.taps * image.channel;
  const int64_t step = w.stride[2] * image.strides[2];
  w.ForLines(row % w.taps, begin, end,
             [&](int64_t offset, int64_t n, int64_t from, int64_t last, int64_t z, int64_t y, int64_t x) {
               T* line = to + offset;
               std::fill(line, line + from, T{});
               std::fill(line + last, line + n, T{});
               if (from == last) return;
               const T* source = channel + z * image.strides[0] + y * image.strides[1] + x * image.strides[2];
               if (step == 1)
                 std::memcpy(line + from, source, static_cast<size_t>(last - from) * sizeof(T));
               else
                 for (int64_t i = from; i < last; ++i) line[i] = source[(i - from) * step];
             });
}

template <class T>
void AddRow(const Windows& w, const Image<T>& image, int64_t row, int64_t begin, int64_t end, const T* from) {
  T* channel = image.data + row / w.taps * image.channel;
  const int64_t step = w.stride[2] * image.strides[2];
  w.ForLines(row % w.taps, begin, end,
             [&](int64_t offset, int64_t, int64_t first, int64_t last, int64_t z, int64_t y, int64_t x) {
               if (first == last) return;
               T* target = channel + z * image.strides[0] + y * image.strides[1] + x * image.strides[2];
               const T* line = from + offset + first;
               if (step == 1)
                 for (int64_t i = 0; i < last - first; ++i) target[i] += line[i];
               else
                 for (int64_t i = 0; i < last - first; ++i) target[i * step] += line[i];
             });
}

template <class T>
class Unfolded {
 public:
  explicit Unfolded(const ConvolutionTask& task)
      : t_(task),
        w_(task),
        channels_(task.in_channels / task.groups),
        outputs_(task.out_channels / task.groups),
        rows_(channels_ * w_.taps),
        block_(std::clamp(kColumnBytes / static_cast<int64_t>(sizeof(T)) / rows_, kLeastPlaces,
                          std::max(kLeastPlaces, w_.places))),
        weight_(task.weight, Sizes(task, task.kernel, channels_, task.out_channels).data, task.spatial + 2, 1,
                task.kind != ConvolutionKind::kBackwardWeight, task.threads),
        output_(task.output, Sizes(task, task.out, task.out_channels, task.batch).data, task.spatial + 2, 2,
                task.kind != ConvolutionKind::kForward, task.threads) {}

  void Run() {
    const bool to_weight = t_.kind == ConvolutionKind::kBackwardWeight;
    const int64_t units = to_weight ? t_.groups : t_.batch * t_.groups;
    const int64_t parts = units >= t_.threads ? t_.threads : 1;
    const auto inner = static_cast<int32_t>(parts > 1 ? 1 : t_.threads);
    const int64_t size = rows_ * block_;
    const Temporary columns(parts * size * static_cast<int64_t>(sizeof(T)));
    ParallelFor(parts, 1, 1, t_.threads, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        for (int64_t u = units * part / parts; u < units * (part + 1) / parts; ++u)
          if (!Unit(u, columns.data<T>() + part * size, inner)) return;
    });
    if (stopped_) ThrowInterrupted();
    if (failed_) throw std::bad_alloc();  // the one error that a product has
    if (to_weight) weight_.WriteBack();
    if (t_.kind == ConvolutionKind::kForward) output_.WriteBack();
  }

 private:
  struct Five {
    int64_t data[5];
  };
  static Five Sizes(const ConvolutionTask& t, const int64_t* space, int64_t second, int64_t first) {
    Five sizes{{first, second}};
    std::copy(space, space + t.spatial, sizes.data + 2);
    return sizes;
  }

  bool Unit(int64_t unit, T* columns, int32_t threads) {
    try {
      switch (t_.kind) {
        case ConvolutionKind::kForward:
          return ForBlocks([&](int64_t begin, int64_t n) { Forward(unit, begin, n, columns, threads); });
        case ConvolutionKind::kBackwardInput:
          Clear(unit, threads);
          return ForBlocks([&](int64_t begin, int64_t n) { ToInput(unit, begin, n, columns, threads); });
        case ConvolutionKind::kBackwardWeight:
          for (int64_t image = 0; image < t_.batch; ++image)
            if (!ForBlocks(
                    [&](int64_t begin, int64_t n) { ToWeight(image, unit, begin, n, columns, threads); }))
              return false;
          return true;
      }
    } catch (...) {
      (Interrupted() ? stopped_ : failed_) = true;
    }
    return false;
  }

  // False once the call is to end.
  template <class Body>
  bool ForBlocks(Body body) {
    for (int64_t begin = 0; begin < w_.places; begin += block_) {
      body(begin, std::min(block_, w_.places - begin));
      if (Interrupted()) stopped_ = true;
      if (stopped_ || failed_) return false;
    }
    return true;
  }

  void Fill(const Image<T>& image, int64_t begin, int64_t n, T* columns, int32_t threads) const {
    ParallelFor(rows_, std::max<int64_t>(1, kGrain / n), 1, threads, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row)
        FillRow(w_, image, row, begin, begin + n, columns + row * n);
    });
  }

  Strided WeightOf(int64_t group) const {
    return {weight_.at(group * outputs_, 0), weight_.stride(0), weight_.step()};
  }
  Strided OutputOf(int64_t image, int64_t group, int64_t begin) const {
    return {output_.at(image, group * outputs_) + begin * output_.step(), output_.stride(1), output_.step()};
  }
  static void Multiply(const Product& p, int32_t threads) {
    if (!Gemm(p, threads)) throw std::bad_alloc();
  }

  void Forward(int64_t unit, int64_t begin, int64_t n, T* columns, int32_t threads) const {
    const int64_t image = unit / t_.groups, group = unit % t_.groups;
    Fill(ImageOf<T>(t_, image, group), begin, n, columns, threads);
    const Strided out = OutputOf(image, group, begin);
    Product p{t_.dtype, outputs_, n, rows_, WeightOf(group), {columns, n, 1}, out};
    if (t_.bias) {
      for (int64_t o = 0; o < outputs_; ++o)
        for (int64_t i = 0; i < n; ++i)
          static_cast<T*>(out.data)[o * out.row + i * out.col] =
              static_cast<const T*>(t_.bias)[group * outputs_ + o];
      p.beta = {1, 0, 1};
    }
    Multiply(p, threads);
  }

  void ToInput(int64_t unit, int64_t begin, int64_t n, T* columns, int32_t threads) const {
    const int64_t group = unit % t_.groups;
    const Strided w = WeightOf(group);
    Multiply({t_.dtype,
              rows_,
              n,
              outputs_,
              {w.data, w.col, w.row},
              OutputOf(unit / t_.groups, group, begin),
              {columns, n, 1}},
             threads);
    const Image<T> image = ImageOf<T>(t_, unit / t_.groups, group);
    ParallelFor(channels_, std::max<int64_t>(1, kGrain / (n * w_.taps)), 1, threads,
                [&](int64_t first, int64_t last) {
                  for (int64_t row = first * w_.taps; row < last * w_.taps; ++row)
                    AddRow(w_, image, row, begin, begin + n, columns + row * n);
                });
  }

  void ToWeight(int64_t image, int64_t group, int64_t begin, int64_t n, T* columns, int32_t threads) const {
    Fill(ImageOf<T>(t_, image, group), begin, n, columns, threads);
    Product p{t_.dtype, outputs_, rows_, n, OutputOf(image, group, begin), {columns, 1, n}, WeightOf(group)};
    if (image > 0 || begin > 0) p.beta = {1, 0, 1};
    Multiply(p, threads);
  }

  void Clear(int64_t unit, int32_t threads) const {
    static const T zero{};
    const Image<T> image = ImageOf<T>(t_, unit / t_.groups, unit % t_.groups);
    const int64_t sizes[] = {channels_, w_.in[0], w_.in[1], w_.in[2]}, none[4] = {};
    const int64_t strides[] = {image.channel, image.strides[0], image.strides[1], image.strides[2]};
    CopyStrided(sizeof(T), 4, sizes, &zero, none, image.data, strides, threads);
  }

  const ConvolutionTask& t_;
  const Windows w_;
  const int64_t channels_, outputs_;  // of a group
  const int64_t rows_, block_;
  const Flat<T> weight_, output_;
  std::atomic<bool> stopped_{false}, failed_{false};
};

// The bias of a transposed convolution, whose result is the task's input.
template <class T>
void AddBias(const ConvolutionTask& t) {
  const Windows w(t);
  const T* bias = static_cast<const T*>(t.bias);
  const int64_t area = w.in[0] * w.in[1] * w.in[2];
  ParallelFor(t.batch * t.in_channels, std::max<int64_t>(1, kGrain / std::max<int64_t>(area, 1)), 1,
              t.threads, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t channel = i % t.in_channels;
                  const Image<T> image = ImageOf<T>(t, i / t.in_channels, 0);
                  T* plane = image.data + channel * image.channel;
                  for (int64_t z = 0; z < w.in[0]; ++z)
                    for (int64_t y = 0; y < w.in[1]; ++y) {
                      T* line = plane + z * image.strides[0] + y * image.strides[1];
                      for (int64_t x = 0; x < w.in[2]; ++x) line[x * image.strides[2]] += bias[channel];
                    }
                }
              });
}

// Calls f with a T for the dtype; integers are added and moved alike whatever their sign.
template <class F>
void ForDtype(int32_t dtype, F f) {
  switch (dtype) {
    case MICA_F32:
      return f(float{});
    case MICA_F64:
      return f(double{});
    case MICA_C64:
      return f(std::complex<float>{});
    case MICA_C128:
      return f(std::complex<double>{});
    case MICA_U8:
    case MICA_I8:
      return f(uint8_t{});
    case MICA_U16:
    case MICA_I16:
      return f(uint16_t{});
    case MICA_U32:
    case MICA_I32:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

}  // namespace

void UnfoldedConvolution(const ConvolutionTask& task) {
  ForDtype(task.dtype, [&]<class T>(T) { Unfolded<T>(task).Run(); });
}

void AddBiasToInput(const ConvolutionTask& task) {
  ForDtype(task.dtype, [&]<class T>(T) { AddBias<T>(task); });
}

}  // namespace mica::cpu
