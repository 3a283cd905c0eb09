// The machine of linear.h: one register after the other.
#include "plugins/cpu/indexing/linear.h"

#include <algorithm>

namespace mica::cpu {
namespace {

// Numbers below this add without overflow; larger ones are left to the portable kernel.
constexpr int64_t kLimit = int64_t{1} << 60;

bool IsSmall(int64_t v, int64_t limit) { return v > -limit && v < limit; }
bool IsSmall(Linear v, int64_t limit) {
  return IsSmall(v.slope, limit) && IsSmall(v.row_slope, limit) && IsSmall(v.start, limit);
}
bool IsFixed(Linear v) { return v.slope == 0 && v.row_slope == 0; }
Linear Sum(Linear a, Linear b, int64_t factor) {
  return {a.slope + factor * b.slope, a.row_slope + factor * b.row_slope, a.start + factor * b.start};
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// A number or a mask.
struct Register {
  Linear number;
  Region mask;
};

class Machine {
 public:
  Machine(const LinearContext& context, const Linear* coordinates) : c_(context), coordinates_(coordinates) {}

  bool Run(const MicaCode& code, Register* result) {
    if (c_.program->num_registers > kRegisters) return false;
    for (int64_t i = 0; i < code.size; ++i) {
      const MicaInstruction& in = code.data[i];
      if (in.opcode == MICA_OP_STORE) {
        *result = registers_[in.a];
        return true;
      }
      if (!RunOne(in)) return false;
    }
    return false;
  }

 private:
  bool RunOne(const MicaInstruction& in) {
    Register& r = registers_[in.dst];
    switch (in.opcode) {
      case MICA_OP_COORD:
        r.number = coordinates_[in.aux < 0 ? in.aux + c_.ndim : in.aux];
        return true;
      case MICA_OP_SIZE:
        return Put(&r, c_.sizes[in.aux < 0 ? in.aux + c_.ndim : in.aux]);
      case MICA_OP_CONST:
        return Put(&r, c_.program->constants[in.aux].i);
      case MICA_OP_SCALAR:
        return ReadScalar(c_.args[c_.program->scalar_args[in.aux]], &r);
      case MICA_OP_LIST:
        return ReadList(in.aux, c_.named, &r);
      case MICA_OP_BEFORE:
        return ReadList(in.aux, 2 * c_.dimension, &r);
      case MICA_OP_AFTER:
        return ReadList(in.aux, 2 * c_.dimension + 1, &r);
      default:
        return Arithmetic(in.opcode, At(in.a), At(in.b), &r) ||
               Comparison(in.opcode, At(in.a).number, At(in.b).number, &r);
    }
  }

  // The number of an operand that is not used is no register's.
  const Register& At(int number) const { return registers_[number < kRegisters ? number : 0]; }

  static bool Put(Register* r, int64_t value) {
    r->number = {0, 0, value};
    return IsSmall(value, kLimit);
  }
  static bool ReadScalar(const MicaValue& value, Register* r) {
    if (value.tag == MICA_VALUE_INT || value.tag == MICA_VALUE_BOOL) return Put(r, value.u.i);
    return value.tag == MICA_VALUE_SCALAR && value.u.scalar.tag == MICA_SCALAR_INT &&
           Put(r, value.u.scalar.u.i);
  }
  bool ReadList(int list, int64_t at, Register* r) const {
    const MicaValue& value = c_.args[c_.program->list_args[list]];
    if (value.tag != MICA_VALUE_INTS) return false;
    return Put(r, at < value.u.ints.size ? value.u.ints.data[at] : 0);
  }

  bool Arithmetic(int opcode, const Register& left, const Register& right, Register* r) const {
    const Linear a = left.number, b = right.number;
    Linear& to = r->number;
    switch (opcode) {
      case MICA_OP_ADD:
        to = Sum(a, b, 1);
        return IsSmall(to, kLimit);
      case MICA_OP_SUB:
        to = Sum(a, b, -1);
        return IsSmall(to, kLimit);
      case MICA_OP_NEG:
        to = Sum({0, 0, 0}, a, -1);
        return true;
      case MICA_OP_MUL:
        if (!IsSmall(a, 1 << 29) || !IsSmall(b, 1 << 29) || !(IsFixed(a) || IsFixed(b))) return false;
        to = IsFixed(b) ? Sum({0, 0, 0}, a, b.start) : Sum({0, 0, 0}, b, a.start);
        return true;
      case MICA_OP_MASK_AND:
        if (left.mask.count + right.mask.count > Region::kMost) return false;
        r->mask = left.mask;
        for (int i = 0; i < right.mask.count; ++i) r->mask.forms[r->mask.count++] = right.mask.forms[i];
        return true;
      default:
        return IsFixed(a) && IsFixed(b) ? Fixed(opcode, a.start, b.start, r) : Piece(opcode, a, b, &to);
    }
  }

  // Operations that are linear as long as a sign stays.
  bool Piece(int opcode, Linear a, Linear b, Linear* to) const {
    bool negative;
    switch (opcode) {
      case MICA_OP_ABS:
        if (!SignOf(a, &negative)) return false;
        *to = Sum({0, 0, 0}, a, negative ? -1 : 1);
        return true;
      case MICA_OP_MIN:
      case MICA_OP_MAX:
        if (!SignOf(Sum(a, b, -1), &negative)) return false;
        *to = negative == (opcode == MICA_OP_MIN) ? a : b;
        return true;
      case MICA_OP_REMAINDER: {
        if (!IsFixed(b) || b.start <= 0) return false;
        const int64_t first = a.slope * c_.range.begin + a.start;
        *to = Sum(a, {0, 0, FloorDivide(first, b.start) * b.start}, -1);
        bool below, above;  // the range from 0 to b, in which it begins
        return SignOf(*to, &below) && SignOf(Sum(b, *to, -1), &above, 1);
      }
      default:
        return false;
    }
  }

  // Whether v is below `bound` for all x of the range; false where that changes, at `split`.
  bool SignOf(Linear v, bool* negative, int64_t bound = 0) const {
    if (c_.split == nullptr || v.row_slope != 0) return false;
    const int64_t first = v.slope * c_.range.begin + v.start - bound;
    *negative = first < 0;
    const bool changes = v.slope != 0 && *negative == (v.slope > 0);
    if (!changes) return true;
    const int64_t steps = v.slope > 0 ? (-first + v.slope - 1) / v.slope : first / -v.slope + 1;
    if (steps >= c_.range.end - c_.range.begin) return true;
    *c_.split = c_.range.begin + steps;
    return false;
  }

  // Operations that have no linear form.
  static bool Fixed(int opcode, int64_t a, int64_t b, Register* r) {
    switch (opcode) {
      case MICA_OP_REMAINDER:
        return b > 0 && Put(r, a - FloorDivide(a, b) * b);
      case MICA_OP_FLOOR_DIV:
        return b > 0 && Put(r, FloorDivide(a, b));
      case MICA_OP_ABS:
        return Put(r, a < 0 ? -a : a);
      case MICA_OP_MIN:
        return Put(r, std::min(a, b));
      case MICA_OP_MAX:
        return Put(r, std::max(a, b));
      default:
        return false;
    }
  }

  static bool Comparison(int opcode, Linear a, Linear b, Register* r) {
    r->mask.count = 1;
    Linear& form = r->mask.forms[0];
    const bool less = opcode == MICA_OP_LE || opcode == MICA_OP_LT;
    if (!less && opcode != MICA_OP_GE && opcode != MICA_OP_GT) return false;
    form = less ? Sum(a, b, -1) : Sum(b, a, -1);
    if (opcode == MICA_OP_LT || opcode == MICA_OP_GT) ++form.start;
    return IsSmall(form, kLimit);
  }

  static constexpr int kRegisters = 32;
  const LinearContext& c_;
  const Linear* coordinates_;
  Register registers_[kRegisters];
};

}  // namespace

Interval Region::Row(int64_t y, int64_t length) const {
  Interval row = {0, length};
  for (int i = 0; i < count; ++i) {
    const int64_t slope = forms[i].slope, start = forms[i].start + forms[i].row_slope * y;
    if (slope == 0) {
      if (start > 0) row.end = 0;
    } else if (slope > 0) {
      row.end = std::min(row.end, (slope == 1 ? -start : FloorDivide(-start, slope)) + 1);
    } else {
      row.begin = std::max(row.begin, slope == -1 ? start : -FloorDivide(-start, -slope));
    }
  }
  row.begin = std::min(row.begin, length);
  row.end = std::max(row.begin, row.end);
  return row;
}

bool RunLinear(const LinearContext& context, const MicaCode& code, const Linear* coordinates,
               Linear* result) {
  Machine machine(context, coordinates);
  Register r;
  if (!machine.Run(code, &r)) return false;
  *result = r.number;
  return true;
}

bool RunLinearMask(const LinearContext& context, const MicaCode& code, const Linear* coordinates,
                   Region* result) {
  Machine machine(context, coordinates);
  Register r;
  if (!machine.Run(code, &r)) return false;
  *result = r.mask;
  return true;
}

}  // namespace mica::cpu
