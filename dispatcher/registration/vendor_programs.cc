// The checks of a plugin's programs, instruction by instruction.
#include "dispatcher/registration/vendor_programs.h"

#include <utility>

#include <mica/opcodes.h>
#include "schema/operator_class.h"
#include "tensor/error.h"

namespace mica {
namespace {

// One program of the chain that `name` runs; `states` counts those of all stages.
struct ProgramCheck {
  const MicaProgram& p;
  const std::string& name;
  int num_args, num_outputs, states;

  // How many there are of what `aux` counts; -1 where it counts nothing of the program.
  int Count(uint16_t opcode) const {
    switch (opcode) {
      case MICA_OP_LOAD:
        return p.num_inputs;
      case MICA_OP_SCALAR:
      case MICA_OP_GIVEN:
        return p.num_scalars;
      case MICA_OP_CONST:
        return p.num_constants;
      case MICA_OP_STATE:  // `combine` reads a left and a right part
        return 2 * states;
      case MICA_OP_STORE_STATE:
        return states;
      case MICA_OP_STORE:
        return p.num_outputs;
      case MICA_OP_LIST:
      case MICA_OP_BEFORE:
      case MICA_OP_AFTER:
        return p.num_lists;
      default:
        return -1;
    }
  }

  void Register(int number, const char* opcode) const {
    MICA_CHECK(number < p.num_registers, "The instruction ", opcode, " of the operator (", name,
               ") uses register ", number, "; its program has ", p.num_registers, ".");
  }

  void Code(const MicaCode& code) const {
    MICA_CHECK(code.size == 0 || (code.size > 0 && code.data), "A program of the operator (", name, ") has (",
               code.size, ") instructions at ", code.data ? "an address" : "no address", ".");
    for (int64_t i = 0; i < code.size; ++i) {
      const MicaInstruction& at = code.data[i];
      MICA_CHECK(at.opcode < MICA_OPCODE_COUNT, "The opcode (", at.opcode, ") of the operator (", name,
                 ") is unknown; this Mica knows ", static_cast<int>(MICA_OPCODE_COUNT),
                 ". The plugin was built for a later one.");
      const OpcodeInfo& info = kOpcodeInfo[at.opcode];
      const int operands[] = {at.a, at.b, at.c};
      for (int k = 0; k < info.arity; ++k) Register(operands[k], info.name);
      if (info.result != 'N') Register(at.dst, info.name);
      const int count = Count(at.opcode);
      MICA_CHECK(count < 0 || (at.aux >= 0 && at.aux < count), "The instruction ", info.name,
                 " of the operator (", name, ") names number ", at.aux, "; its program has ", count, ".");
    }
  }

  void Arguments(const int32_t* numbers, int count, const char* what) const {
    MICA_CHECK(count >= 0 && (count == 0 || numbers), "A program of the operator (", name, ") has (", count,
               ") ", what, " at ", numbers ? "an address" : "no address", ".");
    for (int i = 0; i < count; ++i)
      MICA_CHECK(numbers[i] >= 0 && numbers[i] < num_args, "The number (", numbers[i], ") in `", what,
                 "` of the operator (", name, ") names no argument; expected 0 to ", num_args - 1, ".");
  }

  void Run() const {
    MICA_CHECK(p.struct_size >= MICA_PROGRAM_SIZE_1_0, "A program of the operator (", name,
               ") has the struct_size (", p.struct_size, "); ABI 1.0 asks for (", MICA_PROGRAM_SIZE_1_0,
               ") bytes.");
    MICA_CHECK(p.num_registers >= 0 && p.num_registers < 255, "A program of the operator (", name, ") has (",
               p.num_registers, ") registers; expected 0 to 254.");
    MICA_CHECK(p.num_outputs == num_outputs || p.next, "A program of the operator (", name, ") stores (",
               p.num_outputs, ") results; its schema has ", num_outputs, ".");
    MICA_CHECK(p.num_constants == 0 || (p.num_constants > 0 && p.constants), "A program of the operator (",
               name, ") has (", p.num_constants, ") constants at no address.");
    Arguments(p.input_args, p.num_inputs, "input_args");
    Arguments(p.scalar_args, p.num_scalars, "scalar_args");
    Arguments(p.list_args, p.num_lists, "list_args");
    for (const MicaCode* code : {&p.main, &p.init, &p.combine, &p.finish, &p.map, &p.index, &p.keep})
      Code(*code);
  }
};

void CheckPrograms(const MicaProgram* first, const std::string& name, int num_args, int num_outputs) {
  constexpr int kMaxStates = 64;
  int states = 0;  // each stage counts those before it
  for (const MicaProgram* p = first; p; p = p->next) {
    MICA_CHECK(p->first_state >= 0 && p->first_state <= p->num_states && p->num_states >= states &&
                   p->num_states <= kMaxStates,
               "A program of the operator (", name, ") has the states ", p->first_state, " to ",
               p->num_states, " after ", states, "; expected them in order and at most ", kMaxStates, ".");
    states = p->num_states;
  }
  for (const MicaProgram* p = first; p; p = p->next)
    ProgramCheck{*p, name, num_args, num_outputs, states}.Run();
}

}  // namespace

void CheckOperatorData(const MicaOperatorRecord& r, const std::string& name, int num_args, int num_outputs) {
  MICA_CHECK(r.dtype_rule >= 0 && r.dtype_rule < kDTypeRuleCount, "The dtype rule (", r.dtype_rule,
             ") of the operator (", name, ") is unknown; expected 0 (MICA_RULE_PROMOTE) to ",
             kDTypeRuleCount - 1, " (MICA_RULE_ARGUMENT).");
  MICA_CHECK(r.dtype_rule != MICA_RULE_FIXED || (r.fixed_dtype >= 0 && r.fixed_dtype < MICA_DTYPE_COUNT),
             "The fixed dtype (", r.fixed_dtype, ") of the operator (", name, ") is unknown; expected 0 to ",
             MICA_DTYPE_COUNT - 1, ".");
  for (const auto& [what, number] : {std::pair("dtype_arg", r.dtype_arg), std::pair("dims_arg", r.dims_arg),
                                     std::pair("keepdim_arg", r.keepdim_arg)})
    MICA_CHECK(number >= -1 && number < num_args, "The number (", number, ") in `", what,
               "` of the operator (", name, ") names no argument; expected -1 to ", num_args - 1, ".");
  for (int kind = 0; r.programs && kind < 5; ++kind)
    CheckPrograms(r.programs[kind], name, num_args, num_outputs);
}

}  // namespace mica
