#include "test/unit/gpu/simt_fixture.h"

namespace simt::test {
namespace {

const char kText[] = R"(
kernel void add(const global float* a, const global float* b, global float* out, const ulong count) {
  const ulong i = get_global_id(0);
  if (i >= count) return;
  out[i] = a[i] + b[i];
}
// kernel void commented(int a)
kernel void reduce(const global float* in, global float* out) {
  local float sums[64], other[2];
  const int me = get_local_id(0);
  sums[me] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half = 32; half > 0; half /= 2) {
    if (me < half) sums[me] += sums[me + half];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (me == 0) out[get_group_id(0)] = sums[0];
}
kernel void read_shared(global uint* out) {
  local uint x[1];
  if (get_local_id(0) == 0) { out[get_group_id(0)] = x[0]; x[0] = 7; }
}
kernel void no_barrier(global int* out) {
  local int x[64];
  const int me = get_local_id(0);
  x[me] = me;
  out[me] = x[63 - me];
}
kernel void diverge(global int* out) {
  if (get_local_id(0) < 3) barrier(CLK_LOCAL_MEM_FENCE);
  out[get_local_id(0)] = 1;
}
kernel void two_barriers(global int* out) {
  if (get_local_id(0) < 3)
    barrier(CLK_LOCAL_MEM_FENCE);
  else
    barrier(CLK_LOCAL_MEM_FENCE);
  out[get_local_id(0)] = 1;
}
kernel void write_at(global int* out, const int at) { out[at] = 1; }
kernel void append(global int* out, global int* next) { out[(*next)++] = get_global_id(0); }
kernel void scale(global float* out, const Vec<float, 4> by) {
  const ulong at = 4 * get_global_id(0);
  store_vector<4>(load_vector<4>(out + at) * by, out + at);
}
kernel void nothing(const int n) {}
)";

}  // namespace

uint64_t FunctionOf(const std::string& text, const std::string& name, int device) {
  const std::string whole = Simt().Prelude() + text;
  return Simt().Function(Simt().Load(device, Simt().Compile(whole, "simt32", "a test")), name);
}

uint64_t Function(const std::string& name) {
  static const uint64_t module =
      Simt().Load(0, Simt().Compile(std::string(Simt().Prelude()) + kText, "simt32", "a test"));
  return Simt().Function(module, name);
}

}  // namespace simt::test
