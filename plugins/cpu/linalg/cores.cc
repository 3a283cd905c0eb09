#include "plugins/cpu/linalg/cores.h"

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>

#include "plugins/cpu/contraction/dense.h"
#include "plugins/cpu/contraction/open_libraries.h"
#include "plugins/cpu/engine/threads.h"

namespace mica::cpu {
namespace {

using plugin::TensorRef;

constexpr int32_t kMaxBatchDims = 62;
// Multiplications that make a second thread worth waking. One matrix stays on one
// thread: OpenBLAS's own pool waits by spinning, and on a busy machine two threads of it
// took 130 ms for an LU of 512 x 512 that one does in 5.
constexpr double kGrain = 20000;

// A tensor's matrices: where each lies, in elements.
struct Matrices {
  Matrices(const MicaTensor* tensor, int32_t trailing) : t(tensor), trailing(trailing) {
    if (trailing >= 1) rows = t.size(-trailing), row = t.stride(-trailing);
    if (trailing == 2) cols = t.size(-1), col = t.stride(-1);
  }
  int32_t batch_dims() const { return t.ndim() - trailing; }

  // The first element of matrix `index` of a batch of these sizes.
  char* At(int64_t index, const int64_t* sizes, int32_t dims) const {
    int64_t offset = 0;
    for (int32_t d = dims - 1; d >= 0; --d) {
      const int64_t place = index % sizes[d];
      index /= sizes[d];
      const int32_t own = d - dims + batch_dims();
      if (own >= 0 && t.size(own) != 1) offset += place * t.stride(own);
    }
    return t.data<char>() + offset * t.itemsize();
  }

  TensorRef t;
  int32_t trailing;
  int64_t rows = 1, cols = 1, row = 0, col = 0;
};

struct Wide {
  uint64_t words[2];
};

template <class F>
void VisitSize(int64_t itemsize, F f) {
  switch (itemsize) {
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Wide{});
  }
}

// Tiles keep both sides in cache where one is the other transposed.
template <class F>
void ForTiles(int64_t rows, int64_t cols, F f) {
  constexpr int64_t kTile = 16;
  for (int64_t j0 = 0; j0 < cols; j0 += kTile)
    for (int64_t i0 = 0; i0 < rows; i0 += kTile)
      for (int64_t j = j0; j < std::min(cols, j0 + kTile); ++j)
        for (int64_t i = i0; i < std::min(rows, i0 + kTile); ++i) f(i, j);
}

template <class T>
void Read(const Matrices& from, const T* source, const Operand& o, T* scratch) {
  if (from.rows < o.rows || from.cols < o.cols)
    std::memset(scratch, 0, static_cast<size_t>(o.rows * o.cols) * sizeof(T));
  ForTiles(std::min(from.rows, o.rows), std::min(from.cols, o.cols),
           [&](int64_t i, int64_t j) { scratch[j * o.rows + i] = source[i * from.row + j * from.col]; });
}

template <class T>
void Write(const Matrices& to, const T* scratch, const Operand& o, T* target) {
  ForTiles(std::min(to.rows, o.rows), std::min(to.cols, o.cols), [&](int64_t i, int64_t j) {
    const bool kept = o.part == Part::kAll || (o.part == Part::kLower ? i >= j : i <= j);
    target[i * to.row + j * to.col] = kept ? scratch[j * o.rows + i] : T{};
  });
}

// What all threads share of one call.
class Walk {
 public:
  Walk(const CoreTask& task, std::initializer_list<Operand> operands, MicaTensor* info)
      : table_(Libraries()), task_(task) {
    if (table_ == nullptr) throw plugin::NotImplemented();
    for (const Operand& o : operands) {
      Add(o);
      const MicaTensor* like = o.write;
      if (like != nullptr && count_ < 0) {
        dims_ = like->dl.ndim - o.trailing;
        count_ = 1;
        for (int32_t d = 0; d < dims_; ++d) count_ *= sizes_[d] = like->dl.shape[d];
      }
    }
    core_operands_ = size_;
    if (info != nullptr) Add({nullptr, info, 0, 1, 1, Part::kAll, MICA_I32});
  }

  int64_t count() const { return count_; }

  // Matrices [begin, end).
  void Run(int64_t begin, int64_t end, std::atomic<bool>* no_memory) const {
    if (begin >= end) return;  // no memory for the matrices of an empty batch
    try {
      const Temporary scratch(bytes_);
      for (int64_t i = begin; i < end; ++i)
        if (!One(i, scratch.data())) *no_memory = true;
    } catch (...) {
      *no_memory = true;
    }
  }

 private:
  void Add(const Operand& o) {
    const MicaTensor* like = o.read != nullptr ? o.read : o.write;
    const int32_t dtype = o.dtype == MICA_DTYPE_NONE ? task_.dtype : o.dtype;
    for (const MicaTensor* t : {o.read, static_cast<const MicaTensor*>(o.write)})
      if (t != nullptr && TensorRef(t).dtype() != dtype) throw plugin::NotImplemented();
    operands_[size_] = o;
    offsets_[size_] = bytes_;
    itemsizes_[size_] = TensorRef(like).itemsize();
    // LAPACK counts elements in 32 bits.
    MICA_PLUGIN_CHECK(o.rows * o.cols < INT32_MAX / 4, MICA_ERROR_RUNTIME,
                      "A matrix of " + std::to_string(o.rows) + " x " + std::to_string(o.cols) +
                          " is larger than LAPACK's 32-bit numbers count.");
    bytes_ += (std::max<int64_t>(o.rows * o.cols, 1) * itemsizes_[size_] + 63) / 64 * 64;
    ++size_;
  }

  bool One(int64_t index, char* scratch) const {
    CoreTask task = task_;
    for (int32_t k = 0; k < core_operands_; ++k) {
      const Operand& o = operands_[k];
      task.operands[k] = scratch + offsets_[k];
      if (o.read == nullptr) {
        std::memset(task.operands[k], 0, static_cast<size_t>(o.rows * o.cols * itemsizes_[k]));
        continue;
      }
      const Matrices from(o.read, o.trailing);
      VisitSize(itemsizes_[k], [&](auto zero) {
        using T = decltype(zero);
        Read<T>(from, reinterpret_cast<const T*>(from.At(index, sizes_, dims_)), o,
                static_cast<T*>(task.operands[k]));
      });
    }
    if (!table_->lapack(task)) return false;
    if (size_ > core_operands_)
      std::memcpy(scratch + offsets_[core_operands_], &task.info, sizeof(task.info));
    for (int32_t k = 0; k < size_; ++k) {
      const Operand& o = operands_[k];
      if (o.write == nullptr) continue;
      const Matrices to(o.write, o.trailing);
      VisitSize(itemsizes_[k], [&](auto zero) {
        using T = decltype(zero);
        Write<T>(to, reinterpret_cast<const T*>(scratch + offsets_[k]), o,
                 reinterpret_cast<T*>(to.At(index, sizes_, dims_)));
      });
    }
    return true;
  }

  static constexpr int32_t kMaxOperands = 6;
  const LibraryTable* table_;
  const CoreTask task_;
  Operand operands_[kMaxOperands];
  int64_t offsets_[kMaxOperands], itemsizes_[kMaxOperands];
  int32_t size_ = 0, core_operands_ = 0;
  int64_t bytes_ = 0;
  int32_t dims_ = 0;
  int64_t sizes_[kMaxBatchDims], count_ = -1;
};

}  // namespace

void RunCores(const MicaCall* call, const CoreTask& task, double work,
              std::initializer_list<Operand> operands, MicaTensor* info) {
  const Walk walk(task, operands, info);
  std::atomic<bool> no_memory{false};
  const auto grain = static_cast<int64_t>(std::max(1.0, kGrain / std::max(work, 1.0)));
  ParallelSteps(walk.count(), grain, 1, ThreadsOf(call),
                [&](int64_t begin, int64_t end) { walk.Run(begin, end, &no_memory); });
  if (no_memory) throw std::bad_alloc();
}

}  // namespace mica::cpu
