// Reading and writing at indices. A batched index gets a partner that counts the examples,
// so that each finds its own.
#include "keys/batched/batched.h"
#include "keys/batched/ops.h"

namespace mica::batched {
namespace {

// 0, 1, ..., size - 1 as (size, 1, ..., 1).
Tensor Examples(int64_t size, int64_t rank, Device device) {
  Dims shape(static_cast<size_t>(rank + 1), 1);
  shape[0] = size;
  return ops::reshape(ops::arange(Scalar(size), DType::kI64, device), shape);
}

// An index (B, n) as one of `like` (B, ...) along `dim` (of the batch).
Tensor Spread(const Tensor& index, const Tensor& like, int64_t dim) {
  Dims shape(static_cast<size_t>(like.ndim()), 1), sizes = Own(like.sizes());
  const int64_t n = index.ndim() > 1 ? index.sizes()[1] : 1;
  shape[0] = index.sizes()[0];
  shape[static_cast<size_t>(dim)] = sizes[static_cast<size_t>(dim)] = n;
  return ops::expand(ops::reshape(index, shape), sizes, false);
}

// Which dimensions of an example have an index, and how the indices lie.
struct Places {
  std::vector<Tensor> indices;  // the counting one first, ready for _index of the batch
  int64_t rank = 0;             // of the broadcast indices of an example
  int64_t first = -1;           // dimension of the first index
  bool adjacent = true;
  bool batched = false;
};

Places PlacesOf(const Call& call) {
  const std::vector<Part> parts = call.PartsAt(1);
  Places p;
  Device device{};
  int64_t last = -1;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].value.defined()) continue;
    const auto at = static_cast<int64_t>(i);
    p.adjacent = p.adjacent && (last < 0 || at == last + 1);
    p.first = p.first < 0 ? at : p.first;
    last = at;
    p.rank = std::max(p.rank, parts[i].rank);
    p.batched = p.batched || parts[i].batched;
    device = parts[i].value.device();
  }
  p.indices.push_back(p.batched ? Examples(call.batch(), p.rank, device) : Tensor());
  for (const Part& part : parts) p.indices.push_back(Aligned(part, p.rank));
  return p;
}

}  // namespace

// Where the indices' dimensions stand in the batch's result: in the place of the first, if
// they are adjacent, else in front of all; the same for an example.
bool Index(Call& call) {
  const Part self = call.PartAt(0);
  const Places places = PlacesOf(call);
  if (places.first < 0) return false;
  if (!places.batched) {
    Tensor result = ops::_index(self.value, places.indices);
    if (!places.adjacent) result = ops::movedim(result, places.rank, 0);
    return call.Return(result);
  }
  Tensor result = ops::_index(WithBatch(self, call.batch()), places.indices);
  if (places.adjacent && places.first > 0) {
    Dims from, to;
    for (int64_t i = 0; i < places.rank; ++i) {
      from.push_back(1 + i);
      to.push_back(1 + places.first + i);
    }
    result = ops::movedim(result, from, to);
  }
  return call.Return(result);
}

bool IndexPut(Call& call) {
  const Part self = call.PartAt(0), values = call.PartAt(2);
  Places places = PlacesOf(call);
  if (places.first < 0) return false;
  const bool accumulate = call[3].u.i != 0;
  const Tensor whole = WithBatch(self, call.batch());
  // All indices stand in front or in one place only with the counting one among them.
  if (!places.batched) {
    places.indices[0] = Examples(call.batch(), places.rank, self.value.device());
    for (size_t i = 1; i < places.indices.size(); ++i) {
      Tensor& t = places.indices[i];
      if (t.defined() && t.ndim() < places.rank) {
        Dims shape(static_cast<size_t>(places.rank), 1);
        std::copy(t.sizes().begin(), t.sizes().end(), shape.end() - t.ndim());
        t = ops::reshape(t, shape);
      }
    }
  }
  int64_t indexed = 0;
  for (size_t i = 1; i < places.indices.size(); ++i) indexed += places.indices[i].defined();
  const int64_t rank = places.rank + self.rank - indexed;  // of an example's values
  Part full = values;
  full.value = WithBatch(values, call.batch());
  full.batched = true;
  if (full.rank > rank) return false;
  Tensor source = Aligned(full, rank);
  if (places.adjacent && places.first > 0) {
    Dims from, to;
    for (int64_t i = 0; i < places.rank; ++i) {
      from.push_back(1 + places.first + i);
      to.push_back(1 + i);
    }
    source = ops::movedim(source, from, to);
  }
  return call.Return(ops::_index_put(whole, places.indices, source, accumulate));
}

namespace {

// A number as a vector of one, which index_select, index_add and index_copy take it for.
Part Vector(const Call& call, int64_t i) {
  Part p = call.PartAt(i);
  if (p.rank > 0 || !p.value.defined()) return p;
  return {ops::unsqueeze(p.value, p.batched ? 1 : 0), p.batched, 1};
}

Tensor Selected(const Part& self, const Part& index, int64_t dim, int64_t size) {
  if (!index.batched) return ops::index_select(self.value, dim + 1, index.value);
  if (!self.batched) {  // all examples' indices in one row
    const Tensor flat = ops::reshape(index.value, {-1});
    const Tensor picked = ops::index_select(self.value, dim, flat);
    Dims sizes = Own(picked.sizes());
    sizes[static_cast<size_t>(dim)] = size;
    sizes.insert(sizes.begin() + dim + 1, index.value.sizes()[1]);
    return ops::movedim(ops::reshape(picked, sizes), dim, 0);
  }
  return ops::gather(self.value, dim + 1, Spread(index.value, self.value, dim + 1), false);
}

int64_t SizeOf(const Part& p, int64_t d) { return p.value.sizes()[d + (p.batched ? 1 : 0)]; }

// Whether an example's source has a slice of self for each of its indices.
bool SlicesFit(const Part& self, int64_t dim, const Part& index, const Part& source) {
  if (index.rank != 1 || source.rank != self.rank) return false;
  for (int64_t d = 0; d < self.rank; ++d)
    if (SizeOf(source, d) != (d == dim ? SizeOf(index, 0) : SizeOf(self, d))) return false;
  return true;
}

// index_add and index_copy: `spread` computes from the whole tensors where each example has indices of
// its own.
template <typename SpreadIndex>
bool WriteAtIndex(Call& call, SpreadIndex&& spread) {
  const bool scalar = call.PartAt(0).rank == 0;
  const Part self = Vector(call, 0), index = Vector(call, 2), source = Vector(call, 3);
  const int64_t dim = WrapDim(call[1].u.i, self.rank) + 1;
  if (!SlicesFit(self, dim - 1, index, source)) return false;  // the operator says what is wrong
  const Tensor to = WithBatch(self, call.batch()), from = WithBatch(source, call.batch());
  const auto lowered = [&](Tensor t) { return scalar ? ops::squeeze(t, 1) : t; };
  if (index.batched) return call.Return(lowered(spread(to, dim, Spread(index.value, from, dim), from)));
  call.Set(0, to);
  call.SetInt(1, dim);
  call.Set(2, index.value);
  call.Set(3, from);
  return call.Run(lowered);
}

}  // namespace

bool IndexSelect(Call& call) {
  const bool scalar = call.PartAt(0).rank == 0;
  const Part self = Vector(call, 0), index = Vector(call, 2);
  if (index.rank > 1) return false;
  const Tensor found = Selected(self, index, WrapDim(call[1].u.i, self.rank), call.batch());
  return call.Return(scalar ? ops::squeeze(found, 1) : found);
}

bool IndexAdd(Call& call) {
  return WriteAtIndex(call, [&](const Tensor& to, int64_t dim, const Tensor& index, const Tensor& from) {
    const Tensor product = ops::mul(from, Scalar(call[4].u.scalar));
    const Tensor scaled = product.dtype() == from.dtype() ? product : ops::to(product, from.dtype());
    return ops::scatter_add(to, dim, index, scaled);
  });
}

bool IndexCopy(Call& call) {
  return WriteAtIndex(call, [&](const Tensor& to, int64_t dim, const Tensor& index, const Tensor& from) {
    return ops::scatter(to, dim, index, from);
  });
}

bool Embedding(Call& call) {
  const Part weight = call.PartAt(0), indices = call.PartAt(1);
  if (!weight.batched) return call.Run();
  const std::vector<Tensor> rows = {Examples(call.batch(), indices.rank, weight.value.device()),
                                    indices.value};
  const Tensor found = ops::_index(weight.value, rows);
  const int64_t padding = call[2].u.i;
  if (padding < 0) return call.Return(found);
  // The row at padding_idx has a tangent and no gradient, as a table of that row alone says.
  const Tensor skipped = ops::select(weight.value, 1, padding);  // (B, D)
  const Tensor first = ops::zeros({1}, DType::kI64, skipped.device());
  Dims shape(static_cast<size_t>(indices.rank + 2), 1);
  shape[0] = call.batch();
  shape.back() = skipped.sizes()[1];
  const Tensor constant =
      ops::reshape(ops::embedding(ops::reshape(skipped, {1, -1}), first, 0, false, false), shape);
  const Tensor padded = ops::unsqueeze(ops::eq(indices.value, Scalar(padding)), -1);
  return call.Return(ops::where(padded, constant, found));
}

// Each example counts in rows of its own.
bool EmbeddingBackward(Call& call) {
  const Part grad = call.PartAt(0), indices = call.PartAt(1);
  const int64_t rows = call[2].u.i, padding = call[3].u.i, size = call.batch();
  const Tensor own = WithBatch(indices, size);
  const Tensor offsets = ops::mul(Examples(size, indices.rank, own.device()), Scalar(rows));
  Tensor index = ops::add(own, offsets);
  int64_t skipped = -1;
  if (padding >= 0) {  // one more row takes what is left out
    skipped = rows * size;
    const Tensor mask = ops::eq(own, Scalar(padding));
    index = ops::where(mask, Scalar(skipped), index);
  }
  const Tensor all = ops::embedding_dense_backward(
      WithBatch(grad, size), index, rows * size + (padding >= 0 ? 1 : 0), skipped, call[4].u.i != 0);
  const Tensor kept = padding >= 0 ? ops::slice(all, 0, 0, rows * size, 1) : all;
  return call.Return(Unfold(kept, size));
}

}  // namespace mica::batched
