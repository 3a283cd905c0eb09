// One rule for each primitive of <mica/program.h>; a primitive without one is refused by name.
#include "interval_arithmetic.h"

#include <mica/opcodes.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

namespace my_layer {
namespace {

using mica::formula::Operator;
using mica::formula::Scalar;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;

const Operator& Find(const char* name) {
  static thread_local std::map<std::string, Operator> found;
  const auto it = found.find(name);
  return it != found.end() ? it->second : found.emplace(name, Operator(name)).first->second;
}

Tensor Add(const Tensor& a, const Tensor& b) {
  return Find("mica::add.Tensor").Call<Tensor>(a, b, Scalar(1));
}
Tensor Sub(const Tensor& a, const Tensor& b) {
  return Find("mica::sub.Tensor").Call<Tensor>(a, b, Scalar(1));
}
Tensor Mul(const Tensor& a, const Tensor& b) { return Call("mica::mul.Tensor", a, b); }
Tensor Div(const Tensor& a, const Tensor& b) { return Call("mica::div.Tensor", a, b); }
Tensor Min(const Tensor& a, const Tensor& b) { return Call("mica::minimum", a, b); }
Tensor Max(const Tensor& a, const Tensor& b) { return Call("mica::maximum", a, b); }
Tensor And(const Tensor& a, const Tensor& b) { return Call("mica::logical_and", a, b); }
Tensor Or(const Tensor& a, const Tensor& b) { return Call("mica::logical_or", a, b); }
Tensor Not(const Tensor& a) { return Call("mica::logical_not", a); }
Tensor Where(const Tensor& mask, const Tensor& a, const Tensor& b) {
  return Find("mica::where.self").Call<Tensor>(mask, a, b);
}
Tensor Compare(const char* name, const Tensor& a, double b) { return Find(name).Call<Tensor>(a, Scalar(b)); }
Tensor Scaled(const Tensor& a, double by, double plus) {
  const Tensor scaled = Find("mica::mul.Scalar").Call<Tensor>(a, Scalar(by));
  return Find("mica::add.Scalar").Call<Tensor>(scaled, Scalar(plus), Scalar(1));
}
Interval Point(const Tensor& t) { return {t, t, std::nullopt, false, nullptr}; }
Interval Between(const Tensor& lower, const Tensor& upper) {
  return {lower, upper, std::nullopt, false, nullptr};
}
Interval Mask(const Tensor& surely, const Tensor& possibly) {
  return {surely, possibly, std::nullopt, true, nullptr};
}
Interval Number(double x, bool mask = false) { return {Tensor(), Tensor(), x, mask, nullptr}; }

// How a function of one variable runs.
enum class Trend {
  kUp,
  kDown,
  kEven,  // falls to 0 and grows from there: |x|, x^2, cosh
};

Interval Apply(const char* name, Trend trend, const Interval& x) {
  if (x.point()) return Point(Call(name, x.lower));
  if (trend == Trend::kUp) return Between(Call(name, x.lower), Call(name, x.upper));
  if (trend == Trend::kDown) return Between(Call(name, x.upper), Call(name, x.lower));
  const Tensor a = Call("mica::abs", x.lower), b = Call("mica::abs", x.upper);
  const Tensor across = And(Compare("mica::le.Scalar", x.lower, 0), Compare("mica::ge.Scalar", x.upper, 0));
  const Tensor nearest = Where(across, Filled(a, 0), Min(a, b));
  return Between(Call(name, nearest), Call(name, Max(a, b)));
}

// Least and greatest of f over the corners of a box: for f that is monotone in each variable.
template <typename F>
Interval Corners(const Interval& a, const Interval& b, F f) {
  Tensor least, greatest;
  for (const Tensor* x : {&a.lower, &a.upper}) {
    if (x == &a.upper && a.point()) continue;
    for (const Tensor* y : {&b.lower, &b.upper}) {
      if (y == &b.upper && b.point()) continue;
      const Tensor value = f(*x, *y);
      least = least.defined() ? Min(least, value) : value;
      greatest = greatest.defined() ? Max(greatest, value) : value;
    }
  }
  return Between(least, a.point() && b.point() ? least : greatest);
}

Interval Times(const Interval& a, const Interval& b) {
  if (a.source && a.source == b.source) return Apply("mica::square", Trend::kEven, a);
  return Corners(a, b, &Mul);
}

Tensor HoldsZero(const Interval& x) {
  return And(Compare("mica::le.Scalar", x.lower, 0), Compare("mica::ge.Scalar", x.upper, 0));
}

Interval Over(const Interval& a, const Interval& b) {
  if (b.point()) return Corners(a, b, &Div);
  const Interval quotient = Corners(a, b, &Div);
  const Tensor pole = HoldsZero(b);
  return Between(Where(pole, Filled(quotient.lower, -kInfinity), quotient.lower),
                 Where(pole, Filled(quotient.upper, kInfinity), quotient.upper));
}

// Whether a point of `at` + k * `period` lies in x.
Tensor Holds(const Interval& x, double at, double period) {
  const Tensor first = Call("mica::ceil", Scaled(x.lower, 1 / period, -at / period));
  const Tensor last = Call("mica::floor", Scaled(x.upper, 1 / period, -at / period));
  return Call("mica::le.Tensor", first, last);
}

// sin and cos: the ends, and the crests between them.
Interval Wave(const char* name, double crest, const Interval& x) {
  if (x.point()) return Point(Call(name, x.lower));
  const Tensor a = Call(name, x.lower), b = Call(name, x.upper), one = Filled(a, 1);
  return Between(Where(Holds(x, crest + kPi, 2 * kPi), Filled(a, -1), Min(a, b)),
                 Where(Holds(x, crest, 2 * kPi), one, Max(a, b)));
}

Interval Tan(const Interval& x) {
  if (x.point()) return Point(Call("mica::tan", x.lower));
  const Tensor a = Call("mica::tan", x.lower), b = Call("mica::tan", x.upper), pole = Holds(x, kPi / 2, kPi);
  return Between(Where(pole, Filled(a, -kInfinity), a), Where(pole, Filled(b, kInfinity), b));
}

Interval Reciprocal(const Interval& x) {
  if (x.point()) return Point(Call("mica::reciprocal", x.lower));
  return Over(Point(Filled(x.lower, 1)), x);
}

// x to the power of a number that is known.
Interval Power(const Interval& x, double n) {
  const auto power = [&](const Tensor& t) {
    return Find("mica::pow.Tensor_Scalar").Call<Tensor>(t, Scalar(n));
  };
  if (x.point()) return Point(power(x.lower));
  if (n != std::floor(n))
    return n > 0 ? Between(power(x.lower), power(x.upper)) : Between(power(x.upper), power(x.lower));
  if (n < 0) return Reciprocal(Power(x, -n));
  if (std::fmod(n, 2) != 0) return Between(power(x.lower), power(x.upper));
  const Interval size = Apply("mica::abs", Trend::kEven, x);
  return Between(power(size.lower), power(size.upper));
}

// `name` compares, `against` says the opposite: what is not surely false is possible, bounds
// that are NaN included.
Interval Less(const char* name, const char* against, const Interval& a, const Interval& b) {
  return Mask(Call(name, a.upper, b.lower), Not(Call(against, a.lower, b.upper)));
}
Interval Equal(const Interval& a, const Interval& b) {
  const Tensor same =
      And(Call("mica::eq.Tensor", a.lower, b.upper), Call("mica::eq.Tensor", a.upper, b.lower));
  const Tensor apart =
      Or(Call("mica::gt.Tensor", a.lower, b.upper), Call("mica::gt.Tensor", b.lower, a.upper));
  return Mask(same, Not(apart));
}
Interval Inverse(const Interval& m) { return Mask(Not(m.upper), Not(m.lower)); }

Interval Select(const Interval& mask, const Interval& a, const Interval& b) {
  if (mask.number) return *mask.number != 0 ? a : b;
  const auto choose = [&](const Tensor& x, const Tensor& y, const Tensor& both) {
    return Where(mask.lower, x, Where(mask.upper, both, y));
  };
  if (mask.point() && a.point() && b.point()) return Point(Where(mask.lower, a.lower, b.lower));
  return Between(choose(a.lower, b.lower, Min(a.lower, b.lower)),
                 choose(a.upper, b.upper, Max(a.upper, b.upper)));
}

struct Unary {
  const char* name;
  Trend trend;
};
const std::map<int, Unary>& Unaries() {
  static const auto& table = *new std::map<int, Unary>{
      {MICA_OP_NEG, {"mica::neg", Trend::kDown}},     {MICA_OP_ABS, {"mica::abs", Trend::kEven}},
      {MICA_OP_SIGN, {"mica::sign", Trend::kUp}},     {MICA_OP_SQUARE, {"mica::square", Trend::kEven}},
      {MICA_OP_FLOOR, {"mica::floor", Trend::kUp}},   {MICA_OP_CEIL, {"mica::ceil", Trend::kUp}},
      {MICA_OP_TRUNC, {"mica::trunc", Trend::kUp}},   {MICA_OP_ROUND, {"mica::round", Trend::kUp}},
      {MICA_OP_SQRT, {"mica::sqrt", Trend::kUp}},     {MICA_OP_RSQRT, {"mica::rsqrt", Trend::kDown}},
      {MICA_OP_EXP, {"mica::exp", Trend::kUp}},       {MICA_OP_EXP2, {"mica::exp2", Trend::kUp}},
      {MICA_OP_EXPM1, {"mica::expm1", Trend::kUp}},   {MICA_OP_LOG, {"mica::log", Trend::kUp}},
      {MICA_OP_LOG2, {"mica::log2", Trend::kUp}},     {MICA_OP_LOG10, {"mica::log10", Trend::kUp}},
      {MICA_OP_LOG1P, {"mica::log1p", Trend::kUp}},   {MICA_OP_ASIN, {"mica::asin", Trend::kUp}},
      {MICA_OP_ACOS, {"mica::acos", Trend::kDown}},   {MICA_OP_ATAN, {"mica::atan", Trend::kUp}},
      {MICA_OP_SINH, {"mica::sinh", Trend::kUp}},     {MICA_OP_COSH, {"mica::cosh", Trend::kEven}},
      {MICA_OP_TANH, {"mica::tanh", Trend::kUp}},     {MICA_OP_ASINH, {"mica::asinh", Trend::kUp}},
      {MICA_OP_ACOSH, {"mica::acosh", Trend::kUp}},   {MICA_OP_ATANH, {"mica::atanh", Trend::kUp}},
      {MICA_OP_ERF, {"mica::erf", Trend::kUp}},       {MICA_OP_ERFC, {"mica::erfc", Trend::kDown}},
      {MICA_OP_ERFINV, {"mica::erfinv", Trend::kUp}}, {MICA_OP_SIGMOID, {"mica::sigmoid", Trend::kUp}},
  };
  return table;
}

// Of two variables, growing in both.
const char* IncreasingBinary(int opcode) {
  switch (opcode) {
    case MICA_OP_MIN:
      return "mica::minimum";
    case MICA_OP_MAX:
      return "mica::maximum";
    case MICA_OP_LOGADDEXP:
      return "mica::logaddexp";
    case MICA_OP_MASK_AND:
      return "mica::logical_and";
    case MICA_OP_MASK_OR:
      return "mica::logical_or";
    default:
      return nullptr;
  }
}

// The registers of one evaluation.
class Machine {
 public:
  Machine(const MicaProgram& program, const char* name, const MicaValue* args,
          const std::vector<Interval>& inputs, int32_t dtype)
      : p_(program), name_(name), args_(args), inputs_(inputs), dtype_(dtype) {
    registers_.resize(static_cast<size_t>(p_.num_registers));
    for (const Interval& i : inputs)
      if (i.lower.defined() && !like_.defined()) like_ = i.lower;
  }

  Interval Run() {
    Interval result;
    for (int64_t i = 0; i < p_.main.size; ++i) {
      const MicaInstruction& in = p_.main.data[i];
      if (in.opcode == MICA_OP_STORE)
        result = Lifted(R(in.a));
      else
        registers_[in.dst] = Step(in);
    }
    return result;
  }

 private:
  const Interval& R(uint8_t i) const { return registers_[i]; }

  // A number as a tensor of the compute dtype on the inputs' device, a mask as bools.
  Interval Lifted(const Interval& x) const {
    if (!x.number) return x;
    const auto dtype = x.mask ? mica::formula::DType::kBool : static_cast<mica::formula::DType>(dtype_);
    const Tensor t = Find("mica::scalar_tensor")
                         .Call<Tensor>(Scalar(*x.number), dtype, std::nullopt, like_.device(), std::nullopt);
    Interval point = Point(t);
    point.mask = x.mask;
    return point;
  }

  Interval Source(const MicaInstruction& in) const {
    const MicaValue* const scalar =
        in.opcode == MICA_OP_SCALAR || in.opcode == MICA_OP_GIVEN ? &args_[p_.scalar_args[in.aux]] : nullptr;
    switch (in.opcode) {
      case MICA_OP_LOAD:
        return inputs_[static_cast<size_t>(p_.input_args[in.aux])];
      case MICA_OP_CONST:
        return Number(p_.constants[in.aux].f);
      case MICA_OP_GIVEN:
        return Number(scalar->tag != MICA_VALUE_NONE, true);
      default:
        return Number(NumberOf(*scalar));
    }
  }

  double NumberOf(const MicaValue& v) const {
    if (v.tag == MICA_VALUE_FLOAT) return v.u.f;
    if (v.tag == MICA_VALUE_SCALAR) return Scalar(v.u.scalar).ToDouble();
    return v.tag == MICA_VALUE_NONE ? 0 : static_cast<double>(v.u.i);
  }

  Interval Step(const MicaInstruction& in) const {
    switch (in.opcode) {
      case MICA_OP_LOAD:
      case MICA_OP_CONST:
      case MICA_OP_SCALAR:
      case MICA_OP_GIVEN:
        return Source(in);
      case MICA_OP_POW:
        if (R(in.b).number) return Power(Lifted(R(in.a)), *R(in.b).number);
        break;
      case MICA_OP_SELECT:
        return Select(R(in.a), Lifted(R(in.b)), Lifted(R(in.c)));
      default:
        if (mica::kOpcodeInfo[in.opcode].arity > 0) return Compute(in, Lifted(R(in.a)));
    }
    Refuse(in);
  }

  Interval Compute(const MicaInstruction& in, const Interval& a) const {
    if (const auto unary = Unaries().find(in.opcode); unary != Unaries().end())
      return Apply(unary->second.name, unary->second.trend, a);
    switch (in.opcode) {
      case MICA_OP_RECIPROCAL:
        return Reciprocal(a);
      case MICA_OP_SIN:
        return Wave("mica::sin", kPi / 2, a);
      case MICA_OP_COS:
        return Wave("mica::cos", 0, a);
      case MICA_OP_TAN:
        return Tan(a);
      case MICA_OP_MASK_NOT:
        return Inverse(a);
      case MICA_OP_TO_LANE:
        return Between(As(a.lower), a.point() ? As(a.lower) : As(a.upper));
      case MICA_OP_TO_MASK:
        return Inverse(Equal(a, Point(Filled(a.lower, 0))));
      default:
        if (mica::kOpcodeInfo[in.opcode].arity > 1) return Binary(in, a, Lifted(R(in.b)));
    }
    Refuse(in);
  }

  Interval Binary(const MicaInstruction& in, const Interval& a, const Interval& b) const {
    if (const char* name = IncreasingBinary(in.opcode)) {
      Interval r = Between(Call(name, a.lower, b.lower), Call(name, a.upper, b.upper));
      r.mask = a.mask;
      return r;
    }
    switch (in.opcode) {
      case MICA_OP_ADD:
        return Between(Add(a.lower, b.lower), Add(a.upper, b.upper));
      case MICA_OP_SUB:
        return Between(Sub(a.lower, b.upper), Sub(a.upper, b.lower));
      case MICA_OP_MUL:
        return Times(a, b);
      case MICA_OP_DIV:
        return Over(a, b);
      case MICA_OP_FMA:
        return Sum(Times(a, b), Lifted(R(in.c)));
      case MICA_OP_LT:
        return Less("mica::lt.Tensor", "mica::ge.Tensor", a, b);
      case MICA_OP_LE:
        return Less("mica::le.Tensor", "mica::gt.Tensor", a, b);
      case MICA_OP_GT:
        return Less("mica::lt.Tensor", "mica::ge.Tensor", b, a);
      case MICA_OP_GE:
        return Less("mica::le.Tensor", "mica::gt.Tensor", b, a);
      case MICA_OP_EQ:
        return Equal(a, b);
      case MICA_OP_NE:
        return Inverse(Equal(a, b));
      default:
        Refuse(in);
    }
  }

  static Interval Sum(const Interval& a, const Interval& b) {
    return Between(Add(a.lower, b.lower), Add(a.upper, b.upper));
  }
  // A mask as lanes of 0 and 1.
  Tensor As(const Tensor& mask) const {
    const Tensor one = Lifted(Number(1)).lower, zero = Lifted(Number(0)).lower;
    return Where(mask, one, zero);
  }

  [[noreturn]] void Refuse(const MicaInstruction& in) const {
    throw mica::plugin::Error(MICA_ERROR_NOT_IMPLEMENTED,
                              std::string("Operator ") + name_ + " (" + p_.source +
                                  ") is no interval arithmetic yet: its step (" +
                                  mica::kOpcodeInfo[in.opcode].name +
                                  ") has no rule for bounds in layer (my_layer.interval). Compute it outside "
                                  "of my_layer.bounds, or "
                                  "write it with operators that have one.");
  }

  const MicaProgram& p_;
  const char* name_;
  const MicaValue* args_;
  const std::vector<Interval>& inputs_;
  int32_t dtype_;
  Tensor like_;
  std::vector<Interval> registers_;
};

}  // namespace

Tensor Call(const char* name, const Tensor& a) { return Find(name).Call<Tensor>(a); }
Tensor Call(const char* name, const Tensor& a, const Tensor& b) { return Find(name).Call<Tensor>(a, b); }

Tensor Filled(const Tensor& like, double value) {
  return Find("mica::fill.Scalar").Call<Tensor>(like, Scalar(value));
}

Interval Evaluate(const MicaProgram& program, const char* name, const MicaValue* args,
                  const std::vector<Interval>& inputs, int32_t compute_dtype) {
  return Machine(program, name, args, inputs, compute_dtype).Run();
}

bool IsIncreasing(const MicaProgram& program) {
  for (const MicaCode& code : {program.main, program.combine, program.finish}) {
    for (int64_t i = 0; i < code.size; ++i) {
      const MicaInstruction& in = code.data[i];
      switch (in.opcode) {
        case MICA_OP_LOAD:
        case MICA_OP_STATE:
        case MICA_OP_COUNT:
        case MICA_OP_ELEMENT:
        case MICA_OP_STORE:
        case MICA_OP_STORE_STATE:
        case MICA_OP_ADD:
        case MICA_OP_MIN:
        case MICA_OP_MAX:
          continue;
        case MICA_OP_DIV:  // by the number of elements
          if (i > 0 && code.data[i - 1].opcode == MICA_OP_COUNT && code.data[i - 1].dst == in.b) continue;
          return false;
        default:
          return false;
      }
    }
  }
  return true;
}

}  // namespace my_layer
