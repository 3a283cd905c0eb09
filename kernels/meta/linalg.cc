// Meta functions of linear algebra: matrices stand in the last two dimensions, all
// others are batch.
#include <algorithm>

#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"

namespace mica::meta {
namespace {

void CheckMatrices(const Tensor& a, const char* name) {
  MICA_CHECK(a.ndim() >= 2, "The input tensor `", name, "` must have at least 2 dimensions, but it has ",
             a.ndim(), ".");
  const DType d = a.dtype();
  MICA_CHECK(d == DType::kF32 || d == DType::kF64 || IsComplex(d),
             "Expected a floating point or complex tensor as input of float32, float64 or a complex dtype "
             "(Low precision dtypes not supported), but the dtype of `",
             name, "` is (", Name(d), ").");
}

void CheckSquare(const Tensor& a, const char* name) {
  CheckMatrices(a, name);
  MICA_CHECK(a.size(-1) == a.size(-2), "`", name, "` must be batches of square matrices, but they are ",
             a.size(-2), " by ", a.size(-1), " matrices; its shape is ", ShapeText(a.sizes()), ".");
}

// Sizes of the batch, and what follows them.
Dims Batch(const Tensor& a, std::initializer_list<int64_t> rest, int64_t trailing = 2) {
  Dims sizes = ToDims(a.sizes().subspan(0, a.ndim() - trailing));
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return sizes;
}

DType ComplexOf(DType d) { return d == DType::kF32 ? DType::kC64 : d == DType::kF64 ? DType::kC128 : d; }

void AddInfo(MetaResult& result, const Tensor& a) {
  AddOutput(result, Batch(a, {}), DType::kI32, a.device());
}

// LAPACK's pivots are int32.
void CheckPivots(const Tensor& pivots, const Tensor& a, int64_t count, const char* name, const char* of) {
  MICA_CHECK(pivots.dtype() == DType::kI32, "Dtype (", Name(pivots.dtype()), ") of `", name,
             "` is not int32, which LAPACK's pivots are.");
  MICA_CHECK(pivots.ndim() == a.ndim() - 1 && pivots.sizes() == IntSpan(Batch(a, {count})), "Shape ",
             ShapeText(pivots.sizes()), " of `", name, "` is not ", ShapeText(Batch(a, {count})),
             ", that of `", of, "` with shape ", ShapeText(a.sizes()), " in pivots.");
  CheckSameDevice(a, pivots, of, name);
}

// The result of a solve: B's matrices over the common batch.
void AddSolution(MetaResult& result, const Tensor& a, const Tensor& b, const char* a_name) {
  CheckSameDType(a, b, a_name, "B");
  CheckSameDevice(a, b, a_name, "B");
  MICA_CHECK(b.ndim() >= 2, "The input tensor `B` must have at least 2 dimensions, but it has ", b.ndim(),
             ".");
  Dims sizes =
      BroadcastShapes(a.sizes().subspan(0, a.ndim() - 2), b.sizes().subspan(0, b.ndim() - 2), a_name, "B");
  sizes.push_back(b.size(-2));
  sizes.push_back(b.size(-1));
  AddOutput(result, sizes, b.dtype(), b.device());
}

void CheckSide(const Tensor& a, int64_t side, const Tensor& b, const char* a_name) {
  MICA_CHECK(a.size(-1) == side, "Size (", a.size(-1), ") of the matrices of `", a_name,
             "` differs from size (", side, ") of `B` with shape ", ShapeText(b.sizes()), ".");
}

}  // namespace

void _linalg_cholesky(MetaResult& result, const Tensor& self, bool) {
  CheckSquare(self, "self");
  AddOutput(result, self.sizes(), self.dtype(), self.device());
  AddInfo(result, self);
}

void _linalg_lu(MetaResult& result, const Tensor& A) {
  CheckMatrices(A, "A");
  AddOutput(result, A.sizes(), A.dtype(), A.device());
  AddOutput(result, Batch(A, {std::min(A.size(-1), A.size(-2))}), DType::kI32, A.device());
  AddInfo(result, A);
}

void _pivots_to_permutation(MetaResult& result, const Tensor& pivots, int64_t rows) {
  MICA_CHECK(pivots.dtype() == DType::kI32, "Dtype (", Name(pivots.dtype()),
             ") of `pivots` is not int32, which LAPACK's pivots are.");
  MICA_CHECK(pivots.ndim() >= 1 && pivots.size(-1) <= rows, "Shape ", ShapeText(pivots.sizes()),
             " of `pivots` does not end in a number of pivots up to (", rows, "), the number of rows.");
  AddOutput(result, Batch(pivots, {rows}, 1), DType::kI64, pivots.device());
}

void _linalg_inv(MetaResult& result, const Tensor& A) {
  CheckSquare(A, "A");
  AddOutput(result, A.sizes(), A.dtype(), A.device());
  AddInfo(result, A);
}

void linalg_solve_triangular(MetaResult& result, const Tensor& self, const Tensor& B, bool, bool left, bool) {
  CheckSquare(self, "self");
  AddSolution(result, self, B, "self");
  CheckSide(self, B.size(left ? -2 : -1), B, "self");
}

void geqrf(MetaResult& result, const Tensor& self) {
  CheckMatrices(self, "self");
  AddOutput(result, self.sizes(), self.dtype(), self.device());
  AddOutput(result, Batch(self, {std::min(self.size(-1), self.size(-2))}), self.dtype(), self.device());
}

void _linalg_eigh(MetaResult& result, const Tensor& A, bool, bool compute_v) {
  CheckSquare(A, "A");
  AddOutput(result, Batch(A, {A.size(-1)}), RealOf(A.dtype()), A.device());
  AddOutput(result, compute_v ? ToDims(A.sizes()) : Dims{0}, A.dtype(), A.device());
  AddInfo(result, A);
}

void _linalg_eig(MetaResult& result, const Tensor& self, bool compute_v) {
  CheckSquare(self, "self");
  AddOutput(result, Batch(self, {self.size(-1)}), ComplexOf(self.dtype()), self.device());
  AddOutput(result, compute_v ? ToDims(self.sizes()) : Dims{0}, ComplexOf(self.dtype()), self.device());
  AddInfo(result, self);
}

void _linalg_svd(MetaResult& result, const Tensor& A, bool full_matrices, bool compute_uv) {
  CheckMatrices(A, "A");
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n);
  AddOutput(result, compute_uv ? Batch(A, {m, full_matrices ? m : k}) : Dims{0}, A.dtype(), A.device());
  AddOutput(result, Batch(A, {k}), RealOf(A.dtype()), A.device());
  AddOutput(result, compute_uv ? Batch(A, {full_matrices ? n : k, n}) : Dims{0}, A.dtype(), A.device());
  AddInfo(result, A);
}

void _linalg_lstsq(MetaResult& result, const Tensor& A, const Tensor& B, double, std::string_view driver) {
  CheckMatrices(A, "A");
  CheckSameDType(A, B, "A", "B");
  CheckMatrices(B, "B");
  CheckSameDevice(A, B, "A", "B");
  const int64_t m = A.size(-2), n = A.size(-1);
  MICA_CHECK(driver == "gels" || driver == "gelsy" || driver == "gelsd" || driver == "gelss",
             "parameter `driver` should be one of (gels, gelsy, gelsd, gelss) and is (", std::string(driver),
             ").");
  MICA_CHECK(B.ndim() == A.ndim() && B.sizes().subspan(0, B.ndim() - 1) == A.sizes().subspan(0, A.ndim() - 1),
             "Shape ", ShapeText(B.sizes()), " of `B` does not fit shape ", ShapeText(A.sizes()),
             " of `A`; expected the same batch and number of rows.");
  AddOutput(result, Batch(A, {n, B.size(-1)}), A.dtype(), A.device());
  AddOutput(result, Batch(A, {}), DType::kI64, A.device());
  AddOutput(result, Batch(A, {std::min(m, n)}), RealOf(A.dtype()), A.device());
  AddInfo(result, A);
}

void _linalg_ldl(MetaResult& result, const Tensor& self, bool) {
  CheckSquare(self, "self");
  AddOutput(result, self.sizes(), self.dtype(), self.device());
  AddOutput(result, Batch(self, {self.size(-1)}), DType::kI32, self.device());
  AddInfo(result, self);
}

void linalg_ldl_solve(MetaResult& result, const Tensor& LD, const Tensor& pivots, const Tensor& B, bool) {
  CheckSquare(LD, "LD");
  CheckPivots(pivots, LD, LD.size(-1), "pivots", "LD");
  AddSolution(result, LD, B, "LD");
  CheckSide(LD, B.size(-2), B, "LD");
}

}  // namespace mica::meta
