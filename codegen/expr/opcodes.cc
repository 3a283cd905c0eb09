// The functions of the language by opcode, and the kinds of each opcode.
#include "codegen/expr/opcodes.h"

#include <algorithm>

namespace mica::codegen {
namespace {

constexpr uint8_t Bit(ComputeKind kind) { return static_cast<uint8_t>(1 << static_cast<int>(kind)); }
constexpr uint8_t kB = Bit(ComputeKind::kBool), kI = Bit(ComputeKind::kInt), kF = Bit(ComputeKind::kFloat),
                  kC = Bit(ComputeKind::kComplex);

uint8_t KindsOf(int opcode) {
  switch (opcode) {
    case MICA_OP_SUB:
    case MICA_OP_NEG:
    case MICA_OP_SQUARE:
    case MICA_OP_POW:
    case MICA_OP_FMA:
      return kI | kF | kC;
    case MICA_OP_DIV:
    case MICA_OP_RECIPROCAL:
      return kF | kC;
    case MICA_OP_FLOOR_DIV:
    case MICA_OP_TRUNC_DIV:
    case MICA_OP_REMAINDER:
    case MICA_OP_FMOD:
    case MICA_OP_FLOOR:
    case MICA_OP_CEIL:
    case MICA_OP_TRUNC:
    case MICA_OP_ROUND:
      return kI | kF;
    case MICA_OP_MIN:
    case MICA_OP_MAX:
    case MICA_OP_FMIN:
    case MICA_OP_FMAX:
    case MICA_OP_SIGNBIT:
    case MICA_OP_LT:
    case MICA_OP_LE:
    case MICA_OP_GT:
    case MICA_OP_GE:
      return kB | kI | kF;
    case MICA_OP_AND:
    case MICA_OP_OR:
    case MICA_OP_XOR:
    case MICA_OP_NOT:
      return kB | kI;
    case MICA_OP_SHL:
    case MICA_OP_SHR:
    case MICA_OP_GCD:
    case MICA_OP_LCM:
      return kI;
    case MICA_OP_CBRT:
    case MICA_OP_ATAN2:
    case MICA_OP_HYPOT:
    case MICA_OP_ERF:
    case MICA_OP_ERFC:
    case MICA_OP_ERFINV:
    case MICA_OP_LGAMMA:
    case MICA_OP_DIGAMMA:
    case MICA_OP_LOGADDEXP:
    case MICA_OP_COPYSIGN:
    case MICA_OP_NEXTAFTER:
      return kF;
    case MICA_OP_COMPLEX:
      return kC;
    default:
      if (opcode > MICA_OP_GIVEN) return kF;  // mica/maths/
      return opcode >= MICA_OP_SQRT && opcode <= MICA_OP_SIGMOID ? kF | kC : kB | kI | kF | kC;
  }
}

// Not called by their opcode's name: sources, stores, conversions, and what has
// a sign or a word of its own.
bool HasFunction(int opcode) {
  if (opcode == MICA_OP_U01 || opcode == MICA_OP_NORMAL || opcode == MICA_OP_BITS) return true;
  if (opcode < MICA_OP_ADD || (opcode >= MICA_OP_LIST && opcode <= MICA_OP_GIVEN)) return false;
  return opcode < MICA_OP_MASK_AND || opcode > MICA_OP_MASK_SELECT;
}

struct Alias {
  std::string_view name;
  int opcode;
};
constexpr Alias kAliases[] = {
    {"isnan", MICA_OP_IS_NAN},       {"isinf", MICA_OP_IS_INF},
    {"isfinite", MICA_OP_IS_FINITE}, {"floor_divide", MICA_OP_FLOOR_DIV},
    {"where", MICA_OP_SELECT},       {"minimum", MICA_OP_MIN},
    {"maximum", MICA_OP_MAX},
};

std::string Lower(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

const char* Name(ComputeKind kind) {
  static constexpr const char* kNames[] = {"bool", "int", "float", "complex"};
  return kNames[static_cast<int>(kind)];
}

int OpcodeOfFunction(std::string_view name) {
  for (const Alias& alias : kAliases)
    if (alias.name == name) return alias.opcode;
  for (int opcode = 0; opcode < MICA_OPCODE_COUNT; ++opcode)
    if (HasFunction(opcode) && Lower(kOpcodeInfo[opcode].name) == name) return opcode;
  return -1;
}

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names = {"bool", "float", "int"};
  for (const Alias& alias : kAliases) names.emplace_back(alias.name);
  for (int opcode = 0; opcode < MICA_OPCODE_COUNT; ++opcode)
    if (HasFunction(opcode)) names.push_back(Lower(kOpcodeInfo[opcode].name));
  std::sort(names.begin(), names.end());
  return names;
}

bool HasMeaning(int opcode, ComputeKind kind) { return (KindsOf(opcode) & Bit(kind)) != 0; }

bool TakesMask(int opcode, int i) {
  switch (opcode) {
    case MICA_OP_TO_LANE:
    case MICA_OP_MASK_AND:
    case MICA_OP_MASK_OR:
    case MICA_OP_MASK_XOR:
    case MICA_OP_MASK_NOT:
    case MICA_OP_MASK_SELECT:
      return true;
    case MICA_OP_SELECT:
      return i == 0;
    default:
      return false;
  }
}

bool CanBeHot(int opcode) {
  switch (opcode) {
    case MICA_OP_LOAD:
    case MICA_OP_SCALAR:
    case MICA_OP_CONST:
    case MICA_OP_COORD:
    case MICA_OP_STORE:
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
    case MICA_OP_DIV:
    case MICA_OP_NEG:
    case MICA_OP_ABS:
    case MICA_OP_MIN:
    case MICA_OP_MAX:
    case MICA_OP_SQUARE:
    case MICA_OP_RECIPROCAL:
    case MICA_OP_SQRT:
    case MICA_OP_SELECT:
    case MICA_OP_IS_NAN:
    case MICA_OP_IS_INF:
      return true;
    default:
      return opcode >= MICA_OP_EQ && opcode <= MICA_OP_MASK_NOT && opcode != MICA_OP_MASK_XOR;
  }
}

bool IsRandom(int opcode) {
  return opcode == MICA_OP_U01 || opcode == MICA_OP_NORMAL || opcode == MICA_OP_BITS;
}

}  // namespace mica::codegen
