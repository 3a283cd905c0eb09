// Inverses, LU factors and triangular systems of batches of matrices.
//
// Plain LU decomposition with partial pivoting and substitution, in double or
// complex<double>.
#include "kernels/portable/lanes.h"
#include "mica/kernels/portable_declarations.h"
#include "tensor/shape.h"

namespace mica::portable {
namespace {

// VisitLane for the lanes in which one can divide.
template <typename F>
void VisitField(DType dtype, const char* what, F&& f) {
  MICA_CHECK(IsDifferentiable(dtype), "Operator ", what, " does not support the dtype (", Name(dtype),
             "); expected a floating or complex one.");
  if (IsComplex(dtype))
    f.template operator()<Complex>();
  else
    f.template operator()<double>();
}

// P A = L U in place, row-major m x n: L below the diagonal (its own is 1), U on and
// above. Row k was exchanged with row pivots[k].
struct Pivots {
  std::vector<int64_t> rows;
  int64_t zero = -1;  // the first pivot that is 0, or -1
};
// What LAPACK compares to choose a pivot: of a complex number, |re| + |im|.
double PivotSize(double x) { return std::abs(x); }
double PivotSize(const Complex& x) { return std::abs(x.real()) + std::abs(x.imag()); }

template <typename T>
Pivots Decompose(T* a, int64_t m, int64_t n) {
  Pivots p;
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < m; ++i)
      if (PivotSize(a[i * n + k]) > PivotSize(a[best * n + k])) best = i;
    if (best != k) std::swap_ranges(a + k * n, a + (k + 1) * n, a + best * n);
    p.rows.push_back(best);
    const T pivot = a[k * n + k];
    if (pivot == T(0)) {
      if (p.zero < 0) p.zero = k;
      continue;
    }
    for (int64_t i = k + 1; i < m; ++i) {
      const T factor = a[i * n + k] /= pivot;
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return p;
}

// Solves a x = b in place for one right side whose elements are `step` apart;
// a(i, j) lies at a[i * row + j * column].
template <typename T>
void Substitute(const T* a, int64_t row, int64_t column, int64_t n, bool upper, bool unit, T* b,
                int64_t step) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = upper ? n - 1 - k : k;
    T sum = b[i * step];
    for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); ++j)
      sum -= a[i * row + j * column] * b[j * step];
    b[i * step] = unit ? sum : sum / a[i * row + i * column];
  }
}

int64_t MatrixCount(IntSpan sizes) {
  int64_t count = 1;
  for (int64_t d = 0; d + 2 < sizes.size(); ++d) count *= sizes[d];
  return count;
}

// `t` with its batch dimensions broadcast to those of `like`, as lanes.
template <typename T>
std::vector<T> ToBatch(const Tensor& t, const Tensor& like) {
  Dims sizes = ToDims(like.sizes().subspan(0, like.ndim() - 2)), resolved;
  for (int64_t d = t.ndim() - 2; d < t.ndim(); ++d) sizes.push_back(t.sizes()[d]);
  return ToLanes<T>(MakeView(t, sizes, BroadcastStrides(t, sizes), t.storage_offset() * t.itemsize(), true));
}

}  // namespace

void _linalg_inv(const Tensor& A, const Tensor& inverse, const Tensor& info) {
  const int64_t n = A.size(-1);
  VisitField(A.dtype(), "_linalg_inv", [&]<typename T>() {
    std::vector<T> a = ToLanes<T>(A), x(a.size(), T(0));
    std::vector<int64_t> failures;
    for (int64_t m = 0; m < MatrixCount(A.sizes()); ++m) {
      T* lu = a.data() + m * n * n;
      T* result = x.data() + m * n * n;
      const Pivots p = Decompose(lu, n, n);
      failures.push_back(p.zero + 1);
      for (int64_t i = 0; i < n; ++i) result[i * n + i] = T(1);
      for (int64_t i = 0; i < n; ++i)
        std::swap_ranges(result + i * n, result + (i + 1) * n, result + p.rows[static_cast<size_t>(i)] * n);
      for (int64_t j = 0; p.zero < 0 && j < n; ++j) {
        Substitute(lu, n, 1, n, false, true, result + j, n);
        Substitute(lu, n, 1, n, true, false, result + j, n);
      }
    }
    FromLanes(x, inverse);
    FromLanes(failures, info);
  });
}

void _linalg_lu(const Tensor& A, const Tensor& LU, const Tensor& pivots, const Tensor& info) {
  const int64_t rows = A.size(-2), columns = A.size(-1);
  VisitField(A.dtype(), "_linalg_lu", [&]<typename T>() {
    std::vector<T> a = ToLanes<T>(A);
    std::vector<int64_t> exchanges, failures;
    for (int64_t m = 0; m < MatrixCount(A.sizes()); ++m) {
      const Pivots p = Decompose(a.data() + m * rows * columns, rows, columns);
      for (const int64_t row : p.rows) exchanges.push_back(row + 1);
      failures.push_back(p.zero + 1);
    }
    FromLanes(a, LU);
    FromLanes(exchanges, pivots);
    FromLanes(failures, info);
  });
}

void _pivots_to_permutation(const Tensor& pivots, int64_t rows, const Tensor& out) {
  const std::vector<int64_t> exchanges = ToLanes<int64_t>(pivots);
  const int64_t count = pivots.size(-1), batch = rows == 0 ? 0 : out.numel() / rows;
  std::vector<int64_t> permutation(static_cast<size_t>(out.numel()));
  for (int64_t m = 0; m < batch; ++m) {
    int64_t* row = permutation.data() + m * rows;
    for (int64_t i = 0; i < rows; ++i) row[i] = i;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t other = exchanges[static_cast<size_t>(m * count + i)];
      MICA_CHECK(other >= 1 && other <= rows,
                 "Pivots given to lu_solve must all be greater or equal to 1 and smaller or equal to "
                 "LU.size(-2), that is between 1 and LU.size(-2). A pivot is (",
                 other, ") for (", rows, ") rows.");
      std::swap(row[i], row[other - 1]);
    }
  }
  FromLanes(permutation, out);
}

void linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular,
                             const Tensor& out) {
  const int64_t rows = out.sizes()[out.ndim() - 2], columns = out.sizes()[out.ndim() - 1];
  const int64_t n = left ? rows : columns;
  VisitField(self.dtype(), "linalg_solve_triangular", [&]<typename T>() {
    const std::vector<T> a = ToBatch<T>(self, out);
    std::vector<T> x = ToBatch<T>(B, out);
    for (int64_t m = 0; m < MatrixCount(out.sizes()); ++m) {
      const T* matrix = a.data() + m * n * n;
      T* b = x.data() + m * rows * columns;
      // X A = B is A^T X^T = B^T: the matrix is read by columns.
      for (int64_t j = 0; left && j < columns; ++j)
        Substitute(matrix, n, 1, n, upper, unitriangular, b + j, columns);
      for (int64_t i = 0; !left && i < rows; ++i)
        Substitute(matrix, 1, n, n, !upper, unitriangular, b + i * columns, 1);
    }
    FromLanes(x, out);
  });
}

}  // namespace mica::portable
