// What one derivative keeps between forward and backward. Internal to
// EmitAutograd.
//
// A name that a formula reads as a value is saved, if an input whose formula
// reads it requires grad. A name read for its metadata alone (sizes(self)) is
// not: the node knows what its inputs and outputs look like; only of other
// tensors an OutputInfo is kept.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/formula/formula.h"
#include "codegen/model.h"

namespace mica::codegen {

// An argument that gets a gradient: edge `edge` of the node, or all from there on
// for a list, which therefore stands last.
struct GradientInput {
  int argument;
  int edge;
  bool is_list;
};

struct SavedName {
  enum class Kind {
    kTensor,   // an argument
    kTensors,  // a list argument
    kResult,   // result number `result`
    kValue,    // an argument that is no tensor
    kInfo,     // metadata of a tensor argument
    kInfos,    // metadata of the tensors of a list argument
  };
  Kind kind;
  std::string name;  // as formulas say it
  int argument = -1;
  int result = -1;
  std::set<int> edges;  // of the rules that read it
};

struct DerivativePlan {
  const Derivative* derivative;
  std::vector<GradientInput> inputs;
  std::vector<SavedName> saved;
  std::vector<const Function*> called;  // operators of the formulas
  bool returns_list = false;

  const GradientInput* InputOf(int argument) const;
  const SavedName* Find(SavedName::Kind kind, std::string_view name) const;
};

DerivativePlan MakePlan(const Derivative& derivative);

// Result number that `result`, `result2` names; -1 if it is no such name.
int NumberedName(std::string_view name, std::string_view stem);

}  // namespace mica::codegen
