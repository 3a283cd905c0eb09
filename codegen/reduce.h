// `reduce` mappings: of a reduction, a scan, or a stage of a row.
//
//   reduce: {init: 0, combine: a + b, element: x * x, finish: sqrt(a)}
//   reduce: {state: [m, i], init: [...], step: [...], combine: [...], finish: [...]}
// The short form's step is combine(state, element). All new states of a step are
// computed from the old ones, then stored.
#pragma once

#include "codegen/expr/compile.h"
#include "codegen/load.h"

namespace mica::codegen {

struct Reduce {
  std::vector<std::string> states;  // one "" where it has no name
  std::vector<PlacedText> init, step, combine, element, finish;
  bool short_form = false;  // no `step`
};

// `node` is the mapping; `map` the entry that it stands in.
Reduce ReadReduce(const YamlMap& map, const YAML::Node& node);

Binding SourceBinding(int opcode, int aux);
// The arguments by name; `element_arg` is read by ELEMENT (-1: none).
ComputeScope ArgumentScope(const Entry& entry, int element_arg);

// Compiles texts into one code of `program`.
class CodeWriter {
 public:
  CodeWriter(Program* program, ComputeKind kind, Code* code) : builder_(program, kind) {
    builder_.Begin(code);
  }
  void Write(const PlacedText& text, const ComputeScope& scope, int store_opcode, int aux);
  // All of `texts` first, then the stores from `aux` on. `bound` gives further names.
  void WriteTogether(const std::vector<PlacedText>& texts, const ComputeScope& scope, int store_opcode,
                     int aux, const std::map<std::string, Value>& bound = {});
  ProgramBuilder& builder() { return builder_; }

 private:
  ProgramBuilder builder_;
};

class ReduceCompiler {
 public:
  // `base` is the number of the first state; `scope` has the arguments and what
  // earlier stages gave. Writes init, combine and main (the step) of `program`.
  ReduceCompiler(const Reduce& reduce, const ComputeScope& scope, ComputeKind kind, int base,
                 Program* program)
      : reduce_(reduce), scope_(scope), kind_(kind), base_(base), program_(program) {}
  // The states of the right part are numbered from `num_states` on.
  void Compile(int num_states);
  // What `finish` may read: states by name (and as `a` where there is one), count.
  ComputeScope StateScope() const;

 private:
  int NumStates() const { return static_cast<int>(reduce_.states.size()); }
  ComputeScope ElementScope(ComputeScope scope) const;
  void WriteCombine(int num_states);
  void WriteStep();
  void WriteShortStep();

  const Reduce& reduce_;
  const ComputeScope& scope_;
  ComputeKind kind_;
  int base_;
  Program* program_;
};

}  // namespace mica::codegen
