// How operators look from Python: the grouping of overloads into functions and
// methods, and the signature's text. Shared by the binding and the stub emitter.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/model.h"

namespace mica::codegen {

// One signature of a Python function: a functional form with its out form merged
// in, or an in-place form.
struct PythonSignature {
  const Function* function = nullptr;
  const Function* out = nullptr;  // called where `out=` is given; NULL if none
  bool as_function = false;
  bool as_method = false;
  bool requires_grad = false;  // a factory: takes `requires_grad=False`
};

struct PythonGroup {
  std::string module;  // "" is `mica` itself, else "nn.functional", ...
  std::string name;
  std::string base_name;                    // decides the shard
  std::vector<PythonSignature> signatures;  // in the order in which a call tries them
};

// All Python functions and methods of the model, sorted by module and name.
// Operators whose names begin with `_` have none, nor those with an argument type
// that Python cannot give.
std::vector<PythonGroup> PythonGroups(const Model& model);

// "add(Tensor input, Tensor other, *, Scalar alpha=1, Tensor? out=None) -> Tensor"
std::string PythonSignatureText(const PythonGroup& group, const PythonSignature& signature);

// "input", "*", "alpha=1", "out=None": its parameters as Python writes them, a method's without `self`.
std::vector<std::string> PythonParameters(const PythonSignature& signature, bool method);

// What help() shows below the signature: meaning, overloads, Args, Returns, Example.
std::string PythonDocstring(const Model& model, const PythonGroup& group, bool method);

// The parameter that may be given as single integers, as in x.view(2, 3); -1 if
// none. Counted with `self`.
int VarargsParameter(const PythonSignature& signature);

// A function's parameters and result as a stub writes them: "x: Tensor, *, n: _int = ...".
std::string StubParameters(const Function& function);
std::string StubResult(const Function& function);

}  // namespace mica::codegen
