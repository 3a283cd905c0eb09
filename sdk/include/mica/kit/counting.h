// nonzero, masked_select and masked_scatter: what the elements that are set give; see kernels/count.cl.
//
// The host waits for the number of elements that are set, since a result is as large (or a source must be),
// and has them written.
#pragma once

#include <algorithm>
#include <vector>

#include <mica/kit/pointwise.h>

namespace mica {
namespace kit {
namespace counting {

using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr int64_t kGroup = 256, kEach = 16, kTile = kGroup * kEach;

// What an element that is set gives: its coordinates; itself, of another tensor; or a place for the next
// element of dense memory.
enum class Gives { kCoordinates, kElement, kPlace };

// `space` has what is tested, and what elements are taken from or written to; `shape`, sizes whose
// coordinates are written.
struct Search {
  const MicaCall* call;
  Gives gives;
  Space space;
  std::vector<int64_t> shape;
  int64_t itemsize = 0;  // of elements that move
  bool small = true;

  int64_t numel() const { return space.Count(); }
  int64_t tiles() const { return (numel() + kTile - 1) / kTile; }
  // Whether neighbours that are tested are neighbours in memory.
  bool dense() const { return space.sizes.size() == 1 && space.operands[0].strides[0] == 1; }
};

// The unsigned type of elements that are moved.
inline const char* BitsOf(int64_t itemsize) {
  return itemsize == 1   ? "uchar"
         : itemsize == 2 ? "ushort"
         : itemsize == 4 ? "uint"
         : itemsize == 8 ? "ulong"
                         : "E_u128";
}

// Whether the element at p is not 0, by its bits: -0 is 0 too.
struct Test {
  const char* type;
  const char* is_set;
};
inline Test TestOf(int32_t dtype) {
  switch (dtype) {
    case MICA_F16:
    case MICA_BF16:
      return {"ushort", "((*(p) & 0x7fff) != 0)"};
    case MICA_F32:
      return {"uint", "((*(p) & 0x7fffffffu) != 0)"};
    case MICA_F64:
      return {"ulong", "((*(p) & 0x7ffffffffffffffful) != 0)"};
    case MICA_C64:
      return {"ulong", "((*(p) & 0x7fffffff7ffffffful) != 0)"};
    case MICA_C128:  // strides count parts
      return {"ulong", "((((p)[0] | (p)[1]) & 0x7ffffffffffffffful) != 0)"};
    default:
      return {BitsOf(BytesOf(dtype)), "(*(p) != 0)"};
  }
}

inline std::string SearchSource(const Search& s, const Device& device) {
  const Test test = TestOf(s.space.operands[0].dtype);
  const size_t ndim = s.space.sizes.size();
  std::string pointers = "const global " + std::string(test.type) + "* a0, ", sizes, take, give;
  std::string place = SplitText("i", "c", ndim);
  const std::string bits = BitsOf(s.itemsize);
  if (s.gives == Gives::kElement) {
    pointers += "const global " + bits + "* a1, global " + bits + "* dense, ";
    take = "PLACE moved = a1[at_1];";
    give = "dense[at] = moved;";
  } else if (s.gives == Gives::kPlace) {
    pointers += "global " + bits + "* a1, const global " + bits + "* dense, ";
    take = "moved = dense[at];";
    give = "PLACE a1[at_1] = moved;";
  } else {
    pointers += "global long* dense, ";
    give = SplitText("i", "o", s.shape.size());
    for (size_t d = 0; d < s.shape.size(); ++d) {
      const std::string n = std::to_string(d);
      sizes += "const INDEX size_o" + n + ", ";
      give += "dense[" + n + " * total + at] = o" + n + "; ";
    }
  }
  for (size_t d = 0; d < ndim; ++d) sizes += "const INDEX size_c" + std::to_string(d) + ", ";
  for (size_t k = 0; k < s.space.operands.size(); ++k) {
    const std::string n = std::to_string(k);
    for (size_t d = 0; d < ndim; ++d) sizes += "const INDEX stride_" + n + "_c" + std::to_string(d) + ", ";
    place += "const INDEX at_" + n + " = " + OffsetText(n, "c", ndim) + "; ";
  }
  return LanesText(device, {MICA_I64, 1}, s.small) + Define("GROUP", std::to_string(kGroup)) +
         Define("EACH", std::to_string(kEach)) + Define("TESTED", test.type) +
         Define("IS_SET(p)", test.is_set) + (s.dense() ? Define("DENSE", "1") : "") +
         Define("POINTERS", pointers) + Define("SIZES", sizes) + Define("PLACE", place) +
         Define("MOVED", s.gives == Gives::kCoordinates ? "uchar" : bits) +
         Define("TAKE(i, at, moved)", take) + Define("GIVE(i, at, moved)", give) + kCountText;
}

inline const Kernel& FindSearch(const Search& s, const char* entry) {
  const Device& device = DeviceOf(s.call);
  Key key("count");
  key.Add(s.gives).Add(s.space.operands[0].dtype).Add(s.itemsize).Add(s.small).Add(s.dense());
  key.Add(s.space.sizes.size()).Add(s.shape.size()).Add(s.space.operands.size());
  return FindKernel(device, key, entry, s.call->name, [&] { return SearchSource(s, device); });
}

// The arguments up to those of an entry's own.
inline void AddArguments(const Search& s, Launch& launch, const void* dense) {
  for (const Operand& operand : s.space.operands) launch.Pointer(operand.data);
  launch.Pointer(dense);
  const auto index = [&](int64_t value) { launch.Index(value, s.small); };
  if (s.gives == Gives::kCoordinates)
    for (const int64_t size : s.shape) index(size);
  for (const int64_t size : s.space.sizes) index(size);
  for (const Operand& operand : s.space.operands)
    for (const int64_t stride : operand.strides) index(stride);
}

// Writes where each tile's begin to `counts`, and returns how many elements are set.
inline int64_t Count(const Search& s, const Workspace& counts) {
  {
    Launch launch(s.call, FindSearch(s, "count"));
    AddArguments(s, launch, nullptr);
    launch.Pointer(counts.data()).Value<uint64_t>(static_cast<uint64_t>(s.numel()));
    launch.Run(s.tiles() * kGroup, kGroup);
  }
  Launch launch(s.call, FindSearch(s, "add_up"));
  launch.Pointer(counts.data()).Value<uint64_t>(static_cast<uint64_t>(s.tiles())).Run(kGroup, kGroup);
  uint64_t total = 0;
  TheDriver()->Read(DeviceOf(s.call), &total, static_cast<const uint64_t*>(counts.data()) + s.tiles(),
                    sizeof(total), s.call->stream);
  return static_cast<int64_t>(total);
}

inline void Write(const Search& s, const Workspace& counts, int64_t total, const void* dense) {
  if (total == 0) return;
  Launch launch(s.call, FindSearch(s, "write"));
  AddArguments(s, launch, dense);
  launch.Pointer(counts.data()).Value<uint64_t>(static_cast<uint64_t>(s.numel()));
  launch.Value<uint64_t>(static_cast<uint64_t>(total)).Run(s.tiles() * kGroup, kGroup);
}

// Ready to run: no dimension is more than it needs. A complex128 is tested as two parts.
inline void Prepare(Search* s) {
  if (s->space.operands[0].dtype > MICA_C128) throw plugin::NotImplemented();
  s->space.Simplify(false);
  if (s->space.operands[0].dtype == MICA_C128)
    for (int64_t& stride : s->space.operands[0].strides) stride *= 2;
  s->small = s->space.IsSmall();
}

inline MicaTensor* Nonzero(const MicaCall* call, MicaTensor* self) {
  const TensorRef in(self);
  Search s = {call, Gives::kCoordinates, {}, {in.sizes(), in.sizes() + in.ndim()}};
  s.space.sizes = s.shape;
  s.space.Add(self);
  Prepare(&s);
  int64_t count = 0;
  const int64_t ndim = in.ndim();
  const auto made = [&] {  // as torch: stored column by column
    const int64_t columns[] = {ndim, count};
    return OwnedTensor::Empty(columns, 2, MICA_I64, PlaceOf(call));
  };
  OwnedTensor stored;
  if (s.numel() == 0) {
    stored = made();
  } else {
    const Workspace counts(call, (s.tiles() + 1) * 8);
    count = Count(s, counts);
    stored = made();
    if (ndim > 0) Write(s, counts, count, TensorRef(stored.get()).data<void>());
  }
  const int64_t sizes[] = {count, ndim}, strides[] = {1, std::max<int64_t>(count, 1)};
  const MicaTensorResult result =
      plugin::Host()->tensor_as_strided(stored.get(), {sizes, 2}, {strides, 2}, 0);
  plugin::Check(result.status);
  return result.value;
}

// The elements of `tensor` where `mask` is set, both broadcast.
inline Search SearchMask(const MicaCall* call, Gives gives, const MicaTensor* mask,
                         const MicaTensor* tensor) {
  const TensorRef m(mask), other(tensor);
  // What does not fit is the portable kernel's to refuse.
  if (m.dtype() != MICA_BOOL) throw plugin::NotImplemented();
  Search s = {call, gives, {}, {}, other.itemsize()};
  s.space.sizes.assign(static_cast<size_t>(std::max(other.ndim(), m.ndim())), 1);
  for (const TensorRef& t : {other, m}) {
    for (int d = 1; d <= t.ndim(); ++d) {
      int64_t& size = s.space.sizes[s.space.sizes.size() - static_cast<size_t>(d)];
      if (size != 1 && t.size(-d) != 1 && size != t.size(-d)) throw plugin::NotImplemented();
      if (t.size(-d) != 1) size = t.size(-d);
    }
  }
  s.space.Add(mask);
  s.space.Add(tensor);
  Prepare(&s);
  return s;
}

inline MicaTensor* MaskedSelect(const MicaCall* call, MicaTensor* self, MicaTensor* mask) {
  const Search s = SearchMask(call, Gives::kElement, mask, self);
  const bool any = s.numel() > 0;
  const Workspace counts(call, ((any ? s.tiles() : 0) + 1) * 8);
  const int64_t count = any ? Count(s, counts) : 0;
  OwnedTensor out = OwnedTensor::Empty(&count, 1, DtypeOf(self), PlaceOf(call));
  Write(s, counts, count, TensorRef(out.get()).data<void>());
  return out.release();
}

inline void MaskedScatter(const MicaCall* call, MicaTensor* self, MicaTensor* mask, MicaTensor* source,
                          MicaTensor* out) {
  const TensorRef from(source), to(out);
  if (DtypeOf(self) != to.dtype() || from.dtype() != to.dtype() || mask->dl.ndim > to.ndim())
    throw plugin::NotImplemented();
  if (to.numel() == 0) return;
  const Search s = SearchMask(call, Gives::kPlace, mask, out);
  const Workspace counts(call, (s.tiles() + 1) * 8);
  const int64_t count = Count(s, counts);
  // Before anything is written: `out` may be `self`.
  MICA_PLUGIN_CHECK(count <= from.numel(), MICA_ERROR_RUNTIME,
                    "Number of elements of source < number of ones in mask: `source` has (" +
                        std::to_string(from.numel()) + ").");
  if (self->dl.data != to.data<void>()) pointwise::CopyTensor(call, out, self);
  if (from.contiguous()) return Write(s, counts, count, from.data<void>());
  const Workspace dense(call, from.numel() * from.itemsize());
  pointwise::CopyToDense(call, dense.data(), from.dtype(), source);
  Write(s, counts, count, dense.data());
}

inline void RegisterCounting(plugin::Registrar& registrar) {
  registrar.Kernel<&Nonzero>("nonzero");
  registrar.Kernel<&MaskedSelect>("masked_select");
  registrar.Kernel<&MaskedScatter>("masked_scatter.out");
}

}  // namespace counting
}  // namespace kit
}  // namespace mica
