// Meta functions of the matrix products.
#include "kernels/meta/meta_helpers.h"
#include "mica/kernels/meta_declarations.h"
#include "tensor/dtype.h"

namespace mica::meta {
namespace {

// How torch says that two sizes of a product differ, by the numbers of dimensions.
std::string SizesDiffer(const Tensor& a, const Tensor& b) {
  if (a.ndim() == 1 && b.ndim() == 1)
    return absl::StrCat("inconsistent tensor size, expected tensor ", ShapeText(a.sizes()), " and src ",
                        ShapeText(b.sizes()), " to have the same number of elements, but got ", a.numel(),
                        " and ", b.numel(), " elements respectively");
  if (b.ndim() == 1)
    return absl::StrCat("size mismatch, got input (", a.sizes()[0], "), mat (", a.sizes()[0], "x",
                        a.sizes()[1], "), vec (", b.sizes()[0], ")");
  if (a.ndim() == 2 && b.ndim() == 2)
    return absl::StrCat("mat1 and mat2 shapes cannot be multiplied (", a.sizes()[0], "x", a.sizes()[1],
                        " and ", b.sizes()[0], "x", b.sizes()[1], ")");
  return "The sizes of a product differ";
}

void CheckInner(const Tensor& a, const Tensor& b, int64_t a_dim, int64_t b_dim, const char* a_name,
                const char* b_name) {
  MICA_CHECK(a.sizes()[a_dim] == b.sizes()[b_dim], SizesDiffer(a, b), ": size (", a.sizes()[a_dim],
             ") of dimension (", a_dim, ") of `", a_name, "` with shape ", ShapeText(a.sizes()),
             " differs from size (", b.sizes()[b_dim], ") of dimension (", b_dim, ") of `", b_name,
             "` with shape ", ShapeText(b.sizes()), "; a product needs them equal.");
}

void CheckPair(const Tensor& a, const Tensor& b, int64_t a_dims, int64_t b_dims, const char* a_name,
               const char* b_name) {
  CheckDims(a, a_dims, a_name);
  CheckDims(b, b_dims, b_name);
  CheckSameDType(a, b, a_name, b_name);
  CheckSameDevice(a, b, a_name, b_name);
}

void Product(MetaResult& result, const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  const bool batched = a.ndim() == 3;
  if (batched) {
    MICA_CHECK(a.sizes()[0] == b.sizes()[0],
               "Expected size for first two dimensions of batch2 tensor to be: [", a.sizes()[0], ", ",
               a.sizes()[2], "] but got: [", b.sizes()[0], ", ", b.sizes()[1], "]; `", a_name,
               "` has the shape ", ShapeText(a.sizes()), " and `", b_name, "` the shape ",
               ShapeText(b.sizes()), ".");
  }
  CheckInner(a, b, batched ? 2 : 1, batched ? 1 : 0, a_name, b_name);
  Dims sizes = ToDims(a.sizes());
  sizes.back() = b.sizes()[b.ndim() - 1];
  AddOutput(result, sizes, a.dtype(), a.device());
  ComputeIn(result, a.dtype());
}

void WithAddend(MetaResult& result, const Tensor& self, const Tensor& a, const Tensor& b, const char* a_name,
                const char* b_name) {
  Product(result, a, b, a_name, b_name);
  CheckSameDType(self, a, "self", a_name);
  CheckSameDevice(self, a, "self", a_name);
  MICA_CHECK(CanExpandTo(self.sizes(), result.outputs[0].sizes),
             "The expanded size of the tensor `self` of shape ", ShapeText(self.sizes()),
             " must match the existing size of the product, ", ShapeText(result.outputs[0].sizes),
             ", to which it broadcasts.");
}

}  // namespace

void mm(MetaResult& result, const Tensor& self, const Tensor& mat2) {
  CheckPair(self, mat2, 2, 2, "self", "mat2");
  Product(result, self, mat2, "self", "mat2");
}
void bmm(MetaResult& result, const Tensor& self, const Tensor& mat2) {
  CheckPair(self, mat2, 3, 3, "self", "mat2");
  Product(result, self, mat2, "self", "mat2");
}
void addmm(MetaResult& result, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar&,
           const Scalar&) {
  CheckPair(mat1, mat2, 2, 2, "mat1", "mat2");
  WithAddend(result, self, mat1, mat2, "mat1", "mat2");
}
void baddbmm(MetaResult& result, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
             const Scalar&, const Scalar&) {
  MICA_CHECK(self.dtype() == batch1.dtype() && self.dtype() == batch2.dtype(),
             "Input dtypes must be the same, but the dtype of `self` is (", Name(self.dtype()),
             "), that of `batch1` (", Name(batch1.dtype()), ") and that of `batch2` (", Name(batch2.dtype()),
             ").");
  CheckPair(batch1, batch2, 3, 3, "batch1", "batch2");
  WithAddend(result, self, batch1, batch2, "batch1", "batch2");
}
void mv(MetaResult& result, const Tensor& self, const Tensor& vec) {
  CheckPair(self, vec, 2, 1, "self", "vec");
  CheckInner(self, vec, 1, 0, "self", "vec");
  AddOutput(result, self.sizes().subspan(0, 1), self.dtype(), self.device());
  ComputeIn(result, self.dtype());
}
void dot(MetaResult& result, const Tensor& self, const Tensor& tensor) {
  MICA_CHECK(self.ndim() == 1 && tensor.ndim() == 1, "1D tensors expected, but got ", self.ndim(), "D and ",
             tensor.ndim(), "D tensors; the shape of `self` is ", ShapeText(self.sizes()),
             " and that of `tensor` ", ShapeText(tensor.sizes()), ".");
  MICA_CHECK(self.dtype() == tensor.dtype(), "dot : expected both vectors to have same dtype, but found ",
             ScalarTypeName(self.dtype()), " and ", ScalarTypeName(tensor.dtype()),
             ": those of `self` and `tensor`, (", Name(self.dtype()), ") and (", Name(tensor.dtype()), ").");
  CheckPair(self, tensor, 1, 1, "self", "tensor");
  CheckInner(self, tensor, 0, 0, "self", "tensor");
  AddOutput(result, {}, self.dtype(), self.device());
  ComputeIn(result, self.dtype());
}

}  // namespace mica::meta
