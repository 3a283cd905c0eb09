// mm, bmm, mv and their forms with an addend, on a library's product, the tiled one, or that of small
// matrices; and dot, a reduction.
//
// Operands are read through their strides, so that a transposed one costs no copy;
// half types are multiplied and added up in float.
#pragma once

#include <mica/kit/aligned_product.h>
#include <mica/kit/gemm.h>
#include <mica/kit/pointwise.h>
#include <mica/kit/product.h>
#include <mica/kit/reduce.h>
#include <mica/kit/small_product.h>

namespace mica {
namespace kit {

namespace matmul {

inline GemmText Text(const Product& p) {
  const auto load = [](const Matrix& m, const std::string& n, const std::string& at) {
    return "LOAD_" + std::string(Suffix(m.dtype)) + "(" + n + " + " + at + ", 1)";
  };
  GemmText text;
  text.parameters = MatrixParameters(p);
  text.setup =
      "const long own_a = z * a_z + own_m * a_r, own_b = z * b_z + own_n * b_c; "
      "const long m_out = z * out_z + own_m * out_r, n_out = own_n * out_c;";
  text.load_a = load(p.a, "a", "own_a + (k) * a_c");
  text.load_b = load(p.b, "b", "own_b + (k) * b_r");
  const std::string addend = load(p.c, "c", "z * c_z + (m) * c_r + (n) * c_c");
  const std::string value =
      !p.add ? "(value)"
             : "(beta == 0 ? (LANE)(alpha * (value)) : (LANE)(alpha * (value) + beta * " + addend + "))";
  text.store_c = "STORE_" + std::string(Suffix(p.out.dtype)) + "(" + value + ", out + (at), 1)";
  return text;
}

// Whether the addend is a row that all rows get, as it is.
inline bool AddsRow(const Product& p) {
  const bool once =
      p.beta.tag == MICA_SCALAR_INT ? p.beta.u.i == 1 : p.beta.tag == MICA_SCALAR_FLOAT && p.beta.u.f == 1;
  return once && p.c.data != p.out.data && p.c.batch == 0 && p.c.row == 0 && (p.c.column == 1 || p.n == 1);
}

// The same by the driver's library; false where it has none. An addend that the library does not add by
// itself is first copied to where the result goes.
inline bool RunByLibrary(const Product& p) {
  const auto same = [&](const Matrix& m) { return m.dtype == p.out.dtype; };
  if (!same(p.a) || !same(p.b) || (p.add && !same(p.c)) || p.m == 0 || p.n == 0) return false;
  MatrixProduct product;
  product.dtype = p.out.dtype;
  product.batches = p.batches, product.m = p.m, product.n = p.n, product.k = p.k;
  const auto matrix = [](const Matrix& m) { return MatrixProduct::Matrix{m.data, m.batch, m.row, m.column}; };
  product.a = matrix(p.a), product.b = matrix(p.b), product.out = matrix(p.out);
  if (p.add) {
    product.alpha = p.alpha;
    if (AddsRow(p)) {
      product.row = p.c.data;
      if (Multiply(p.call, product)) return true;
      product.row = nullptr;
    }
    product.beta = p.beta;
    const bool in_place = p.c.data == p.out.data && p.c.row == p.out.row && p.c.column == p.out.column &&
                          p.c.batch == p.out.batch;
    if (!in_place && !IsZero(p.beta)) {
      const auto operand = [](const Matrix& m) {
        return Operand{m.data, m.dtype, {m.batch, m.row, m.column}};
      };
      pointwise::CopyPart(p.call, Space{{p.batches, p.m, p.n}, {operand(p.out), operand(p.c)}});
    }
  }
  return Multiply(p.call, product);
}

inline void Run(const Product& p) {
  if (IsSmall(p)) return RunSmall(p);
  if (RunByLibrary(p)) return;
  const int32_t lane = LaneOf(p);
  Key key("matmul");
  key.Add(lane).Add(p.a.dtype).Add(p.b.dtype).Add(p.out.dtype).Add(p.add ? p.c.dtype : -1);
  const Kernel& kernel = FindGemm(p.call, lane, key, [&] { return Text(p); });
  Launch launch(p.call, kernel);
  AppendMatrices(launch, p, lane);
  RunGemm(launch, p.m, p.n, p.k, p.batches);
}

inline void Mm(const MicaCall* call, MicaTensor* self, MicaTensor* mat2, MicaTensor* out) {
  const TensorRef a(self), b(mat2);
  Run({call, MatrixOf(self), MatrixOf(mat2), {}, MatrixOf(out), 1, a.size(0), b.size(1), a.size(1)});
}
inline void Bmm(const MicaCall* call, MicaTensor* self, MicaTensor* mat2, MicaTensor* out) {
  const TensorRef a(self), b(mat2);
  Run({call, MatrixOf(self), MatrixOf(mat2), {}, MatrixOf(out), a.size(0), a.size(1), b.size(2), a.size(2)});
}
inline void Mv(const MicaCall* call, MicaTensor* self, MicaTensor* vec, MicaTensor* out) {
  const TensorRef a(self);
  Run({call, MatrixOf(self), MatrixOf(vec, true), {}, MatrixOf(out, true), 1, a.size(0), 1, a.size(1)});
}

// The sum of the products of two tensors, as the code generator would make it.
inline const MicaProgram& DotProgram() {
  static const MicaInstruction init[] = {{MICA_OP_CONST, 0, 0, 0, 0, 0},
                                         {MICA_OP_STORE_STATE, 255, 0, 0, 0, 0}};
  static const MicaInstruction step[] = {
      {MICA_OP_LOAD, 0, 0, 0, 0, 0},  {MICA_OP_LOAD, 1, 0, 0, 0, 1}, {MICA_OP_MUL, 2, 0, 1, 0, 0},
      {MICA_OP_STATE, 3, 0, 0, 0, 0}, {MICA_OP_ADD, 4, 3, 2, 0, 0},  {MICA_OP_STORE_STATE, 255, 4, 0, 0, 0}};
  static const MicaInstruction combine[] = {{MICA_OP_STATE, 0, 0, 0, 0, 0},
                                            {MICA_OP_STATE, 1, 0, 0, 0, 1},
                                            {MICA_OP_ADD, 2, 0, 1, 0, 0},
                                            {MICA_OP_STORE_STATE, 255, 2, 0, 0, 0}};
  static const MicaInstruction finish[] = {{MICA_OP_STATE, 0, 0, 0, 0, 0}, {MICA_OP_STORE, 255, 0, 0, 0, 0}};
  static const MicaConstant zero = {};
  static const int32_t inputs[] = {0, 1};
  static const MicaProgram program = [] {
    MicaProgram p = pointwise::IdentityProgram();
    p.class_name = "reduction";
    p.source = "sum(self * other)";
    p.hint = "";
    p.num_inputs = 2, p.input_args = inputs;
    p.num_states = p.num_constants = 1, p.constants = &zero;
    p.num_registers = 5;
    p.init = {init, 2}, p.main = {step, 6}, p.combine = {combine, 4}, p.finish = {finish, 2};
    p.flags = MICA_PROGRAM_DIMS_NONE_IS_ALL;
    return p;
  }();
  return program;
}

// Spread over the device as any sum is; as a product of matrices it has one tile. Complex numbers are a
// library's.
inline void Dot(const MicaCall* call, MicaTensor* self, MicaTensor* other, MicaTensor* out) {
  const int32_t dtype = TensorRef(out).dtype();
  if (dtype == MICA_C64 || dtype == MICA_C128)
    return Run(
        {call, MatrixOf(self), MatrixOf(other, true), {}, MatrixOf(out), 1, 1, 1, TensorRef(self).size(0)});
  ProductLane(DeviceOf(call), dtype);
  MicaCall own = *call;
  own.program = &DotProgram();
  own.compute_dtype = dtype;
  MicaValue args[2] = {};
  args[0].tag = args[1].tag = MICA_VALUE_TENSOR;
  args[0].u.tensor = self, args[1].u.tensor = other;
  reduce::RunReduction(&own, args, 2, &out, 1);
}
inline void Addmm(const MicaCall* call, MicaTensor* self, MicaTensor* mat1, MicaTensor* mat2, MicaScalar beta,
                  MicaScalar alpha, MicaTensor* out) {
  const TensorRef a(mat1), b(mat2);
  Run({call, MatrixOf(mat1), MatrixOf(mat2), MatrixOf(self), MatrixOf(out), 1, a.size(0), b.size(1),
       a.size(1), true, alpha, beta});
}
inline void Baddbmm(const MicaCall* call, MicaTensor* self, MicaTensor* batch1, MicaTensor* batch2,
                    MicaScalar beta, MicaScalar alpha, MicaTensor* out) {
  const TensorRef a(batch1), b(batch2);
  Run({call, MatrixOf(batch1), MatrixOf(batch2), MatrixOf(self), MatrixOf(out), a.size(0), a.size(1),
       b.size(2), a.size(2), true, alpha, beta});
}

inline void RegisterMatmul(plugin::Registrar& registrar) {
  registrar.Kernel<&Mm>("mm.out");
  registrar.Kernel<&Bmm>("bmm.out");
  registrar.Kernel<&Mv>("mv.out");
  registrar.Kernel<&Dot>("dot.out");
  registrar.Kernel<&Addmm>("addmm.out");
  registrar.Kernel<&Baddbmm>("baddbmm.out");
}

}  // namespace matmul
}  // namespace kit
}  // namespace mica
