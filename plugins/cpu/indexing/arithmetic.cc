// The class kernel "gather" for coordinates that are computed, not read: pad, flip,
// roll, tril.
//
// Each coordinate of the data depends on one coordinate of the output, so a dimension
// becomes a short list of runs once a call: from the linear form of `index` where it has
// one (linear.h), else by its value at every place. Where rows of the output are one run,
// a run of each dimension makes a box, whose elements lie in even steps in both tensors:
// a strided copy (engine/copy.h). Other rows move run by run, by memcpy, fill or a strided
// loop; `keep` cuts a row to an interval. What needs an index tensor, raises for a
// coordinate out of bounds or has no such form is left to the portable kernel.
#include <algorithm>
#include <cstring>
#include <vector>

#include "plugins/cpu/engine/copy.h"
#include "plugins/cpu/engine/iteration.h"
#include "plugins/cpu/engine/plans/numbers.h"
#include "plugins/cpu/engine/pointwise.h"
#include "plugins/cpu/engine/threads.h"
#include "plugins/cpu/indexing/indexing.h"
#include "plugins/cpu/indexing/indices.h"
#include "plugins/cpu/indexing/linear.h"

namespace mica::cpu {
namespace {

// `length` places of the output from `begin` on: data at `first`, `step` apart (counted
// in coordinates until the stride is known, then in bytes), or the fill.
struct Run {
  int64_t begin, length, first, step;
  bool filled;
};

struct Dimension {
  int64_t size;    // of the data
  int64_t places;  // of the output
  int64_t stride;  // bytes
  std::vector<Run> runs;
};

class Gathering {
 public:
  Gathering(const MicaCall* call, const MicaValue* args, MicaTensor* out)
      : program_(*call->program), args_(args), out_(out), data_(args[program_.data_arg].u.tensor) {
    if (program_.index_arg >= 0 || out_.dtype() != data_.dtype() || out_.ndim() > kMaxDims ||
        (program_.index.size == 0) == (program_.keep.size == 0))
      throw plugin::NotImplemented();
    // Elements that stay in their places may do so in place.
    if (program_.index.size > 0 && out_.data<char>() == data_.data<char>()) throw plugin::NotImplemented();
    MakeDimensions();
    const MicaValue* fill = program_.fill_arg < 0 ? nullptr : &args[program_.fill_arg];
    if (fill != nullptr) SetFill(NumberOf(*fill));
    for (size_t d = 0; d < dims_.size(); ++d) MakeRuns(static_cast<int>(d));
    if (program_.keep.size > 0) {
      TurnToMemory();
      CheckKeep();
    } else {
      SortByMemory();
    }
  }

  void Move(int32_t threads) const {
    const bool dense = out_strides_[ndim() - 1] == out_.itemsize() || dims_.back().places <= 1;
    if (program_.keep.size == 0 && (!dense || dims_.back().runs.size() == 1) && Boxes() <= kMostBoxes)
      return MoveBoxes(threads);
    if (!dense && program_.keep.size == 0) throw plugin::NotImplemented();
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < dims_.size(); ++d) rows *= dims_[d].places;
    const int64_t length = dims_.back().places;
    const int64_t grain = std::max<int64_t>(1, kIndexGrain / std::max<int64_t>(1, length));
    if (length == 0) return;
    VisitSize(out_.itemsize(), [&](auto unit) {
      using T = decltype(unit);
      ParallelSteps(rows, grain, 1, threads, [&](int64_t begin, int64_t end) { MoveRows<T>(begin, end); });
    });
  }

 private:
  const MicaValue* Named() const { return program_.dims_arg < 0 ? nullptr : &args_[program_.dims_arg]; }
  int ndim() const { return static_cast<int>(dims_.size()); }

  void MakeDimensions() {
    const MicaValue* named = Named();
    const int64_t item = out_.itemsize();
    const bool flat = (program_.flags & MICA_PROGRAM_DIMS_NONE_IS_FLAT) != 0 && named != nullptr &&
                      named->tag == MICA_VALUE_INTS && named->u.ints.size == 0;
    if (flat || data_.ndim() == 0) {
      if (!data_.contiguous() || !out_.contiguous()) throw plugin::NotImplemented();
      dims_.push_back({data_.numel(), out_.numel(), item, {}});
      out_strides_[0] = item;
      flat_ = flat;
      return;
    }
    if (data_.ndim() != out_.ndim()) throw plugin::NotImplemented();
    dims_.reserve(static_cast<size_t>(data_.ndim()));
    for (int d = 0; d < data_.ndim(); ++d) {
      dims_.push_back({data_.size(d), out_.size(d), data_.stride(d) * item, {}});
      out_strides_[d] = out_.stride(d) * item;
    }
  }

  // The dimensions in the order of the output's memory: its rows are written one after the other.
  void SortByMemory() {
    int order[kMaxDims];
    for (int d = 0; d < ndim(); ++d) order[d] = d;
    std::stable_sort(order, order + ndim(), [&](int a, int b) {
      const bool one = dims_[static_cast<size_t>(a)].places == 1 || dims_[static_cast<size_t>(b)].places == 1;
      return !one && out_strides_[a] > out_strides_[b];
    });
    std::vector<Dimension> sorted;
    int64_t strides[kMaxDims];
    for (int k = 0; k < ndim(); ++k) {
      sorted.push_back(std::move(dims_[static_cast<size_t>(order[k])]));
      strides[k] = out_strides_[order[k]];
    }
    dims_ = std::move(sorted);
    std::copy_n(strides, ndim(), out_strides_);
  }

  // Of matrices that lie in memory column by column, rows of the output are the columns.
  void TurnToMemory() {
    const size_t last = dims_.size() - 1;
    turned_ = last > 0 && out_strides_[last - 1] < out_strides_[last];
    if (!turned_) return;
    std::swap(dims_[last - 1], dims_[last]);
    std::swap(out_strides_[last - 1], out_strides_[last]);
  }

  // The element that fills. Numbers that the dtype may not hold as they are written are
  // left to the portable kernel, which says how they are converted.
  void SetFill(const Number& number) {
    const int32_t dtype = out_.dtype(), lane = LaneOf(dtype);
    if (number.kind == Number::kInteger && number.i == 0) return;
    if (!IsFloat(dtype) || number.kind == Number::kComplex) throw plugin::NotImplemented();
    char wide[16] = {};
    FillLanes(number, lane, wide, 1);
    if (lane == dtype)
      std::memcpy(fill_, wide, sizeof(fill_));
    else
      DirectCast(lane, dtype)(fill_, wide, nullptr, nullptr, 1);
  }

  // How often, and where in the lists, `index` speaks of dimension d.
  std::vector<int32_t> NamedAt(int d) const {
    const MicaValue* named = Named();
    const auto is = [&](int64_t dim) { return (dim < 0 ? dim + ndim() : dim) == d; };
    if (program_.index.size == 0) return {};
    if (flat_) return {0};
    if (named == nullptr)
      return program_.dim == MICA_NO_DIM || is(program_.dim) ? std::vector<int32_t>{d}
                                                             : std::vector<int32_t>{};
    if (named->tag == MICA_VALUE_INT)
      return is(named->u.i) ? std::vector<int32_t>{0} : std::vector<int32_t>{};
    if (named->tag != MICA_VALUE_INTS) throw plugin::NotImplemented();
    std::vector<int32_t> at;
    for (int64_t k = 0; k < named->u.ints.size; ++k)
      if (is(named->u.ints.data[k])) at.push_back(static_cast<int32_t>(k));
    return at;
  }

  // The last coordinate is x, the one before y; or, of turned matrices, the other way about.
  void MakeSymbolic(Linear* coordinates, int64_t* places) const {
    const size_t last = dims_.size() - 1;
    coordinates[last] = {1, 0, 0};
    if (last > 0) coordinates[last - 1] = {0, 1, 0};
    if (!turned_) return;
    std::swap(coordinates[last - 1], coordinates[last]);
    std::swap(places[last - 1], places[last]);
  }

  // What is linear at both ends of every other coordinate is so between them.
  void CheckKeep() const {
    for (const bool at_end : {false, true}) {
      int64_t places[kMaxDims];
      Linear coordinates[kMaxDims];
      for (size_t d = 0; d < dims_.size(); ++d) {
        places[d] = dims_[d].places;
        coordinates[d] = {0, 0, at_end ? places[d] : 0};
      }
      MakeSymbolic(coordinates, places);
      const LinearContext context = {&program_, args_, places, ndim(), 0, 0};
      Region kept;
      if (!RunLinearMask(context, program_.keep, coordinates, &kept)) throw plugin::NotImplemented();
    }
  }

  // The data's coordinate for the output's x of a range; false where it is not linear in it:
  // all of them after `split`.
  bool Coordinate(int d, const std::vector<int32_t>& named, Interval range, Linear* x, int64_t* split) const {
    const Dimension& dim = dims_[static_cast<size_t>(d)];
    const int64_t sizes[2] = {dim.size, dim.places};
    for (const int32_t at : named) {
      const LinearContext context = {&program_, args_, sizes, 2, at, ndim() - 1 - d, range, split};
      const Linear before = *x;
      if (!RunLinear(context, program_.index, &before, x)) return false;
    }
    return true;
  }

  // From piece to piece in which the coordinate is linear.
  void MakeRuns(int d) {
    Dimension& dim = dims_[static_cast<size_t>(d)];
    const std::vector<int32_t> named = NamedAt(d);
    for (Interval range = {0, dim.places}; range.begin < dim.places; range = {range.end, dim.places}) {
      Linear x = {1, 0, 0};
      int64_t split = range.begin;
      bool single = false;
      while (!Coordinate(d, named, range, &x, &split)) {
        if (single) throw plugin::NotImplemented();
        // What has no linear form is computed place by place.
        single = split <= range.begin || split >= range.end;
        range.end = single ? range.begin + 1 : split;
        x = single ? Linear{0, 0, range.begin} : Linear{1, 0, 0};
        split = range.begin;
      }
      AppendPiece(&dim, range, x);
    }
    for (Run& run : dim.runs) {
      run.first *= dim.stride;
      run.step *= dim.stride;
    }
  }

  // The linear coordinate inside the data, and what lies outside on both sides.
  void AppendPiece(Dimension* dim, Interval range, Linear x) const {
    if (x.slope != 1 && x.slope != -1) {
      for (int64_t i = range.begin; i < range.end; ++i) Append(dim, i, 1, x.start + x.slope * i, 0);
      return;
    }
    const int64_t low = x.slope < 0 ? x.start - dim->size + 1 : -x.start;
    const int64_t begin = std::clamp<int64_t>(low, range.begin, range.end),
                  end = std::clamp<int64_t>(low + dim->size, begin, range.end);
    Append(dim, range.begin, begin - range.begin, -1, 0);
    Append(dim, begin, end - begin, x.start + x.slope * begin, x.slope);
    Append(dim, end, range.end - end, -1, 0);
  }

  // A run, or a longer last one where the two go on into each other.
  void Append(Dimension* dim, int64_t begin, int64_t length, int64_t first, int64_t step) const {
    if (length == 0) return;
    const bool filled = first < 0 || first >= dim->size;
    if (filled && program_.bounds != MICA_BOUNDS_FILL) throw plugin::NotImplemented();
    if (!dim->runs.empty() && length == 1) {
      Run& last = dim->runs.back();
      if (filled && last.filled) return void(++last.length);
      if (!filled && !last.filled && last.length == 1) last.step = first - last.first;
      const bool goes_on = !filled && !last.filled && first == last.first + last.length * last.step;
      if (goes_on) return void(++last.length);
      if (last.length == 1) last.step = 0;
    }
    dim->runs.push_back({begin, length, first, step, filled});
  }

  // The bytes from the data's beginning at place `at` of dimension d, or -1: filled.
  int64_t Offset(size_t d, int64_t at) const {
    for (const Run& run : dims_[d].runs) {
      if (at >= run.begin + run.length) continue;
      return run.filled ? -1 : run.first + (at - run.begin) * run.step;
    }
    return -1;
  }

  static constexpr int64_t kMostBoxes = 64;
  int64_t Boxes() const {
    int64_t count = 1;
    for (const Dimension& dim : dims_) count *= static_cast<int64_t>(dim.runs.size());
    return count;
  }

  // Every choice of a run of each dimension, the last dimension's first.
  void MoveBoxes(int32_t threads) const {
    size_t chosen[kMaxDims] = {};
    for (int64_t left = Boxes(); left > 0; --left) {
      MoveBox(chosen, threads);
      for (size_t d = dims_.size(); d-- > 0 && ++chosen[d] == dims_[d].runs.size();) chosen[d] = 0;
    }
  }

  void MoveBox(const size_t* chosen, int32_t threads) const {
    const int64_t item = out_.itemsize();
    int64_t sizes[kMaxDims], steps[kMaxDims], places[kMaxDims], to = 0, from = 0;
    bool filled = false;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const Run& run = dims_[d].runs[chosen[d]];
      sizes[d] = run.length;
      steps[d] = run.step / item;
      places[d] = out_strides_[d] / item;
      to += run.begin * out_strides_[d];
      from += run.first;
      filled = filled || run.filled;
    }
    if (filled) std::fill_n(steps, dims_.size(), 0);
    CopyStrided(item, ndim(), sizes, filled ? fill_ : data_.data<char>() + from, steps,
                out_.data<char>() + to, places, threads);
  }

  template <class T>
  void MoveRows(int64_t begin, int64_t end) const {
    const size_t outer = dims_.size() - 1;
    int64_t at[kMaxDims];
    int64_t rest = begin;
    for (size_t d = outer; d-- > 0; rest /= dims_[d].places) at[d] = rest % dims_[d].places;
    Region region;
    for (int64_t row = begin; row < end; ++row) {
      int64_t from = 0, to = 0;
      for (size_t d = 0; d < outer; ++d) {
        const int64_t part = Offset(d, at[d]);
        from = part < 0 || from < 0 ? -1 : from + part;
        to += at[d] * out_strides_[d];
      }
      const int64_t y = outer > 0 ? at[outer - 1] : 0;
      if (program_.keep.size > 0 && (row == begin || y == 0)) region = KeptOfMatrix(at);
      MoveRow<T>(out_.data<char>() + to, from, region.Row(y, dims_[outer].places));
      for (size_t d = outer; d-- > 0 && ++at[d] == dims_[d].places;) at[d] = 0;
    }
  }

  // What is kept of the matrix at these outer places.
  Region KeptOfMatrix(const int64_t* at) const {
    int64_t places[kMaxDims];
    Linear coordinates[kMaxDims];
    for (size_t d = 0; d < dims_.size(); ++d) {
      places[d] = dims_[d].places;
      coordinates[d] = {0, 0, d + 1 < dims_.size() ? at[d] : 0};
    }
    MakeSymbolic(coordinates, places);
    Region region;
    RunLinearMask({&program_, args_, places, ndim(), 0, 0}, program_.keep, coordinates, &region);
    return region;
  }

  template <class T>
  void MoveRow(char* to, int64_t from, Interval kept) const {
    const Dimension& last = dims_.back();
    const int64_t apart = out_strides_[dims_.size() - 1];
    if (from < 0) kept = {0, 0};
    Fill<T>(to, apart, kept.begin);
    for (const Run& run : last.runs) {
      const int64_t begin = std::max(run.begin, kept.begin);
      const int64_t end = std::min(run.begin + run.length, kept.end);
      if (begin >= end) continue;
      char* dst = to + begin * apart;
      const char* src = data_.data<char>() + from + run.first + (begin - run.begin) * run.step;
      if (run.filled)
        Fill<T>(dst, apart, end - begin);
      else if (dst != src || run.step != apart)
        Copy<T>(dst, apart, src, run.step, end - begin);
    }
    Fill<T>(to + kept.end * apart, apart, last.places - kept.end);
  }

  template <class T>
  void Fill(char* to, int64_t apart, int64_t n) const {
    T fill;
    std::memcpy(&fill, fill_, sizeof(T));
    if (apart == static_cast<int64_t>(sizeof(T))) return void(std::fill_n(reinterpret_cast<T*>(to), n, fill));
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * apart) = fill;
  }

  // Memory of `from` may be that of `to` where each element stays in its place.
  template <class T>
  static void Copy(char* to, int64_t apart, const char* from, int64_t step, int64_t n) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    if (apart != kSize) {
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<T*>(to + i * apart) = *reinterpret_cast<const T*>(from + i * step);
    } else if (step == kSize) {
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    } else {
      GatherStrided(to, from, step, kSize, n);
    }
  }

  const MicaProgram& program_;
  const MicaValue* args_;
  const plugin::TensorRef out_, data_;
  std::vector<Dimension> dims_;
  int64_t out_strides_[kMaxDims];
  bool flat_ = false;
  bool turned_ = false;  // the last two dimensions are exchanged
  alignas(16) char fill_[16] = {};
};

}  // namespace

void RunGather(const MicaCall* call, const MicaValue* args, int64_t, MicaTensor* const* outputs, int64_t) {
  Gathering(call, args, outputs[0]).Move(ThreadsOf(call));
}

}  // namespace mica::cpu
