// A product of matrices as the kernels of matmul.h and small_product.h get it.
#pragma once

#include <mica/kit/gemm.h>

namespace mica {
namespace kit {

namespace matmul {

using plugin::TensorRef;

// A matrix of a batch: [batch, rows, columns] with strides in elements.
struct Matrix {
  void* data = nullptr;
  int32_t dtype = 0;
  int64_t batch = 0, row = 0, column = 0;
};

// `dims` of the tensor are (batch, row, column), the row, the column, or none; a size
// of 1 is broadcast.
inline Matrix MatrixOf(const MicaTensor* tensor, bool column_vector = false) {
  const TensorRef t(tensor);
  Matrix m{t.data<void>(), t.dtype(), 0, 0, 0};
  const auto stride = [&](int d) { return t.size(d) == 1 ? 0 : t.stride(d); };
  if (t.ndim() == 1 && column_vector) {
    m.row = stride(0);
    return m;
  }
  if (t.ndim() >= 1) m.column = stride(-1);
  if (t.ndim() >= 2) m.row = stride(-2);
  if (t.ndim() >= 3) m.batch = stride(-3);
  return m;
}

inline bool IsZero(const MicaScalar& s) {
  return s.tag == MICA_SCALAR_FLOAT ? s.u.f == 0 : s.tag == MICA_SCALAR_INT && s.u.i == 0;
}

struct Product {
  const MicaCall* call;
  Matrix a, b, c, out;
  int64_t batches, m, n, k;
  bool add = false;
  MicaScalar alpha{MICA_SCALAR_INT, 0, {1}}, beta{MICA_SCALAR_INT, 0, {0}};
};

inline std::string PointerParameter(const Matrix& m, const char* name, bool is_const) {
  const std::string n(name);
  return std::string(is_const ? "const " : "") + "global E_" + Suffix(m.dtype) + "* " + n + ", const long " +
         n + "_z, const long " + n + "_r, const long " + n + "_c, ";
}

// Parameters of a kernel: all matrices, alpha and beta.
inline std::string MatrixParameters(const Product& p) {
  std::string text = PointerParameter(p.a, "a", true) + PointerParameter(p.b, "b", true) +
                     PointerParameter(p.out, "out", false);
  if (p.add) text += PointerParameter(p.c, "c", true) + "const LANE alpha, const LANE beta, ";
  text.resize(text.rfind(','));
  return text;
}

// Their arguments.
inline void AppendMatrices(Launch& launch, const Product& p, int32_t lane) {
  const auto matrix = [&](const Matrix& m) {
    launch.Pointer(m.data).Value<int64_t>(m.batch).Value<int64_t>(m.row).Value<int64_t>(m.column);
  };
  matrix(p.a);
  matrix(p.b);
  matrix(p.out);
  if (!p.add) return;
  matrix(p.c);
  for (const MicaScalar& scalar : {p.alpha, p.beta}) {
    MicaValue value = {};
    value.tag = MICA_VALUE_SCALAR;
    value.u.scalar = scalar;
    const LaneBytes number = NumberOf(value, lane);
    launch.Bytes(number.bytes, number.size);
  }
}

// The lanes that a product computes in; throws NotImplemented where an operand has none.
inline int32_t LaneOf(const Product& p) {
  const Device& device = DeviceOf(p.call);
  for (const Matrix* m : {&p.a, &p.b, &p.c}) ProductLane(device, m->data ? m->dtype : p.out.dtype);
  return ProductLane(device, p.out.dtype);
}

}  // namespace matmul
}  // namespace kit
}  // namespace mica
