// Comparison and listing of programs.
#include "codegen/program.h"

#include <cstring>

#include "codegen/expr/opcodes.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

bool SameCode(const Code& a, const Code& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

bool SameConstants(const std::vector<MicaConstant>& a, const std::vector<MicaConstant>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

void List(const char* title, const Code& code, const Program& program, std::string* out) {
  if (code.empty()) return;
  StrAppend(out, title, ":\n");
  for (const MicaInstruction& in : code) {
    const OpcodeInfo& info = kOpcodeInfo[in.opcode];
    out->append("  ");
    if (in.dst != 255) StrAppend(out, "r", static_cast<int>(in.dst), " = ");
    StrAppend(out, info.name);
    if (in.opcode == MICA_OP_CONST) {
      const MicaConstant& c = program.constants[in.aux];
      StrAppend(out, " ", c.is_integer ? std::to_string(c.i) : CppDouble(c.f));
    } else if (info.arity == 0 || in.dst == 255) {
      StrAppend(out, " ", in.aux);
    }
    const uint8_t operands[] = {in.a, in.b, in.c};
    for (int k = 0; k < info.arity; ++k) StrAppend(out, " r", static_cast<int>(operands[k]));
    out->push_back('\n');
  }
}

}  // namespace

bool Program::operator==(const Program& o) const {
  const bool same_next = next == o.next || (next && o.next && *next == *o.next);
  return class_name == o.class_name && source == o.source && hint == o.hint && num_outputs == o.num_outputs &&
         num_states == o.num_states && num_registers == o.num_registers && input_args == o.input_args &&
         scalar_args == o.scalar_args && SameConstants(constants, o.constants) && SameCode(main, o.main) &&
         SameCode(init, o.init) && SameCode(combine, o.combine) && SameCode(finish, o.finish) &&
         SameCode(map, o.map) && dims_arg == o.dims_arg && keepdim_arg == o.keepdim_arg && flags == o.flags &&
         first_state == o.first_state && SameCode(index, o.index) && SameCode(keep, o.keep) &&
         Places() == o.Places() && list_args == o.list_args && equation == o.equation && join == o.join &&
         same_next;
}

std::string Listing(const Program& program) {
  std::string out;
  List("init", program.init, program, &out);
  List("main", program.main, program, &out);
  List("combine", program.combine, program, &out);
  List("finish", program.finish, program, &out);
  List("map", program.map, program, &out);
  List("index", program.index, program, &out);
  List("keep", program.keep, program, &out);
  return program.next ? StrCat(out, "next:\n", Listing(*program.next)) : out;
}

}  // namespace mica::codegen
