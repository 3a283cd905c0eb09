// hot/programs.h: the float programs of operators that say `hot: true`, each as one
// expression of C++ over scalars, for the CPU plugin to compile as a loop of its own
// (plugins/cpu/engine/hot.cc). What the block programs keep in L1 between two steps
// stays in registers there.
//
//   struct Hot0 {
//     static constexpr int kInputs = 1, kNumbers = 0, kResults = 1;
//     static constexpr const char* kSource = "...";
//     static constexpr MicaInstruction kCode[] = {...};  // with kSource, says which program it is
//     template <class L> static HWY_INLINE void Do(L x0, L& y0) { ... y0 = r4; }
//   };
//   #define MICA_FORALL_HOT(X) X(Hot0) ...
//
// OP_ and an opcode's name are the plugin's; the loader has seen to it that a hot program
// calls nothing that CanBeHot() refuses.
#include <cmath>

#include "codegen/emit/emitters.h"
#include "codegen/expr/opcodes.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

std::string SourceText(const MicaInstruction& in, const Program& program) {
  if (in.opcode == MICA_OP_LOAD) return StrCat("x", in.aux);
  if (in.opcode == MICA_OP_COORD) return "x0";
  if (in.opcode == MICA_OP_SCALAR) return StrCat("n", in.aux);
  const double value = program.constants[static_cast<size_t>(in.aux)].f;
  return StrCat("static_cast<L>(", CppDouble(value), ")");
}

std::string Statements(const Program& program) {
  std::string text;
  for (const MicaInstruction& in : program.main) {
    const OpcodeInfo& info = kOpcodeInfo[in.opcode];
    const std::string a = StrCat("r", static_cast<int>(in.a));
    if (in.opcode == MICA_OP_STORE) {
      StrAppend(&text, "    y", in.aux, " = ", a, ";\n");
      continue;
    }
    StrAppend(&text, "    const ", info.result == 'M' ? "bool" : "L", " r", static_cast<int>(in.dst), " = ");
    if (info.arity == 0) {
      StrAppend(&text, SourceText(in, program), ";\n");
      continue;
    }
    StrAppend(&text, "OP_", info.name, "(", a);
    const uint8_t more[] = {in.b, in.c};
    for (int k = 1; k < info.arity; ++k) StrAppend(&text, ", r", static_cast<int>(more[k - 1]));
    text += ");\n";
  }
  return text;
}

// A factory reads its one coordinate instead of tensors.
size_t Inputs(const Program& program) {
  return program.class_name == "factory" ? 1 : program.input_args.size();
}

std::string Parameters(const Program& program) {
  std::string text;
  for (size_t i = 0; i < Inputs(program); ++i) StrAppend(&text, text.empty() ? "" : ", ", "L x", i);
  for (size_t i = 0; i < program.scalar_args.size(); ++i) StrAppend(&text, ", L n", i);
  for (int64_t i = 0; i < program.num_outputs; ++i) StrAppend(&text, ", L& y", i);
  return text;
}

}  // namespace

std::string InstructionTable(const Code& code) {
  std::string text;
  for (const MicaInstruction& in : code)
    StrAppend(&text, "{", static_cast<int>(in.opcode), ",", static_cast<int>(in.dst), ",",
              static_cast<int>(in.a), ",", static_cast<int>(in.b), ",", static_cast<int>(in.c), ",",
              static_cast<int>(in.aux), "},");
  return text;
}

void EmitHot(const Model& model, OutputFolder& out) {
  Printer structs;
  std::string list;
  int count = 0;
  for (const auto& entry : model.entries) {
    const Program* program = entry->hot ? entry->programs[3].get() : nullptr;
    if (!program) continue;
    structs.Print({{"name", StrCat("Hot", count)},
                   {"operator", entry->primary().full_name},
                   {"inputs", StrCat(Inputs(*program))},
                   {"numbers", StrCat(program->scalar_args.size())},
                   {"results", StrCat(program->num_outputs)},
                   {"source", CppString(program->source)},
                   {"code", InstructionTable(program->main)},
                   {"parameters", Parameters(*program)},
                   {"statements", Statements(*program)}},
                  R"(// $operator$
struct $name$ {
  static constexpr int kInputs = $inputs$, kNumbers = $numbers$, kResults = $results$;
  static constexpr const char* kSource = $source$;
  static constexpr MicaInstruction kCode[] = {$code$};
  template <class L>
  static HWY_INLINE void Do($parameters$) {
$statements$  }
};)");
    StrAppend(&list, " X(Hot", count++, ")");
  }
  out.Write("hot/programs.h", StrCat(GeneratedBanner("Hot operators' programs as C++."), structs.text(),
                                     "#define MICA_FORALL_HOT(X)", list, "\n"));
}

}  // namespace mica::codegen
