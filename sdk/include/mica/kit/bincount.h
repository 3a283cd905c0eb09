// bincount. Of few bins without weights, groups count each number in local memory (kernels/few_bins.cl). Else
// numbers are sorted: equal ones are neighbours, whose weights a work-item adds up in their order, so that a
// sum does not depend on the device.
#pragma once

#include <algorithm>
#include <vector>

#include <mica/kit/pointwise.h>
#include <mica/kit/sorting.h>

namespace mica {
namespace kit {
namespace bincount {

using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr int64_t kGroup = 256, kAtOnce = 4;  // work-items, and numbers of one that are on their way
constexpr int64_t kFewBins = 4096;            // 16 KB of local memory
constexpr int64_t kBinGroups = 528;           // four a multiprocessor of an H100

inline const Kernel& FindBins(const MicaCall* call, int32_t weights) {
  const Device& device = DeviceOf(call);
  Key key("bins");
  key.Add(weights);
  return FindKernel(device, key, "count_bins", call->name, [&] {
    if (weights < 0)
      return LanesText(device, {MICA_I64, 1}, false) + Define("WEIGHTS", "") + Define("SUM", "long") +
             Define("ADD_UP", "out[bin] = last - first;") + kBinsText;
    const std::string from = Suffix(weights), to = Suffix(weights == MICA_F32 ? MICA_F32 : MICA_F64);
    return LanesText(device, {device.has_f64 ? MICA_F64 : MICA_F32, 1}, false) +
           Define("WEIGHTS", "const global E_" + from + "* weights, const long stride,") +
           Define("SUM", "E_" + to) +
           Define("ADD_UP", "LANE sum = 0; for (long j = first; j < last; ++j) sum += LOAD_" + from +
                                "(weights + places[j] * stride, 1); STORE_" + to + "(sum, out + bin, 1);") +
           kBinsText;
  });
}

// The least and the largest number.
struct Ends {
  int64_t least = INT64_MAX, most = INT64_MIN;
};

inline void Check(const Ends& ends) {
  MICA_PLUGIN_CHECK(ends.least >= 0, MICA_ERROR_RUNTIME,
                    "bincount only supports 1-d non-negative integral inputs, but an element of `self` is (" +
                        std::to_string(ends.least) + ").");
  MICA_PLUGIN_CHECK(ends.most < INT64_MAX, MICA_ERROR_RUNTIME,
                    "Element (" + std::to_string(ends.most) + ") of `self` is too large a bin.");
}

inline const Kernel& FindFewBins(const MicaCall* call, const char* entry) {
  const Device& device = DeviceOf(call);
  return FindKernel(device, Key("few_bins"), entry, call->name, [&] {
    return LanesText(device, {MICA_I64, 1}, false) + Define("GROUP", std::to_string(kGroup)) +
           Define("BINS", std::to_string(kFewBins)) + Define("AT_ONCE", std::to_string(kAtOnce)) +
           kCountUpText + kFewBinsText;
  });
}

inline int64_t BinGroups(int64_t n) {
  constexpr int64_t kPiece = kGroup * kAtOnce;
  return std::min((n + kPiece - 1) / kPiece, kBinGroups);
}

// Groups write theirs, of which the host, which waits for them anyway, takes the ends.
inline Ends FindEnds(const MicaCall* call, const Workspace& numbers, int64_t n) {
  const int64_t groups = BinGroups(n);
  std::vector<Ends> found(static_cast<size_t>(groups));
  const auto bytes = static_cast<int64_t>(found.size() * sizeof(Ends));
  const Workspace room(call, bytes);
  Launch launch(call, FindFewBins(call, "find_ends"));
  launch.Pointer(numbers.data()).Value<int64_t>(n).Pointer(room.data()).Run(groups * kGroup, kGroup);
  TheDriver()->Read(DeviceOf(call), found.data(), room.data(), static_cast<size_t>(bytes), call->stream);
  Ends ends;
  for (const Ends& e : found) ends = {std::min(ends.least, e.least), std::max(ends.most, e.most)};
  return ends;
}

inline void CountFew(const MicaCall* call, const Workspace& numbers, int64_t n, int64_t bins, void* out) {
  const int64_t groups = BinGroups(n);
  const Workspace counts(call, groups * bins * 4);
  Launch count(call, FindFewBins(call, "count_few"));
  count.Pointer(numbers.data()).Value<int64_t>(n).Pointer(counts.data());
  count.Value(static_cast<uint32_t>(bins)).Run(groups * kGroup, kGroup);
  Launch add(call, FindFewBins(call, "add_few"));
  add.Pointer(counts.data()).Value(static_cast<uint32_t>(groups)).Value(static_cast<uint32_t>(bins));
  add.Pointer(out).Run((bins + 15) / 16 * kGroup, kGroup);
}

inline MicaTensor* Bincount(const MicaCall* call, MicaTensor* self, MicaTensor* weights, int64_t minlength) {
  const TensorRef in(self);
  const int64_t n = in.numel();
  // What is wrong with the call is for the portable kernel to say.
  if (in.ndim() != 1 || in.dtype() <= MICA_BOOL || in.dtype() > MICA_I64 || minlength < 0 ||
      n >= int64_t{1} << 31 || (weights && (weights->dl.ndim != 1 || weights->dl.shape[0] != n)))
    throw plugin::NotImplemented();
  const Device& device = DeviceOf(call);
  const auto made = [&](int64_t size, int32_t dtype) {
    return OwnedTensor::Empty(&size, 1, dtype, PlaceOf(call));
  };
  if (n == 0) {
    OwnedTensor none = made(minlength, MICA_I64);
    void* data = TensorRef(none.get()).data<void>();
    if (minlength > 0) TheDriver()->Zero(device, data, static_cast<size_t>(minlength) * 8, call->stream);
    return none.release();
  }
  const int32_t dtype = !weights ? MICA_I64 : DtypeOf(weights) == MICA_F32 ? MICA_F32 : MICA_F64;
  CheckDtype(device, dtype);
  const Workspace numbers(call, n * 8);
  pointwise::CopyToDense(call, numbers.data(), MICA_I64, self);
  if (!weights) {
    const Ends ends = FindEnds(call, numbers, n);
    Check(ends);
    const int64_t bins = std::max(ends.most + 1, minlength);
    if (bins <= kFewBins) {
      OwnedTensor out = made(bins, MICA_I64);
      CountFew(call, numbers, n, bins, TensorRef(out.get()).data<void>());
      return out.release();
    }
  }
  const Workspace sorted(call, n * 8), places(call, n * 8);
  const auto operand = [](const Workspace& room) { return Operand{room.data(), MICA_I64, {}}; };
  sorting::RunRows(
      {call, {{}, {operand(numbers), operand(sorted), operand(places)}}, {1, 1, 1}, n, {false, 0, n}});
  Ends ends;
  const auto* first = static_cast<const int64_t*>(sorted.data());
  TheDriver()->Read(device, &ends.least, first, sizeof(ends.least), call->stream);
  TheDriver()->Read(device, &ends.most, first + n - 1, sizeof(ends.most), call->stream);
  Check(ends);
  const int64_t bins = std::max(ends.most + 1, minlength);
  OwnedTensor out = made(bins, dtype);
  Launch launch(call, FindBins(call, weights ? DtypeOf(weights) : -1));
  launch.Pointer(sorted.data()).Pointer(places.data());
  if (weights) launch.Pointer(weights->dl.data).Value<int64_t>(weights->dl.strides[0]);
  launch.Pointer(TensorRef(out.get()).data<void>()).Value<int64_t>(n).Value<int64_t>(bins).Run(bins, 64);
  return out.release();
}

inline void RegisterBincount(plugin::Registrar& registrar) { registrar.Kernel<&Bincount>("bincount"); }

}  // namespace bincount
}  // namespace kit
}  // namespace mica
