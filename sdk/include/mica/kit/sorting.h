// sort, topk and kthvalue; see kernels/sort_key.cl. NaN is the largest, equal elements keep their order.
//
// How a row is sorted depends on its length and on how much of it is asked for:
//
// - Short rows: a group sorts several in local memory by a bitonic network, whose stages grow with the
//   square of the length's logarithm.
// - The first entries, or one of a rank: selected by digits, which reads a row two or three times.
// - A tile or less: a group sorts a row in local memory, 4 bits at a time.
// - Longer rows: passes over digits of 8 bits. One reads the keys, counts, reads them again and writes them
//   with their places: 20 bytes an element of float32, four times.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace sorting {

using plugin::OwnedTensor;
using plugin::TensorRef;

// --- What an H100 likes. Groups and lengths of tiles, blocks and lanes are powers of 2; kGroup is the number
// of digits of a pass, and an item of a tile has at most 16 entries.
constexpr int64_t kGroup = 256;        // work-items that sort; one for each digit of a pass
constexpr int64_t kSelectGroup = 512;  // that select, by 11 bits at a time
constexpr int64_t kSmallGroup = 128;   // that select few of a short row, by 8 bits: more groups run at once
constexpr int64_t kBlock = 1024;       // entries of short rows that a group sorts at once
constexpr int64_t kShort[] = {256, 1024};  // the longest of them, by 4 bytes an element or less, and by 8
constexpr int64_t kTile[] = {4096, 2048};  // entries that a group splits at once: at most 48 KB
constexpr int64_t kTileGroups = 264;       // groups that are enough, two a multiprocessor
constexpr int64_t kPartGroups = 2112;      // groups of a pass: four turns of what an H100 runs at once
constexpr int64_t kAddLanes = 32;          // work-items that add up the parts of a digit, at most
constexpr int64_t kSelectGroups = 264;     // groups that select at once, two a multiprocessor
constexpr int64_t kLeastPart = 8192;       // elements of a row that are worth a group of their own
constexpr int64_t kMostSelected = 1024;    // entries that are selected, then sorted by one group
constexpr int64_t kSmallRow = 4096, kSmallKept = 128;  // the most that a small group selects from, and keeps
// The longest row of which a single group selects an element though others idle.
constexpr int64_t kLongestRanked = int64_t{1} << 18;
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

  int64_t bytes() const { return BytesOf(space.operands[0].dtype); }
  bool wide() const { return bytes() == 8; }
  int64_t end() const { return order.first + order.kept; }
};

inline std::string KeyText(int32_t dtype, bool descending) {
  static constexpr const char* kBits[] = {"uchar", "ushort", "uint", "ulong"};
  const int bytes = BytesOf(dtype);
  const std::string sign = std::to_string(8 * bytes - 1);
  std::string text = Define("BITS", kBits[bytes == 8 ? 3 : bytes / 2]) +
                     Define("KEY", bytes == 8 ? "ulong" : "uint") +
                     Define("KEY_BITS", std::to_string(8 * bytes)) +
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

// The texts behind sort_key.cl.
enum class Way { kShort, kTile, kPasses, kSelect, kSelectFew };

inline std::string TextOf(Way way, int64_t each, bool wide) {
  const std::string radix = Define("EACH", std::to_string(each)) + kRadixText;
  switch (way) {
    case Way::kShort:
      return Define("BLOCK", std::to_string(kBlock)) + kSortText;
    case Way::kTile:
      return radix + kRadixRowsText;
    case Way::kPasses:
      return radix + kRadixPassesText + (wide ? kRadixDifferencesText : "");
    case Way::kSelect:
      return Define("DIGIT_BITS", "11") + Define("MOST", std::to_string(2 * kMostSelected)) + kSelectText;
    default:
      return Define("DIGIT_BITS", "8") + Define("MOST", std::to_string(2 * kSmallKept)) + kSelectText;
  }
}

inline int64_t GroupOf(Way way) {
  return way == Way::kSelect ? kSelectGroup : way == Way::kSelectFew ? kSmallGroup : kGroup;
}

inline std::string SortSource(const Rows& r, const Device& device, Way way, int64_t each) {
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
         Define("GROUP", std::to_string(GroupOf(way))) + Define("SIZES", sizes) + Define("ROW(row)", row) +
         kSortKeyText + kCountUpText + TextOf(way, each, r.wide());
}

// Lists of entries, of which launches read one and write the other.
class Lists {
 public:
  Lists(const Rows& r, int64_t lists, int64_t entries)
      : entries_((entries + 15) / 16 * 16),  // so that places are aligned behind any keys
        lists_(lists),
        bytes_(r.bytes()),
        room_(r.call, lists * entries_ * (bytes_ + 4)) {}
  const void* keys(int which) const { return At(which * entries_ * bytes_, which); }
  const void* places(int which) const { return At(lists_ * entries_ * bytes_ + which * entries_ * 4, which); }

 private:
  const void* At(int64_t offset, int which) const {
    return which < lists_ ? static_cast<const char*>(room_.data()) + offset : nullptr;
  }
  int64_t entries_, lists_, bytes_;
  Workspace room_;
};

// A launch; see PARAMETERS of kernels/sort_key.cl.
struct Pass {
  Way way;
  const char* entry;
  int64_t groups, length;
  int64_t first = 0, kept = 0;
  int64_t each = 0, parts = 1, piece = 0, shift = 0;
  int64_t pitch_from = 0, pitch_to = 0;
  bool from_rows = true, to_rows = true;
  const void* counts = nullptr;
};

inline const Kernel& FindSort(const Rows& r, Way way, int64_t each, const char* entry) {
  const Device& device = DeviceOf(r.call);
  Key key("sort");
  key.Add(way).Add(each).Add(r.space.operands[0].dtype).Add(r.order.descending).Add(r.small);
  key.Add(r.space.sizes.size());
  return FindKernel(device, key, entry, r.call->name, [&] { return SortSource(r, device, way, each); });
}

// Rows from `row_begin` on; the list `which` is the kernel's list 0, the other one its list 1.
inline void Enqueue(const Rows& r, int64_t row_begin, int64_t rows, const Lists* lists, int which,
                    const Pass& pass) {
  Launch launch(r.call, FindSort(r, pass.way, pass.each, pass.entry));
  for (const Operand& operand : r.space.operands) launch.Pointer(operand.data);
  for (const int list : {which, which ^ 1})
    launch.Pointer(lists ? lists->keys(list) : nullptr).Pointer(lists ? lists->places(list) : nullptr);
  launch.Pointer(pass.counts);
  const auto index = [&](int64_t value) { launch.Index(value, r.small); };
  for (const int64_t size : r.space.sizes) index(size);
  for (size_t k = 0; k < 3; ++k) {
    for (const int64_t stride : r.space.operands[k].strides) index(stride);
    index(r.steps[k]);
  }
  index(row_begin);
  for (const int64_t value :
       {rows, pass.length, pass.pitch_from, pass.pitch_to, pass.parts, pass.piece, pass.shift,
        int64_t{pass.from_rows}, int64_t{pass.to_rows}, pass.first, pass.kept})
    launch.Value(static_cast<uint32_t>(value));
  launch.Run(pass.groups * GroupOf(pass.way), GroupOf(pass.way));
}

inline int64_t Ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline void SortShort(const Rows& r, int64_t row_begin, int64_t rows) {
  Pass pass{Way::kShort, "sort_rows", 0, r.length, r.order.first, r.order.kept};
  pass.piece = 1;
  while (pass.piece < r.length) pass.piece *= 2;
  pass.groups = Ceil(rows, kBlock / pass.piece);
  Enqueue(r, row_begin, rows, nullptr, 0, pass);
}

// Items have as many entries as they may, which costs the least for each, where that leaves groups enough.
inline void SortTiles(const Rows& r, int64_t row_begin, int64_t rows) {
  Pass pass{Way::kTile, "sort_tiles", 0, r.length, r.order.first, r.order.kept};
  while (int64_t{1} << pass.shift < r.length) ++pass.shift;
  pass.piece = int64_t{1} << pass.shift;
  const int64_t most = kTile[r.wide()];
  pass.each = std::max<int64_t>(4, pass.piece / kGroup);
  if (rows * pass.piece >= kTileGroups * most) pass.each = most / kGroup;
  pass.groups = Ceil(rows * pass.piece, pass.each * kGroup);
  Enqueue(r, row_begin, rows, nullptr, 0, pass);
}

// Launches a kernel of the passes that has arguments of its own.
inline void EnqueueCounts(const Rows& r, const Pass& pass, const char* entry, int64_t groups,
                          std::initializer_list<int64_t> values) {
  Launch launch(r.call, FindSort(r, pass.way, pass.each, entry));
  launch.Pointer(pass.counts);
  for (const int64_t value : values) launch.Value(static_cast<uint32_t>(value));
  launch.Run(groups * kGroup, kGroup);
}

// A pass has some kPartGroups groups, each of which takes `piece` tiles in turn: few enough that adding up
// their counts is a small part of the work.
inline void SortByDigits(const Rows& r, int64_t row_begin, int64_t rows) {
  const int64_t tile = kTile[r.wide()], tiles = Ceil(r.length, tile), passes = r.bytes();
  Pass pass{Way::kPasses, "", 0, r.length, r.order.first, r.order.kept};
  pass.each = tile / kGroup;
  pass.piece = Ceil(rows * tiles, kPartGroups);
  pass.parts = Ceil(tiles, pass.piece);
  pass.groups = rows * pass.parts;
  pass.pitch_from = pass.pitch_to = r.length;
  const Lists lists(r, std::min<int64_t>(passes - 1, 2), rows * r.length);
  // Behind the counts, in which bits keys differ: of rows, and of their parts.
  const int64_t differences = r.wide() ? rows * (pass.parts + 1) * 8 : 0;
  const Workspace counts(r.call, rows * (pass.parts + 1) * kGroup * 4 + differences);
  pass.counts = counts.data();
  const auto enqueue = [&](const char* entry) {
    pass.entry = entry;
    Enqueue(r, row_begin, rows, &lists, 0, pass);
  };
  if (r.wide()) {
    enqueue("find_differences");
    EnqueueCounts(r, pass, "join_differences", rows, {rows, pass.parts});
  }
  int64_t lanes = 1;
  while (lanes < kAddLanes && lanes < pass.parts) lanes *= 2;
  for (int64_t number = 0; number < passes; ++number) {
    pass.shift = 8 * number;
    pass.to_rows = number == passes - 1;
    enqueue("count_digits");
    EnqueueCounts(r, pass, "add_digits", rows * lanes, {rows, pass.parts, lanes});
    enqueue("move_digits");
  }
}

// Into how many parts the lists of `rows` rows go, each of which a group selects from.
inline int64_t PartsOf(const Rows& r, int64_t rows, int64_t length) {
  if (r.end() > kMostSelected) return 1;
  const int64_t most = length / std::max(kLeastPart, 8 * r.end());
  return std::max<int64_t>(1, std::min(most, kSelectGroups / rows));
}

// Groups select from the parts of a row; then from what these kept, until one group has it all.
inline void Select(const Rows& r, int64_t row_begin, int64_t rows) {
  Pass pass{Way::kSelect, "select_entries", 0, r.length};
  while (int64_t{1} << pass.shift < r.length) ++pass.shift;
  int64_t parts = PartsOf(r, rows, r.length);
  const int64_t kept = r.end(), entries = parts > 1 ? parts * kept : 0;
  const Lists lists(r, entries > 0 ? 2 : 0, rows * entries);
  int from = 1;
  for (; parts > 1; parts = PartsOf(r, rows, pass.length), from ^= 1) {
    pass.groups = rows * parts;
    pass.parts = parts;
    pass.piece = Ceil(pass.length, parts);
    pass.kept = kept;
    pass.pitch_to = parts * kept;
    pass.to_rows = false;
    Enqueue(r, row_begin, rows, &lists, from, pass);
    pass.length = pass.pitch_from = pass.pitch_to;
    pass.from_rows = false;
  }
  if (r.length <= kSmallRow && r.order.kept <= kSmallKept) pass.way = Way::kSelectFew;
  pass.groups = rows;
  pass.parts = 1;
  pass.piece = pass.length;
  pass.first = r.order.first;
  pass.kept = r.order.kept;
  pass.to_rows = true;
  Enqueue(r, row_begin, rows, &lists, from, pass);
}

// Selecting reads a row a few times, by one group where what stands before the entries is too much for
// lists: then others should have rows of their own.
inline bool IsSelected(const Rows& r, int64_t rows) {
  if (r.end() <= kMostSelected && 4 * r.end() <= r.length) return true;
  return r.order.kept == 1 && (r.length <= kLongestRanked || rows >= 32);
}

inline void RunRows(const Rows& r) {
  const int64_t rows = r.space.Count();
  if (rows == 0 || r.length == 0 || r.order.kept == 0) return;
  const int64_t at_once = std::max<int64_t>(1, kMostEntries / r.length);
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t count = std::min(at_once, rows - begin);
    if (r.length <= kShort[r.wide()])
      SortShort(r, begin, count);
    else if (IsSelected(r, count))
      Select(r, begin, count);
    else if (r.length <= kTile[r.wide()])
      SortTiles(r, begin, count);
    else
      SortByDigits(r, begin, count);
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
