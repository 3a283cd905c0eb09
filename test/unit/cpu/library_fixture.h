// What the tests of the explicit CPU kernels share: random tensors in a layout of the
// test's choice, and their elements as doubles in row-major order.
#ifndef MICA_TEST_UNIT_CPU_LIBRARY_FIXTURE_H_
#define MICA_TEST_UNIT_CPU_LIBRARY_FIXTURE_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "test/unit/cpu/engine_fixture.h"

namespace mica::cpu::test {

enum class Layout { kDense, kTransposed, kSpread, kChannelsLast };

// Strides of `layout`: kTransposed swaps the last two dimensions in memory, kSpread
// leaves a gap after each element.
inline std::vector<int64_t> Strides(const std::vector<int64_t>& sizes, Layout layout) {
  std::vector<int64_t> strides = Dense(sizes);
  const size_t n = sizes.size();
  if (layout == Layout::kSpread)
    for (int64_t& s : strides) s *= 2;
  if (layout == Layout::kTransposed && n >= 2) {
    strides[n - 2] = 1;
    strides[n - 1] = std::max<int64_t>(sizes[n - 2], 1);
  }
  if (layout == Layout::kChannelsLast) {
    int64_t dense = sizes[1];
    strides[1] = 1;
    for (size_t d = n; d-- > 2;) {
      strides[d] = dense;
      dense *= sizes[d];
    }
    strides[0] = dense;
  }
  return strides;
}

inline float HalfToFloat(uint16_t bits, bool brain) {
  if (!brain) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double value = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return static_cast<float>(bits & 0x8000 ? -value : value);
  }
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

inline void Put(HostTensor& t, int64_t i, double value) {
  switch (t.dtype()) {
    case MICA_F32:
      t.At<float>(i) = static_cast<float>(value);
      return;
    case MICA_F64:
      t.At<double>(i) = value;
      return;
    case MICA_BF16: {
      // Cut, not rounded: the test needs some bfloat16, not the nearest.
      const auto narrow = static_cast<float>(value);
      uint32_t wide;
      std::memcpy(&wide, &narrow, 4);
      t.At<uint16_t>(i) = static_cast<uint16_t>(wide >> 16);
      return;
    }
    case MICA_F16: {
      // Multiples of 1/64 under 16 are exact.
      const auto scaled = static_cast<int>(std::lround(std::fabs(value) * 64));
      int exponent = 0;
      while (scaled >> (exponent + 1)) ++exponent;
      uint16_t bits = 0;
      if (scaled)
        bits = static_cast<uint16_t>((exponent - 6 + 15) << 10 | ((scaled << 10 >> exponent) & 1023));
      t.At<uint16_t>(i) = static_cast<uint16_t>(bits | (value < 0 ? 0x8000 : 0));
      return;
    }
    case MICA_I64:
      t.At<int64_t>(i) = static_cast<int64_t>(value);
      return;
    case MICA_I32:
      t.At<int32_t>(i) = static_cast<int32_t>(value);
      return;
    case MICA_U8:
      t.At<uint8_t>(i) = static_cast<uint8_t>(value);
      return;
    default:
      std::abort();
  }
}

inline double Get(const HostTensor& t, int64_t i) {
  switch (t.dtype()) {
    case MICA_F32:
      return static_cast<double>(t.At<float>(i));
    case MICA_F64:
      return t.At<double>(i);
    case MICA_BF16:
      return static_cast<double>(HalfToFloat(t.At<uint16_t>(i), true));
    case MICA_F16:
      return static_cast<double>(HalfToFloat(t.At<uint16_t>(i), false));
    case MICA_I64:
      return static_cast<double>(t.At<int64_t>(i));
    case MICA_I32:
      return static_cast<double>(t.At<int32_t>(i));
    case MICA_U8:
      return static_cast<double>(t.At<uint8_t>(i));
    default:
      std::abort();
  }
}

inline std::vector<double> Elements(const HostTensor& t) {
  std::vector<double> all(static_cast<size_t>(t.numel()));
  for (int64_t i = 0; i < t.numel(); ++i) all[static_cast<size_t>(i)] = Get(t, i);
  return all;
}

inline void Randomize(HostTensor& t, uint32_t seed) {
  std::mt19937 random(seed);
  const bool whole = IsInteger(t.dtype());
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    Put(t, i, whole ? std::floor(u * 7) : u * 2 - 1);
  }
}

// The largest difference of elements, relative to the largest expected one (at least 1).
inline double Distance(const std::vector<double>& got, const std::vector<double>& want) {
  double distance = got.size() == want.size() ? 0 : INFINITY, scale = 1;
  for (const double w : want) scale = std::max(scale, std::fabs(w));
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double d = std::fabs(got[i] - want[i]);
    distance = d <= distance ? distance : d;  // a NaN stays
  }
  return distance / scale;
}

inline MicaCall Call(int32_t threads) {
  MicaCall call = {};
  call.struct_size = sizeof(call);
  call.compute_dtype = MICA_DTYPE_NONE;
  call.num_threads = threads;
  call.name = "mica::test";
  return call;
}

inline MicaScalar ScalarOf(double value) {
  MicaScalar s = {};
  s.tag = MICA_SCALAR_FLOAT;
  s.u.f = value;
  return s;
}

inline MicaIntSpan Span(const std::vector<int64_t>& v) { return {v.data(), static_cast<int64_t>(v.size())}; }

}  // namespace mica::cpu::test

#endif  // MICA_TEST_UNIT_CPU_LIBRARY_FIXTURE_H_
