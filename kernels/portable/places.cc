// Each dimension's coordinates are computed once, as a table of offsets, since an
// `index` depends on its own dimension alone. An index tensor of the element's
// shape (gather) takes part element by element.
#include "mica/kernels/portable/places.h"

#include "mica/kernels/portable/machine.h"
#include "mica/tensor/shape.h"

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
    if (program_.index_arg >= 0) ReadIndex();
    std::vector<std::vector<int64_t>> tables;
    Dims shape;
    for (int64_t d = 0; d < ndim(); ++d) {
      const bool whole = Names(d) && Replaces() == false && program_.index_arg >= 0;
      const int64_t size = Names(d) && Replaces() ? static_cast<int64_t>(index_.size()) : SideSize(d);
      tables.push_back(whole ? std::vector<int64_t>(static_cast<size_t>(size), 0) : TableOf(d, size));
      shape.push_back(size);
    }
    std::vector<int64_t> places = Sum(tables, shape);
    for (int64_t d = 0; d < ndim(); ++d)
      if (Names(d) && !Replaces() && program_.index_arg >= 0) AddWhole(d, &places);
    if (program_.keep.size > 0) Keep(&places);
    return places;
  }

 private:
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

  void SetLists(int64_t d) {
    const MicaValue* dims = Dimensions();
    for (int32_t k = 0; k < program_.num_lists; ++k) {
      const MicaIntSpan list = args_[program_.list_args[k]].u.ints;
      int64_t value = 0;
      for (int64_t i = 0; dims && i < dims->u.ints.size && i < list.size; ++i)
        MICA_CHECK(Wrapped(dims->u.ints.data[i], ndim()) != d ||
                       !__builtin_add_overflow(value, list.data[i], &value),
                   "The values for dimension (", d, ") add up to more than 2^63 - 1.");
      if (!dims && d < list.size) value = list.data[d];
      const int64_t pair = 2 * (ndim() - 1 - d);
      machine_.SetList(k, value, pair < list.size ? list.data[pair] : 0,
                       pair + 1 < list.size ? list.data[pair + 1] : 0);
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

  // `index` of n coordinates from `first` on, or of index values.
  void RunIndex(int64_t first, const int64_t* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) machine_.coordinate(0)[i] = first + i;
    if (values) std::copy_n(values, n, machine_.element());
    if (program_.index.size > 0) {
      machine_.Run(program_.index, n);
    } else {
      std::copy_n(values ? machine_.element() : machine_.coordinate(0), n, machine_.output(0));
    }
  }

  std::vector<int64_t> TableOf(int64_t d, int64_t size) {
    std::vector<int64_t> table(static_cast<size_t>(size));
    const int64_t stride = strides_[static_cast<size_t>(d)];
    if (!Names(d)) {
      for (int64_t i = 0; i < size; ++i) table[static_cast<size_t>(i)] = i * stride;
      return table;
    }
    SetLists(d);
    const int64_t sizes[2] = {sizes_[static_cast<size_t>(d)], size};
    machine_.SetSizes(IntSpan(sizes, 2));
    for (int64_t at = 0; at < size; at += kBlock) {
      const int64_t n = std::min(kBlock, size - at);
      RunIndex(at, Replaces() ? index_.data() + at : nullptr, n);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t c = Checked(machine_.output(0)[i], d);
        table[static_cast<size_t>(at + i)] = c == kNowhere ? kNowhere : c * stride;
      }
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
      RunIndex(at, index_.data() + at, n);
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
    for (int64_t at = 0; at < total; at += kBlock) {
      const int64_t n = std::min(kBlock, total - at);
      RunIndex(at, nullptr, n);
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

}  // namespace mica::portable
