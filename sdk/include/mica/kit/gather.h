// The gather class (flip, roll, tril, pad, gather, index_select, embedding) and _index.
//
// For each dimension of the data, a coordinate: the result's own, one that the
// operator's `index` program computes, or one that an index tensor holds. Programs
// run in int64 lanes; elements move as bits.
#pragma once

#include <cstring>
#include <optional>

#include <mica/kit/gather_source.h>

namespace mica {
namespace kit {
namespace gather {

using plugin::TensorRef;

constexpr int64_t kEach = 4;                // elements of a work-item of a wide device
constexpr int64_t kManyElements = 1 << 19;  // from which on so few work-items hide memory's latency

// The bytes that fill an element; other numbers than 0 for dtypes that are lanes.
inline void FillBytes(const Gather& g, char* bytes) {
  std::memset(bytes, 0, 16);
  if (!g.program || g.program->fill_arg < 0) return;
  const MicaValue& value = g.args[g.program->fill_arg];
  const LaneBytes zero = NumberOf({MICA_VALUE_INT, 0, {}}, MICA_F64), number = NumberOf(value, MICA_F64);
  if (std::memcmp(zero.bytes, number.bytes, 8) == 0) return;
  if (LaneDtype(g.out.dtype()) != g.out.dtype()) throw plugin::NotImplemented();
  const LaneBytes exact = NumberOf(value, g.out.dtype());
  std::memcpy(bytes, exact.bytes, exact.size);
}

inline int64_t Product(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

// Neighbours that go together move together, 16 bytes at once: where the last dimension lies densely on
// both sides, and no program and no index speaks of it (rows of an embedding).
inline void Widen(Gather* g) {
  if (g->flat || g->sources.empty() || (g->program && g->program->keep.size > 0) || g->bytes >= 16) return;
  const Source& last = g->sources.back();
  const size_t side = g->side_sizes.size() - 1;
  if (last.named || last.index >= 0 || last.side != static_cast<int>(side)) return;
  for (size_t d = 0; d + 1 < g->sources.size(); ++d)
    if (g->sources[d].side == last.side) return;
  for (const Index& index : g->indices)
    if (index.strides[side] != 0) return;
  const int64_t together = 16 / g->bytes;
  const auto fits = [&](const TensorRef& t, const std::vector<int64_t>& sizes,
                        const std::vector<int64_t>& strides) {
    if (strides.back() != 1 || sizes.back() % together != 0 ||
        reinterpret_cast<uintptr_t>(t.data<void>()) % 16 != 0)
      return false;
    for (size_t d = 0; d + 1 < strides.size(); ++d)
      if (strides[d] % together != 0) return false;
    return true;
  };
  if (!fits(g->data, g->data_sizes, g->data_strides) || !fits(g->out, g->side_sizes, g->side_strides)) return;
  const auto widen = [&](std::vector<int64_t>* sizes, std::vector<int64_t>* strides) {
    sizes->back() /= together;
    for (size_t d = 0; d + 1 < strides->size(); ++d) (*strides)[d] /= together;
  };
  widen(&g->data_sizes, &g->data_strides);
  widen(&g->side_sizes, &g->side_strides);
  g->bytes = 16;
}

inline bool IsSmall(const Gather& g) {
  const auto fits = [](const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    return Product(sizes) < (int64_t{1} << 31) && last < (int64_t{1} << 31);
  };
  if (!fits(g.data_sizes, g.data_strides) || !fits(g.side_sizes, g.side_strides)) return false;
  for (const Index& index : g.indices)
    if (!fits(g.side_sizes, index.strides)) return false;
  return true;
}

inline void Run(Gather g) {
  const Device& device = DeviceOf(g.call);
  if (g.ndim() > 8 || g.side_sizes.size() > 8 || g.data.dtype() != g.out.dtype())
    throw plugin::NotImplemented();
  Widen(&g);
  g.small = IsSmall(g);
  const int64_t count = Product(g.side_sizes);
  if (device.is_wide && count >= kManyElements) g.each = kEach;
  char fill[16];
  FillBytes(g, fill);
  for (int64_t at = g.out.itemsize(); at < 16; ++at) fill[at] = fill[at - g.out.itemsize()];
  const GatherParameters parameters = ParametersOf(g);
  Key key("gather");
  key.Add(g.program)
      .Add(g.bytes)
      .Add(g.small)
      .Add(g.ndim())
      .Add(g.side_sizes.size())
      .Add(g.flat)
      .Add(g.each)
      .Add(g.bounds);
  for (const Source& s : g.sources) key.Add(s.side).Add(s.index).Add(s.named);
  for (const Index& index : g.indices) key.Add(DtypeOf(index.tensor));
  const Kernel& kernel =
      FindKernel(device, key, "gather", g.call->name, [&] { return GatherSource(g, device, parameters); });
  std::optional<Raise> raise;
  if (g.bounds != MICA_BOUNDS_FILL && !g.indices.empty())
    raise.emplace(g.call, LateError{g.bounds == MICA_BOUNDS_RUNTIME ? MICA_ERROR_RUNTIME : MICA_ERROR_INDEX,
                                    "An index is out of bounds for the dimension that it is used for.", ""});
  {
    Launch launch(g.call, kernel);
    launch.Pointer(g.out.data<void>()).Pointer(g.data.data<void>());
    for (const Index& index : g.indices) launch.Pointer(TensorRef(index.tensor).data<void>());
    const auto index = [&](int64_t value) { launch.Index(value, g.small); };
    for (const GatherParameters::Value& v : parameters.values())
      if (v.is_index)
        index(v.value);
      else
        launch.Value<int64_t>(v.value);
    launch.Bytes(fill, static_cast<size_t>(g.bytes)).Pointer(raise ? raise->word() : nullptr);
    index(count);
    launch.Run((count + g.each - 1) / g.each, device.is_wide ? 256 : 64);
  }
  if (raise) raise->Check();
}

inline void CheckIndex(const MicaTensor* tensor) {
  const int32_t dtype = DtypeOf(tensor);
  if (dtype != MICA_I64 && dtype != MICA_I32) throw plugin::NotImplemented();
}

// Whether the program speaks of dimension d of the data.
inline bool Names(const Gather& g, int d) {
  const MicaProgram& p = *g.program;
  if (p.dims_arg < 0) return p.dim == MICA_NO_DIM || g.Wrapped(p.dim) == d;
  const MicaValue& dims = g.args[p.dims_arg];
  if (dims.tag == MICA_VALUE_INT) return g.Wrapped(dims.u.i) == d;
  for (int64_t i = 0; i < dims.u.ints.size; ++i)
    if (g.Wrapped(dims.u.ints.data[i]) == d) return true;
  return false;
}

// The index's dimensions stand from `first` on among the result's.
inline Index IndexAt(const Gather& g, const MicaTensor* tensor, size_t first, size_t count) {
  CheckIndex(tensor);
  const TensorRef t(tensor);
  Index index{tensor, std::vector<int64_t>(g.side_sizes.size(), 0)};
  const auto own = static_cast<size_t>(t.ndim());
  for (size_t d = 0; d < own && d < count; ++d)
    if (t.size(static_cast<int>(own - 1 - d)) != 1)
      index.strides[first + count - 1 - d] = t.stride(static_cast<int>(own - 1 - d));
  return index;
}

inline void GatherIndex(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensor* out) {
  Gather g(call, nullptr, self, out);
  g.wraps = true;
  size_t broadcast = 0, given = 0;
  int first = -1, last = -1;
  for (int d = 0; d < indices.size; ++d) {
    if (!indices.data[d]) continue;
    broadcast = std::max(broadcast, static_cast<size_t>(indices.data[d]->dl.ndim));
    if (first < 0) first = d;
    last = d;
    ++given;
  }
  if (given == 0 || self->dl.ndim == 0) throw plugin::NotImplemented();
  const bool adjacent = last - first + 1 == static_cast<int>(given);
  const size_t at = adjacent ? static_cast<size_t>(first) : 0;
  size_t side = 0;
  for (size_t d = 0; d < g.ndim(); ++d) {
    const bool indexed = d < static_cast<size_t>(indices.size) && indices.data[d];
    Source source;
    if (indexed) {
      source.index = static_cast<int>(g.indices.size());
      g.indices.push_back(IndexAt(g, indices.data[d], at, broadcast));
    } else {
      source.side = static_cast<int>(side < at ? side : side + broadcast);
      ++side;
    }
    g.sources.push_back(source);
  }
  Run(g);
}

inline void RunGather(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                      int64_t) {
  const MicaProgram& p = *call->program;
  Gather g(call, args, args[p.data_arg].u.tensor, outputs[0]);
  g.program = &p;
  g.bounds = p.bounds;
  const MicaValue* dims = p.dims_arg < 0 ? nullptr : &args[p.dims_arg];
  g.flat = (p.flags & MICA_PROGRAM_DIMS_NONE_IS_FLAT) != 0 && dims && dims->tag == MICA_VALUE_INTS &&
           dims->u.ints.size == 0;
  const MicaTensor* index = p.index_arg < 0 ? nullptr : args[p.index_arg].u.tensor;
  const bool replaces = index && p.index_place == MICA_INDEX_REPLACE;
  const size_t count = g.side_sizes.size() + 1 - g.ndim();  // dimensions that stand for one, if replaced
  if (g.flat) g.sources.push_back({0, -1, true});
  size_t side = 0;
  for (size_t d = 0; d < g.ndim() && !g.flat; ++d) {
    Source source;
    source.named = Names(g, static_cast<int>(d));
    if (source.named && index) {
      source.index = static_cast<int>(g.indices.size());
      g.indices.push_back(replaces ? IndexAt(g, index, side, count)
                                   : IndexAt(g, index, 0, g.side_sizes.size()));
    }
    if (!(source.named && replaces)) source.side = static_cast<int>(side);
    side += source.named && replaces ? count : 1;
    g.sources.push_back(source);
  }
  Run(g);
}

inline void RegisterIndexing(plugin::Registrar& registrar) { registrar.Kernel<&GatherIndex>("_index.out"); }

}  // namespace gather
}  // namespace kit
}  // namespace mica
