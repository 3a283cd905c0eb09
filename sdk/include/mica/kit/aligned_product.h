// Products of a device's library on operands that lie as it reads them, and reads them fast.
//
// A library's fast kernels want rows at multiples of some bytes, and as long: cuBLAS takes 15.7 ms for the
// three products of a bfloat16 layer of 8,192 rows of 768 and GPT-2's 50,257 words on an H200, and 2.6 ms for
// 50,304 words. With aligned rows of 50,257 alone two of the three stay as slow. And it takes no matrix with
// gaps between the elements of its rows, and of its columns, such as x[:, ::2] or the gradient of a sum.
// Where a copy at the speed of memory costs less, operands are copied to rows that are dense, aligned and
// filled up with zeros, and a result is computed in such rows and copied to its own.
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
  int64_t copy_count = 0, copy_length = 0;  // with the zeros that a copy is filled up with

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

// Rows of a matrix, as a copy reads or writes them.
struct Side {
  void* data;
  int64_t batch, row, count, length;
};

// Queues a copy of dense rows, of elements of 2 or 4 bytes; zeros follow where `to` has more than `from`.
inline void CopyRows(const MicaCall* call, int32_t dtype, int64_t batches, const Side& from, const Side& to) {
  constexpr int64_t kEach = 8, kGroup = 256;
  const Device& device = DeviceOf(call);
  const int32_t bits = BytesOf(dtype) == 2 ? MICA_U16 : MICA_U32;
  int64_t wide = kGroup;  // work-items of a group that share a row
  while (wide > 32 && wide / 2 * kEach >= to.length) wide /= 2;
  Key key("copy_rows");
  key.Add(bits).Add(wide);
  const Kernel& kernel = FindKernel(device, key, "copy_rows", call->name, [&] {
    return LanesText(device, {bits, 1}, false) + Define("E", std::string("E_") + Suffix(bits)) +
           Define("PER", std::to_string(kEach)) + Define("WIDE", std::to_string(wide)) + kCopyRowsText;
  });
  const int64_t rows = batches * to.count, high = kGroup / wide;
  Launch launch(call, kernel);
  for (const Side& side : {from, to}) {
    launch.Pointer(side.data).Value<int64_t>(side.batch).Value<int64_t>(side.row);
    launch.Value<int64_t>(side.count).Value<int64_t>(side.length);
  }
  launch.Value<int64_t>(rows);
  launch.Run((to.length + kEach - 1) / kEach, std::min(rows, device.max_groups_yz * high), 1, wide, high);
}

// A copy of a matrix, whose rows begin at multiples of what memory is read in.
class AlignedCopy {
 public:
  // Takes the matrix's place.
  AlignedCopy(const MicaCall* call, int32_t dtype, const Rows& rows)
      : call_(call), dtype_(dtype), rows_(rows), original_(*rows.matrix), room_(call, Bytes(dtype, rows)) {
    const int64_t apart = Apart(dtype, rows);
    copy_ = {room_.data(), rows.batches == 1 ? 0 : rows.copy_count * apart, apart, 1};
    if (rows.is_transposed) std::swap(copy_.row, copy_.column);
    *rows.matrix = copy_;
  }
  void Read() const { Copy(true); }
  void Write() const { Copy(false); }

 private:
  void Copy(bool is_read) const {
    if (rows_.is_dense && ElementBytes(dtype_) <= 4) {
      const auto row = [&](const MatrixProduct::Matrix& m) { return rows_.is_transposed ? m.column : m.row; };
      const Side own = {original_.data, original_.batch, row(original_), rows_.count, rows_.length};
      const Side copy = {copy_.data, copy_.batch, row(copy_), rows_.copy_count, rows_.copy_length};
      return is_read ? CopyRows(call_, dtype_, rows_.batches, own, copy)
                     : CopyRows(call_, dtype_, rows_.batches, copy, own);
    }
    if (is_read && (rows_.copy_count != rows_.count || rows_.copy_length != rows_.length))
      TheDriver()->Zero(DeviceOf(call_), copy_.data, static_cast<size_t>(Bytes(dtype_, rows_)),
                        call_->stream);
    const auto operand = [&](const MatrixProduct::Matrix& m) {
      const auto [row, element] =
          rows_.is_transposed ? std::pair(m.column, m.row) : std::pair(m.row, m.column);
      return mica::kit::Operand{m.data, dtype_, {m.batch, row, element}};
    };
    Space space{{rows_.batches, rows_.count, rows_.length}, {operand(copy_), operand(original_)}};
    if (!is_read) std::swap(space.operands[0], space.operands[1]);
    pointwise::CopyPart(call_, std::move(space));
  }
  static int64_t Apart(int32_t dtype, const Rows& rows) {
    const int64_t unit = 128 / ElementBytes(dtype);
    return (rows.copy_length + unit - 1) / unit * unit;
  }
  static int64_t Bytes(int32_t dtype, const Rows& rows) {
    return rows.batches * rows.copy_count * Apart(dtype, rows) * ElementBytes(dtype);
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
// On rows that are not aligned these take five times as long; below 4 GFLOP, launches cost what is saved.
constexpr Worth kOfAlignment = {4e9, 256};
// A product whose sizes are smaller waits for memory, with any kernel.
constexpr int64_t kLeastSize = 64;
// The kit's kernel, which takes what the library does not, knows no tensor cores.
constexpr Worth kOfDensity = {4e8, 32};

// A size as fast kernels like it: a multiple of the alignment, and of 128 bytes where that is little more.
inline int64_t FilledUp(int64_t size, int64_t bytes, int64_t alignment) {
  int64_t unit = 128 / bytes;
  while (unit * bytes > alignment && unit * 16 > size) unit /= 2;
  return size * bytes % alignment == 0 ? size : (size + unit - 1) / unit * unit;
}

// How a product's matrices lie, and which of them are to be copied. The product's sizes become those of the
// copies.
class Plan {
 public:
  Plan(MatrixProduct& p, int64_t alignment)
      : row_{const_cast<void*>(p.row), 0, 0, 1},
        rows_{RowsOf(p.a, p.batches, p.m, p.k),
              RowsOf(p.b, p.batches, p.k, p.n),
              RowsOf(p.out, p.batches, p.m, p.n),
              {&row_, false, true, 1, 1, p.n, 1, p.n}},
        num_(p.row ? 4 : 3),
        reads_out_(!p.row && !IsZero(p.beta)) {
    if (!Align(p, alignment)) Choose(p, kOfDensity, [](const Rows& rows) { return rows.is_dense; });
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  static constexpr size_t kOut = 2, kRow = 3, kMost = 4;
  const Rows& rows(size_t i) const { return rows_[i]; }  // of a, b, out and the row
  bool is_copied(size_t i) const { return is_copied_[i]; }
  bool is_read(size_t i) const { return i != kOut || reads_out_; }
  const void* row() const { return row_.data; }

 private:
  bool Align(MatrixProduct& p, int64_t alignment) {
    if (alignment == 1 || std::min({p.m, p.n, p.k}) < kLeastSize) return false;
    // Along which a matrix's elements lie side by side; and the other, of which it has as many rows.
    int64_t sizes[] = {p.m, p.n, p.k};
    constexpr int kDimensions[][2] = {{0, 2}, {2, 1}, {0, 1}};
    for (size_t i = 0; i < 3; ++i) {
      int64_t& size = sizes[kDimensions[i][rows_[i].is_transposed ? 0 : 1]];
      size = FilledUp(size, ElementBytes(p.dtype), alignment);
    }
    Rows before[kMost];
    std::copy_n(rows_, kMost, before);
    for (size_t i = 0; i < 3; ++i) {
      rows_[i].copy_length = sizes[kDimensions[i][rows_[i].is_transposed ? 0 : 1]];
      rows_[i].copy_count = sizes[kDimensions[i][rows_[i].is_transposed ? 1 : 0]];
    }
    rows_[kRow].copy_length = sizes[1];
    const bool pays = Choose(p, kOfAlignment, [&](const Rows& rows) {
      return rows.is_dense && rows.count == rows.copy_count && rows.length == rows.copy_length &&
             (&rows == &rows_[kRow] || IsAligned(rows, ElementBytes(p.dtype), alignment));
    });
    if (pays)
      p.m = sizes[0], p.n = sizes[1], p.k = sizes[2];
    else
      std::copy_n(before, kMost, rows_);
    return pays;
  }

  // Copies what does not lie as `suits` says, where that pays; false where it does not.
  template <typename F>
  bool Choose(const MatrixProduct& p, const Worth& worth, F&& suits) {
    int64_t elements = 0;
    for (size_t i = 0; i < num_; ++i)
      if (!suits(rows_[i])) elements += rows_[i].elements() * (i == kOut && reads_out_ ? 2 : 1);
    const double bytes = double(elements) * double(ElementBytes(p.dtype));
    if (elements == 0 || WorkOf(p) < std::max(worth.work, worth.work_of_byte * bytes)) return false;
    for (size_t i = 0; i < num_; ++i) is_copied_[i] = !suits(rows_[i]);
    return true;
  }

  MatrixProduct::Matrix row_;
  Rows rows_[kMost];
  const size_t num_;
  const bool reads_out_;
  bool is_copied_[kMost] = {};
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
  std::optional<AlignedCopy> copies[Plan::kMost];
  try {
    for (size_t i = 0; i < Plan::kMost; ++i)
      if (plan.is_copied(i)) copies[i].emplace(call, p.dtype, plan.rows(i));
  } catch (const plugin::Error& error) {
    if (error.code != MICA_ERROR_OUT_OF_MEMORY) throw;
    for (auto& copy : copies) copy.reset();
    return multiply(given);
  }
  p.row = plan.row();
  for (size_t i = 0; i < Plan::kMost; ++i)
    if (copies[i] && plan.is_read(i)) copies[i]->Read();
  if (!multiply(p)) return false;
  if (copies[Plan::kOut]) copies[Plan::kOut]->Write();
  return true;
}

}  // namespace matmul
}  // namespace kit
}  // namespace mica
