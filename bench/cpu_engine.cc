// Micro benchmark of the CPU block engine against hand-written loops.
//
// Every row runs engine and loop in turn and prints medians (microseconds, or
// nanoseconds for tiny calls) and their ratio; the loops are compiled for the
// same instruction set by target attributes. Memory exists before the clock runs.
#include <math.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "test/unit/cpu/engine_fixture.h"

namespace {

using mica::cpu::test::Builder;
using mica::cpu::test::HostTensor;
using mica::cpu::test::MakeCall;
using mica::cpu::test::Value;
using mica::cpu::test::ValueOfInt;

#define FUSED __attribute__((target("avx2,fma"), optimize("O3"), noinline))

FUSED void AddLoop(float* d, const float* a, const float* b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = a[i] + b[i];
}
FUSED void AxpyLoop(float* d, const float* a, const float* b, float s, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = a[i] + s * b[i];
}
FUSED void MixedLoop(float* d, const float* a, const int32_t* b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = a[i] * static_cast<float>(b[i]);
}
FUSED void GeluLoop(float* d, const float* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) d[i] = 0.5f * a[i] * (1 + erff(a[i] * 0.70710678f));
}

double Once(const std::function<void()>& f, int inner) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < inner; ++i) f();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - start).count() / inner;
}

void Row(const char* name, int inner, const std::function<void()>& engine,
         const std::function<void()>& loop) {
  std::vector<double> a, b;
  engine();
  loop();
  for (int i = 0; i < 15; ++i) {
    a.push_back(Once(engine, inner));
    b.push_back(Once(loop, inner));
  }
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::printf("%-32s engine %12.1f ns   loop %12.1f ns   ratio %.2f\n", name, a[7], b[7], a[7] / b[7]);
}

void Elementwise(int64_t n, int inner) {
  HostTensor x(MICA_F32, {n}), y(MICA_F32, {n}), z(MICA_F32, {n}), k(MICA_I32, {n});
  for (int64_t i = 0; i < n; ++i) {
    x.data<float>()[i] = static_cast<float>(i % 1000) * 0.01f - 5;
    y.data<float>()[i] = 1;
    k.data<int32_t>()[i] = static_cast<int32_t>(i % 7);
  }
  char name[64];
  const auto label = [&](const char* what) {
    std::snprintf(name, sizeof(name), "%s, %lld", what, static_cast<long long>(n));
    return name;
  };
  MicaTensor* out = z.get();
  {
    Builder b;
    const int load = b.Load(0), scaled = b.Op(MICA_OP_MUL, b.Scalar(0), b.Load(1));
    b.Store(b.Op(MICA_OP_ADD, load, scaled));
    const MicaCall call = MakeCall(b.Pointwise(), MICA_F32);
    const MicaValue one[] = {Value(x), Value(y), ValueOfInt(1)};
    const MicaValue two[] = {Value(x), Value(y), Value(2.5)};
    Row(
        label("x + y"), inner, [&] { mica::cpu::RunPointwise(&call, one, 3, &out, 1); },
        [&] { AddLoop(z.data<float>(), x.data<float>(), y.data<float>(), n); });
    Row(
        label("x + s * y"), inner, [&] { mica::cpu::RunPointwise(&call, two, 3, &out, 1); },
        [&] { AxpyLoop(z.data<float>(), x.data<float>(), y.data<float>(), 2.5f, n); });
    Row(
        label("x + y against memcpy"), inner, [&] { mica::cpu::RunPointwise(&call, one, 3, &out, 1); },
        [&] { memcpy(z.data<float>(), x.data<float>(), static_cast<size_t>(n) * 4); });
    const MicaValue same[] = {Value(x), Value(x), ValueOfInt(1)};
    Row(
        label("x + x against memcpy"), inner, [&] { mica::cpu::RunPointwise(&call, same, 3, &out, 1); },
        [&] { memcpy(z.data<float>(), x.data<float>(), static_cast<size_t>(n) * 4); });
  }
  {
    Builder b;
    b.Store(b.Op(MICA_OP_MUL, b.Load(0), b.Load(1)));
    const MicaCall call = MakeCall(b.Pointwise(), MICA_F32);
    const MicaValue args[] = {Value(x), Value(k)};
    Row(
        label("f32 * i32"), inner, [&] { mica::cpu::RunPointwise(&call, args, 2, &out, 1); },
        [&] { MixedLoop(z.data<float>(), x.data<float>(), k.data<int32_t>(), n); });
  }
  {
    Builder b;
    const int load = b.Load(0);
    const int erf = b.Op(MICA_OP_ERF, b.Op(MICA_OP_MUL, load, b.Const(0.7071067811865476)));
    const int half = b.Op(MICA_OP_MUL, b.Const(0.5), load);
    b.Store(b.Op(MICA_OP_MUL, half, b.Op(MICA_OP_ADD, b.ConstInt(1), erf)));
    const MicaCall call = MakeCall(b.Pointwise(), MICA_F32);
    const MicaValue args[] = {Value(x)};
    Row(
        label("gelu (loop: libm)"), std::max(1, inner / 4),
        [&] { mica::cpu::RunPointwise(&call, args, 1, &out, 1); },
        [&] { GeluLoop(z.data<float>(), x.data<float>(), n); });
  }
}

}  // namespace

int main() {
  Elementwise(4, 100000);
  Elementwise(64, 100000);
  Elementwise(1024, 10000);
  Elementwise(65536, 100);
  Elementwise(int64_t{16} << 20, 1);
  return 0;
}
