// The class kernel of windows: the `reduce` of a MicaProgram over the elements of
// each window of the last dimensions. A window is given by kernel, stride, padding
// and dilation, or is one of nearly equal parts (adaptive pooling).
#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/operator_spec.h"
#include "kernels/portable/machine.h"
#include "kernels/portable/windows.h"

namespace mica::portable {
namespace {

// The places of one window in one dimension, and how many the padding adds.
struct Range {
  int64_t start, end, step, padded;
  int64_t count() const { return end <= start ? 0 : (end - start + step - 1) / step; }
};

class Windows {
 public:
  Windows(const MicaProgram& p, const MicaValue* args, IntSpan in, IntSpan out) : k_(p.num_windowed) {
    const int64_t n = in.size();
    for (int64_t d = 0; d < n - k_; ++d) planes_ *= in[d];
    for (int d = 0; d < k_; ++d) {
      in_.push_back(in[n - k_ + d]);
      out_.push_back(out[n - k_ + d]);
      ranges_.push_back(RangesOf(p, args, d));
    }
  }

  // Calls f(place in the output, offset of the plane's first element, the window).
  template <typename F>
  void ForEach(F&& f) const {
    Dims at(static_cast<size_t>(k_), 0);
    int64_t windows = 1, plane_size = 1, place = 0;
    for (int d = 0; d < k_; ++d) {
      windows *= out_[static_cast<size_t>(d)];
      plane_size *= in_[static_cast<size_t>(d)];
    }
    std::vector<const Range*> window(static_cast<size_t>(k_));
    for (int64_t plane = 0; plane < planes_; ++plane)
      for (int64_t w = 0; w < windows; ++w) {
        for (size_t d = 0; d < window.size(); ++d) window[d] = &ranges_[d][static_cast<size_t>(at[d])];
        f(place++, plane * plane_size, window);
        for (size_t d = window.size(); d-- > 0 && ++at[d] == out_[d];) at[d] = 0;
      }
  }

  // Calls f(place in the plane) for the elements of a window.
  template <typename F>
  void ForEachIn(const std::vector<const Range*>& window, F&& f) const {
    for (const Range* r : window)
      if (r->count() == 0) return;
    Dims at(window.size());
    for (size_t d = 0; d < window.size(); ++d) at[d] = window[d]->start;
    while (true) {
      int64_t place = 0;
      for (size_t d = 0; d < window.size(); ++d) place = place * in_[d] + at[d];
      f(place);
      size_t d = window.size();
      while (d-- > 0 && (at[d] += window[d]->step) >= window[d]->end) at[d] = window[d]->start;
      if (d == SIZE_MAX) return;
    }
  }

 private:
  std::vector<Range> RangesOf(const MicaProgram& p, const MicaValue* args, int d) const {
    const auto at = [&](int32_t arg, int64_t otherwise) {
      if (arg < 0) return otherwise;
      const MicaIntSpan list = args[arg].u.ints;
      return ListAt(IntSpan(list.data, list.size), d, otherwise);
    };
    const int64_t size = in_[static_cast<size_t>(d)], outs = out_[static_cast<size_t>(d)];
    std::vector<Range> ranges;
    for (int64_t w = 0; w < outs; ++w) {
      if (p.kernel_arg < 0) {
        const int64_t start = w * size / outs, end = ((w + 1) * size + outs - 1) / outs;
        ranges.push_back({start, end, 1, end - start});
        continue;
      }
      const int64_t kernel = at(p.kernel_arg, 1), pad = at(p.pad_arg, 0), step = at(p.dilation_arg, 1);
      const int64_t begin = w * at(p.stride_arg, kernel) - pad, reach = begin + (kernel - 1) * step + 1;
      // A window that reaches beyond the padding (ceil_mode) ends with it.
      Range r{begin, std::min(reach, size), step, std::min(reach, size + pad) - begin};
      while (r.start < 0) r.start += step;
      r.padded = (r.padded + step - 1) / step;
      ranges.push_back(r);
    }
    return ranges;
  }

  int k_;
  int64_t planes_ = 1;
  Dims in_, out_;
  std::vector<std::vector<Range>> ranges_;
};

// What a step of the machine for one element costs, in elements of a plain loop.
constexpr int64_t kStep = 16;

template <typename T>
void Window(const MicaCall* call, const MicaValue* args, Span<Tensor> outs) {
  const MicaProgram& p = *call->program;
  const Tensor& data = Tensor::Ref(args[p.data_arg].u.tensor);
  const std::vector<T> in = ToLanes<T>(data);
  const Windows windows(p, args, data.sizes(), outs[0].sizes());
  Machine<T> machine(p, args, static_cast<DType>(call->compute_dtype));
  std::vector<std::vector<T>> results(static_cast<size_t>(outs.size()),
                                      std::vector<T>(static_cast<size_t>(outs[0].numel())));
  Patience patience;
  windows.ForEach([&](int64_t place, int64_t plane, const std::vector<const Range*>& window) {
    int64_t count = 1, area = 1;
    for (const Range* r : window) {
      count *= r->count();
      area *= r->padded;
    }
    machine.SetCount(count);
    machine.SetArea(area);
    patience.Spend(kStep * count);
    machine.Run(p.init, 1);
    windows.ForEachIn(window, [&](int64_t at) {
      machine.element()[0] = *machine.input(0) = in[static_cast<size_t>(plane + at)];
      machine.SetIndex(at);
      machine.Run(p.main, 1);
    });
    machine.Run(p.finish, 1);
    for (size_t o = 0; o < results.size(); ++o)
      results[o][static_cast<size_t>(place)] = *machine.output(static_cast<int>(o));
  });
  for (int64_t o = 0; o < outs.size(); ++o) FromLanes(results[static_cast<size_t>(o)], outs[o]);
}

MicaStatus RunWindow(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                     int64_t n) {
  return CatchAll([&] {
    const Span<Tensor> outs(reinterpret_cast<const Tensor*>(outputs), n);
    VisitLane(LaneOf(static_cast<DType>(call->compute_dtype)),
              [&]<typename T>() { Window<T>(call, args, outs); });
  });
}

[[maybe_unused]] const bool kRegistered = [] {
  SetPortableClass(OpClass::kWindow, &RunWindow);
  return true;
}();

}  // namespace
}  // namespace mica::portable
