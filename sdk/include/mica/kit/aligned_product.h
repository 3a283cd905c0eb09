// Products of a device's library on operands that lie as it reads them, and reads them fast.
//
// A library's fast kernels want rows at multiples of some bytes: cuBLAS takes 15.9 ms for the three products
// of a bfloat16 layer of 8,192 rows of 768 and GPT-2's 50,257 words on an H200, a sixth of what that
// computes. And it takes no matrix with gaps between the elements of its rows, and of its columns, such as
// x[:, ::2] or the gradient of a sum. Where a copy at the speed of memory costs less, operands are copied to
// rows that are dense and aligned, and a result is computed in such rows and copied to its own.
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
  return {&m, is_transposed, by_rows || by_columns, batches, rows, columns};
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

// Queues a copy of dense rows of `shape`'s sizes, elements of 2 or 4 bytes.
inline void CopyRows(const MicaCall* call, int32_t dtype, const Rows& shape,
                     const MatrixProduct::Matrix& from, const MatrixProduct::Matrix& to) {
  constexpr int64_t kEach = 8, kGroup = 256;
  const Device& device = DeviceOf(call);
  const int32_t bits = BytesOf(dtype) == 2 ? MICA_U16 : MICA_U32;
  int64_t wide = kGroup;  // work-items of a group that share a row
  while (wide > 32 && wide / 2 * kEach >= shape.length) wide /= 2;
  Key key("copy_rows");
  key.Add(bits).Add(wide);
  const Kernel& kernel = FindKernel(device, key, "copy_rows", call->name, [&] {
    return LanesText(device, {bits, 1}, false) + Define("E", std::string("E_") + Suffix(bits)) +
           Define("PER", std::to_string(kEach)) + Define("WIDE", std::to_string(wide)) + kCopyRowsText;
  });
  const auto row = [&](const MatrixProduct::Matrix& m) { return shape.is_transposed ? m.column : m.row; };
  const int64_t rows = shape.batches * shape.count, high = kGroup / wide;
  Launch launch(call, kernel);
  launch.Pointer(from.data).Value<int64_t>(from.batch).Value<int64_t>(row(from));
  launch.Pointer(to.data).Value<int64_t>(to.batch).Value<int64_t>(row(to));
  launch.Value<int64_t>(rows).Value<int64_t>(shape.count).Value<int64_t>(shape.length);
  launch.Run((shape.length + kEach - 1) / kEach, std::min(rows, device.max_groups_yz * high), 1, wide, high);
}

// A copy of a matrix, whose rows begin at multiples of what memory is read in.
class AlignedCopy {
 public:
  // Takes the matrix's place in the product.
  AlignedCopy(const MicaCall* call, int32_t dtype, const Rows& rows)
      : call_(call), dtype_(dtype), rows_(rows), original_(*rows.matrix), room_(call, Bytes(dtype, rows)) {
    const int64_t apart = Apart(dtype, rows);
    copy_ = {room_.data(), rows.batches == 1 ? 0 : rows.count * apart, apart, 1};
    if (rows.is_transposed) std::swap(copy_.row, copy_.column);
    *rows.matrix = copy_;
  }
  void Read() const { Copy(original_, copy_); }
  void Write() const { Copy(copy_, original_); }

 private:
  void Copy(const MatrixProduct::Matrix& from, const MatrixProduct::Matrix& to) const {
    if (rows_.is_dense && ElementBytes(dtype_) <= 4) return CopyRows(call_, dtype_, rows_, from, to);
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
    return (rows.length + unit - 1) / unit * unit;
  }
  static int64_t Bytes(int32_t dtype, const Rows& rows) {
    return rows.batches * rows.count * Apart(dtype, rows) * ElementBytes(dtype);
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

// How a product's matrices lie, and which of them are to be copied.
class Plan {
 public:
  Plan(MatrixProduct& p, int64_t alignment)
      : rows_{RowsOf(p.a, p.batches, p.m, p.k), RowsOf(p.b, p.batches, p.k, p.n),
              RowsOf(p.out, p.batches, p.m, p.n)},
        reads_out_(!p.row && !IsZero(p.beta)) {
    const auto is_dense = [](const Rows& rows) { return rows.is_dense; };
    const auto lies_well = [&](const Rows& rows) {
      return rows.is_dense && IsAligned(rows, ElementBytes(p.dtype), alignment);
    };
    if (!Choose(p, kOfAlignment, lies_well)) Choose(p, kOfDensity, is_dense);
  }
  const Rows& rows(size_t i) const { return rows_[i]; }  // of a, b and out
  bool is_copied(size_t i) const { return is_copied_[i]; }
  bool is_read(size_t i) const { return i < 2 || reads_out_; }

 private:
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

  const Rows rows_[3];
  const bool reads_out_;
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
  std::optional<AlignedCopy> copies[3];
  try {
    for (size_t i = 0; i < 3; ++i)
      if (plan.is_copied(i)) copies[i].emplace(call, p.dtype, plan.rows(i));
  } catch (const plugin::Error& error) {
    if (error.code != MICA_ERROR_OUT_OF_MEMORY) throw;
    for (auto& copy : copies) copy.reset();
    return multiply(given);
  }
  for (size_t i = 0; i < 3; ++i)
    if (copies[i] && plan.is_read(i)) copies[i]->Read();
  if (!multiply(p)) return false;
  if (copies[2]) copies[2]->Write();
  return true;
}

}  // namespace matmul
}  // namespace kit
}  // namespace mica
