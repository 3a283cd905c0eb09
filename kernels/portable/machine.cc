#include "kernels/portable/machine.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <mica/maths/complex_power.h>
#include "kernels/portable/lane_arithmetic.h"

namespace mica::portable {

template <typename T>
Machine<T>::Machine(const MicaProgram& program, const MicaValue* args, DType compute)
    : program_(&program), args_(args), compute_(compute) {
  int registers = 0, inputs = 0, states = 0;
  for (const MicaProgram* p = &program; p; p = p->next) {
    registers = std::max(registers, p->num_registers);
    inputs = std::max(inputs, p->num_inputs);
    states = std::max(states, p->first_state + p->num_states);
  }
  const auto blocks = [](int n) { return static_cast<size_t>(n) * kBlock; };
  lanes_.resize(blocks(registers));
  masks_.resize(blocks(registers));
  is_mask_.resize(static_cast<size_t>(registers));
  inputs_.resize(blocks(inputs));
  outputs_.resize(blocks(std::max(program.num_outputs, 4)));
  states_.resize(blocks(2 * states));
  element_.resize(kBlock);
  Select(program);
}

template <typename T>
void Machine<T>::Select(const MicaProgram& stage) {
  program_ = &stage;
  scalars_.clear();
  for (int i = 0; i < stage.num_scalars; ++i) {
    const MicaValue& v = args_[stage.scalar_args[i]];
    const Scalar s = v.tag == MICA_VALUE_NONE     ? Scalar(0)
                     : v.tag == MICA_VALUE_SCALAR ? Scalar::FromAbi(v.u.scalar)
                     : v.tag == MICA_VALUE_FLOAT  ? Scalar(v.u.f)
                                                  : Scalar(v.u.i);
    scalars_.push_back(s.To<T>());
  }
  Wrap(scalars_.data(), stage.num_scalars);
}

template <typename T>
void Machine<T>::SetList(int list, int64_t value, int64_t before, int64_t after) {
  lists_.resize(std::max(lists_.size(), static_cast<size_t>(list) + 1));
  lists_[static_cast<size_t>(list)] = {value, before, after};
}

template <typename T>
void Machine<T>::SetSizes(IntSpan sizes) {
  sizes_ = ToDims(sizes);
  coordinates_.resize(std::max<size_t>(sizes_.size(), 1) * kBlock);
}

template <typename T>
T Machine<T>::Constant(const MicaConstant& c) const {
  if constexpr (!kInteger<T>) {
    return T(c.f);
  } else {
    // Saturated to the compute dtype, so that inf is its largest value.
    if (compute_ == DType::kBool) return c.i > 0;
    if (Kind(compute_) == DTypeKind::kUnsigned) {
      if (c.i <= 0) return 0;
      const int bits = static_cast<int>(ItemSize(compute_)) * 8;
      const uint64_t largest = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
      return static_cast<T>(c.i == INT64_MAX ? largest : std::min(static_cast<uint64_t>(c.i), largest));
    }
    const int shift = 64 - static_cast<int>(ItemSize(compute_)) * 8;
    return static_cast<T>(std::clamp<int64_t>(c.i, INT64_MIN >> shift, INT64_MAX >> shift));
  }
}

// Integer results wrap to the compute dtype; floating ones keep their width.
template <typename T>
void Machine<T>::Wrap(T* v, int64_t n) const {
  if constexpr (kInteger<T>) {
    switch (compute_) {
      case DType::kBool:
        for (int64_t i = 0; i < n; ++i) v[i] = v[i] != 0;
        break;
      case DType::kU8:
        for (int64_t i = 0; i < n; ++i) v[i] = static_cast<uint8_t>(v[i]);
        break;
      case DType::kI8:
        for (int64_t i = 0; i < n; ++i) v[i] = static_cast<T>(static_cast<int8_t>(v[i]));
        break;
      case DType::kU16:
        for (int64_t i = 0; i < n; ++i) v[i] = static_cast<uint16_t>(v[i]);
        break;
      case DType::kI16:
        for (int64_t i = 0; i < n; ++i) v[i] = static_cast<T>(static_cast<int16_t>(v[i]));
        break;
      case DType::kU32:
        for (int64_t i = 0; i < n; ++i) v[i] = static_cast<uint32_t>(v[i]);
        break;
      case DType::kI32:
        for (int64_t i = 0; i < n; ++i) v[i] = static_cast<T>(static_cast<int32_t>(v[i]));
        break;
      default:
        break;
    }
  }
}

template <typename T>
void Machine<T>::Run(const MicaCode& code, int64_t n) {
  for (int64_t k = 0; k < code.size; ++k) RunOne(code.data[k], n);
}

template <typename T>
bool Machine<T>::RunSource(const MicaInstruction& in, int64_t n) {
  const auto fill = [&](T v) { std::fill_n(lane(in.dst), n, v); };
  const auto copy = [&](const T* from) { std::copy_n(from, n, lane(in.dst)); };
  const auto dim = [&] { return in.aux < 0 ? static_cast<int>(sizes_.size()) + in.aux : in.aux; };
  switch (in.opcode) {
    case MICA_OP_LOAD:
      copy(input(in.aux));
      return true;
    case MICA_OP_SCALAR:
      fill(scalars_[static_cast<size_t>(in.aux)]);
      return true;
    case MICA_OP_CONST:
      fill(Constant(program_->constants[in.aux]));
      return true;
    case MICA_OP_STATE:
      copy(state(in.aux));
      return true;
    case MICA_OP_ELEMENT:
      copy(element());
      return true;
    case MICA_OP_U01:
    case MICA_OP_NORMAL:
    case MICA_OP_BITS:
      copy(draw(in.aux));
      return true;
    case MICA_OP_INDEX:
      fill(T(static_cast<double>(index_)));
      return true;
    case MICA_OP_COUNT:
      fill(T(static_cast<double>(count_)));
      return true;
    case MICA_OP_COORD:
      copy(coordinate(dim()));
      return true;
    case MICA_OP_SIZE:
      fill(T(static_cast<double>(sizes_[static_cast<size_t>(dim())])));
      return true;
    case MICA_OP_LIST:
    case MICA_OP_BEFORE:
    case MICA_OP_AFTER:
      fill(T(static_cast<double>(
          lists_[static_cast<size_t>(in.aux)][static_cast<size_t>(in.opcode - MICA_OP_LIST)])));
      return true;
    case MICA_OP_AREA:
      fill(T(static_cast<double>(area_)));
      return true;
    case MICA_OP_GIVEN:
      std::fill_n(mask(in.dst), n,
                  static_cast<uint8_t>(args_[program_->scalar_args[in.aux]].tag != MICA_VALUE_NONE));
      return true;
    case MICA_OP_STORE:
    case MICA_OP_STORE_STATE: {
      T* to = in.opcode == MICA_OP_STORE ? output(in.aux) : state(in.aux);
      if (is_mask_[in.a])
        for (int64_t i = 0; i < n; ++i) to[i] = T(mask(in.a)[i] ? 1 : 0);
      else
        std::copy_n(lane(in.a), n, to);
      return true;
    }
    case MICA_OP_CAST: {
      VisitDType(static_cast<DType>(in.aux), [&]<typename D>() {
        D one;
        const int64_t zero = 0;
        for (int64_t i = 0; i < n; ++i) {
          StoreLanes(kLaneFor<T>, DTypeOf<D>::value, lane(in.a) + i, reinterpret_cast<char*>(&one), &zero, 1);
          LoadLanes(kLaneFor<T>, DTypeOf<D>::value, reinterpret_cast<const char*>(&one), &zero, 1,
                    lane(in.dst) + i);
        }
      });
      return true;
    }
    default:
      return false;
  }
}

template <typename T>
void Machine<T>::RunOne(const MicaInstruction& in, int64_t n) {
  static constexpr char kResult[] = {
#define X(name, arity, result) #result[0],
      MICA_FORALL_OPCODES(X)
#undef X
  };
  const bool makes_mask = kResult[in.opcode] == 'M';
  if (in.dst != 255) is_mask_[in.dst] = makes_mask;
  if (RunSource(in, n)) return;
  if (makes_mask) {
    if (!RunMask(in, n)) ThrowUndefined(in.opcode);
    return;
  }
  const T *a = lane(in.a), *b = lane(in.b), *c = lane(in.c);
  const uint8_t* m = mask(in.a);
  T* d = lane(in.dst);
  const auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) d[i] = f(i);
  };
  bool done = true;
  switch (in.opcode) {
    case MICA_OP_TO_LANE:
      each([&](int64_t i) { return T(m[i] ? 1 : 0); });
      break;
    case MICA_OP_ADD:
      each([&](int64_t i) { return a[i] + b[i]; });
      break;
    case MICA_OP_SUB:
      each([&](int64_t i) { return a[i] - b[i]; });
      break;
    case MICA_OP_MUL:
      each([&](int64_t i) { return a[i] * b[i]; });
      break;
    case MICA_OP_NEG:
      each([&](int64_t i) { return -a[i]; });
      break;
    case MICA_OP_FMA:
      each([&](int64_t i) { return a[i] * b[i] + c[i]; });
      break;
    case MICA_OP_SQUARE:
      each([&](int64_t i) { return a[i] * a[i]; });
      break;
    // Not wrapped: what it selects is in range, or an index, which need not fit.
    case MICA_OP_SELECT:
      each([&](int64_t i) { return m[i] ? b[i] : c[i]; });
      return;
    case MICA_OP_REAL:
      if constexpr (kComplexLane<T>)
        each([&](int64_t i) { return T(a[i].real()); });
      else
        each([&](int64_t i) { return a[i]; });
      break;
    case MICA_OP_IMAG:
      if constexpr (kComplexLane<T>)
        each([&](int64_t i) { return T(a[i].imag()); });
      else
        each([](int64_t) { return T(0); });
      break;
    case MICA_OP_CONJ:
      if constexpr (kComplexLane<T>)
        each([&](int64_t i) { return std::conj(a[i]); });
      else
        each([&](int64_t i) { return a[i]; });
      break;
    default:
      done = false;
  }
  if constexpr (!kInteger<T>) {
    if (!done) {
      done = true;
      switch (in.opcode) {
        case MICA_OP_DIV:
          each([&](int64_t i) { return a[i] / b[i]; });
          break;
        case MICA_OP_RECIPROCAL:
          each([&](int64_t i) { return T(1) / a[i]; });
          break;
        case MICA_OP_ABS:
          each([&](int64_t i) { return T(std::abs(a[i])); });
          break;
        case MICA_OP_POW:
          each([&](int64_t i) {
            if constexpr (kFloat<T>)
              return std::pow(a[i], b[i]);
            else
              return maths::ComplexPower(a[i], b[i]);
          });
          break;
        case MICA_OP_SQRT:
          each([&](int64_t i) { return std::sqrt(a[i]); });
          break;
        case MICA_OP_RSQRT:
          each([&](int64_t i) { return T(1) / std::sqrt(a[i]); });
          break;
        case MICA_OP_EXP:
          each([&](int64_t i) { return std::exp(a[i]); });
          break;
        case MICA_OP_EXP2:
          each([&](int64_t i) {
            if constexpr (kFloat<T>)
              return std::exp2(a[i]);
            else
              return std::pow(T(2), a[i]);
          });
          break;
        case MICA_OP_EXPM1:
          each([&](int64_t i) {
            if constexpr (kFloat<T>)
              return std::expm1(a[i]);
            else
              return std::exp(a[i]) - T(1);
          });
          break;
        case MICA_OP_LOG:
          each([&](int64_t i) { return std::log(a[i]); });
          break;
        case MICA_OP_LOG2:
          each([&](int64_t i) {
            if constexpr (kFloat<T>)
              return std::log2(a[i]);
            else
              return std::log(a[i]) / T(std::log(2.0));
          });
          break;
        case MICA_OP_LOG10:
          each([&](int64_t i) { return std::log10(a[i]); });
          break;
        case MICA_OP_LOG1P:
          each([&](int64_t i) {
            if constexpr (kFloat<T>)
              return std::log1p(a[i]);
            else
              return std::log(T(1) + a[i]);
          });
          break;
        case MICA_OP_SIN:
          each([&](int64_t i) { return std::sin(a[i]); });
          break;
        case MICA_OP_COS:
          each([&](int64_t i) { return std::cos(a[i]); });
          break;
        case MICA_OP_TAN:
          each([&](int64_t i) { return std::tan(a[i]); });
          break;
        case MICA_OP_ASIN:
          each([&](int64_t i) { return std::asin(a[i]); });
          break;
        case MICA_OP_ACOS:
          each([&](int64_t i) { return std::acos(a[i]); });
          break;
        case MICA_OP_ATAN:
          each([&](int64_t i) { return std::atan(a[i]); });
          break;
        case MICA_OP_SINH:
          each([&](int64_t i) { return std::sinh(a[i]); });
          break;
        case MICA_OP_COSH:
          each([&](int64_t i) { return std::cosh(a[i]); });
          break;
        case MICA_OP_TANH:
          each([&](int64_t i) { return std::tanh(a[i]); });
          break;
        case MICA_OP_ASINH:
          each([&](int64_t i) { return std::asinh(a[i]); });
          break;
        case MICA_OP_ACOSH:
          each([&](int64_t i) { return std::acosh(a[i]); });
          break;
        case MICA_OP_ATANH:
          each([&](int64_t i) { return std::atanh(a[i]); });
          break;
        case MICA_OP_SIGMOID:
          each([&](int64_t i) { return Sigmoid(a[i]); });
          break;
        case MICA_OP_ANGLE:
          each([&](int64_t i) {
            if constexpr (kFloat<T>)
              return std::isnan(a[i]) ? a[i] : std::signbit(a[i]) && a[i] != 0 ? std::numbers::pi : 0.0;
            else
              return T(std::arg(a[i]));
          });
          break;
        case MICA_OP_COMPLEX:
          if constexpr (kComplexLane<T>) {
            each([&](int64_t i) { return T(a[i].real(), b[i].real()); });
            break;
          }
          [[fallthrough]];
        default:
          done = false;
      }
    }
    // What complex numbers have by definition: the sign is x / |x|.
    if constexpr (kComplexLane<T>) {
      if (!done && in.opcode == MICA_OP_SIGN) {
        each([&](int64_t i) { return a[i] == T(0) ? T(0) : a[i] / std::abs(a[i]); });
        done = true;
      }
    }
  }
  if (!done && !RunReal(in, n)) ThrowUndefined(in.opcode);
  Wrap(d, n);
}

template class Machine<int64_t>;
template class Machine<uint64_t>;
template class Machine<double>;
template class Machine<Complex>;

}  // namespace mica::portable
