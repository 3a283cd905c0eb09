#include "source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "opencl/mica_programs.h"

namespace opencl_device {
namespace {

struct OpcodeInfo {
  const char* name;
  int arity;
  char result;  // L lane, M mask, N none
};
constexpr OpcodeInfo kOpcodes[] = {
#define OPCODE(name, arity, result) {#name, arity, #result[0]},
    MICA_FORALL_OPCODES(OPCODE)
#undef OPCODE
};

std::string ConstantText(const MicaConstant& c) {
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
std::string SourceText(const MicaProgram& program, const MicaInstruction& in, int ndim) {
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
      throw mica::plugin::NotImplemented();  // random lanes have kernels of their own
  }
}

std::string OneLine(const char* text) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

// What mica-gen made when the plugin was built, if it is of the same expression: a
// later Mica may describe an operator anew.
const MicaOpenClProgram* FindMade(const MicaCall* call, const MicaProgram& program, int stage) {
  static const auto* made = [] {
    auto* all = new std::unordered_map<std::string, const MicaOpenClProgram*>();
    for (const MicaOpenClProgram& row : mica_opencl_programs)
      (*all)[row.name + std::string("/") + std::to_string(row.kind) + "/" + std::to_string(row.stage)] = &row;
    return all;
  }();
  if (call->compute_dtype < 0) return nullptr;
  const int kind = call->compute_dtype == MICA_BOOL ? 0 : call->compute_dtype < MICA_F16 ? 1 : 2;
  const auto found =
      made->find(call->name + std::string("/") + std::to_string(kind) + "/" + std::to_string(stage));
  if (found == made->end() || std::strcmp(found->second->source, program.source) != 0) return nullptr;
  return found->second;
}

}  // namespace

std::string CodeText(const MicaProgram& program, const MicaCode& code, int ndim) {
  std::string text;
  bool is_mask[256] = {};
  for (int64_t k = 0; k < code.size; ++k) {
    const MicaInstruction& in = code.data[k];
    const OpcodeInfo& op = kOpcodes[in.opcode];
    // The functions of mica/maths/ compute in double, which few devices have.
    if (in.opcode > MICA_OP_GIVEN) throw mica::plugin::NotImplemented();
    const std::string a = "r" + std::to_string(in.a);
    if (op.result == 'N') {
      text += (in.opcode == MICA_OP_STORE ? "y" : "s") + std::to_string(in.aux) + " = ";
      text += (is_mask[in.a] ? "OP_TO_LANE(" : "AS_LANE(") + a + "); ";
      continue;
    }
    is_mask[in.dst] = op.result == 'M';
    text += std::string("const ") + op.result + " r" + std::to_string(in.dst) + " = ";
    if (op.arity == 0) {
      text += SourceText(program, in, ndim) + "; ";
      continue;
    }
    if (in.opcode == MICA_OP_CAST) {
      text += "OP_CAST(" + std::to_string(in.aux) + ", " + a + "); ";
      continue;
    }
    text += std::string("OP_") + op.name + "(" + a;
    if (op.arity > 1) text += ", r" + std::to_string(in.b);
    if (op.arity > 2) text += ", r" + std::to_string(in.c);
    text += "); ";
  }
  return text;
}

ProgramText TextOf(const MicaCall* call, const MicaProgram& program, int stage, int ndim) {
  if (const MicaOpenClProgram* made = FindMade(call, program, stage))
    return {OneLine(made->main), OneLine(made->init), OneLine(made->combine), OneLine(made->finish),
            OneLine(made->map)};
  return {CodeText(program, program.main, ndim), CodeText(program, program.init, ndim),
          CodeText(program, program.combine, ndim), CodeText(program, program.finish, ndim),
          CodeText(program, program.map, ndim)};
}

const char* Suffix(int32_t dtype) {
  static constexpr const char* kSuffixes[] = {"b8",  "u8",  "i8",  "u16",  "i16", "u32", "i32",
                                              "u64", "i64", "f16", "bf16", "f32", "f64"};
  if (dtype < 0 || dtype > MICA_F64) throw mica::plugin::NotImplemented();
  return kSuffixes[dtype];
}

int32_t LaneDtype(int32_t compute_dtype) {
  Suffix(compute_dtype);
  return compute_dtype == MICA_F16 || compute_dtype == MICA_BF16 ? MICA_F32 : compute_dtype;
}

std::string Define(const std::string& name, const std::string& text) {
  return "#define " + name + " " + text + "\n";
}

std::string SplitText(const std::string& from, const std::string& prefix, size_t ndim) {
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

std::string OffsetText(const std::string& operand, const std::string& prefix, size_t ndim) {
  std::string text;
  for (size_t d = 0; d < ndim; ++d) {
    const std::string n = prefix + std::to_string(d);
    text += (d > 0 ? " + " : "") + n + " * stride_" + operand + "_" + n;
  }
  return text.empty() ? "0" : text;
}

}  // namespace opencl_device
