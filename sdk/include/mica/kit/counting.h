// nonzero and masked_select, whose results are as large as what they find; see kernels/count.cl.
//
// The host waits for the number of elements that are set, makes the result and has them written.
#pragma once

#include <algorithm>
#include <vector>

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace counting {

using plugin::OwnedTensor;
using plugin::TensorRef;

constexpr int64_t kGroup = 256, kEach = 8, kTile = kGroup * kEach;

// `space` has what is tested, and what is selected from; `shape`, sizes whose coordinates are written.
struct Search {
  const MicaCall* call;
  Space space;
  std::vector<int64_t> shape;
  int32_t itemsize = 0;  // of elements that are selected; 0: coordinates are written
  bool small = true;

  int64_t numel() const { return space.Count(); }
  int64_t tiles() const { return (numel() + kTile - 1) / kTile; }
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
  std::string pointers = "const global " + std::string(test.type) + "* a0, ", sizes, write;
  std::string place = SplitText("i", "c", ndim);
  if (s.itemsize > 0) {
    const std::string bits = BitsOf(s.itemsize);
    pointers += "const global " + bits + "* a1, global " + bits + "* out, ";
    write = "PLACE out[at] = a1[at_1];";
  } else {
    pointers += "global long* out, ";
    write = SplitText("i", "o", s.shape.size());
    for (size_t d = 0; d < s.shape.size(); ++d) {
      const std::string n = std::to_string(d);
      sizes += "const INDEX size_o" + n + ", ";
      write += "out[" + n + " * total + at] = o" + n + "; ";
    }
  }
  for (size_t d = 0; d < ndim; ++d) sizes += "const INDEX size_c" + std::to_string(d) + ", ";
  for (size_t k = 0; k < s.space.operands.size(); ++k) {
    const std::string n = std::to_string(k);
    for (size_t d = 0; d < ndim; ++d) sizes += "const INDEX stride_" + n + "_c" + std::to_string(d) + ", ";
    place += "const INDEX at_" + n + " = " + OffsetText(n, "c", ndim) + "; ";
  }
  return LanesText(device, {MICA_I64, 1}, s.small) + Define("GROUP", std::to_string(kGroup)) +
         Define("EACH", std::to_string(kEach)) + Define("IS_SET(p)", test.is_set) +
         Define("POINTERS", pointers) + Define("SIZES", sizes) + Define("PLACE", place) +
         Define("WRITE(i, at)", "{ " + write + " }") + kCountText;
}

inline const Kernel& FindSearch(const Search& s, const char* entry) {
  const Device& device = DeviceOf(s.call);
  Key key("count");
  key.Add(s.space.operands[0].dtype).Add(s.itemsize).Add(s.small);
  key.Add(s.space.sizes.size()).Add(s.shape.size()).Add(s.space.operands.size());
  return FindKernel(device, key, entry, s.call->name, [&] { return SearchSource(s, device); });
}

// The arguments up to those of an entry's own.
inline void AddArguments(const Search& s, Launch& launch, const void* out) {
  for (const Operand& operand : s.space.operands) launch.Pointer(operand.data);
  launch.Pointer(out);
  const auto index = [&](int64_t value) {
    if (s.small)
      launch.Value(static_cast<uint32_t>(value));
    else
      launch.Value(static_cast<uint64_t>(value));
  };
  if (s.itemsize == 0)
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

inline void Write(const Search& s, const Workspace& counts, int64_t total, void* out) {
  if (total == 0) return;
  Launch launch(s.call, FindSearch(s, "write"));
  AddArguments(s, launch, out);
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
  Search s = {call, {}, {in.sizes(), in.sizes() + in.ndim()}};
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

inline MicaTensor* MaskedSelect(const MicaCall* call, MicaTensor* self, MicaTensor* mask) {
  const TensorRef in(self), m(mask);
  // What does not fit is the portable kernel's to refuse.
  if (m.dtype() != MICA_BOOL) throw plugin::NotImplemented();
  Search s = {call, {}, {}, static_cast<int32_t>(in.itemsize())};
  s.space.sizes.assign(static_cast<size_t>(std::max(in.ndim(), m.ndim())), 1);
  for (const TensorRef& t : {in, m}) {
    for (int d = 1; d <= t.ndim(); ++d) {
      int64_t& size = s.space.sizes[s.space.sizes.size() - static_cast<size_t>(d)];
      if (size != 1 && t.size(-d) != 1 && size != t.size(-d)) throw plugin::NotImplemented();
      if (t.size(-d) != 1) size = t.size(-d);
    }
  }
  s.space.Add(mask);
  s.space.Add(self);
  Prepare(&s);
  const bool any = s.numel() > 0;
  const Workspace counts(call, ((any ? s.tiles() : 0) + 1) * 8);
  const int64_t count = any ? Count(s, counts) : 0;
  OwnedTensor out = OwnedTensor::Empty(&count, 1, in.dtype(), PlaceOf(call));
  Write(s, counts, count, TensorRef(out.get()).data<void>());
  return out.release();
}

inline void RegisterCounting(plugin::Registrar& registrar) {
  registrar.Kernel<&Nonzero>("nonzero");
  registrar.Kernel<&MaskedSelect>("masked_select");
}

}  // namespace counting
}  // namespace kit
}  // namespace mica
