// Products on copies with aligned rows (mica/kit/aligned_product.h): a library that is imitated says what it
// was given, and the kernels that copy run on the simulated GPU.
//
// Elements are numbers that say where they belong, and are never added up: the library checks those of its
// operands and writes those of a result.
#include <mica/kit/aligned_product.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "plugins/gpu/kit_driver.h"
#include "test/unit/gpu/simt_fixture.h"

namespace simt::test {
namespace {

using mica::kit::MatrixProduct;

// What stands at (batch, row, column) of a, b, the result before and the result.
enum Which : uint32_t { kA = 1, kB, kBefore, kResult, kRow };
uint32_t Code(Which which, int64_t batch, int64_t row, int64_t column) {
  return static_cast<uint32_t>((batch * 7919 + row) * 104729 + column * 31) * 2654435761u + which * 977u;
}

// Device memory as a host gives it; `to_go` allocations until one fails.
struct Memory {
  int to_go = -1, given = 0, in_use = 0;
};
Memory& TheMemory() {
  static Memory memory;
  return memory;
}
MicaStatus Allocate(MicaDevice, int64_t size, uint64_t, void** out) {
  if (TheMemory().to_go == 0) return mica::plugin::BareStatus(MICA_ERROR_OUT_OF_MEMORY);
  --TheMemory().to_go, ++TheMemory().given, ++TheMemory().in_use;
  *out = Simt().Allocate(0, size);
  return nullptr;
}
void Free(MicaDevice, void* data) {
  --TheMemory().in_use;
  Simt().StreamSync(0, 0);
  Simt().Free(0, data);
}

template <typename T>
T* Element(std::vector<T>& all, const gpu::GemmMatrix& m, int64_t batch, int64_t row, int64_t column) {
  return &all[static_cast<size_t>(batch * m.batch_stride + row * m.row_stride + column * m.column_stride)];
}

// The elements of a batch of matrices, with what lies between them.
template <typename T>
std::vector<T> Read(const gpu::GemmMatrix& m, int64_t batches, int64_t rows, int64_t columns) {
  const int64_t last =
      (batches - 1) * m.batch_stride + (rows - 1) * m.row_stride + (columns - 1) * m.column_stride;
  std::vector<T> all(static_cast<size_t>(last + 1));
  Simt().CopyToHost(0, all.data(), m.data, static_cast<int64_t>(all.size() * sizeof(T)), 0);
  Simt().StreamSync(0, 0);
  return all;
}

template <typename T, typename F>
void ForEach(std::vector<T>& all, const gpu::GemmMatrix& m, int64_t batches, int64_t rows, int64_t columns,
             F&& f) {
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) f(*Element(all, m, batch, i, j), batch, i, j);
}

class Library final : public gpu::Products {
 public:
  bool Gemm(const gpu::GemmProblem& problem) override {
    given = problem;
    if (refuses) return false;
    return problem.dtype == MICA_F32 ? Compute<uint32_t>(problem) : Compute<uint16_t>(problem);
  }
  int64_t Alignment(int32_t) override { return alignment; }

  gpu::GemmProblem given;
  int64_t alignment = 16;
  bool refuses = false, operands_are_right = false;
  bool a_is_one = false;  // all of its elements are the first
  bool row_is_filled = false;
  std::array<int64_t, 3> true_sizes = {};  // m, n and k

 private:
  struct Size {
    int64_t own, filled;
  };
  template <typename T>
  bool Compute(const gpu::GemmProblem& p) {
    operands_are_right = true;
    // Rows and columns past the true ones hold zeros.
    const auto check = [&](const gpu::GemmMatrix& matrix, Which which, Size rows, Size columns) {
      std::vector<T> all = Read<T>(matrix, p.batch, rows.filled, columns.filled);
      ForEach(all, matrix, p.batch, rows.filled, columns.filled,
              [&](T& value, int64_t b, int64_t i, int64_t j) {
                const bool is_first = which == kA && a_is_one;
                const int64_t own = matrix.batch_stride == 0 ? 0 : b;
                const uint32_t code = i >= rows.own || j >= columns.own ? 0
                                      : is_first                        ? Code(kA, 0, 0, 0)
                                                                        : Code(which, own, i, j);
                operands_are_right &= value == static_cast<T>(code);
              });
    };
    const Size m = {true_sizes[0], p.m}, n = {true_sizes[1], p.n}, k = {true_sizes[2], p.k};
    check(p.a, kA, m, k);
    check(p.b, kB, k, n);
    if (p.row && row_is_filled) {
      const gpu::GemmMatrix row = {const_cast<void*>(p.row), 0, 1, 0};
      check(row, kRow, {1, 1}, n);
    }
    std::vector<T> out = Read<T>(p.c, p.batch, p.m, p.n);
    ForEach(out, p.c, p.batch, p.m, p.n, [&](T& value, int64_t batch, int64_t i, int64_t j) {
      const T before = p.row || p.beta[0] == 0 ? T{0} : value;
      value = static_cast<T>(Code(kResult, batch, i, j) + before);
    });
    Simt().CopyToDevice(0, p.c.data, out.data(), static_cast<int64_t>(out.size() * sizeof(T)), 0);
    Simt().StreamSync(0, 0);
    return true;
  }
};

gpu::Devices& TheDevices() {
  static gpu::Devices devices(Simt());
  return devices;
}

// The kit's driver and a host, for the rest of the process.
Library& TheLibrary() {
  static Library library;
  static gpu::KitDriver driver(TheDevices(), &library, nullptr);
  static const MicaHost host = [] {
    MicaHost made{};
    made.struct_size = sizeof made;
    made.allocate = &Allocate;
    made.free = &Free;
    made.backend_index = [](MicaStr) { return int32_t{1}; };
    return made;
  }();
  mica::plugin::Host() = &host;
  mica::kit::TheDriver() = &driver;
  library.alignment = 16, library.refuses = library.a_is_one = library.row_is_filled = false;
  TheMemory() = {};
  return library;
}

// How a matrix lies: its rows or its columns side by side, so many elements further apart than they are long,
// and so many behind an aligned address.
struct Layout {
  bool by_columns = false;
  int64_t gap = 0, offset = 0;
  bool is_shared = false;  // by the batch
  int64_t step = 1;        // from an element of a row to the next
  int64_t batch_gap = 0;   // between one matrix and the next
};

template <typename T>
struct Operand {
  Operand(Which which, Layout layout, int64_t batches, int64_t rows, int64_t columns)
      : layout(layout), batches(layout.is_shared ? 1 : batches), rows(rows), columns(columns) {
    const int64_t step = layout.step;
    const int64_t apart = (layout.by_columns ? rows : columns) * step + layout.gap;
    const int64_t size = apart * (layout.by_columns ? columns : rows) + layout.batch_gap;
    m = {nullptr, layout.by_columns ? step : apart, layout.by_columns ? apart : step, batches > 1 ? size : 0};
    if (layout.is_shared) m.batch_stride = 0;
    values.assign(static_cast<size_t>(this->batches * size), T{12345});
    ForEach(values, m, this->batches, rows, columns,
            [&](T& value, int64_t b, int64_t i, int64_t j) { value = static_cast<T>(Code(which, b, i, j)); });
    std::vector<T> all(static_cast<size_t>(layout.offset));
    all.insert(all.end(), values.begin(), values.end());
    memory = std::make_unique<Array<T>>(all);
    m.data = memory->data() + layout.offset;
  }
  MatrixProduct::Matrix matrix() const { return {m.data, m.batch_stride, m.row_stride, m.column_stride}; }

  const Layout layout;
  const int64_t batches, rows, columns;
  gpu::GemmMatrix m;
  std::vector<T> values;
  std::unique_ptr<Array<T>> memory;
};

struct Shape {
  int64_t batches, m, n, k;
};

template <typename T>
class Problem {
 public:
  Problem(Shape s, Layout a, Layout b, Layout out)
      : library_(TheLibrary()),
        a_(kA, a, s.batches, s.m, s.k),
        b_(kB, b, s.batches, s.k, s.n),
        out_(kBefore, out, s.batches, s.m, s.n) {
    product.dtype = sizeof(T) == 4 ? MICA_F32 : MICA_BF16;
    product.batches = s.batches, product.m = s.m, product.n = s.n, product.k = s.k;
    product.a = a_.matrix(), product.b = b_.matrix(), product.out = out_.matrix();
  }

  bool Run() {
    MicaCall call{};
    call.struct_size = sizeof call;
    call.name = "mica::mm.out";
    library_.true_sizes = {product.m, product.n, product.k};
    return mica::kit::matmul::Multiply(&call, product);
  }

  // Requires that the result is right, that nothing around it was written and no memory is kept.
  void Check() {
    REQUIRE(Run());
    REQUIRE(library_.operands_are_right);
    REQUIRE(TheMemory().in_use == 0);
    const bool adds = !product.row && product.beta.u.i != 0;
    ForEach(out_.values, out_.m, out_.batches, out_.rows, out_.columns,
            [&](T& value, int64_t b, int64_t i, int64_t j) {
              value = static_cast<T>(Code(kResult, b, i, j) + (adds ? value : 0));
            });
    std::vector<T> all = out_.memory->Values();
    all.erase(all.begin(), all.begin() + out_.layout.offset);
    REQUIRE((all == out_.values));
  }

  // Whether the library got the matrices where they lie.
  std::array<bool, 3> IsCopied() const {
    const gpu::GemmProblem& p = library_.given;
    return {p.a.data != a_.m.data, p.b.data != b_.m.data, p.c.data != out_.m.data};
  }
  // Whether the rows that it got are aligned.
  bool IsAligned() const {
    const gpu::GemmProblem& p = library_.given;
    const int64_t rows[] = {p.m, p.k, p.m}, columns[] = {p.k, p.n, p.n};
    size_t i = 0;
    for (const gpu::GemmMatrix& m : {p.a, p.b, p.c}) {
      if ((m.column_stride == 1 ? columns : rows)[i++] * int64_t{sizeof(T)} % 16 != 0) return false;
      const int64_t apart = m.column_stride == 1 ? m.row_stride : m.column_stride;
      if (reinterpret_cast<uintptr_t>(m.data) % 16 != 0 || apart * int64_t{sizeof(T)} % 16 != 0 ||
          m.batch_stride * int64_t{sizeof(T)} % 16 != 0)
        return false;
    }
    return true;
  }

  MatrixProduct product;

 private:
  Library& library_;
  Operand<T> a_, b_, out_;
};

using Copied = std::array<bool, 3>;
constexpr Shape kLarge = {1, 1264, 1264, 1264};  // 4 GFLOP, and rows at multiples of 16 bytes

TEST_CASE("rows that are not aligned are copied, in both layouts", "[gpu][kit]") {
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      Problem<uint16_t> odd({1, 1263, 1267, 1265}, {a}, {b}, {a != b});
      odd.Check();
      REQUIRE((odd.IsCopied() == Copied{true, true, true} && odd.IsAligned()));
      REQUIRE(TheMemory().given == 3);
    }
}

// Rows of any length, in more rows than there are groups, with zeros behind them.
template <typename T>
void CheckRows(int64_t length, int64_t more) {
  using mica::kit::matmul::Side;
  constexpr int64_t kBatches = 2, kRows = 37, kApart = 3, kStart = 1;
  const int64_t to_rows = kRows + more, from_row = length + kApart, to_row = length + more + 2 * kApart;
  const int64_t from_batch = kRows * from_row + 5, to_batch = to_rows * to_row + 7;
  std::vector<T> values = Counted<T>(static_cast<size_t>(kStart + kBatches * from_batch));
  std::vector<T> expected(static_cast<size_t>(kStart + kBatches * to_batch), T{12345});
  Array<T> from(values), to(expected);
  for (int64_t batch = 0; batch < kBatches; ++batch)
    for (int64_t row = 0; row < to_rows; ++row) {
      const auto y = expected.begin() + kStart + batch * to_batch + row * to_row;
      std::fill_n(y, length + more, T{0});
      if (row < kRows) std::copy_n(values.begin() + kStart + batch * from_batch + row * from_row, length, y);
    }
  MicaCall call{};
  call.struct_size = sizeof call;
  call.name = "mica::mm.out";
  mica::kit::matmul::CopyRows(&call, sizeof(T) == 4 ? MICA_F32 : MICA_F16, kBatches,
                              Side{from.data() + kStart, from_batch, from_row, kRows, length},
                              Side{to.data() + kStart, to_batch, to_row, to_rows, length + more});
  INFO("length " << length);
  REQUIRE((to.Values() == expected));
}

TEST_CASE("rows of any length are copied", "[gpu][kit]") {
  TheLibrary();
  int64_t& groups = TheDevices().At(0).traits.max_groups_yz;
  const int64_t before = std::exchange(groups, 3);
  for (const int64_t length : {1, 7, 32, 255, 256, 257, 300, 512, 513, 1024, 1030, 2047, 2048, 2049, 5000}) {
    CheckRows<uint16_t>(length, 0);
    CheckRows<uint32_t>(length, length % 8);
  }
  groups = before;
}

TEST_CASE("what is aligned is not copied", "[gpu][kit]") {
  const auto copied = [](Layout a, Layout b, Layout out) {
    Problem<uint16_t> problem(kLarge, a, b, out);
    problem.Check();
    REQUIRE(problem.IsAligned());
    return problem.IsCopied();
  };
  REQUIRE((copied({}, {}, {}) == Copied{false, false, false}));
  REQUIRE((copied({true, 8}, {false, 16}, {true}) == Copied{false, false, false}));
  REQUIRE((copied({false, 1}, {}, {}) == Copied{true, false, false}));
  REQUIRE((copied({}, {true, 7}, {}) == Copied{false, true, false}));
  REQUIRE((copied({}, {}, {false, 3}) == Copied{false, false, true}));
  REQUIRE((copied({false, 0, 1}, {}, {true, 0, 4}) == Copied{true, false, true}));  // addresses alone
  REQUIRE(TheMemory().given == 2);
}

TEST_CASE("floats in rows of four bytes too many, and a result that is read", "[gpu][kit]") {
  Problem<uint32_t> floats(kLarge, {true, 1}, {}, {});
  floats.Check();
  REQUIRE((floats.IsCopied() == Copied{true, false, false} && floats.IsAligned()));
  Problem<uint16_t> adds(kLarge, {}, {}, {false, 1});
  adds.product.beta.u.i = 1;
  adds.Check();
  REQUIRE((adds.IsCopied() == Copied{false, false, true} && adds.IsAligned()));
  Array<uint16_t> row(1264);
  Problem<uint16_t> with_row(kLarge, {}, {}, {true, 1});
  with_row.product.beta.u.i = 1, with_row.product.row = row.data();  // in place of what the result held
  with_row.Check();
  REQUIRE((with_row.IsCopied() == Copied{false, false, true} && with_row.IsAligned()));
}

TEST_CASE("a row that is added is as long as the copy of a result", "[gpu][kit]") {
  std::vector<uint16_t> values(1265);
  for (size_t j = 0; j < values.size(); ++j)
    values[j] = static_cast<uint16_t>(Code(kRow, 0, 0, static_cast<int64_t>(j)));
  Array<uint16_t> row(values);
  Problem<uint16_t> with_row({1, 1264, 1265, 1264}, {}, {true}, {});
  with_row.product.row = row.data();
  TheLibrary().row_is_filled = true;
  with_row.Check();
  REQUIRE((with_row.IsCopied() == Copied{false, true, true} && with_row.IsAligned()));
  REQUIRE((TheLibrary().given.row != row.data() && TheLibrary().given.n == 1280));
}

TEST_CASE("sizes are filled up where elements lie side by side", "[gpu][kit]") {
  using mica::kit::matmul::FilledUp;
  REQUIRE((FilledUp(50257, 2, 16) == 50304 && FilledUp(257, 2, 16) == 272 && FilledUp(100, 2, 16) == 104));
  REQUIRE((FilledUp(4097, 4, 16) == 4128 && FilledUp(1264, 2, 16) == 1264));
  Problem<uint16_t> rows({1, 1263, 1264, 1272}, {}, {}, {});  // no row is 1263 long
  rows.Check();
  REQUIRE((rows.IsCopied() == Copied{false, false, false} && TheLibrary().given.m == 1263));
  Problem<uint16_t> depth({1, 1264, 1264, 1267}, {}, {}, {});  // which b has as many rows as a's are long
  depth.Check();
  REQUIRE((depth.IsCopied() == Copied{true, true, false} && TheLibrary().given.k == 1280));
  Problem<uint16_t> narrow({1, 8001, 63, 8001}, {}, {}, {});
  narrow.Check();
  REQUIRE((narrow.IsCopied() == Copied{false, false, false}));  // memory takes longer, with any kernel
}

TEST_CASE("batches whose matrices are not aligned", "[gpu][kit]") {
  Problem<uint16_t> odd({2, 1001, 1003, 1005}, {}, {true}, {});
  odd.Check();
  REQUIRE((odd.IsCopied() == Copied{true, true, true} && odd.IsAligned()));
  Problem<uint16_t> shared({2, 1008, 1008, 1008}, {false, 1, 0, true}, {}, {true});
  shared.Check();
  REQUIRE((shared.IsCopied() == Copied{true, false, false} && shared.IsAligned()));
  REQUIRE(TheLibrary().given.a.batch_stride == 0);
  Problem<uint16_t> further({2, 1008, 1008, 1008}, {false, 0, 0, false, 1, 8}, {true, 0, 0, false, 1, 4}, {});
  further.Check();
  REQUIRE((further.IsCopied() == Copied{false, true, false} && further.IsAligned()));
}

TEST_CASE("products that copies do not make faster", "[gpu][kit]") {
  const auto copies = [](Shape s, int64_t alignment) {
    Problem<uint16_t> problem(s, {}, {}, {});
    TheLibrary().alignment = alignment;
    problem.Check();
    REQUIRE(TheMemory().given == 0);
    return problem.IsCopied() != Copied{false, false, false};
  };
  REQUIRE(!copies({1, 1263, 1263, 1263}, 1));  // a library that does not mind
  REQUIRE(!copies({1, 601, 601, 601}, 16));    // small
  REQUIRE(!copies({1, 2885, 240, 2889}, 16));  // a costs more to copy than 240 columns take
  for (const int64_t alignment : {0, 1}) {
    Problem<uint16_t> complex({1, 1263, 1263, 1263}, {}, {}, {});
    complex.product.dtype = MICA_C64;
    TheLibrary().alignment = alignment;
    REQUIRE((complex.Run() && TheMemory().given == 0));
  }
  for (const Shape s : {Shape{1, 501, 501, 601}, Shape{1, 31, 1001, 6453}}) {
    Problem<uint16_t> gaps(s, {}, {false, 0, 0, false, 2}, {});
    gaps.Check();
    REQUIRE((gaps.IsCopied() == Copied{false, false, false}));
  }
  Problem<uint16_t> gaps(kLarge, {false, 0, 0, false, 2}, {}, {});
  TheLibrary().alignment = 0;  // no library
  gaps.Check();
  REQUIRE((gaps.IsCopied() == Copied{false, false, false}));
}

TEST_CASE("matrices with gaps between elements are copied, whatever the dtype", "[gpu][kit]") {
  constexpr Shape kMedium = {1, 601, 603, 605};  // 0.4 GFLOP
  for (const bool by_columns : {false, true}) {
    const Layout gaps = {by_columns, 1, 0, false, 3};
    Problem<uint32_t> floats(kMedium, gaps, {}, gaps);
    TheLibrary().alignment = 1;
    floats.Check();
    REQUIRE((floats.IsCopied() == Copied{true, false, true}));
    const gpu::GemmMatrix& a = TheLibrary().given.a;
    REQUIRE((by_columns ? a.row_stride : a.column_stride) == 1);  // read in the order of memory
    Problem<uint16_t> halves({2, 601, 603, 605}, {}, gaps, {});
    halves.Check();
    REQUIRE((halves.IsCopied() == Copied{false, true, false}));  // too small to align the others
  }
  Problem<uint16_t> adds(kLarge, {}, {}, {false, 0, 0, false, 2});
  adds.product.beta.u.i = 1;
  adds.Check();
  REQUIRE((adds.IsCopied() == Copied{false, false, true} && adds.IsAligned()));
}

TEST_CASE("one number that is spread over a matrix, as the gradient of a sum is", "[gpu][kit]") {
  Problem<uint16_t> one({1, 601, 603, 605}, {}, {}, {});
  TheLibrary().a_is_one = true;
  one.product.a.row = one.product.a.column = 0;
  one.Check();
  REQUIRE((one.IsCopied() == Copied{true, false, false}));
}

TEST_CASE("a column is rows of one element, or one row", "[gpu][kit]") {
  using mica::kit::matmul::RowsOf;
  MatrixProduct::Matrix strided = {nullptr, 0, 5, 0}, dense = {nullptr, 0, 1, 0};
  const mica::kit::matmul::Rows apart = RowsOf(strided, 1, 1000, 1), one = RowsOf(dense, 1, 1000, 1);
  REQUIRE((apart.is_dense && apart.count == 1000 && apart.length == 1));
  REQUIRE(mica::kit::matmul::IsAligned(apart, 2, 16));  // there is nothing to read at once
  REQUIRE((one.is_dense && one.count == 1 && one.length == 1000));
}

TEST_CASE("without memory for copies the library gets matrices where they lie", "[gpu][kit]") {
  for (int to_go = 0; to_go < 3; ++to_go) {
    Problem<uint16_t> odd({1, 1263, 1267, 1265}, {}, {}, {});
    TheMemory().to_go = to_go;
    odd.Check();
    REQUIRE((odd.IsCopied() == Copied{false, false, false} && TheMemory().given == to_go));
  }
}

TEST_CASE("a product that the library refuses leaves the result as it was", "[gpu][kit]") {
  Problem<uint16_t> odd({1, 1263, 1267, 1265}, {}, {}, {});
  TheLibrary().refuses = true;
  REQUIRE((!odd.Run() && TheMemory().in_use == 0));
  TheLibrary().refuses = false;
  odd.product.beta.u.i = 1;
  odd.Check();  // of what it held before
}

}  // namespace
}  // namespace simt::test
