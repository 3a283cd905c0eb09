// What reductions, scans and rows share: a call's dimensions and operands, and the
// text of their kernels.
#pragma once

#include <algorithm>
#include <vector>

#include <mica/kit/lanes.h>
#include <mica/kit/programs.h>

namespace mica {
namespace kit {
namespace reduce {

enum class Form { kReduction, kScan, kRow };

// Whether the program of an ordered reduction can begin in the middle of a row: all that it does
// with an element's index is to ask whether it is the first (`index == 0`), and to keep it in
// states, which it names. (argmax: `where(index == 0 or x > m, index, i)`.)
inline bool FindIndexStates(const MicaProgram& program, std::vector<int>* states) {
  const MicaInstruction* made[256] = {};  // by register
  const auto is = [&](int reg, int opcode) { return made[reg] && made[reg]->opcode == opcode; };
  const auto is_index = [&](int reg) { return is(reg, MICA_OP_INDEX); };
  const auto is_zero = [&](int reg) {
    return is(reg, MICA_OP_CONST) && program.constants[made[reg]->aux].is_integer &&
           program.constants[made[reg]->aux].i == 0;
  };
  const auto holds_index = [&](int reg) {
    return is(reg, MICA_OP_SELECT) && (is_index(made[reg]->b) || is_index(made[reg]->c));
  };
  for (int64_t k = 0; k < program.main.size; ++k) {
    const MicaInstruction& in = program.main.data[k];
    if (in.opcode == MICA_OP_STORE_STATE) {
      if (is_index(in.a)) return false;
      if (!holds_index(in.a)) continue;
      const MicaInstruction& choice = *made[in.a];
      const int other = is_index(choice.b) ? choice.c : choice.b;
      if (!is(other, MICA_OP_STATE) || made[other]->aux != in.aux) return false;
      states->push_back(in.aux);
      continue;
    }
    const int operands[] = {in.a, in.b, in.c};
    for (int o = 0; o < kOpcodeInfo[in.opcode].arity; ++o) {
      if (holds_index(operands[o])) return false;  // it goes to a state and nowhere else
      if (!is_index(operands[o])) continue;
      const bool asks = in.opcode == MICA_OP_EQ && is_zero(operands[1 - o]);
      if (!asks && !(in.opcode == MICA_OP_SELECT && o > 0)) return false;
    }
    made[in.dst] = &in;
  }
  return true;
}

struct ReduceCall {
  const MicaCall* call;
  const MicaValue* args;
  Form form;
  int32_t lane;
  bool ordered;                   // the program reads `index`
  int team = 1;                   // work-items for a row
  int group = 64;                 // work-items of a group
  bool by_index = false;          // members' indices count from their first; of two states the one that
  std::vector<int> index_states;  // holds the lesser index is the left one; and which states hold indices
  int chunk = 1;                  // neighbours that a member reads at once
  bool whole = false;             // no row ends within a chunk
  int kept_chunks = 0;            // of a row, which a member reads once for all stages; 0: none
  bool by_column = false;         // the pieces of neighbouring rows are neighbours
  int64_t splits = 1;             // teams for a row, each for a piece, whose states a second kernel combines
  bool in_teams = false;          // a scan of scan_source.h
  bool small = true;
  Space kept;                              // operands: inputs, then outputs
  Space taken;                             // inputs, and the outputs of scans and rows
  std::vector<int32_t> input_args;         // of the operands that are inputs
  std::vector<const MicaProgram*> stages;  // one, but for rows
  int64_t num_outputs;

  int64_t rows() const { return kept.Count(); }
  int64_t length() const { return taken.Count(); }
  int num_states() const { return stages.back()->num_states; }
  size_t num_inputs() const { return input_args.size(); }
  // The operand that input `i` of a stage reads.
  size_t OperandOf(const MicaProgram& stage, int i) const {
    const auto found = std::find(input_args.begin(), input_args.end(), stage.input_args[i]);
    return static_cast<size_t>(found - input_args.begin());
  }
};

}  // namespace reduce
}  // namespace kit
}  // namespace mica
