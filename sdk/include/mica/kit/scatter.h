// The scatter class (scatter, scatter_add, index_add, index_copy), scatter_reduce,
// _index_put and the gradients of embedding and unfold.
//
// The result starts as a copy of the data, or zeros; then a work-item for each element of
// the source combines it into its place, with atomics where elements may meet. Half types
// and small integers combine in a workspace of wider lanes, so that half types add up in
// float. Elements that meet add up in any order, and of those that are stored any one stays: where a program
// asks for the same results in every run, such calls go on to the CPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include <mica/kit/gather.h>
#include <mica/kit/pointwise.h>
#include <mica/kit/scatter_source.h>

namespace mica {
namespace kit {
namespace scatter {

// The dtype in which elements of `dtype` combine: one that has atomics.
inline int32_t CombineDtype(int32_t dtype) {
  const int32_t lane = LaneDtype(dtype);
  return BytesOf(lane) < 4 ? MICA_I32 : lane;
}

inline std::vector<int64_t> DenseStrides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
  return strides;
}

// The memory that a scatter writes to: `out` itself, or a dense workspace of `dtype` for it.
class Target {
 public:
  Target(const MicaCall* call, MicaTensor* out, int32_t dtype, bool dense) : call_(call), out_(out) {
    const TensorRef to(out);
    sizes_.assign(to.sizes(), to.sizes() + to.ndim());
    strides_.assign(to.strides(), to.strides() + to.ndim());
    if (to.dtype() != dtype || (dense && !to.contiguous())) {
      work_.emplace(call, to.numel() * BytesOf(dtype));
      strides_ = DenseStrides(sizes_);
    }
    data_ = work_ ? work_->data() : to.data<void>();
    dtype_ = dtype;
  }
  void* data() const { return data_; }

  void Copy(const MicaTensor* self) const {
    if (!work_) {
      if (self->dl.data != out_->dl.data || self->dl.byte_offset != out_->dl.byte_offset)
        pointwise::CopyTensor(call_, out_, self);
      return;
    }
    Space space;
    space.sizes = sizes_;
    space.operands.push_back({data_, dtype_, strides_});
    space.Add(self);
    pointwise::CopyPart(call_, std::move(space));
  }
  // Zeros; of a dense target.
  void Zero() const {
    const auto size = static_cast<size_t>(TensorRef(out_).numel() * BytesOf(dtype_));
    if (size > 0) TheDriver()->Zero(DeviceOf(call_), data_, size, call_->stream);
  }
  // The workspace into `out`.
  void Finish() const {
    if (!work_) return;
    Space space;
    space.sizes = sizes_;
    space.Add(out_);
    space.operands.push_back({data_, dtype_, strides_});
    pointwise::CopyPart(call_, std::move(space));
  }
  void Describe(Scatter* s) const {
    s->to = data_;
    s->dtype = dtype_;
    s->sizes = sizes_;
    s->strides = strides_;
    if (s->sizes.empty()) s->sizes.assign(1, 1), s->strides.assign(1, 0);
  }

 private:
  const MicaCall* call_;
  MicaTensor* out_;
  int32_t dtype_ = 0;
  std::vector<int64_t> sizes_, strides_;
  std::optional<Workspace> work_;
  void* data_ = nullptr;
};

// Whether elements that meet may give another result in another order.
inline bool DependsOnOrder(const Scatter& s) {
  if (s.Count() < 2) return false;
  if (s.write == Write::kMove || s.write == Write::kStore)
    return s.source && std::any_of(s.source_strides.begin(), s.source_strides.end(),
                                   [](int64_t stride) { return stride != 0; });
  if (s.combine == Combine::kMax || s.combine == Combine::kMin) return false;
  const bool is_float = s.dtype == MICA_F32 || s.dtype == MICA_F64;
  return is_float || (s.write == Write::kSwap && s.combine == Combine::kProgram);
}

// Throws NotImplemented where the program wants what atomics do not give.
inline void CheckDeterministic(bool depends_on_order) {
  static const plugin::Setting deterministic(MICA_SETTING_DETERMINISTIC, 0);
  if (deterministic.value() != 0 && depends_on_order) throw plugin::NotImplemented();
}

// Runs the kernels of one scatter; `counts` has an element for each of the target.
class Kernels {
 public:
  Kernels(const Scatter& s, const void* counts)
      : s_(s), device_(DeviceOf(s.call)), integers_(IntegersOf(s)), small_(IsSmall(s)), counts_(counts) {
    if (s.sizes.size() > 8 || s.side_sizes.size() > 10) throw plugin::NotImplemented();
    CheckDeterministic(DependsOnOrder(s));
    if (s.write != Write::kMove) {
      CheckDtype(device_, s.dtype);
      CheckDtype(device_, s.lane());
      if (s.source) CheckDtype(device_, DtypeOf(s.source));
    }
    if (s.bounds != MICA_BOUNDS_FILL && !s.indices.empty())
      raise_.emplace(s.call,
                     LateError{s.bounds == MICA_BOUNDS_RUNTIME ? MICA_ERROR_RUNTIME : MICA_ERROR_INDEX,
                               "An index is out of bounds for the dimension that it is used for.", ""});
  }

  // "scatter" or "count_elements".
  void Elements(const char* entry) const {
    const int64_t count = s_.Count();
    Launch launch(s_.call, Find(entry));
    launch.Pointer(s_.to);
    if (s_.source) launch.Pointer(TensorRef(s_.source).data<void>());
    for (const gather::Index& index : s_.indices) launch.Pointer(TensorRef(index.tensor).data<void>());
    for (const LaneBytes& number : s_.numbers) launch.Bytes(number.bytes, number.size);
    for (const auto& integer : integers_) {
      if (small_)
        launch.Value(static_cast<uint32_t>(integer.second));
      else
        launch.Value(static_cast<uint64_t>(integer.second));
    }
    launch.Value<int64_t>(s_.skipped).Pointer(counts_).Pointer(raise_ ? raise_->word() : nullptr);
    launch.Value<uint64_t>(static_cast<uint64_t>(count)).Run(count, kGroup);
  }
  void LeaveOutSelf() const {
    const int64_t count = TargetCount();
    if (count == 0) return;
    Launch launch(s_.call, Find("leave_out_self"));
    launch.Pointer(s_.to).Pointer(counts_).Value<uint64_t>(static_cast<uint64_t>(count)).Run(count, kGroup);
  }
  void DivideByCounts(uint32_t own) const {
    const int64_t count = TargetCount();
    if (count == 0) return;
    Launch launch(s_.call, Find("divide_by_counts"));
    launch.Pointer(s_.to).Pointer(counts_).Value<uint32_t>(own);
    launch.Value<uint64_t>(static_cast<uint64_t>(count)).Run(count, kGroup);
  }
  void Check() const {
    if (raise_) raise_->Check();
  }

 private:
  static constexpr int64_t kGroup = 128;

  const Kernel& Find(const char* entry) const {
    return FindKernel(device_, KeyOf(s_, small_), entry, s_.call->name,
                      [&] { return ScatterSource(s_, device_, integers_, small_); });
  }
  int64_t TargetCount() const {
    int64_t n = 1;
    for (const int64_t size : s_.sizes) n *= size;
    return n;
  }

  const Scatter& s_;
  const Device& device_;
  Integers integers_;
  bool small_;
  const void* counts_;
  std::optional<Raise> raise_;
};

// An index whose last dimension is the side's dimension `first` + `count` - 1.
inline gather::Index IndexAt(const Scatter& s, const MicaTensor* tensor, size_t first, size_t count) {
  gather::CheckIndex(tensor);
  const TensorRef t(tensor);
  gather::Index index{tensor, std::vector<int64_t>(s.side_sizes.size(), 0)};
  const auto own = static_cast<size_t>(t.ndim());
  for (size_t d = 0; d < own && d < count; ++d) {
    const int from = static_cast<int>(own - 1 - d);
    if (t.size(from) != 1) index.strides[first + count - 1 - d] = t.stride(from);
  }
  return index;
}

inline void SetSide(Scatter* s, const MicaTensor* shape) {
  s->side_sizes.assign(shape->dl.shape, shape->dl.shape + shape->dl.ndim);
  if (s->side_sizes.empty()) s->side_sizes.assign(1, 1);
}

// Where `tensor` has no such dimensions, its one element is all of them.
inline void SetSource(Scatter* s, const MicaTensor* tensor) {
  s->source = tensor;
  const TensorRef t(tensor);
  s->source_strides.assign(s->side_sizes.size(), 0);
  if (static_cast<size_t>(t.ndim()) == s->side_sizes.size())
    s->source_strides.assign(t.strides(), t.strides() + t.ndim());
}

// Places along `dim`, whose coordinate the index gives: with the shape of the side, or, if
// `along`, one index for each coordinate of `dim`.
inline void SetPlaces(Scatter* s, int64_t dim, const MicaTensor* index, bool along, int32_t out_ndim) {
  const size_t ndim = std::max(out_ndim, 1),
               d = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(ndim) : dim);
  if (s->side_sizes.size() != ndim) throw plugin::NotImplemented();
  s->indices.push_back(along ? IndexAt(*s, index, d, 1) : IndexAt(*s, index, 0, ndim));
  for (size_t k = 0; k < ndim; ++k) {
    gather::Source place;
    place.side = static_cast<int>(k);
    if (k == d) place.index = 0;
    s->places.push_back(place);
  }
}

// Whether the program adds to its state what does not depend on it, or leaves it out.
inline Write WriteOf(const MicaProgram& p) {
  bool is_state[256] = {};
  int uses = 0, adds = 0;
  const MicaCode& code = p.main;
  for (int64_t k = 0; k < code.size; ++k) {
    const MicaInstruction& in = code.data[k];
    if (in.opcode == MICA_OP_STATE) {
      is_state[in.dst] = true;
      continue;
    }
    const int arity = kOpcodeInfo[in.opcode].arity;
    const uint8_t operands[] = {in.a, in.b, in.c};
    for (int i = 0; i < arity; ++i) uses += is_state[operands[i]];
    const bool stored =
        k + 2 == code.size && code.data[k + 1].opcode == MICA_OP_STORE_STATE && code.data[k + 1].a == in.dst;
    if (in.opcode == MICA_OP_ADD && stored) adds += is_state[in.a] + is_state[in.b];
  }
  return uses == 0 ? Write::kStore : uses == 1 && adds == 1 ? Write::kAdd : Write::kSwap;
}

// Whether the program stores the element as it is.
inline bool IsMove(const MicaProgram& p) {
  return p.main.size == 2 && p.main.data[0].opcode == MICA_OP_ELEMENT &&
         p.main.data[1].opcode == MICA_OP_STORE_STATE;
}

inline void RunScatter(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs,
                       int64_t) {
  if (!call->program) throw plugin::NotImplemented();
  const MicaProgram& p = *call->program;
  const TensorRef out(outputs[0]);
  if (p.index_arg < 0 || p.dims_arg < 0 || args[p.dims_arg].tag != MICA_VALUE_INT || p.index.size > 0 ||
      p.keep.size > 0)
    throw plugin::NotImplemented();
  if (MayRaise(p, MICA_I64)) throw plugin::NotImplemented();  // its word is for indices
  Scatter s(call);
  s.bounds = p.bounds;
  const MicaTensor* index = args[p.index_arg].u.tensor;
  const MicaTensor* source = p.source_arg < 0 ? nullptr : args[p.source_arg].u.tensor;
  const bool along = p.index_place == MICA_INDEX_REPLACE;
  if (along && !source) throw plugin::NotImplemented();
  SetSide(&s, along ? source : index);
  s.write = WriteOf(p);
  const bool moves = source && IsMove(p) && DtypeOf(source) == out.dtype();
  if (moves) {
    s.write = Write::kMove;
  } else {
    s.program = &p;
    s.combine = Combine::kProgram;
  }
  const bool combines = s.write == Write::kAdd || s.write == Write::kSwap;
  const int32_t dtype = combines ? CombineDtype(out.dtype()) : out.dtype();
  if (s.write == Write::kSwap && BytesOf(out.dtype()) < 4 && dtype == MICA_I32)
    throw plugin::NotImplemented();  // an unknown program, whose lanes would not wrap
  if (!moves)
    for (int i = 0; i < p.num_scalars; ++i) {
      const MicaValue& value = args[p.scalar_args[i]];
      NumberOf(value, LaneDtype(out.dtype()));  // raises what does not fit
      s.numbers.push_back(NumberOf(value, LaneDtype(dtype)));
    }
  const bool empty = s.Count() == 0;
  if (!empty) {
    if (source) SetSource(&s, source);
    SetPlaces(&s, args[p.dims_arg].u.i, index, along, out.ndim());
  }
  const Target target(call, outputs[0], dtype, false);
  target.Describe(&s);
  std::optional<Kernels> kernels;
  if (!empty) kernels.emplace(s, nullptr);
  target.Copy(args[p.data_arg].u.tensor);
  if (!empty) kernels->Elements("scatter");
  target.Finish();
  if (!empty) kernels->Check();
}

inline void ScatterReduce(const MicaCall* call, MicaTensor* self, int64_t dim, MicaTensor* index,
                          MicaTensor* src, MicaStr reduce, int32_t include_self, MicaTensor* out) {
  const std::string how(reduce.data, static_cast<size_t>(reduce.size));
  const bool mean = how == "mean";
  Scatter s(call);
  if (how == "sum" || mean)
    s.combine = Combine::kAdd;
  else if (how == "prod")
    s.combine = Combine::kMultiply;
  else if (how == "amax")
    s.combine = Combine::kMax;
  else if (how == "amin")
    s.combine = Combine::kMin;
  else
    throw plugin::NotImplemented();
  s.write = s.combine == Combine::kAdd ? Write::kAdd : Write::kSwap;
  s.bounds = MICA_BOUNDS_RUNTIME;
  s.counts = mean || !include_self;
  SetSide(&s, index);
  const Target target(call, out, CombineDtype(DtypeOf(out)), s.counts);
  target.Describe(&s);
  if (s.Count() == 0) {
    target.Copy(self);
    return target.Finish();
  }
  SetSource(&s, src);
  SetPlaces(&s, dim, index, false, TensorRef(out).ndim());
  std::optional<Workspace> counts;
  if (s.counts) {
    const int64_t size = TensorRef(out).numel() * 4;
    counts.emplace(call, size);
    if (size > 0) TheDriver()->Zero(DeviceOf(call), counts->data(), static_cast<size_t>(size), call->stream);
  }
  const Kernels kernels(s, counts ? counts->data() : nullptr);
  target.Copy(self);
  if (s.counts) kernels.Elements("count_elements");
  if (!include_self) kernels.LeaveOutSelf();
  kernels.Elements("scatter");
  if (mean) kernels.DivideByCounts(include_self ? 1 : 0);
  target.Finish();
  kernels.Check();
}

inline void IndexPut(const MicaCall* call, MicaTensor* self, MicaTensorSpan indices, MicaTensor* values,
                     int32_t accumulate, MicaTensor* out) {
  const TensorRef to(out);
  Scatter s(call);
  s.wraps = true;
  s.combine = accumulate ? Combine::kAdd : Combine::kStore;
  s.write = accumulate ? Write::kAdd : DtypeOf(values) == to.dtype() ? Write::kMove : Write::kStore;
  // The indices broadcast together; what they give stands where the first one does, if they are
  // neighbours, else in front.
  size_t broadcast = 0, given = 0, first = 0, last = 0;
  for (int64_t d = 0; d < indices.size; ++d) {
    if (!indices.data[d]) continue;
    broadcast = std::max(broadcast, static_cast<size_t>(indices.data[d]->dl.ndim));
    if (given++ == 0) first = static_cast<size_t>(d);
    last = static_cast<size_t>(d);
  }
  if (given == 0 || to.ndim() == 0) throw plugin::NotImplemented();
  const size_t at = last - first + 1 == given ? first : 0;
  std::vector<int64_t> shape(broadcast, 1);
  for (int64_t d = 0; d < indices.size; ++d) {
    if (!indices.data[d]) continue;
    const TensorRef index(indices.data[d]);
    for (int k = 0; k < index.ndim(); ++k)
      if (index.size(k) != 1) shape[broadcast - static_cast<size_t>(index.ndim() - k)] = index.size(k);
  }
  const auto is_indexed = [&](int d) { return d < indices.size && indices.data[d]; };
  for (int d = 0; d < to.ndim(); ++d)
    if (!is_indexed(d)) s.side_sizes.push_back(to.size(d));
  s.side_sizes.insert(s.side_sizes.begin() + static_cast<std::ptrdiff_t>(at), shape.begin(), shape.end());
  size_t side = 0;
  for (int d = 0; d < to.ndim(); ++d) {
    gather::Source place;
    if (is_indexed(d)) {
      place.index = static_cast<int>(s.indices.size());
      s.indices.push_back(IndexAt(s, indices.data[d], at, broadcast));
    } else {
      place.side = static_cast<int>(side < at ? side : side + broadcast);
      ++side;
    }
    s.places.push_back(place);
  }
  Space space;
  space.sizes = s.side_sizes;
  space.Add(values);
  s.source = values;
  s.source_strides = space.operands[0].strides;
  if (s.side_sizes.empty()) {  // single indices choose one element
    s.side_sizes.assign(1, 1), s.source_strides.assign(1, 0);
    for (gather::Index& index : s.indices) index.strides.assign(1, 0);
  }
  const Target target(call, out, accumulate ? CombineDtype(to.dtype()) : to.dtype(), false);
  target.Describe(&s);
  std::optional<Kernels> kernels;
  if (s.Count() > 0) kernels.emplace(s, nullptr);
  target.Copy(self);
  if (kernels) kernels->Elements("scatter");
  target.Finish();
  if (kernels) kernels->Check();
}

inline void EmbeddingDenseBackward(const MicaCall* call, MicaTensor* grad_output, MicaTensor* indices,
                                   int64_t, int64_t padding_idx, int32_t scale_grad_by_freq,
                                   MicaTensor* out) {
  Scatter s(call);
  s.combine = Combine::kAdd;
  s.write = Write::kAdd;
  s.counts = s.divides = scale_grad_by_freq != 0;
  s.skips = true;
  s.skipped = padding_idx;
  const Target target(call, out, CombineDtype(DtypeOf(out)), true);
  target.Describe(&s);
  target.Zero();
  SetSide(&s, grad_output);
  if (s.Count() == 0) return target.Finish();
  SetSource(&s, grad_output);
  const size_t last = s.side_sizes.size() - 1;
  s.indices.push_back(IndexAt(s, indices, 0, last));
  gather::Source row, column;
  row.index = 0;
  column.side = static_cast<int>(last);
  s.places = {row, column};
  std::optional<Workspace> counts;
  if (s.counts) {
    const auto size = static_cast<size_t>(TensorRef(out).numel() * 4);
    counts.emplace(call, static_cast<int64_t>(size));
    if (size > 0) TheDriver()->Zero(DeviceOf(call), counts->data(), size, call->stream);
  }
  const Kernels kernels(s, counts ? counts->data() : nullptr);
  if (s.counts) kernels.Elements("count_elements");
  kernels.Elements("scatter");
  target.Finish();
  kernels.Check();
}

inline void UnfoldBackward(const MicaCall* call, MicaTensor* grad_in, MicaIntSpan, int64_t dim, int64_t,
                           int64_t step, MicaTensor* out) {
  const TensorRef to(out);
  Scatter s(call);
  s.combine = Combine::kAdd;
  s.write = Write::kAdd;
  const Target target(call, out, CombineDtype(to.dtype()), true);
  target.Describe(&s);
  target.Zero();
  SetSide(&s, grad_in);
  if (s.Count() == 0) return target.Finish();
  SetSource(&s, grad_in);
  for (int d = 0; d < to.ndim(); ++d) {
    gather::Source place;
    place.side = d;
    s.places.push_back(place);
  }
  if (to.ndim() > 0) {
    s.windows = true;
    s.window_dim = static_cast<size_t>(dim < 0 ? dim + to.ndim() : dim);
    s.step = step;
  }
  const Kernels kernels(s, nullptr);
  kernels.Elements("scatter");
  target.Finish();
}

inline void RegisterScatter(plugin::Registrar& registrar) {
  registrar.Kernel<&ScatterReduce>("scatter_reduce.two_out");
  registrar.Kernel<&IndexPut>("_index_put.out");
  registrar.Kernel<&EmbeddingDenseBackward>("embedding_dense_backward.out");
  registrar.Kernel<&UnfoldBackward>("unfold_backward.out");
}

}  // namespace scatter
}  // namespace kit
}  // namespace mica
