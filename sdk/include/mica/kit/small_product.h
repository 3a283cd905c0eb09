// Products of small matrices by kernels/small_product.cl, in one launch with their addend.
//
// A library takes longer to be called than they take to be computed: on an H100 10 us and more a call of
// cuBLAS, and a 64 x 64 x 64 product in one group of gemm.cl, which this replaces, took 12 us of the device.
#pragma once

#include <algorithm>
#include <string>

#include <mica/kit/product.h>

namespace mica {
namespace kit {
namespace matmul {

constexpr int64_t kSmallSide = 128, kSmallTile = 16;
constexpr int64_t kSmallDepth[] = {128,
                                   64};  // of lanes of 4 bytes or less, and of 8: tiles have at most 18 KB
constexpr int64_t kSmallGroups = 1024;   // which an H100 runs all at once

inline int64_t SmallTiles(int64_t size) { return (size + kSmallTile - 1) / kSmallTile; }

inline bool IsSmall(const Product& p) {
  if (p.out.dtype == MICA_C64 || p.out.dtype == MICA_C128 || p.m > kSmallSide || p.n > kSmallSide)
    return false;
  const int64_t groups = SmallTiles(p.m) * SmallTiles(p.n) * p.batches;
  return p.k <= kSmallDepth[BytesOf(p.out.dtype) == 8] && groups <= kSmallGroups &&
         p.batches <= DeviceOf(p.call).max_groups_yz;
}

// How work-items read and write four neighbours: along k or across, at once or one by one. A part of the key.
struct SmallLayout {
  bool a_along_k, a_at_once, b_along_k, b_at_once, c_at_once, out_at_once;
};

// Whether `size` neighbours, `stride` apart, are read by four: these lie together, at aligned addresses, and
// none is left over.
inline bool AtOnce(const Matrix& m, int64_t stride, int64_t size, int64_t other_stride) {
  const auto address = reinterpret_cast<uintptr_t>(m.data);
  return stride == 1 && size % 4 == 0 && other_stride % 4 == 0 && m.batch % 4 == 0 &&
         address % static_cast<uintptr_t>(std::min(16, 4 * BytesOf(m.dtype))) == 0;
}

inline SmallLayout LayoutOf(const Product& p) {
  const bool a_across = p.a.row == 1 && p.a.column != 1, b_across = p.b.column == 1 && p.b.row != 1;
  SmallLayout layout;
  layout.a_along_k = !a_across;
  layout.b_along_k = !b_across;
  layout.a_at_once = a_across ? AtOnce(p.a, p.a.row, p.m, p.a.column) : AtOnce(p.a, p.a.column, p.k, p.a.row);
  layout.b_at_once = b_across ? AtOnce(p.b, p.b.column, p.n, p.b.row) : AtOnce(p.b, p.b.row, p.k, p.b.column);
  layout.c_at_once = p.add && AtOnce(p.c, p.c.column, p.n, p.c.row);
  layout.out_at_once = AtOnce(p.out, p.out.column, p.n, p.out.row);
  return layout;
}

// An expression that reads four neighbours, `step` apart, of which the last one is repeated.
inline std::string ReadText(const Matrix& m, const std::string& name, const std::string& step, bool at_once) {
  const std::string suffix = Suffix(m.dtype), start = name + " + (at)";
  if (at_once) return "LOAD_" + suffix + "(ALIGNED(" + start + "), 4)";
  const auto neighbour = [&](int i) {
    const std::string number = std::to_string(i);
    return "SPLAT_" + suffix + "(" + start + " + (long)min(" + number + ", last) * " + step + ")";
  };
  return "joined(" + neighbour(0) + ", " + neighbour(1) + ", " + neighbour(2) + ", " + neighbour(3) + ")";
}

inline std::string WriteText(const Matrix& out, bool at_once) {
  const std::string store = "STORE_" + std::string(Suffix(out.dtype));
  if (at_once) return store + "(value, ALIGNED(out + (at)), 4);";
  return "LANE given[4]; UNPACK(4, value, given); UNROLL for (int g = 0; g < 4; ++g) { if (g < (left)) " +
         store + "((L)(given[g]), out + (at) + (long)g * out_c, 1); }";
}

inline std::string SmallProductSource(const Product& p, const Device& device, int32_t lane) {
  const SmallLayout l = LayoutOf(p);
  std::string text =
      LanesText(device, {lane, 4}, true) + Define("DEPTH", std::to_string(kSmallDepth[BytesOf(lane) == 8])) +
      Define("ALONG_K_A", l.a_along_k ? "1" : "0") + Define("ALONG_K_B", l.b_along_k ? "1" : "0") +
      Define("PARAMETERS", MatrixParameters(p)) +
      Define("READ_A(at, last)", ReadText(p.a, "a", l.a_along_k ? "a_c" : "a_r", l.a_at_once)) +
      Define("READ_B(at, last)", ReadText(p.b, "b", l.b_along_k ? "b_r" : "b_c", l.b_at_once)) +
      Define("STORE_OUT(value, at, left)", WriteText(p.out, l.out_at_once));
  if (p.add)
    text += Define("ADDEND", "1") + Define("READ_C(at, last)", ReadText(p.c, "c", "c_c", l.c_at_once));
  return text + kSmallProductText;
}

inline void RunSmall(const Product& p) {
  const Device& device = DeviceOf(p.call);
  const int32_t lane = LaneOf(p);
  const SmallLayout layout = LayoutOf(p);
  Key key("small_product");
  key.Add(lane).Add(p.a.dtype).Add(p.b.dtype).Add(p.out.dtype).Add(p.add ? p.c.dtype : -1).Add(layout);
  const Kernel& kernel = FindKernel(device, key, "small_product", p.call->name,
                                    [&] { return SmallProductSource(p, device, lane); });
  Launch launch(p.call, kernel);
  AppendMatrices(launch, p, lane);
  for (const int64_t size : {p.m, p.n, p.k}) launch.Value(static_cast<int32_t>(size));
  constexpr int64_t kItems = 64;
  launch.Run(SmallTiles(p.n) * kItems, SmallTiles(p.m), p.batches, kItems, 1);
}

}  // namespace matmul
}  // namespace kit
}  // namespace mica
