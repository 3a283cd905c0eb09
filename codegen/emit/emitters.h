// One emitter per output, each a function of the model. main.cc calls those that
// --emit names. File names are fixed, so that the build knows them beforehand:
// a shard without operators is written empty.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/emit/printer.h"
#include "codegen/model.h"

namespace mica::codegen {

inline constexpr int kRegistryShards = 4;
inline constexpr int kAdapterShards = 4;
inline constexpr int kCallShards = 4;
inline constexpr int kCompositeShards = 4;
inline constexpr int kAutogradShards = 4;
inline constexpr int kForwardShards = 4;
inline constexpr int kPythonShards = 4;

// Paths are relative to --out, which the build names <build>/generated/mica.
// ops/<base>.h for each base name
void EmitOps(const Model& model, OutputFolder& out);
// registry_<i>.cc; the list of all operators stands in registry_0.cc
void EmitRegistry(const Model& model, OutputFolder& out);
// The signatures of a function, now and before.
std::set<std::string> SignaturesOf(const Function& f);
// adapters_<i>.cc: between C++ and the C ABI, once for each signature that an operator has
void EmitAdapters(const Model& model, OutputFolder& out);
// calls_<i>.cc: the calls from C++, once for each signature
void EmitCalls(const Model& model, OutputFolder& out);
// Devices without a kernel for it run what the form is made of: the `body:` of an entry that is no composite.
bool HasParts(const Function& f);
// The form's composite is generated: a `body:`, or a form that computes the
// functional one and copies the result.
bool NeedsGeneratedComposite(const Function& f);
// What an entry says to the layers; `has_formula`: it has a gradient of its own.
struct Policy {
  std::string name, text;
};
std::vector<Policy> PoliciesOf(const Entry& entry, bool has_formula);
// A code as rows of MicaInstruction: "{4,0,0,0,0,0},".
std::string InstructionTable(const Code& code);
// Prints an entry's programs as static tables; gives "{&program_add_Tensor_0, nullptr, ...}"
// without the braces.
std::string EmitPrograms(const Entry& entry, Printer& p);
// kernels/{meta,portable,composite,view}_declarations.h
void EmitDeclarations(const Model& model, OutputFolder& out);
// composites_<i>.cc, kernels/generated_composites.h
void EmitComposites(const Model& model, OutputFolder& out);
// api.h
void EmitApi(const Model& model, OutputFolder& out);
// autograd_<i>.cc; written with keys/autograd
void EmitAutograd(const Model& model, OutputFolder& out);
// forward_<i>.cc; compiled with keys/autograd
void EmitForward(const Model& model, OutputFolder& out);
// python_<i>.cc; written with bindings/python
void EmitPython(const Model& model, OutputFolder& out);
// stubs/_operators.pyi
void EmitStubs(const Model& model, OutputFolder& out);
// docs/operators/<base>.md, README.md
void EmitDocs(const Model& model, OutputFolder& out);
// plugin/operators.{h,cc,py,pyi}: a plugin's own operators, against the SDK; only
// where --emit names it or with --base
void EmitPlugin(const Model& model, OutputFolder& out);
// hot/programs.h; only where --emit names it
void EmitHot(const Model& model, OutputFolder& out);

}  // namespace mica::codegen
