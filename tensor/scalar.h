// A number of one of four kinds: bool, int (64 bits), float (double), complex.
//
// An int from 2^63 to 2^64 - 1 is kept by its bits, with a mark (is_large_unsigned):
// uint64 tensors have such values. At the C border the mark is MicaScalar::reserved.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include <mica/abi.h>
#include "tensor/dtype.h"

namespace mica {

class Scalar {
 public:
  enum class Tag : int32_t { kNone = 0, kBool = 1, kInt = 2, kFloat = 3, kComplex = 4 };

  constexpr Scalar() : tag_(Tag::kInt) { v_.i = 0; }
  constexpr Scalar(bool b) : tag_(Tag::kBool) { v_.i = b; }
  template <std::integral T>
  constexpr Scalar(T i) : tag_(Tag::kInt) {
    v_.i = static_cast<int64_t>(i);
    large_ = std::is_unsigned_v<T> && v_.i < 0;
  }
  constexpr Scalar(double f) : tag_(Tag::kFloat) { v_.c[0] = f; }
  constexpr Scalar(float f) : Scalar(static_cast<double>(f)) {}
  Scalar(std::complex<double> c) : tag_(Tag::kComplex) {
    v_.c[0] = c.real();
    v_.c[1] = c.imag();
  }

  Tag tag() const { return tag_; }
  bool is_bool() const { return tag_ == Tag::kBool; }
  bool is_int() const { return tag_ == Tag::kInt; }
  bool is_large_unsigned() const { return large_; }
  bool is_float() const { return tag_ == Tag::kFloat; }
  bool is_complex() const { return tag_ == Tag::kComplex; }

  // The value in another kind. A complex number with an imaginary part other
  // than 0 throws a kType Error; a float converts to int by truncation; what does
  // not fit int64 throws a kOverflow Error.
  int64_t ToInt() const;
  double ToDouble() const;
  bool ToBool() const;
  std::complex<double> ToComplex() const;
  template <typename T>
  T To() const;
  bool Equals(const Scalar& o) const { return ToComplex() == o.ToComplex(); }
  std::string ToString() const;  // as Python prints it: "True", "3", "0.5", "(1+2j)"

  // The dtype that a tensor made of this alone has (bool, int64, the default
  // float dtype, its complex counterpart).
  DType DefaultDType() const;

  // Borrows: a complex value is read through a pointer into this Scalar.
  MicaScalar ToAbi() const {
    MicaScalar s{static_cast<int32_t>(tag_), large_, {}};
    if (tag_ == Tag::kComplex)
      s.u.c = v_.c;
    else if (tag_ == Tag::kFloat)
      s.u.f = v_.c[0];
    else
      s.u.i = v_.i;
    return s;
  }
  static Scalar FromAbi(MicaScalar s) {
    switch (s.tag) {
      case MICA_SCALAR_BOOL:
        return Scalar(s.u.i != 0);
      case MICA_SCALAR_FLOAT:
        return Scalar(s.u.f);
      case MICA_SCALAR_COMPLEX:
        return Scalar(std::complex<double>(s.u.c[0], s.u.c[1]));
      default:
        return s.reserved ? Scalar(static_cast<uint64_t>(s.u.i)) : Scalar(s.u.i);
    }
  }

 private:
  Tag tag_;
  bool large_ = false;
  union {
    int64_t i;
    double c[2];
  } v_;
};

}  // namespace mica
