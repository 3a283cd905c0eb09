// Scalar: conversions between the four kinds, and its text.
#include "tensor/scalar.h"

#include <charconv>
#include <cmath>

#include "tensor/error.h"
#include "tensor/promote.h"

namespace mica {

namespace {

// The shortest text that reads back as the same double, as Python's repr.
std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

// A part of a complex number: Python leaves ".0" away there.
std::string PartText(double value) {
  std::string text = FloatText(value);
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return text;
}

}  // namespace

std::string Scalar::ToString() const {
  switch (tag_) {
    case Tag::kBool:
      return v_.i ? "True" : "False";
    case Tag::kInt:
      return large_ ? std::to_string(static_cast<uint64_t>(v_.i)) : std::to_string(v_.i);
    case Tag::kFloat:
      return FloatText(v_.c[0]);
    case Tag::kComplex: {
      const std::string imaginary = PartText(v_.c[1]);
      if (v_.c[0] == 0 && !std::signbit(v_.c[0])) return imaginary + "j";
      const bool has_sign = imaginary[0] == '-';
      return absl::StrCat("(", PartText(v_.c[0]), has_sign ? "" : "+", imaginary, "j)");
    }
    case Tag::kNone:
      break;
  }
  return "None";
}

double Scalar::ToDouble() const {
  if (tag_ == Tag::kFloat) return v_.c[0];
  if (tag_ == Tag::kComplex) {
    MICA_CHECK_TYPE(v_.c[1] == 0, "The complex number ", ToString(), " has an imaginary part (", v_.c[1],
                    ") and no value as a real number.");
    return v_.c[0];
  }
  return large_ ? static_cast<double>(static_cast<uint64_t>(v_.i)) : static_cast<double>(v_.i);
}

int64_t Scalar::ToInt() const {
  MICA_CHECK_KIND(kOverflow, !large_, "The number (", ToString(), ") does not fit a signed 64-bit integer.");
  if (tag_ == Tag::kBool || tag_ == Tag::kInt) return v_.i;
  const double value = ToDouble();
  MICA_CHECK_KIND(kOverflow, value >= -9223372036854775808.0 && value < 9223372036854775808.0, "The number (",
                  FloatText(value), ") does not fit a 64-bit integer.");
  return static_cast<int64_t>(value);
}

bool Scalar::ToBool() const {
  if (tag_ == Tag::kBool || tag_ == Tag::kInt) return v_.i != 0;
  if (tag_ == Tag::kFloat) return v_.c[0] != 0;
  return v_.c[0] != 0 || v_.c[1] != 0;
}

std::complex<double> Scalar::ToComplex() const {
  return tag_ == Tag::kComplex ? std::complex<double>(v_.c[0], v_.c[1])
                               : std::complex<double>(ToDouble(), 0.0);
}

// To<T>: as a cast of one element. Integers out of the range of T wrap.
template <typename T>
T Scalar::To() const {
  if constexpr (std::is_same_v<T, bool>) {
    return ToBool();
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(large_ ? v_.i : ToInt());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(ToDouble());
  } else if constexpr (std::is_convertible_v<T, float>) {  // a narrow float
    return T(static_cast<float>(ToDouble()));
  } else {
    return static_cast<T>(ToComplex());
  }
}
#define X(type, ...) template type Scalar::To<type>() const;
MICA_FORALL_DTYPES(X)
#undef X

DType Scalar::DefaultDType() const {
  switch (tag_) {
    case Tag::kBool:
      return DType::kBool;
    case Tag::kFloat:
      return mica::DefaultDType();
    case Tag::kComplex:
      return DefaultComplexDType();
    default:
      return DType::kI64;
  }
}

}  // namespace mica
