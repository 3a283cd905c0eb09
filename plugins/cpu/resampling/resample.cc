// _resample and its transpose: the passes of each plane (channels last: of each image),
// the planes in parallel, what stands between two passes in cache.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/resampling/resampling.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

int32_t ResamplingDtype(const TensorRef& t) {
  switch (t.dtype()) {
    case MICA_F16:
    case MICA_BF16:
    case MICA_F32:
      return MICA_F32;
    case MICA_F64:
      return MICA_F64;
    default:
      throw plugin::NotImplemented();
  }
}

// Places of a table between two questions for a Ctrl-C.
constexpr int64_t kChecked = int64_t{1} << 20;

// Planes [spatial..., inner] of an image, and the passes over them in their order.
struct Plan {
  int64_t planes = 1, inner = 1;
  std::vector<ResamplePass> passes;
  int64_t largest = 0;  // elements of what stands between two passes
  int64_t from = 1, to = 1;
  std::vector<DenseInput> tables;
  std::vector<std::vector<int64_t>> counts;  // of ResamplePass

  Plan(const int64_t* image, bool channels_last, MicaTensorSpan indices, MicaTensorSpan weights,
       int32_t dtype, int32_t threads)
      : planes(channels_last ? image[0] : image[0] * image[1]), inner(channels_last ? image[1] : 1) {
    const auto spatial = static_cast<int32_t>(indices.size);
    tables.reserve(static_cast<size_t>(2 * spatial));
    std::array<ResamplePass, 3> sides{};
    std::array<int32_t, 3> order{};
    for (int32_t d = 0; d < spatial; ++d) {
      const TensorRef at(indices.data[d]);
      const auto& places = tables.emplace_back(indices.data[d], MICA_I64, threads);
      const void* by = nullptr;
      if (weights.size) by = tables.emplace_back(weights.data[d], dtype, threads).data<char>();
      ResamplePass& side = sides[static_cast<size_t>(d)];
      side = {1, image[d + 2], at.size(0), 1, at.size(1), true, places.data<int64_t>(), by};
      CheckPlaces(side);
      order[static_cast<size_t>(d)] = spatial - 1 - d;
    }
    // The last dimension first, but those that shrink the image most before it.
    std::stable_sort(order.begin(), order.begin() + spatial, [&](int32_t a, int32_t b) {
      const ResamplePass &x = sides[static_cast<size_t>(a)], &y = sides[static_cast<size_t>(b)];
      return std::min(x.out, x.in) * y.in < std::min(y.out, y.in) * x.in;
    });
    std::array<int64_t, 3> sizes{};
    for (int32_t d = 0; d < spatial; ++d) {
      sizes[static_cast<size_t>(d)] = image[d + 2];
      from *= image[d + 2];
    }
    for (int32_t k = 0; k < spatial; ++k) {
      const int32_t d = order[static_cast<size_t>(k)];
      ResamplePass pass = sides[static_cast<size_t>(d)];
      pass.inner = inner;
      for (int32_t e = 0; e < d; ++e) pass.outer *= sizes[static_cast<size_t>(e)];
      for (int32_t e = d + 1; e < spatial; ++e) pass.inner *= sizes[static_cast<size_t>(e)];
      sizes[static_cast<size_t>(d)] = pass.out;
      passes.push_back(pass);
      if (k + 1 < spatial) largest = std::max(largest, pass.outer * pass.out * pass.inner);
    }
    from *= inner;
    to = inner;
    for (int32_t d = 0; d < spatial; ++d) to *= sizes[static_cast<size_t>(d)];
  }

  void CheckPlaces(ResamplePass& p) {
    std::vector<int64_t>& count = counts.emplace_back(static_cast<size_t>(p.out), 0);
    bool adjacent = true;
    int64_t checked = 0;
    for (int64_t o = 0; o < p.out; ++o) {
      const int64_t* const places = p.places + o * p.taps;
      int64_t& have = count[static_cast<size_t>(o)];
      for (int64_t tap = 0; tap < p.taps; ++tap) {
        const int64_t at = places[tap];
        MICA_PLUGIN_CHECK(at >= (p.weights ? -1 : 0) && at < p.in, MICA_ERROR_INDEX,
                          "Index (" + std::to_string(at) + ") of a table is out of range for size (" +
                              std::to_string(p.in) + ").");
        p.whole &= at >= 0;
        if (at < 0) continue;
        adjacent &= have == tap && at == places[0] + tap;
        have = tap + 1;
      }
      if ((checked += p.taps) < kChecked) continue;
      checked = 0;
      if (Interrupted()) ThrowInterrupted();
    }
    for (const int64_t c : count) adjacent &= c > 0;
    if (adjacent) p.counts = count.data();
  }
};

// Runs the passes over one plane; `step(pass, from, to)` is one of them.
template <class Step>
void RunPasses(const std::vector<ResamplePass>& passes, bool backwards, const char* from, char* to,
               char* const buffers[2], Step step) {
  const size_t n = passes.size();
  for (size_t k = 0; k < n; ++k) {
    char* next = k + 1 == n ? to : buffers[k % 2];
    step(passes[backwards ? n - 1 - k : k], from, next);
    from = next;
  }
}

template <class Step>
void ForPlanes(const Plan& plan, bool backwards, int64_t element, const char* from, char* to, int32_t threads,
               Step step) {
  const int64_t ins = (backwards ? plan.to : plan.from) * element,
                outs = (backwards ? plan.from : plan.to) * element, between = plan.largest * element;
  const int64_t grain = 16384 / (plan.from + plan.to) + 1;
  ParallelSteps(plan.planes, grain, 1, threads, [&](int64_t begin, int64_t end) {
    const Temporary scratch(2 * between);
    char* const buffers[2] = {scratch.data(), scratch.data() + between};
    for (int64_t p = begin; p < end; ++p)
      RunPasses(plan.passes, backwards, from + p * ins, to + p * outs, buffers, step);
  });
}

// Memory of an image whose channels stand last, if it is of the dtype wanted.
bool ChannelsLast(const TensorRef& in, const TensorRef& out, int32_t dtype) {
  const auto last = [](const TensorRef& t) {
    int64_t step = t.size(1);
    if (t.stride(1) != 1) return false;
    for (int32_t d = t.ndim() - 1; d >= 2; --d) {
      if (t.stride(d) != step) return false;
      step *= t.size(d);
    }
    return t.stride(0) == step;
  };
  return in.ndim() >= 4 && in.size(1) > 1 && in.dtype() == dtype && out.dtype() == dtype && last(in) &&
         last(out);
}

// `image` has the sizes of what the tables read: of the input, or backwards of the result.
void Run(const MicaCall* call, MicaTensor* in, MicaTensor* out, const int64_t* image, bool backwards,
         MicaTensorSpan indices, MicaTensorSpan weights) {
  const int32_t threads = ThreadsOf(call);
  const TensorRef x(in), y(out);
  const bool moves = weights.size == 0 && !backwards;
  const int32_t dtype = moves ? x.dtype() : ResamplingDtype(x);
  const int64_t element = moves ? x.itemsize() : dtype == MICA_F32 ? 4 : 8;
  const auto step = [&](const ResamplePass& pass, const char* from, char* to) {
    if (moves)
      RunMovingPass(pass, element, from, to);
    else if (backwards)
      RunTransposedPass(pass, static_cast<int32_t>(element), from, to);
    else
      RunResamplePass(pass, static_cast<int32_t>(element), from, to);
  };
  const bool last = ChannelsLast(x, y, dtype);
  const Plan plan(image, last, indices, weights, dtype, threads);
  if (last) return ForPlanes(plan, backwards, element, x.data<char>(), y.data<char>(), threads, step);
  const DenseInput from(in, dtype, threads);
  DenseOutput to(out, dtype, threads);
  ForPlanes(plan, backwards, element, from.data<char>(), to.data<char>(), threads, step);
  to.Finish();
}

}  // namespace

void Resample(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensorSpan weights,
              MicaTensor* out) {
  Run(call, self, out, TensorRef(self).sizes(), false, indices, weights);
}

void ResampleBackward(const MicaCall* call, MicaTensor* grad, MicaIntSpan sizes, MicaTensorSpan indices,
                      MicaTensorSpan weights, MicaTensor* out) {
  Run(call, grad, out, sizes.data, true, indices, weights);
}

void RegisterResampling(plugin::Registrar& r) {
  r.Kernel<&Resample>("_resample.out");
  r.Kernel<&ResampleBackward>("_resample_backward.out");
  r.Kernel<&GridSampler2d>("grid_sampler_2d");
  r.Kernel<&GridSampler3d>("grid_sampler_3d");
  r.Kernel<&WeightedGather>("_weighted_gather.out");
  r.Kernel<&WeightedScatter>("_weighted_scatter.out");
  r.Kernel<&WeightedGatherWeights>("_weighted_gather_weights.out");
}

}  // namespace mica::cpu
