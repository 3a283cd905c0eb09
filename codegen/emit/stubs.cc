// stubs/_operators.pyi: the typed face of the generated functions and methods,
// as the binding groups them (emit/python.h). The hand-written stub _C.pyi of the
// package builds Tensor on the class TensorMethods and re-exports the functions.
// stubs/_operators_<module>.pyi holds what stands in mica.<module>, which imports it
// where types are checked.
//
// Builtins and metadata classes are imported under names with `_`, since methods
// are called `float`, `int`, `dtype`.
#include <algorithm>
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/emit/python.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Argument;
using schema::Return;
using schema::Type;
using schema::TypeKind;

std::string ElementType(const Type& type) {
  switch (type.kind) {
    case TypeKind::kTensor:
      return "Tensor";
    case TypeKind::kInt:
    case TypeKind::kSymInt:
      return "_int";
    case TypeKind::kFloat:
      return "_float";
    case TypeKind::kBool:
      return "_bool";
    case TypeKind::kScalar:
      return "Number";
    case TypeKind::kStr:
      return "_str";
    case TypeKind::kScalarType:
      return "_dtype";
    case TypeKind::kLayout:
      return "_layout";
    case TypeKind::kMemoryFormat:
      return "_memory_format";
    case TypeKind::kDevice:
      return "_device | _str | _int";
    case TypeKind::kGenerator:
      return "Generator";
    default:
      return "object";
  }
}

std::string ParameterType(const Type& type) {
  if (type.is_optional()) return StrCat(ParameterType(type.elements[0]), " | None");
  if (!type.is(TypeKind::kList)) return ElementType(type);
  const Type& element = type.elements[0];
  const std::string list = StrCat("Sequence[", ParameterType(element), "]");
  const bool takes_one = element.is(TypeKind::kInt) || element.is(TypeKind::kSymInt);
  return takes_one ? list + " | _int" : list;
}

std::string ResultType(const Type& type) {
  if (type.is(TypeKind::kList)) return StrCat("tuple[", ResultType(type.elements[0]), ", ...]");
  return type.is(TypeKind::kDevice) ? "_device" : ElementType(type);
}

bool IsPythonKeyword(const std::string& name) {
  static const std::set<std::string> keywords = {"from",   "lambda", "in", "is",     "def",  "class",
                                                 "return", "and",    "or", "not",    "if",   "else",
                                                 "for",    "with",   "as", "import", "pass", "global"};
  return keywords.count(name) != 0;
}

// "result of max": named where the schema names its results.
bool HasNamedResults(const Function& f) {
  return f.schema.returns.size() > 1 && !f.schema.returns[0].name.empty();
}
std::string TupleName(const Function& f) { return StrCat("_", f.schema.name, "_result"); }

std::string ReturnType(const Function& f) {
  const std::vector<Return>& returns = f.schema.returns;
  if (returns.empty()) return "None";
  if (HasNamedResults(f)) return TupleName(f);
  if (returns.size() == 1) return ResultType(returns[0].type);
  std::vector<std::string> types;
  for (const Return& r : returns) types.push_back(ResultType(r.type));
  return StrCat("tuple[", Join(types, ", "), "]");
}

// "input: Tensor, other: Tensor, *, alpha: Number = ..."; the parameter number
// `spread` as "*size: _int".
std::string Parameters(const PythonSignature& s, bool is_method, int spread = -1) {
  const schema::FunctionSchema& schema = s.function->schema;
  std::vector<std::string> parts;
  bool starred = false;
  const auto star = [&] {
    if (!starred) parts.push_back("*");
    starred = true;
  };
  for (const Argument& a : schema.arguments) {
    if (&a - schema.arguments.data() == spread) {
      parts.push_back(StrCat("*", a.name, ": _int"));
      starred = true;
      continue;
    }
    if (a.kwarg_only) star();
    std::string name = a.name == "self" && !is_method ? "input" : a.name;
    if (IsPythonKeyword(name)) name += "_";
    if (is_method && a.name == "self")
      parts.push_back("self");
    else
      parts.push_back(StrCat(name, ": ", ParameterType(a.type), a.default_value ? " = ..." : ""));
  }
  if (s.requires_grad) {
    star();
    parts.push_back("requires_grad: _bool = ...");
  }
  if (s.out && !is_method) {
    star();
    const size_t count = schema.returns.size();
    const std::vector<std::string> outs(count, "Tensor");
    parts.push_back(
        StrCat("out: ", count == 1 ? "Tensor" : StrCat("tuple[", Join(outs, ", "), "]"), " | None = ..."));
  }
  return Join(parts, ", ");
}

struct Definition {
  std::string parameters, result;
};

// The definitions of a group that are functions (or methods), each once.
std::vector<Definition> Definitions(const PythonGroup& group, bool methods) {
  std::vector<Definition> list;
  std::set<std::string> seen;
  const auto add = [&](std::string parameters, const std::string& result) {
    if (seen.insert(parameters).second) list.push_back({std::move(parameters), result});
  };
  for (const PythonSignature& s : group.signatures) {
    if (methods ? !s.as_method : !s.as_function) continue;
    const std::string result = ReturnType(*s.function);
    add(Parameters(s, methods), result);
    // x.view(2, 3), zeros(2, 3)
    const int varargs = VarargsParameter(s);
    if (varargs >= 0) add(Parameters(s, methods, varargs), result);
  }
  return list;
}

void EmitGroups(const std::vector<PythonGroup>& groups, std::string_view module, bool methods, Printer& p) {
  for (const PythonGroup& group : groups) {
    if (group.module != module || IsPythonKeyword(group.name)) continue;
    const std::vector<Definition> list = Definitions(group, methods);
    for (const Definition& d : list) {
      if (list.size() > 1) p.Line("@overload");
      p.Print({{"name", group.name}, {"parameters", d.parameters}, {"result", d.result}},
              "def $name$($parameters$) -> $result$: ...");
    }
  }
}

void EmitTuples(const std::vector<PythonGroup>& groups, std::string_view module, Printer& p) {
  std::set<std::string> seen;
  for (const PythonGroup& group : groups) {
    if (group.module != module) continue;
    for (const PythonSignature& s : group.signatures) {
      if (!HasNamedResults(*s.function) || !seen.insert(TupleName(*s.function)).second) continue;
      p.Print({{"name", TupleName(*s.function)}}, "class $name$(NamedTuple):");
      for (const Return& r : s.function->schema.returns)
        p.Print({{"name", r.name}, {"type", ResultType(r.type)}}, "    $name$: $type$");
      p.Line();
    }
  }
}

constexpr const char* kHead = R"(# Generated by mica-gen from native_functions.yaml; changes here are lost.
# mypy: disable-error-code="overload-overlap, override"
from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import NamedTuple, Union, overload

from mica._C import Generator, Tensor
from mica._C import device as _device
from mica._C import dtype as _dtype
from mica._C import layout as _layout
from mica._C import memory_format as _memory_format

Number = Union[_int, _float, _bool, _complex]
)";

}  // namespace

std::string StubParameters(const Function& function) {
  PythonSignature signature;
  signature.function = &function;
  return Parameters(signature, /*is_method=*/false);
}

std::string StubResult(const Function& function) {
  std::vector<std::string> types;
  for (const Return& r : function.schema.returns) types.push_back(ResultType(r.type));
  if (types.empty()) return "None";
  return types.size() == 1 ? types[0] : StrCat("tuple[", Join(types, ", "), "]");
}

namespace {

// What stands in mica.<module>: its own functions, and the main module's by their
// names without the prefix (linalg_det is linalg.det).
void EmitModuleStub(const std::vector<PythonGroup>& groups, const std::string& module, OutputFolder& out) {
  Printer p;
  p.Line(kHead);
  std::string name = module;
  std::replace(name.begin(), name.end(), '.', '_');
  const std::string prefix = name + "_";
  for (const PythonGroup& group : groups) {
    if (!group.module.empty() || group.name.rfind(prefix, 0) != 0) continue;
    if (Definitions(group, /*methods=*/false).empty()) continue;
    p.Print({{"full", group.name}, {"short", group.name.substr(prefix.size())}},
            "from mica._operators import $full$\n$short$ = $full$");
  }
  EmitTuples(groups, module, p);
  EmitGroups(groups, module, /*methods=*/false, p);
  out.Write(StrCat("stubs/_operators_", name, ".pyi"), p.text());
}

}  // namespace

void EmitStubs(const Model& model, OutputFolder& out) {
  const std::vector<PythonGroup> groups = PythonGroups(model);
  for (const char* module : {"fft", "linalg", "nn.functional", "special"})
    EmitModuleStub(groups, module, out);
  Printer p;
  p.Line(kHead);
  EmitTuples(groups, "", p);
  EmitGroups(groups, "", /*methods=*/false, p);
  p.Line("\nclass TensorMethods:");
  p.Indent();
  p.Indent();
  p.Line("\"\"\"The operators that are methods of Tensor.\"\"\"");
  EmitGroups(groups, "", /*methods=*/true, p);
  out.Write("stubs/_operators.pyi", p.text());
}

}  // namespace mica::codegen
