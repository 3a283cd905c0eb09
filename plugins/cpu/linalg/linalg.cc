// The operators of class core: each states its operands. Shapes and dtypes are the
// host's concern (meta functions); here they fit.
#include "plugins/cpu/linalg/linalg.h"

#include <algorithm>

#include "plugins/cpu/linalg/cores.h"

namespace mica::cpu {
namespace {

using plugin::OwnedTensor;
using plugin::TensorRef;

int64_t Rows(const MicaTensor* t) { return TensorRef(t).size(-2); }
int64_t Cols(const MicaTensor* t) { return TensorRef(t).size(-1); }

int32_t RealOf(const MicaTensor* t) {
  const int32_t dtype = TensorRef(t).dtype();
  return dtype == MICA_C64 ? MICA_F32 : dtype == MICA_C128 ? MICA_F64 : dtype;
}
int32_t ComplexOf(const MicaTensor* t) {
  const int32_t dtype = TensorRef(t).dtype();
  return dtype == MICA_F32 ? MICA_C64 : dtype == MICA_F64 ? MICA_C128 : dtype;
}

CoreTask Task(Core core, const MicaTensor* like, int64_t m, int64_t n, int64_t k = 0) {
  CoreTask task{core, TensorRef(like).dtype()};
  task.m = m;
  task.n = n;
  task.k = k;
  return task;
}

// About how many multiplications a factorisation of m x n takes.
double Cube(int64_t m, int64_t n, double factor) {
  return factor * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::min(m, n));
}

void Cholesky(const MicaCall* call, MicaTensor* self, int32_t upper, MicaTensor* L, MicaTensor* info) {
  const int64_t n = Rows(self);
  CoreTask task = Task(Core::kCholesky, self, n, n);
  task.upper = upper != 0;
  RunCores(call, task, Cube(n, n, 0.33), {{self, L, 2, n, n, upper ? Part::kUpper : Part::kLower}}, info);
}

void Lu(const MicaCall* call, MicaTensor* A, MicaTensor* LU, MicaTensor* pivots, MicaTensor* info) {
  const int64_t m = Rows(A), n = Cols(A);
  RunCores(call, Task(Core::kLu, A, m, n), Cube(m, n, 0.67),
           {{A, LU, 2, m, n}, {nullptr, pivots, 1, std::min(m, n), 1, Part::kAll, MICA_I32}}, info);
}

void Inverse(const MicaCall* call, MicaTensor* A, MicaTensor* inverse, MicaTensor* info) {
  const int64_t n = Rows(A);
  RunCores(call, Task(Core::kInverse, A, n, n), Cube(n, n, 2), {{A, inverse, 2, n, n}}, info);
}

void SolveTriangular(const MicaCall* call, MicaTensor* self, MicaTensor* B, int32_t upper, int32_t left,
                     int32_t unitriangular, MicaTensor* out) {
  const int64_t m = Rows(out), n = Cols(out), side = left ? m : n;
  CoreTask task = Task(Core::kTriangularSolve, out, m, n);
  task.upper = upper != 0;
  task.left = left != 0;
  task.unit = unitriangular != 0;
  RunCores(call, task, Cube(m, n, 1), {{self, nullptr, 2, side, side}, {B, out, 2, m, n}}, nullptr);
}

// What follows serves composites: nobody has checked the arguments, and what does not
// fit is left to the composite, which says why.
void Require(bool fits) {
  if (!fits) throw plugin::NotImplemented();
}
void RequireMatrices(const TensorRef& t, int32_t dtype) {
  Require(t.ndim() >= 2 && t.dtype() == dtype &&
          (dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_C64 || dtype == MICA_C128));
}
// Whether `t` has the batch of `like`, and then dimensions `trailing`.
bool SameBatch(const TensorRef& like, const TensorRef& t, int32_t trailing) {
  return t.ndim() - trailing == like.ndim() - 2 &&
         std::equal(like.sizes(), like.sizes() + like.ndim() - 2, t.sizes());
}
void RequireVectors(const TensorRef& like, const TensorRef& t, int32_t dtype) {
  Require(t.ndim() >= 1 && t.dtype() == dtype && SameBatch(like, t, 1));
}
// Whether LAPACK stays within its memory with these pivots of n rows: between 1 and n,
// or in LDL factors two negative ones for a block of two rows.
bool ArePivots(const TensorRef& pivots, int64_t n, bool in_blocks) {
  const int64_t count = pivots.numel();
  bool second = false;  // the last was the first of a block
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (int32_t d = pivots.ndim() - 1; d >= 0; --d) {
      offset += rest % pivots.size(d) * pivots.stride(d);
      rest /= pivots.size(d);
    }
    const int64_t pivot = pivots.data<int32_t>()[offset];
    const int64_t row = in_blocks && pivot < 0 ? -pivot : pivot;
    if (row < 1 || row > n || (second && pivot > 0)) return false;
    second = pivot < 0 && !second;
    if (second && (i + 1) % n == 0) return false;
  }
  return true;
}
OwnedTensor EmptyLike(const TensorRef& t) {
  return OwnedTensor::Empty(t.sizes(), t.ndim(), t.dtype(), MicaDevice{0, 0});
}

MicaTensor* LuSolve(const MicaCall* call, MicaTensor* LU, MicaTensor* pivots, MicaTensor* B,
                    int32_t adjoint) {
  const TensorRef lu(LU), b(B), p(pivots);
  RequireMatrices(lu, lu.dtype());
  RequireMatrices(b, lu.dtype());
  RequireVectors(lu, p, MICA_I32);
  const int64_t n = lu.size(-1), k = b.size(-1);
  Require(lu.size(-2) == n && b.size(-2) == n && p.size(-1) == n && SameBatch(lu, b, 2) &&
          ArePivots(p, n, false));
  OwnedTensor out = EmptyLike(b);
  CoreTask task = Task(Core::kLuSolve, B, n, n, k);
  task.adjoint = adjoint != 0;
  RunCores(
      call, task, Cube(n, k, 2),
      {{LU, nullptr, 2, n, n}, {pivots, nullptr, 1, n, 1, Part::kAll, MICA_I32}, {B, out.get(), 2, n, k}},
      nullptr);
  return out.release();
}

void Geqrf(const MicaCall* call, MicaTensor* self, MicaTensor* a, MicaTensor* tau) {
  const int64_t m = Rows(self), n = Cols(self);
  RunCores(call, Task(Core::kQr, self, m, n), Cube(m, n, 1.5),
           {{self, a, 2, m, n}, {nullptr, tau, 1, std::min(m, n), 1}}, nullptr);
}

MicaTensor* HouseholderProduct(const MicaCall* call, MicaTensor* input, MicaTensor* tau) {
  const TensorRef a(input), t(tau);
  RequireMatrices(a, a.dtype());
  RequireVectors(a, t, a.dtype());
  const int64_t m = a.size(-2), n = a.size(-1), k = t.size(-1);
  Require(m >= n && n >= k);
  OwnedTensor out = EmptyLike(a);
  RunCores(call, Task(Core::kHouseholderProduct, input, m, n, k), Cube(m, n, 1.5),
           {{input, out.get(), 2, m, n}, {tau, nullptr, 1, k, 1}}, nullptr);
  return out.release();
}

MicaTensor* Ormqr(const MicaCall* call, MicaTensor* self, MicaTensor* tau, MicaTensor* other, int32_t left,
                  int32_t transpose) {
  const TensorRef a(self), t(tau), c(other);
  RequireMatrices(a, a.dtype());
  RequireMatrices(c, a.dtype());
  RequireVectors(a, t, a.dtype());
  const int64_t m = c.size(-2), n = c.size(-1), k = t.size(-1);
  Require(SameBatch(a, c, 2) && a.size(-2) == (left ? m : n) && a.size(-1) >= k && a.size(-2) >= k);
  OwnedTensor out = EmptyLike(c);
  CoreTask task = Task(Core::kMultiplyByQ, self, m, n, k);
  task.left = left != 0;
  task.adjoint = transpose != 0;
  RunCores(call, task, 2.0 * static_cast<double>(m * n * k),
           {{self, nullptr, 2, left ? m : n, k}, {tau, nullptr, 1, k, 1}, {other, out.get(), 2, m, n}},
           nullptr);
  return out.release();
}

void Eigh(const MicaCall* call, MicaTensor* A, int32_t upper, int32_t compute_v, MicaTensor* eigenvalues,
          MicaTensor* eigenvectors, MicaTensor* info) {
  const int64_t n = Rows(A);
  CoreTask task = Task(Core::kEigh, A, n, n);
  task.upper = upper != 0;
  task.vectors = compute_v != 0;
  RunCores(call, task, Cube(n, n, 9),
           {{A, compute_v ? eigenvectors : nullptr, 2, n, n},
            {nullptr, eigenvalues, 1, n, 1, Part::kAll, RealOf(A)}},
           info);
}

void Eig(const MicaCall* call, MicaTensor* self, int32_t compute_v, MicaTensor* eigenvalues,
         MicaTensor* eigenvectors, MicaTensor* info) {
  const int64_t n = Rows(self);
  CoreTask task = Task(Core::kEig, self, n, n);
  task.vectors = compute_v != 0;
  if (compute_v)
    return RunCores(call, task, Cube(n, n, 25),
                    {{self, nullptr, 2, n, n},
                     {nullptr, eigenvalues, 1, n, 1, Part::kAll, ComplexOf(self)},
                     {nullptr, eigenvectors, 2, n, n, Part::kAll, ComplexOf(self)}},
                    info);
  RunCores(call, task, Cube(n, n, 10),
           {{self, nullptr, 2, n, n}, {nullptr, eigenvalues, 1, n, 1, Part::kAll, ComplexOf(self)}}, info);
}

void Svd(const MicaCall* call, MicaTensor* A, int32_t full_matrices, int32_t compute_uv, MicaTensor* U,
         MicaTensor* S, MicaTensor* Vh, MicaTensor* info) {
  const int64_t m = Rows(A), n = Cols(A), k = std::min(m, n);
  CoreTask task = Task(Core::kSvd, A, m, n);
  task.full = full_matrices != 0;
  task.vectors = compute_uv != 0;
  if (!compute_uv)
    return RunCores(call, task, Cube(m, n, 3),
                    {{A, nullptr, 2, m, n}, {nullptr, S, 1, k, 1, Part::kAll, RealOf(A)}}, info);
  RunCores(call, task, Cube(m, n, 20),
           {{A, nullptr, 2, m, n},
            {nullptr, S, 1, k, 1, Part::kAll, RealOf(A)},
            {nullptr, U, 2, m, Cols(U)},
            {nullptr, Vh, 2, Rows(Vh), n}},
           info);
}

void LeastSquares(const MicaCall* call, MicaTensor* A, MicaTensor* B, double rcond, MicaStr driver,
                  MicaTensor* solution, MicaTensor* rank, MicaTensor* singular_values, MicaTensor* info) {
  const int64_t m = Rows(A), n = Cols(A), k = Cols(B), long_side = std::max(m, n);
  CoreTask task = Task(Core::kLeastSquares, A, m, n, k);
  task.rcond = rcond;
  // gels, gelsy, gelsd, gelss: the letter behind "gels" is the choice, none is gels.
  task.driver = driver.size > 4 ? driver.data[4] : 'l';
  RunCores(call, task, Cube(m, n, 10),
           {{A, nullptr, 2, m, n},
            {B, solution, 2, long_side, k},
            {nullptr, rank, 0, 1, 1, Part::kAll, MICA_I64},
            {nullptr, singular_values, 1, std::min(m, n), 1, Part::kAll, RealOf(A)}},
           info);
}

void Ldl(const MicaCall* call, MicaTensor* self, int32_t hermitian, MicaTensor* LD, MicaTensor* pivots,
         MicaTensor* info) {
  const int64_t n = Rows(self);
  CoreTask task = Task(Core::kLdl, self, n, n);
  task.hermitian = hermitian != 0;
  RunCores(call, task, Cube(n, n, 0.33),
           {{self, LD, 2, n, n, Part::kLower}, {nullptr, pivots, 1, n, 1, Part::kAll, MICA_I32}}, info);
}

void LdlSolve(const MicaCall* call, MicaTensor* LD, MicaTensor* pivots, MicaTensor* B, int32_t hermitian,
              MicaTensor* out) {
  const int64_t n = Rows(out), k = Cols(out);
  if (TensorRef(pivots).dtype() != MICA_I32) throw plugin::NotImplemented();
  MICA_PLUGIN_CHECK(ArePivots(pivots, n, true), MICA_ERROR_RUNTIME,
                    "The numbers in `pivots` are not those of LDL factors; expected what ldl_factor gave.");
  CoreTask task = Task(Core::kLdlSolve, out, n, n, k);
  task.hermitian = hermitian != 0;
  RunCores(call, task, static_cast<double>(n * n * k),
           {{LD, nullptr, 2, n, n}, {pivots, nullptr, 1, n, 1, Part::kAll, MICA_I32}, {B, out, 2, n, k}},
           nullptr);
}

}  // namespace

void RegisterLinalg(plugin::Registrar& r) {
  r.Kernel<&Cholesky>("_linalg_cholesky.out");
  r.Kernel<&Lu>("_linalg_lu.out");
  r.Kernel<&Inverse>("_linalg_inv.out");
  r.Kernel<&SolveTriangular>("linalg_solve_triangular.out");
  r.Kernel<&LuSolve>("_linalg_lu_solve");
  r.Kernel<&Geqrf>("geqrf.a");
  r.Kernel<&HouseholderProduct>("_householder_product");
  r.Kernel<&Ormqr>("_ormqr");
  r.Kernel<&Eigh>("_linalg_eigh.out");
  r.Kernel<&Eig>("_linalg_eig.out");
  r.Kernel<&Svd>("_linalg_svd.out");
  r.Kernel<&LeastSquares>("_linalg_lstsq.out");
  r.Kernel<&Ldl>("_linalg_ldl.out");
  r.Kernel<&LdlSolve>("linalg_ldl_solve.out");
}

}  // namespace mica::cpu
