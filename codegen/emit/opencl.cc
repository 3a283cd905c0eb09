// opencl/mica_programs.h: the programs of all operators as OpenCL C, for a plugin
// to embed. Each code of a program (main, init, combine, finish, map) becomes
// straight-line statements over macros that the plugin defines, so that one text
// serves scalar and vector lanes:
//
//   const L r2 = OP_ADD(r0, r1);      L a lane, M a mask; OP_ and the opcode's name
//   x<k> inputs (ELEMENT is x0) · n<k> scalars · s<k> states, t<k> the right part's
//   CONST(1.5, 1L) CONST_INF CONST_NEG_INF CONST_NAN · index count COORD(d) SIZE(d)
//   y<k> = AS_LANE(r2);  y<k> = OP_TO_LANE(m);  the same into s<k>
// The rest of a program (arguments, states, flags) is in the MicaProgram that the
// class kernel gets at run time. Complex and random programs are left out, and those
// that call functions of mica/maths/.
#include <cmath>

#include "codegen/emit/emitters.h"
#include "codegen/expr/opcodes.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

std::string ConstantText(const MicaConstant& c) {
  if (std::isnan(c.f)) return "CONST_NAN";
  if (std::isinf(c.f)) return c.f > 0 ? "CONST_INF" : "CONST_NEG_INF";
  const std::string integer = c.i == INT64_MIN ? "LONG_MIN" : StrCat(c.i, "L");
  return StrCat("CONST(", CppDouble(c.f), ", ", integer, ")");
}

// Where an instruction without operands reads from.
std::string SourceText(const MicaInstruction& in, const Program& program) {
  switch (in.opcode) {
    case MICA_OP_LOAD:
      return StrCat("x", in.aux);
    case MICA_OP_ELEMENT:
      return "x0";
    case MICA_OP_SCALAR:
      return StrCat("n", in.aux);
    case MICA_OP_CONST:
      return ConstantText(program.constants[static_cast<size_t>(in.aux)]);
    case MICA_OP_STATE:
      return in.aux < program.num_states ? StrCat("s", in.aux) : StrCat("t", in.aux - program.num_states);
    case MICA_OP_INDEX:
      return "index";
    case MICA_OP_COUNT:
      return "count";
    default:  // COORD, SIZE, LIST and what else has a number
      return StrCat(kOpcodeInfo[in.opcode].name, "(", in.aux, ")");
  }
}

// Which instructions of `code` make masks, by register.
std::string CodeText(const Code& code, const Program& program) {
  std::string text;
  bool is_mask[256] = {};
  for (const MicaInstruction& in : code) {
    const OpcodeInfo& info = kOpcodeInfo[in.opcode];
    const std::string a = StrCat("r", static_cast<int>(in.a));
    if (in.opcode == MICA_OP_STORE || in.opcode == MICA_OP_STORE_STATE) {
      StrAppend(&text, in.opcode == MICA_OP_STORE ? "y" : "s", in.aux, " = ",
                is_mask[in.a] ? "OP_TO_LANE(" : "AS_LANE(", a, ");\n");
      continue;
    }
    is_mask[in.dst] = info.result == 'M';
    std::string value;
    if (in.opcode == MICA_OP_CAST) {
      value = StrCat("OP_CAST(", in.aux, ", ", a, ")");
    } else if (info.arity == 0) {
      value = SourceText(in, program);
    } else {
      const uint8_t operands[] = {in.a, in.b, in.c};
      value = StrCat("OP_", info.name, "(", a);
      for (int k = 1; k < info.arity; ++k) StrAppend(&value, ", r", static_cast<int>(operands[k]));
      value += ")";
    }
    StrAppend(&text, "const ", is_mask[in.dst] ? "M" : "L", " r", static_cast<int>(in.dst), " = ", value,
              ";\n");
  }
  return text;
}

// Functions of mica/maths/ compute in double, lane by lane: left to other backends.
bool CallsMaths(const Program& program) {
  for (const Code* code : {&program.main, &program.init, &program.combine, &program.finish, &program.map})
    for (const MicaInstruction& in : *code)
      if (in.opcode > MICA_OP_GIVEN) return true;
  return program.next && CallsMaths(*program.next);
}

constexpr const char* kHead = R"(#ifndef MICA_OPENCL_PROGRAMS_H_
#define MICA_OPENCL_PROGRAMS_H_

#include <stdint.h>

/* One program, or one stage of a row; texts are "" where the program has no such code. */
typedef struct {
  const char* name; /* "mica::add.Tensor": the functional form, in-place where it is the only one */
  const char* class_name; /* "pointwise" */
  const char* source;     /* the expression, equal to MicaProgram's `source` if it is the same program */
  int32_t kind;     /* of the compute dtype: 0 bool, 1 integers, 2 floats */
  int32_t stage;    /* of a row, from 0 */
  const char *main, *init, *combine, *finish, *map;
} MicaOpenClProgram;

static const MicaOpenClProgram mica_opencl_programs[] = {
)";

}  // namespace

void EmitOpenCl(const Model& model, OutputFolder& out) {
  Printer rows;
  int count = 0;
  for (const auto& entry : model.entries) {
    if (entry->op_class == OpClass::kRandom) continue;
    static constexpr int kKinds[][2] = {{0, 0}, {2, 1}, {3, 2}};  // by DTypeKind; integers share a program
    for (const auto& [dtype_kind, kind] : kKinds) {
      const Program* first = entry->programs[dtype_kind].get();
      if (first && CallsMaths(*first)) continue;
      int stage = 0;
      for (const Program* p = first; p; p = p->next.get(), ++stage, ++count) {
        std::string texts;
        for (const Code* code : {&p->main, &p->init, &p->combine, &p->finish, &p->map})
          StrAppend(&texts, ",\n ", CppString(CodeText(*code, *p)));
        rows.Print({{"name", CppString(entry->primary().full_name)},
                    {"class", CppString(p->class_name)},
                    {"source", CppString(p->source)},
                    {"numbers", StrCat(kind, ", ", stage)},
                    {"texts", texts}},
                   "{$name$, $class$, $source$, $numbers$$texts$},");
      }
    }
  }
  out.Write("opencl/mica_programs.h",
            StrCat(GeneratedBanner("The operators' programs as OpenCL C."), kHead, rows.text(),
                   "};\nstatic const int32_t mica_opencl_program_count = ", count,
                   ";\n\n#endif /* MICA_OPENCL_PROGRAMS_H_ */\n"));
}

}  // namespace mica::codegen
