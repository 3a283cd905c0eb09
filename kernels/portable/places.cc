// Each dimension's coordinates are computed once, as a table of offsets, since an
// `index` depends on its own dimension alone. An index tensor of the element's
// shape (gather) takes part element by element.
#include "kernels/portable/places.h"

#include <numeric>

#include "kernels/portable/machine.h"
#include "tensor/shape.h"

namespace mica::portable {
namespace {

constexpr int64_t kBlock = Offsets::kBlock;
constexpr int64_t kNowhere = -1;

Dims OneAtLeast(IntSpan sizes) { return sizes.empty() ? Dims{1} : ToDims(sizes); }

class Places {
 public:
  Places(const MicaProgram& program, const MicaValue* args, const Tensor& data, IntSpan side)
      : program_(program), args_(args), data_(data), machine_(program, args, DType::kI64) {
    if (IsFlat()) {
      sizes_ = {data.numel()};
      return;
    }
    sizes_ = OneAtLeast(data.sizes());
    strides_ = data.ndim() == 0 ? Dims{0} : ToDims(data.strides());
    for (int64_t& s : strides_) s *= data.itemsize();
    side_ = OneAtLeast(side);
  }

  std::vector<int64_t> Run() {
    if (IsFlat()) return Flat();
    const Tables t = MakeTables();
    std::vector<int64_t> places = Sum(t.of, t.shape);
    for (int64_t d = 0; d < ndim(); ++d)
      if (Names(d) && !Replaces() && program_.index_arg >= 0) AddWhole(d, &places);
    if (program_.keep.size > 0) Keep(&places);
    return places;
  }

  bool RunRows(const std::function<void(const PlaceRow&)>& f) {
    if (IsFlat() || (program_.index_arg >= 0 && !Replaces())) return false;
    const Tables t = MakeTables();
    const size_t outer = t.shape.size() - 1;
    const int64_t length = t.shape[outer];
    std::vector<int64_t> kept(program_.keep.size > 0 ? static_cast<size_t>(length) : 0);
    if (!kept.empty()) machine_.SetSizes(side_);
    Dims at(outer, 0);
    for (int64_t row = 0, rows = CheckedNumel(IntSpan(t.shape).subspan(0, outer)); row < rows; ++row) {
      int64_t base = 0;
      for (size_t d = 0; d < outer && base != kNowhere; ++d) {
        const int64_t part = t.of[d][static_cast<size_t>(at[d])];
        base = part == kNowhere ? kNowhere : base + part;
      }
      if (!kept.empty()) KeepRow(at, &kept);
      f({base, t.of[outer], kept.empty() ? nullptr : kept.data()});
      for (size_t d = outer; d-- > 0 && ++at[d] == t.shape[d];) at[d] = 0;
    }
    return true;
  }

 private:
  struct Tables {
    std::vector<std::vector<int64_t>> of;  // by dimension; 0 where the index's values choose
    Dims shape;
  };
  Tables MakeTables() {
    if (program_.index_arg >= 0) ReadIndex();
    Tables t;
    for (int64_t d = 0; d < ndim(); ++d) {
      const bool whole = Names(d) && !Replaces() && program_.index_arg >= 0;
      const int64_t size = Names(d) && Replaces() ? static_cast<int64_t>(index_.size()) : SideSize(d);
      t.of.push_back(whole ? std::vector<int64_t>(static_cast<size_t>(size), 0) : TableOf(d, size));
      t.shape.push_back(size);
    }
    return t;
  }

  int64_t ndim() const { return static_cast<int64_t>(sizes_.size()); }
  bool Replaces() const { return program_.index_arg >= 0 && program_.index_place == MICA_INDEX_REPLACE; }
  const MicaValue* Dimensions() const { return program_.dims_arg < 0 ? nullptr : &args_[program_.dims_arg]; }
  bool IsFlat() const {
    const MicaValue* v = Dimensions();
    return (program_.flags & MICA_PROGRAM_DIMS_NONE_IS_FLAT) && v && v->tag == MICA_VALUE_INTS &&
           v->u.ints.size == 0;
  }
  // Whether `index` speaks of dimension d.
  bool Names(int64_t d) const {
    const MicaValue* v = Dimensions();
    if (!v) return program_.dim == MICA_NO_DIM || Wrapped(program_.dim, ndim()) == d;
    if (v->tag == MICA_VALUE_INT) return Wrapped(v->u.i, ndim()) == d;
    for (int64_t k = 0; k < v->u.ints.size; ++k)
      if (Wrapped(v->u.ints.data[k], ndim()) == d) return true;
    return false;
  }
  // With the index's dimensions in place of one, the others keep the data's sizes.
  int64_t SideSize(int64_t d) const {
    return Replaces() ? sizes_[static_cast<size_t>(d)] : side_[static_cast<size_t>(d)];
  }

  void ReadIndex() { index_ = ToLanes<int64_t>(Tensor::Ref(args_[program_.index_arg].u.tensor)); }

  // Where dims_arg's list names dimension d; 0 where it is no list.
  std::vector<int64_t> NamedAt(int64_t d) const {
    const MicaValue* dims = Dimensions();
    if (!dims || dims->tag != MICA_VALUE_INTS) return {0};
    std::vector<int64_t> at;
    for (int64_t k = 0; k < dims->u.ints.size; ++k)
      if (Wrapped(dims->u.ints.data[k], ndim()) == d) at.push_back(k);
    return at;
  }

  // The lists' values for dimension d, which dims_arg's list names at `named`.
  void SetLists(int64_t d, int64_t named) {
    const int64_t at = Dimensions() ? named : d, pair = 2 * (ndim() - 1 - d);
    for (int32_t k = 0; k < program_.num_lists; ++k) {
      const MicaIntSpan list = args_[program_.list_args[k]].u.ints;
      const auto value = [&](int64_t i) { return i < list.size ? list.data[i] : 0; };
      machine_.SetList(k, value(at), value(pair), value(pair + 1));
    }
  }

  // The coordinate checked against the data's size; kNowhere where it is filled.
  int64_t Checked(int64_t coordinate, int64_t d) const {
    const int64_t size = sizes_[static_cast<size_t>(d)];
    if (coordinate >= 0 && coordinate < size) return coordinate;
    if (program_.bounds == MICA_BOUNDS_FILL) return kNowhere;
    return CheckedIndex(coordinate, size, d, false,
                        program_.bounds == MICA_BOUNDS_RUNTIME ? ErrorKind::kRuntime : ErrorKind::kIndex);
  }

  // `index` of n coordinates, and of index values where there are any; the result is
  // in output(0).
  void RunIndex(const int64_t* coordinates, const int64_t* values, int64_t n) {
    std::copy_n(coordinates, n, machine_.coordinate(0));
    if (values) std::copy_n(values, n, machine_.element());
    if (program_.index.size > 0)
      machine_.Run(program_.index, n);
    else
      std::copy_n(values ? values : coordinates, n, machine_.output(0));
  }

  std::vector<int64_t> TableOf(int64_t d, int64_t size) {
    std::vector<int64_t> table(static_cast<size_t>(size));
    std::iota(table.begin(), table.end(), int64_t{0});
    const int64_t stride = strides_[static_cast<size_t>(d)];
    const bool named = Names(d);
    const int64_t sizes[2] = {sizes_[static_cast<size_t>(d)], size};
    if (named) machine_.SetSizes(IntSpan(sizes, 2));
    for (const int64_t k : named ? NamedAt(d) : std::vector<int64_t>()) {
      SetLists(d, k);
      for (int64_t at = 0; at < size; at += kBlock) {
        const int64_t n = std::min(kBlock, size - at);
        RunIndex(table.data() + at, Replaces() ? index_.data() + at : nullptr, n);
        std::copy_n(machine_.output(0), n, table.data() + at);
      }
    }
    for (int64_t& place : table) {
      const int64_t c = named ? Checked(place, d) : place;
      place = c == kNowhere ? kNowhere : c * stride;
    }
    return table;
  }

  // All sums of one entry of each table, in row-major order.
  static std::vector<int64_t> Sum(const std::vector<std::vector<int64_t>>& tables, const Dims& shape) {
    std::vector<int64_t> places(static_cast<size_t>(CheckedNumel(shape)));
    Dims at(shape.size(), 0);
    for (int64_t& place : places) {
      int64_t sum = 0;
      for (size_t d = 0; d < shape.size() && sum != kNowhere; ++d) {
        const int64_t part = tables[d][static_cast<size_t>(at[d])];
        sum = part == kNowhere ? kNowhere : sum + part;
      }
      place = sum;
      for (size_t d = shape.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
    }
    return places;
  }

  // Adds the dimension that the index's values choose.
  void AddWhole(int64_t d, std::vector<int64_t>* places) {
    const int64_t stride = strides_[static_cast<size_t>(d)], total = static_cast<int64_t>(places->size());
    const int64_t sizes[2] = {sizes_[static_cast<size_t>(d)], SideSize(d)};
    machine_.SetSizes(IntSpan(sizes, 2));
    for (int64_t at = 0; at < total; at += kBlock) {
      const int64_t n = std::min(kBlock, total - at);
      RunIndex(places->data() + at, index_.data() + at, n);
      for (int64_t i = 0; i < n; ++i) {
        int64_t& place = (*places)[static_cast<size_t>(at + i)];
        const int64_t c = Checked(machine_.output(0)[i], d);
        place = place == kNowhere || c == kNowhere ? kNowhere : place + c * stride;
      }
    }
  }

  void Keep(std::vector<int64_t>* places) {
    const auto total = static_cast<int64_t>(places->size());
    const auto side_dims = static_cast<int>(side_.size());
    machine_.SetSizes(side_);
    Dims at(side_.size(), 0);
    for (int64_t i = 0; i < total; i += kBlock) {
      const int64_t n = std::min(kBlock, total - i);
      for (int64_t j = 0; j < n; ++j) {
        for (int d = 0; d < side_dims; ++d) machine_.coordinate(d)[j] = at[static_cast<size_t>(d)];
        for (size_t d = side_.size(); d-- > 0 && ++at[d] == side_[d];) at[d] = 0;
      }
      machine_.Run(program_.keep, n);
      for (int64_t j = 0; j < n; ++j)
        if (machine_.output(0)[j] == 0) (*places)[static_cast<size_t>(i + j)] = kNowhere;
    }
  }

  // `keep` of one row, whose other coordinates are `at`.
  void KeepRow(const Dims& at, std::vector<int64_t>* kept) {
    const auto length = static_cast<int64_t>(kept->size());
    for (int64_t i = 0; i < length; i += kBlock) {
      const int64_t n = std::min(kBlock, length - i);
      for (size_t d = 0; d < at.size(); ++d) std::fill_n(machine_.coordinate(static_cast<int>(d)), n, at[d]);
      int64_t* last = machine_.coordinate(static_cast<int>(at.size()));
      std::iota(last, last + n, i);
      machine_.Run(program_.keep, n);
      std::copy_n(machine_.output(0), n, kept->data() + i);
    }
  }

  // The flattened tensor has one dimension; its elements lie where they lie.
  std::vector<int64_t> Flat() {
    for (int32_t k = 0; k < program_.num_lists; ++k) {
      const MicaIntSpan list = args_[program_.list_args[k]].u.ints;
      machine_.SetList(k, list.size > 0 ? list.data[0] : 0, 0, 0);
    }
    const std::vector<int64_t> elements = AllOffsets(data_);
    const auto total = static_cast<int64_t>(elements.size());
    const int64_t sizes[2] = {total, total};
    machine_.SetSizes(IntSpan(sizes, 2));
    std::vector<int64_t> places(elements.size());
    int64_t coordinates[kBlock];
    for (int64_t at = 0; at < total; at += kBlock) {
      const int64_t n = std::min(kBlock, total - at);
      std::iota(coordinates, coordinates + n, at);
      RunIndex(coordinates, nullptr, n);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t c = Checked(machine_.output(0)[i], 0);
        places[static_cast<size_t>(at + i)] = c == kNowhere ? kNowhere : elements[static_cast<size_t>(c)];
      }
    }
    return places;
  }

  const MicaProgram& program_;
  const MicaValue* args_;
  const Tensor& data_;
  Machine<int64_t> machine_;
  Dims sizes_, strides_, side_;  // of the data (strides in bytes), and the other side's sizes
  std::vector<int64_t> index_;
};

}  // namespace

std::vector<int64_t> PlacesOf(const MicaProgram& program, const MicaValue* args, const Tensor& data,
                              IntSpan side) {
  return Places(program, args, data, side).Run();
}

bool ForEachPlaceRow(const MicaProgram& program, const MicaValue* args, const Tensor& data, IntSpan side,
                     const std::function<void(const PlaceRow&)>& f) {
  return Places(program, args, data, side).RunRows(f);
}

}  // namespace mica::portable
