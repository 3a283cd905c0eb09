// Products of a device's library on operands whose rows it reads fast.
//
// A library's fast kernels want rows at multiples of some bytes: cuBLAS takes 15.9 ms for the three products
// of a bfloat16 layer of 8,192 rows of 768 and GPT-2's 50,257 words on an H200, a sixth of what that
// computes. Where a copy at the speed of memory costs less, operands are copied to rows that are further
// apart, and a result is computed in such rows and copied to its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <mica/kit/product.h>

namespace mica {
namespace kit {
namespace matmul {

// A batch of matrices as rows whose elements lie side by side: the matrix's own rows, or its columns.
struct Rows {
  MatrixProduct::Matrix* matrix = nullptr;
  bool is_transposed = false;
  int64_t batches = 1, count = 0, length = 0;

  int64_t apart() const { return is_transposed ? matrix->column : matrix->row; }
  int64_t elements() const { return batches * count * length; }
};

// Rows of `matrix`, which is rows x columns; none where neither dimension lies side by side.
inline std::optional<Rows> RowsOf(MatrixProduct::Matrix& matrix, int64_t batches, int64_t rows,
                                  int64_t columns) {
  if (matrix.batch == 0) batches = 1;
  if (matrix.column == 1) return Rows{&matrix, false, batches, rows, columns};
  if (matrix.row == 1) return Rows{&matrix, true, batches, columns, rows};
  return std::nullopt;
}

inline bool IsAligned(const Rows& rows, int64_t bytes, int64_t alignment) {
  const auto fits = [&](int64_t offset) { return offset * bytes % alignment == 0; };
  return reinterpret_cast<uintptr_t>(rows.matrix->data) % static_cast<uintptr_t>(alignment) == 0 &&
         (rows.count == 1 || fits(rows.apart())) && (rows.batches == 1 || fits(rows.matrix->batch));
}

// Queues a copy of rows of `shape`'s sizes.
inline void CopyRows(const MicaCall* call, int32_t dtype, const Rows& shape,
                     const MatrixProduct::Matrix& from, const MatrixProduct::Matrix& to) {
  constexpr int64_t kEach = 8, kGroup = 256;
  const Device& device = DeviceOf(call);
  const int32_t bits = BytesOf(dtype) == 2 ? MICA_U16 : MICA_U32;
  Key key("copy_rows");
  key.Add(bits);
  const Kernel& kernel = FindKernel(device, key, "copy_rows", call->name, [&] {
    return LanesText(device, {bits, 1}, false) + Define("E", std::string("E_") + Suffix(bits)) +
           Define("PER", std::to_string(kEach)) + kCopyRowsText;
  });
  const auto row = [&](const MatrixProduct::Matrix& m) { return shape.is_transposed ? m.column : m.row; };
  const int64_t rows = shape.batches * shape.count;
  Launch launch(call, kernel);
  launch.Pointer(from.data).Value<int64_t>(from.batch).Value<int64_t>(row(from));
  launch.Pointer(to.data).Value<int64_t>(to.batch).Value<int64_t>(row(to));
  launch.Value<int64_t>(rows).Value<int64_t>(shape.count).Value<int64_t>(shape.length);
  int64_t wide = kGroup;  // work-items of a group that share a row
  while (wide > 32 && wide / 2 * kEach >= shape.length) wide /= 2;
  const int64_t high = kGroup / wide;
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
  void Read() const { CopyRows(call_, dtype_, rows_, original_, copy_); }
  void Write() const { CopyRows(call_, dtype_, rows_, copy_, original_); }

 private:
  static int64_t Apart(int32_t dtype, const Rows& rows) {
    const int64_t unit = 128 / BytesOf(dtype);
    return (rows.length + unit - 1) / unit * unit;
  }
  static int64_t Bytes(int32_t dtype, const Rows& rows) {
    return rows.batches * rows.count * Apart(dtype, rows) * BytesOf(dtype);
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

// Two copies of a byte take the time of some 300 operations on tensor cores (H200: 700 TFLOP/s, 4.3 TB/s),
// which take several times as long on rows that are not aligned. Below 4 GFLOP, launches cost what is saved.
constexpr double kLeastWork = 4e9, kWorkOfByte = 256;

// A product's matrices, which lie in rows, and which of them are to be copied.
struct RowsOfProduct {
  Rows rows[3];  // a, b, out
  bool is_copied[3] = {};
  bool reads_out;

  // Whether there are copies, and they pay.
  bool Find(MatrixProduct& p, int64_t alignment) {
    const std::optional<Rows> found[] = {RowsOf(p.a, p.batches, p.m, p.k), RowsOf(p.b, p.batches, p.k, p.n),
                                         RowsOf(p.out, p.batches, p.m, p.n)};
    reads_out = !p.row && !IsZero(p.beta);
    int64_t elements = 0;
    for (size_t i = 0; i < 3; ++i) {
      if (!found[i]) return false;
      rows[i] = *found[i];
      is_copied[i] = !IsAligned(rows[i], BytesOf(p.dtype), alignment);
      if (is_copied[i]) elements += rows[i].elements() * (i == 2 && reads_out ? 2 : 1);
    }
    return elements > 0 && WorkOf(p) >= kWorkOfByte * double(elements) * BytesOf(p.dtype);
  }
};

// Queues the driver's product, on aligned copies of matrices where that is faster; false where the driver
// does not take it.
inline bool Multiply(const MicaCall* call, const MatrixProduct& given) {
  const Device& device = DeviceOf(call);
  const auto multiply = [&](const MatrixProduct& p) {
    return TheDriver()->Multiply(device, p, call->stream);
  };
  if (WorkOf(given) < kLeastWork) return multiply(given);
  MatrixProduct p = given;
  RowsOfProduct lying;
  const int64_t alignment = TheDriver()->ProductAlignment(device, p.dtype);
  if (alignment == 1 || !lying.Find(p, alignment)) return multiply(given);
  std::optional<AlignedCopy> copies[3];
  try {
    for (size_t i = 0; i < 3; ++i)
      if (lying.is_copied[i]) copies[i].emplace(call, p.dtype, lying.rows[i]);
  } catch (const plugin::Error& error) {
    if (error.code != MICA_ERROR_OUT_OF_MEMORY) throw;
    for (auto& copy : copies) copy.reset();
    return multiply(given);
  }
  for (size_t i = 0; i < 3; ++i)
    if (copies[i] && (i < 2 || lying.reads_out)) copies[i]->Read();
  if (!multiply(p)) return false;
  if (copies[2]) copies[2]->Write();
  return true;
}

}  // namespace matmul
}  // namespace kit
}  // namespace mica
