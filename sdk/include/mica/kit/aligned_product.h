// Products of a device's library on operands that lie as it reads them, and reads them fast.
//
// A library's fast kernels want rows that begin and end at multiples of some bytes: cuBLAS takes 15.7 ms for
// the three products of a bfloat16 layer of 8,192 rows of 768 and GPT-2's 50,257 words on an H200, and 2.5
// for those of 50,304. Rows that are only further apart do not help it: sizes are rounded up too, with zeros
// behind the rows. And it takes no matrix with gaps between the elements of its rows, and of its columns,
// such as x[:, ::2] or the gradient of a sum. Where a copy at the speed of memory costs less, operands are
// copied to rows that are dense and aligned, and a result is computed in such rows and copied to its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <mica/kit/pointwise.h>
#include <mica/kit/product.h>

namespace mica {
namespace kit {
namespace matmul {

// A batch of matrices as rows: the matrix's own, or its columns.
struct Rows {
  MatrixProduct::Matrix* matrix = nullptr;
  bool is_transposed = false;
  bool is_dense = false;  // a row's elements lie side by side
  int64_t batches = 1, count = 0, length = 0;
  int64_t padded_count = 0, padded_length = 0;  // of a copy

  int64_t apart() const { return is_transposed ? matrix->column : matrix->row; }
  int64_t elements() const { return batches * count * length; }
};

// Rows of a matrix of rows x columns, the longer ones where both ways are dense.
inline Rows RowsOf(MatrixProduct::Matrix& m, int64_t batches, int64_t rows, int64_t columns) {
  if (m.batch == 0) batches = 1;
  const bool by_rows = (m.column == 1 || columns == 1) && (rows == 1 || m.row >= columns);
  const bool by_columns = (m.row == 1 || rows == 1) && (columns == 1 || m.column >= rows);
  const bool is_transposed =
      by_rows == by_columns ? (by_rows ? rows > columns : m.row < m.column) : by_columns;
  if (is_transposed) std::swap(rows, columns);
  return {&m, is_transposed, by_rows || by_columns, batches, rows, columns, rows, columns};
}

inline int64_t ElementBytes(int32_t dtype) {
  return dtype == MICA_C128 ? 16 : dtype == MICA_C64 ? 8 : BytesOf(dtype);
}

inline bool IsAligned(const Rows& rows, int64_t bytes, int64_t alignment) {
  const auto fits = [&](int64_t offset) { return offset * bytes % alignment == 0; };
  return rows.length == 1 ||
         (reinterpret_cast<uintptr_t>(rows.matrix->data) % static_cast<uintptr_t>(alignment) == 0 &&
          (rows.count == 1 || fits(rows.apart())) && (rows.batches == 1 || fits(rows.matrix->batch)));
}

// Queues a copy of dense rows, elements of 2 or 4 bytes, in the sizes of `shape`, or in its padded ones with
// zeros behind.
inline void CopyRows(const MicaCall* call, int32_t dtype, const Rows& shape, bool is_padded,
                     const MatrixProduct::Matrix& from, const MatrixProduct::Matrix& to) {
  constexpr int64_t kEach = 8, kGroup = 256;
  const Device& device = DeviceOf(call);
  const int32_t bits = BytesOf(dtype) == 2 ? MICA_U16 : MICA_U32;
  const int64_t count = is_padded ? shape.padded_count : shape.count;
  const int64_t length = is_padded ? shape.padded_length : shape.length;
  int64_t wide = kGroup;  // work-items of a group that share a row
  while (wide > 32 && wide / 2 * kEach >= length) wide /= 2;
  Key key("copy_rows");
  key.Add(bits).Add(wide);
  const Kernel& kernel = FindKernel(device, key, "copy_rows", call->name, [&] {
    return LanesText(device, {bits, 1}, false) + Define("E", std::string("E_") + Suffix(bits)) +
           Define("PER", std::to_string(kEach)) + Define("WIDE", std::to_string(wide)) + kCopyRowsText;
  });
  const auto row = [&](const MatrixProduct::Matrix& m) { return shape.is_transposed ? m.column : m.row; };
  const int64_t rows = shape.batches * count, high = kGroup / wide;
  Launch launch(call, kernel);
  launch.Pointer(from.data).Value<int64_t>(from.batch).Value<int64_t>(row(from));
  launch.Pointer(to.data).Value<int64_t>(to.batch).Value<int64_t>(row(to));
  launch.Value<int64_t>(shape.count).Value<int64_t>(shape.length);
  launch.Value<int64_t>(rows).Value<int64_t>(count).Value<int64_t>(length);
  launch.Run((length + kEach - 1) / kEach, std::min(rows, device.max_groups_yz * high), 1, wide, high);
}

// A copy of a matrix, whose rows begin at multiples of what memory is read in.
class AlignedCopy {
 public:
  // Takes the matrix's place in the product.
  AlignedCopy(const MicaCall* call, int32_t dtype, const Rows& rows)
      : call_(call), dtype_(dtype), rows_(rows), original_(*rows.matrix), room_(call, Bytes(dtype, rows)) {
    const int64_t apart = Apart(dtype, rows);
    copy_ = {room_.data(), rows.batches == 1 ? 0 : rows.padded_count * apart, apart, 1};
    if (rows.is_transposed) std::swap(copy_.row, copy_.column);
    *rows.matrix = copy_;
  }
  void Read() const {
    const bool is_padded = rows_.padded_count != rows_.count || rows_.padded_length != rows_.length;
    if (IsSimple()) return CopyRows(call_, dtype_, rows_, is_padded, original_, copy_);
    if (is_padded)
      TheDriver()->Zero(DeviceOf(call_), room_.data(), static_cast<size_t>(Bytes(dtype_, rows_)),
                        call_->stream);
    CopyElements(original_, copy_);
  }
  void Write() const {
    IsSimple() ? CopyRows(call_, dtype_, rows_, false, copy_, original_) : CopyElements(copy_, original_);
  }

 private:
  bool IsSimple() const { return rows_.is_dense && ElementBytes(dtype_) <= 4; }
  void CopyElements(const MatrixProduct::Matrix& from, const MatrixProduct::Matrix& to) const {
    const auto operand = [&](const MatrixProduct::Matrix& m) {
      const auto [row, element] =
          rows_.is_transposed ? std::pair(m.column, m.row) : std::pair(m.row, m.column);
      return mica::kit::Operand{m.data, dtype_, {m.batch, row, element}};
    };
    pointwise::CopyPart(call_,
                        Space{{rows_.batches, rows_.count, rows_.length}, {operand(to), operand(from)}});
  }
  static int64_t Apart(int32_t dtype, const Rows& rows) {
    const int64_t unit = 128 / ElementBytes(dtype);
    return (rows.padded_length + unit - 1) / unit * unit;
  }
  static int64_t Bytes(int32_t dtype, const Rows& rows) {
    return rows.batches * rows.padded_count * Apart(dtype, rows) * ElementBytes(dtype);
  }

  const MicaCall* call_;
  const int32_t dtype_;
  const Rows rows_;
  const MatrixProduct::Matrix original_;
  const Workspace room_;
  MatrixProduct::Matrix copy_;
};

// How many operations of arithmetic a product takes.
inline double WorkOf(const MatrixProduct& p) {
  return 2.0 * double(p.batches) * double(p.m) * double(p.n) * double(p.k);
}

// The least operations of a product that is worth copies, and the least for each byte of them. Two copies of
// a byte take the time of some 300 operations on tensor cores (H200: 700 TFLOP/s, 4.3 TB/s).
struct Worth {
  double work, work_of_byte;
};
// On rows that are not aligned these take several times as long; below 4 GFLOP, launches cost what is saved.
constexpr Worth kOfAlignment = {4e9, 256};
// The kit's kernel, which takes what the library does not, knows no tensor cores.
constexpr Worth kOfDensity = {4e8, 32};

// How a product's matrices lie, which of them are to be copied, and in which sizes.
class Plan {
 public:
  Plan(MatrixProduct& p, int64_t alignment)
      : rows_{RowsOf(p.a, p.batches, p.m, p.k), RowsOf(p.b, p.batches, p.k, p.n),
              RowsOf(p.out, p.batches, p.m, p.n)},
        reads_out_(!p.row && !IsZero(p.beta)),
        sizes_{p.m, p.n, p.k} {
    const int64_t bytes = ElementBytes(p.dtype);
    Pad(std::max<int64_t>(alignment / bytes, 1));
    const auto lies_well = [&](const Rows& rows) {
      return rows.is_dense && IsAligned(rows, bytes, alignment) && rows.padded_count == rows.count &&
             rows.padded_length == rows.length;
    };
    if (Choose(p, kOfAlignment, lies_well)) return;
    Pad(1);
    Choose(p, kOfDensity, [](const Rows& rows) { return rows.is_dense; });
  }
  const Rows& rows(size_t i) const { return rows_[i]; }  // of a, b and out
  bool is_copied(size_t i) const { return is_copied_[i]; }
  bool is_read(size_t i) const { return i < 2 || reads_out_; }
  int64_t padded(size_t dimension) const { return padded_[dimension]; }  // m, n and k

 private:
  // The rows and columns of a, b and out among m, n and k.
  static constexpr size_t kDimensions[3][2] = {{0, 2}, {2, 1}, {0, 1}};

  // Sizes as a library reads them fast: those of rows are multiples of `unit`, and large ones of a tile's,
  // which adds a sixteenth at most. A size is that of all matrices that have it.
  void Pad(int64_t unit) {
    constexpr int64_t kTile = 64, kLarge = 1024;
    for (size_t d = 0; d < 3; ++d) padded_[d] = sizes_[d];
    for (size_t i = 0; i < 3; ++i) {
      const size_t d = kDimensions[i][rows_[i].is_transposed ? 0 : 1];
      const int64_t size = sizes_[d], multiple = size < kLarge ? unit : std::max(unit, kTile);
      if (size % unit != 0) padded_[d] = (size + multiple - 1) / multiple * multiple;
    }
    for (size_t i = 0; i < 3; ++i) {
      rows_[i].padded_count = padded_[kDimensions[i][rows_[i].is_transposed ? 1 : 0]];
      rows_[i].padded_length = padded_[kDimensions[i][rows_[i].is_transposed ? 0 : 1]];
    }
  }
  // Copies what does not lie as `suits` says, where that pays; false where it does not.
  template <typename F>
  bool Choose(const MatrixProduct& p, const Worth& worth, F&& suits) {
    int64_t elements = 0;
    for (size_t i = 0; i < 3; ++i)
      if (!suits(rows_[i])) elements += rows_[i].elements() * (i == 2 && reads_out_ ? 2 : 1);
    const double bytes = double(elements) * double(ElementBytes(p.dtype));
    if (elements == 0 || WorkOf(p) < std::max(worth.work, worth.work_of_byte * bytes)) return false;
    for (size_t i = 0; i < 3; ++i) is_copied_[i] = !suits(rows_[i]);
    return true;
  }

  Rows rows_[3];
  const bool reads_out_;
  const int64_t sizes_[3];
  int64_t padded_[3] = {};
  bool is_copied_[3] = {};
};

// Queues the driver's product, on dense and aligned copies of matrices where that is faster; false where the
// driver does not take it.
inline bool Multiply(const MicaCall* call, const MatrixProduct& given) {
  const Device& device = DeviceOf(call);
  const auto multiply = [&](const MatrixProduct& p) {
    return TheDriver()->Multiply(device, p, call->stream);
  };
  if (WorkOf(given) < kOfDensity.work) return multiply(given);
  const int64_t alignment = TheDriver()->ProductAlignment(device, given.dtype);
  if (alignment == 0) return multiply(given);
  MatrixProduct p = given;
  const Plan plan(p, alignment);
  MatrixProduct::Matrix row{const_cast<void*>(p.row), 0, p.n, 1};
  std::optional<AlignedCopy> copies[3], copy_of_row;
  try {
    for (size_t i = 0; i < 3; ++i)
      if (plan.is_copied(i)) copies[i].emplace(call, p.dtype, plan.rows(i));
    if (p.row && plan.padded(1) != p.n)
      copy_of_row.emplace(call, p.dtype, Rows{&row, false, true, 1, 1, p.n, 1, plan.padded(1)});
  } catch (const plugin::Error& error) {
    if (error.code != MICA_ERROR_OUT_OF_MEMORY) throw;
    for (auto& copy : copies) copy.reset();
    return multiply(given);
  }
  for (size_t i = 0; i < 3; ++i)
    if (copies[i] && plan.is_read(i)) copies[i]->Read();
  if (copy_of_row) copy_of_row->Read();
  p.row = row.data;
  p.m = plan.padded(0), p.n = plan.padded(1), p.k = plan.padded(2);
  if (!multiply(p)) return false;
  if (copies[2]) copies[2]->Write();
  return true;
}

}  // namespace matmul
}  // namespace kit
}  // namespace mica
