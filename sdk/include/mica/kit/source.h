// From an operator's program to the text that goes into the skeletons of kernels/.
//
// Each section of a program is straight-line code over the macros of lanes.cl
// (`const L r5 = OP_ADD(r3, r4);`), which have a meaning for a lane that is one
// number and for a lane that is a vector of them.
#pragma once

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include <mica/kit/space.h>
#include <mica/opcodes.h>
#include <mica/program.h>

namespace mica {
namespace kit {
namespace source {

inline std::string ConstantText(const MicaConstant& c) {
  if (std::isnan(c.f)) return "CONST_NAN";
  if (std::isinf(c.f)) return c.f > 0 ? "CONST_INF" : "CONST_NEG_INF";
  char f[64];
  std::snprintf(f, sizeof(f), "%.17g", c.is_integer ? static_cast<double>(c.i) : c.f);
  std::string text = f;
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  const std::string i = c.i == std::numeric_limits<int64_t>::min() ? "LONG_MIN" : std::to_string(c.i) + "L";
  return "CONST(" + text + ", " + i + ")";
}

// What an instruction without operands reads.
inline std::string SourceText(const MicaProgram& program, const MicaInstruction& in, int ndim) {
  const std::string n = std::to_string(in.aux);
  const std::string dim = std::to_string(in.aux < 0 ? in.aux + ndim : in.aux);
  switch (in.opcode) {
    case MICA_OP_LOAD:
      return "x" + n;
    case MICA_OP_ELEMENT:
      return "x0";
    case MICA_OP_SCALAR:
      return "n" + n;
    case MICA_OP_CONST:
      return ConstantText(program.constants[in.aux]);
    case MICA_OP_STATE:
      return in.aux < program.num_states ? "s" + n : "t" + std::to_string(in.aux - program.num_states);
    case MICA_OP_INDEX:
      return "index";
    case MICA_OP_COUNT:
      return "count";
    case MICA_OP_COORD:
      return "COORD(" + dim + ")";
    case MICA_OP_SIZE:
      return "SIZE(" + dim + ")";
    case MICA_OP_LIST:
      return "LIST(" + n + ")";
    case MICA_OP_BEFORE:
      return "BEFORE(" + n + ")";
    case MICA_OP_AFTER:
      return "AFTER(" + n + ")";
    case MICA_OP_AREA:
      return "AREA(" + n + ")";
    case MICA_OP_GIVEN:
      return "GIVEN(" + n + ")";
    default:
      throw plugin::NotImplemented();  // random lanes have kernels of their own
  }
}

// The functions of mica/maths compute in double, one lane at a time: "OP_MATHS1(bessel_j0, ".
inline bool IsMaths(const MicaInstruction& in) { return in.opcode > MICA_OP_GIVEN; }
inline std::string MathsText(const OpcodeInfo& op) {
  std::string name = op.name;
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return (op.arity == 1 ? "OP_MATHS1(" : "OP_MATHS2(") + name + ", ";
}

}  // namespace source

// One section, printed. Inputs are x<k>, numbers n<k>, states s<k> and, on the
// right of a combine, t<k>; results are y<k>; coordinates are COORD(d) of `ndim`.
// Functions of mica/maths are printed where the text holds them: `maths`.
inline std::string CodeText(const MicaProgram& program, const MicaCode& code, int ndim = 0,
                            bool maths = false) {
  std::string text;
  bool is_mask[256] = {};
  for (int64_t k = 0; k < code.size; ++k) {
    const MicaInstruction& in = code.data[k];
    const OpcodeInfo& op = kOpcodeInfo[in.opcode];
    if (source::IsMaths(in) && !maths) throw plugin::NotImplemented();
    const std::string a = "r" + std::to_string(in.a);
    if (op.result == 'N') {
      text += (in.opcode == MICA_OP_STORE ? "y" : "s") + std::to_string(in.aux) + " = ";
      text += (is_mask[in.a] ? "OP_TO_LANE(" : "AS_LANE(") + a + "); ";
      continue;
    }
    is_mask[in.dst] = op.result == 'M';
    text += std::string("const ") + op.result + " r" + std::to_string(in.dst) + " = ";
    if (op.arity == 0) {
      text += source::SourceText(program, in, ndim) + "; ";
      continue;
    }
    if (in.opcode == MICA_OP_CAST) {
      text += "OP_CAST(" + std::to_string(in.aux) + ", " + a + "); ";
      continue;
    }
    text += source::IsMaths(in) ? source::MathsText(op) + a : std::string("OP_") + op.name + "(" + a;
    if (op.arity > 1) text += ", r" + std::to_string(in.b);
    if (op.arity > 2) text += ", r" + std::to_string(in.c);
    text += "); ";
  }
  return text;
}

// Whether a text needs the functions of mica/maths.
inline bool NeedsMaths(const MicaProgram& program) {
  for (int64_t k = 0; k < program.main.size; ++k)
    if (source::IsMaths(program.main.data[k])) return true;
  return false;
}
// Whether they are better than a text's own: digamma in double lanes.
inline bool LikesMaths(const MicaProgram& program, int32_t lane_dtype) {
  for (int64_t k = 0; k < program.main.size; ++k)
    if (program.main.data[k].opcode == MICA_OP_DIGAMMA && lane_dtype == MICA_F64) return true;
  return false;
}

// The sections of a program, or of a stage of it; "" for those it lacks.
struct ProgramText {
  std::string main, init, combine, finish, map;
};
inline ProgramText TextOf(const MicaProgram& program, int ndim = 0) {
  return {CodeText(program, program.main, ndim), CodeText(program, program.init, ndim),
          CodeText(program, program.combine, ndim), CodeText(program, program.finish, ndim),
          CodeText(program, program.map, ndim)};
}

// A macro of one line.
inline std::string Define(const std::string& name, const std::string& text) {
  return "#define " + name + " " + text + "\n";
}

// `INDEX` values for the coordinates of `from` (a variable) in dimensions named
// <prefix>0, ...: "const INDEX k1 = k % size_k1; ...".
inline std::string SplitText(const std::string& from, const std::string& prefix, size_t ndim) {
  std::string text;
  std::string rest = from;
  for (size_t d = ndim; d-- > 0;) {
    const std::string n = prefix + std::to_string(d);
    if (d == 0) {
      text += "const INDEX " + n + " = " + rest + "; ";
    } else {
      text += "const INDEX " + n + " = " + rest + " % size_" + n + "; const INDEX rest_" + n + " = " + rest +
              " / size_" + n + "; ";
      rest = "rest_" + n;
    }
  }
  return text;
}

// "p0 * stride_..": where operand `operand` lies at the coordinates; "0" without any.
inline std::string OffsetText(const std::string& operand, const std::string& prefix, size_t ndim) {
  std::string text;
  for (size_t d = 0; d < ndim; ++d) {
    const std::string n = prefix + std::to_string(d);
    text += (d > 0 ? " + " : "") + n + " * stride_" + operand + "_" + n;
  }
  return text.empty() ? "0" : text;
}

}  // namespace kit
}  // namespace mica
