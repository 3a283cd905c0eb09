// sort, topk and kthvalue; see kernels/sort.cl.
//
// Rows of at most kBlock elements are sorted in local memory. Longer ones become sorted lists of a block
// each, which passes join two by two; where few entries from the front are asked for, blocks keep that
// many and are sorted again instead, until one is left. NaN is the largest, equal elements keep their order.
#pragma once

#include <algorithm>
#include <vector>

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace sorting {

using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr int64_t kBlock = 1024, kGroup = 256;
// Entries of rows that are sorted at once: they lie in a workspace.
constexpr int64_t kMostEntries = int64_t{1} << 26;

// Which entries of the sorted rows go into the results.
struct Order {
  bool descending = false;
  int64_t first = 0, kept = 0;
};

// Rows along a dimension. `space` holds the other dimensions and, of `in`, `values` and `indices`, where
// rows begin; `steps`, how their elements follow.
struct Rows {
  const MicaCall* call;
  Space space;
  int64_t steps[3];
  int64_t length;
  Order order;
  bool small = true;

  bool wide() const { return BytesOf(space.operands[0].dtype) == 8; }
  int64_t end() const { return order.first + order.kept; }
};

inline std::string KeyText(int32_t dtype, bool descending) {
  static constexpr const char* kBits[] = {"uchar", "ushort", "uint", "ulong"};
  const int bytes = BytesOf(dtype);
  const std::string sign = std::to_string(8 * bytes - 1);
  std::string text = Define("BITS", kBits[bytes == 8 ? 3 : bytes / 2]) +
                     Define("KEY", bytes == 8 ? "ulong" : "uint") +
                     Define("SIGN", "((KEY)1 << " + sign + ")") + Define("ALL", "(SIGN | (SIGN - 1))");
  if (dtype == MICA_BOOL) text += Define("TRUTH", "1");
  if (dtype == MICA_I8 || dtype == MICA_I16 || dtype == MICA_I32 || dtype == MICA_I64)
    text += Define("SIGNED", "1");
  if (dtype >= MICA_F16) {
    text += Define("FLOATING", "1") + Define("LARGEST", dtype == MICA_F16    ? "0x7c00u"
                                                        : dtype == MICA_BF16 ? "0x7f80u"
                                                        : dtype == MICA_F32  ? "0x7f800000u"
                                                                             : "0x7ff0000000000000ul");
  }
  if (descending) text += Define("FLIP", "1");
  return text;
}

inline std::string SortSource(const Rows& r, const Device& device) {
  const size_t ndim = r.space.sizes.size();
  std::string sizes, row = SplitText("row", "r", ndim);
  for (size_t d = 0; d < ndim; ++d) sizes += "const INDEX size_r" + std::to_string(d) + ", ";
  for (size_t k = 0; k < 3; ++k) {
    const std::string n = std::to_string(k);
    for (size_t d = 0; d < ndim; ++d) sizes += "const INDEX stride_" + n + "_r" + std::to_string(d) + ", ";
    sizes += "const INDEX step_" + n + ", ";
    row += "const INDEX at_" + n + " = " + OffsetText(n, "r", ndim) + "; ";
  }
  return LanesText(device, {MICA_I64, 1}, r.small) + KeyText(r.space.operands[0].dtype, r.order.descending) +
         Define("GROUP", std::to_string(kGroup)) + Define("BLOCK", std::to_string(kBlock)) +
         Define("SIZES", sizes) + Define("ROW(row)", row) + kSortText;
}

// Two lists of entries for each row: what a pass reads and what it writes.
class Lists {
 public:
  Lists(const Rows& r, int64_t entries)
      : entries_(entries), wide_(r.wide()), room_(r.call, 2 * entries * (wide_ ? 12 : 8)) {}
  char* keys(int which) const { return data() + which * key_bytes(); }
  char* places(int which) const { return data() + 2 * key_bytes() + which * entries_ * 4; }

 private:
  char* data() const { return static_cast<char*>(room_.data()); }
  int64_t key_bytes() const { return entries_ * (wide_ ? 8 : 4); }
  int64_t entries_;
  bool wide_;
  Workspace room_;
};

// What a pass gets besides the operands; see the entries of kernels/sort.cl.
struct Pass {
  const char* entry;
  int64_t groups, length, width, pitch, first, kept;
};

// Reads the lists `which` and writes the others.
inline void Enqueue(const Rows& r, int64_t row_begin, int64_t rows, const Lists* lists, int which,
                    const Pass& pass) {
  const Device& device = DeviceOf(r.call);
  Key key("sort");
  key.Add(r.space.operands[0].dtype).Add(r.order.descending).Add(r.small).Add(r.space.sizes.size());
  Launch launch(r.call,
                FindKernel(device, key, pass.entry, r.call->name, [&] { return SortSource(r, device); }));
  for (const Operand& operand : r.space.operands) launch.Pointer(operand.data);
  for (const int list : {which, which ^ 1})
    launch.Pointer(lists ? lists->keys(list) : nullptr).Pointer(lists ? lists->places(list) : nullptr);
  const auto index = [&](int64_t value) { launch.Index(value, r.small); };
  for (const int64_t size : r.space.sizes) index(size);
  for (size_t k = 0; k < 3; ++k) {
    for (const int64_t stride : r.space.operands[k].strides) index(stride);
    index(r.steps[k]);
  }
  index(row_begin);
  for (const int64_t value : {rows, pass.length, pass.width, pass.pitch, pass.first, pass.kept})
    launch.Value(static_cast<uint32_t>(value));
  launch.Run(pass.groups * kGroup, kGroup);
}

inline int64_t Blocks(int64_t length) { return (length + kBlock - 1) / kBlock; }

// Blocks keep as many entries as are asked for, so that each pass leaves a quarter or fewer.
inline void Select(const Rows& r, int64_t row_begin, int64_t rows) {
  const int64_t kept = r.end();
  int64_t listed = Blocks(r.length) * kept;
  const Lists lists(r, rows * listed);
  int from = 0;
  Enqueue(r, row_begin, rows, &lists, from ^ 1,
          {"sort_blocks", rows * Blocks(r.length), r.length, 0, listed, 0, kept});
  for (; listed > kBlock; from ^= 1) {
    const int64_t left = Blocks(listed) * kept;
    Enqueue(r, row_begin, rows, &lists, from,
            {"sort_again", rows * Blocks(listed), listed, listed, left, 0, kept});
    listed = left;
  }
  Enqueue(r, row_begin, rows, &lists, from,
          {"sort_last", rows, listed, listed, 0, r.order.first, r.order.kept});
}

inline void SortWhole(const Rows& r, int64_t row_begin, int64_t rows) {
  const int64_t groups = rows * Blocks(r.length);
  const Lists lists(r, rows * r.length);
  int from = 0;
  Enqueue(r, row_begin, rows, &lists, from ^ 1, {"sort_blocks", groups, r.length, 0, r.length, 0, kBlock});
  int64_t width = kBlock;
  for (; 2 * width < r.length; width *= 2, from ^= 1)
    Enqueue(r, row_begin, rows, &lists, from, {"join", groups, r.length, width, 0, 0, r.length});
  Enqueue(r, row_begin, rows, &lists, from,
          {"join_last", groups, r.length, width, 0, r.order.first, r.order.kept});
}

inline void RunRows(const Rows& r) {
  const int64_t rows = r.space.Count();
  if (rows == 0 || r.length == 0 || r.order.kept == 0) return;
  const int64_t at_once = std::max<int64_t>(1, kMostEntries / r.length);
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t count = std::min(at_once, rows - begin);
    if (r.length > kBlock) {
      if (r.end() <= kBlock / 4)
        Select(r, begin, count);
      else
        SortWhole(r, begin, count);
      continue;
    }
    int64_t width = 1;
    while (width < r.length) width *= 2;
    const int64_t each = kBlock / width;
    Enqueue(r, begin, count, nullptr, 0,
            {"sort_rows", (count + each - 1) / each, r.length, width, 0, r.order.first, r.order.kept});
  }
}

// Sorts `self` along `dim`. Results of one entry may lack the dimension.
inline void Run(const MicaCall* call, const MicaTensor* self, int64_t dim, const Order& order,
                const MicaTensor* values, const MicaTensor* indices) {
  const TensorRef in(self);
  const Device& device = DeviceOf(call);
  Suffix(in.dtype());
  if (DtypeOf(values) != in.dtype() || DtypeOf(indices) != MICA_I64) throw plugin::NotImplemented();
  const auto along = static_cast<int>(dim < 0 ? dim + in.ndim() : dim);
  Rows r = {call, {}, {0, 0, 0}, in.ndim() == 0 ? 1 : in.size(along), order};
  if (r.length >= int64_t{1} << 31) throw plugin::NotImplemented();
  for (int d = 0; d < in.ndim(); ++d)
    if (d != along) r.space.sizes.push_back(in.size(d));
  const TensorRef tensors[] = {in, values, indices};
  for (int k = 0; k < 3; ++k) {
    const TensorRef& t = tensors[k];
    Operand operand{t.data<void>(), t.dtype(), {}};
    const bool has_dim = t.ndim() == in.ndim();
    for (int d = 0; d < t.ndim(); ++d) {
      if (has_dim && d == along)
        r.steps[k] = t.stride(d);
      else
        operand.strides.push_back(t.stride(d));
    }
    r.space.operands.push_back(std::move(operand));
  }
  r.space.Simplify(true);
  Space whole = r.space;
  whole.sizes.push_back(r.length);
  for (size_t k = 0; k < 3; ++k) whole.operands[k].strides.push_back(r.steps[k]);
  r.small = whole.IsSmall();
  CheckDtype(device, MICA_I64);
  RunRows(r);
}

inline void SortStable(const MicaCall* call, MicaTensor* self, MicaOptInt, int64_t dim, int32_t descending,
                       MicaTensor* values, MicaTensor* indices) {
  const TensorRef in(self);
  const int64_t length = in.ndim() == 0 ? 1 : in.size(static_cast<int>(dim));
  Run(call, self, dim, {descending != 0, 0, length}, values, indices);
}

inline void TopK(const MicaCall* call, MicaTensor* self, int64_t k, int64_t dim, int32_t largest, int32_t,
                 MicaTensor* values, MicaTensor* indices) {
  Run(call, self, dim, {largest != 0, 0, k}, values, indices);
}

inline void KthValue(const MicaCall* call, MicaTensor* self, int64_t k, int64_t dim, int32_t keepdim,
                     MicaValue* results) {
  const TensorRef in(self);
  const auto along = static_cast<int>(dim < 0 ? dim + in.ndim() : dim);
  // What is wrong with the call is for the composition to say.
  if (in.ndim() == 0 || along < 0 || along >= in.ndim() || k < 1 || k > in.size(along))
    throw plugin::NotImplemented();
  Suffix(in.dtype());
  std::vector<int64_t> sizes(in.sizes(), in.sizes() + in.ndim());
  if (keepdim)
    sizes[static_cast<size_t>(along)] = 1;
  else
    sizes.erase(sizes.begin() + along);
  OwnedTensor made[2];
  for (int i = 0; i < 2; ++i)
    made[i] = OwnedTensor::Empty(sizes.data(), static_cast<int64_t>(sizes.size()),
                                 i == 0 ? in.dtype() : int32_t{MICA_I64}, PlaceOf(call));
  Run(call, self, along, {false, k - 1, 1}, made[0].get(), made[1].get());
  for (int i = 0; i < 2; ++i) {
    results[i] = {};
    results[i].tag = MICA_VALUE_TENSOR;
    results[i].u.tensor = made[i].release();
  }
}

inline void RegisterSorting(plugin::Registrar& registrar) {
  registrar.Kernel<&SortStable>("sort.values_stable");
  registrar.Kernel<&TopK>("topk.values");
  registrar.Kernel<&KthValue>("kthvalue");
}

}  // namespace sorting
}  // namespace kit
}  // namespace mica
