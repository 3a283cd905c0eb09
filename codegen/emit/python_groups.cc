// From entries to Python functions: grouping, order of overloads, texts.
#include <algorithm>

#include "codegen/emit/python.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Argument;
using schema::Type;
using schema::TypeKind;

bool IsBindable(const Function& f) {
  for (const CppArgument& a : f.arguments)
    if (a.type.empty() || a.type == "ScalarSpan" || a.type == "std::optional<ScalarSpan>") return false;
  return true;
}

bool HasArgument(const Function& f, std::string_view name) { return f.schema.FindArgument(name) >= 0; }

bool IsFactory(const Function& f) {
  return f.form == OpForm::kFunctional && f.return_type == "Tensor" && HasArgument(f, "dtype") &&
         HasArgument(f, "layout") && HasArgument(f, "device") && HasArgument(f, "pin_memory");
}

// Types in the order in which overloads are tried: a 0-d tensor is a Tensor
// before it is a number, an integer an int before it is a Scalar.
int Rank(const Type& type) {
  if (type.is_list()) return 20 + Rank(type.unwrapped().elements[0]);
  switch (type.unwrapped().kind) {
    case TypeKind::kTensor:
      return 0;
    case TypeKind::kBool:
      return 1;
    case TypeKind::kInt:
    case TypeKind::kSymInt:
      return 2;
    case TypeKind::kFloat:
      return 3;
    case TypeKind::kScalar:
      return 4;
    default:
      return 10;
  }
}

bool ComesBefore(const PythonSignature& a, const PythonSignature& b) {
  const auto& x = a.function->schema.arguments;
  const auto& y = b.function->schema.arguments;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i].kwarg_only || y[i].kwarg_only) break;
    const int rx = Rank(x[i].type), ry = Rank(y[i].type);
    if (rx != ry) return rx < ry;
  }
  return false;
}

using GroupMap = std::map<std::pair<std::string, std::string>, PythonGroup>;

void Add(GroupMap& groups, const std::string& module, const std::string& name, const std::string& base,
         PythonSignature signature) {
  if (!signature.as_function && !signature.as_method) return;
  PythonGroup& g = groups[{module, name}];
  g.module = module;
  g.name = name;
  if (g.base_name.empty()) g.base_name = base;
  g.signatures.push_back(signature);
}

void AddEntry(GroupMap& groups, const Entry& e) {
  if (e.ns != "mica") return;
  if (e.base_name[0] == '_') return;
  for (const Function* f : {e.functional, e.inplace}) {
    if (!f || !IsBindable(*f)) continue;
    PythonSignature s;
    s.function = f;
    s.out = f->form == OpForm::kFunctional ? e.out : nullptr;
    s.requires_grad = IsFactory(*f);
    const std::string name = f->schema.name;
    PythonSignature method = s;
    method.as_method = e.python_method;
    // In-place forms are functions too where the tensor is all they take, in modules, and where asked.
    const bool is_function = f->form == OpForm::kFunctional || f->schema.arguments.size() == 1 ||
                             !e.functional || !e.python_module.empty() || e.python_inplace;
    PythonSignature function = s;
    function.as_function = e.python_function && is_function;
    if (e.python_module.empty()) {
      PythonSignature both = method;
      both.as_function = function.as_function;
      Add(groups, "", name, e.base_name, both);
    } else {
      Add(groups, "", name, e.base_name, method);
      Add(groups, e.python_module, name, e.base_name, function);
    }
    const std::string suffix = f->form == OpForm::kInplace && e.functional ? "_" : "";
    PythonSignature only = s;
    only.as_function = is_function;
    for (const auto& [module, alias] : e.names.modules)
      if (module != e.python_module) Add(groups, module, alias + suffix, e.base_name, only);
    for (const std::string& alias : e.names.python) Add(groups, "", alias + suffix, e.base_name, only);
    only.as_function = false;
    only.as_method = true;
    for (const std::string& alias : e.names.methods) Add(groups, "", alias + suffix, e.base_name, only);
  }
}

std::string ArgumentText(const PythonSignature& s, const Argument& a) {
  std::string text = TypeText(a.type);
  for (size_t at; (at = text.find("SymInt")) != std::string::npos;) text.replace(at, 6, "int");
  StrAppend(&text, " ", a.name == "self" && s.as_function ? "input" : a.name);
  if (a.default_value) StrAppend(&text, "=", a.default_value->ToString());
  return text;
}

}  // namespace

std::vector<PythonGroup> PythonGroups(const Model& model) {
  GroupMap groups;
  for (const auto& entry : model.entries) AddEntry(groups, *entry);
  std::vector<PythonGroup> list;
  for (auto& [key, group] : groups) {
    std::stable_sort(group.signatures.begin(), group.signatures.end(), ComesBefore);
    list.push_back(std::move(group));
  }
  return list;
}

std::string PythonSignatureText(const PythonGroup& group, const PythonSignature& signature) {
  const schema::FunctionSchema& schema = signature.function->schema;
  std::string text = group.name + "(";
  bool first = true, starred = false;
  const auto piece = [&](const std::string& p) {
    StrAppend(&text, first ? "" : ", ", p);
    first = false;
  };
  for (const Argument& a : schema.arguments) {
    if (a.kwarg_only && !starred) {
      piece("*");
      starred = true;
    }
    piece(ArgumentText(signature, a));
  }
  if (!starred && (signature.out || signature.requires_grad)) piece("*");
  if (signature.requires_grad) piece("bool requires_grad=False");
  if (signature.out) piece(schema.returns.size() > 1 ? "tuple of Tensors out=None" : "Tensor? out=None");
  text += ") -> ";
  if (schema.returns.empty()) return text + "None";
  if (schema.returns.size() > 1) text += "(";
  for (size_t i = 0; i < schema.returns.size(); ++i)
    StrAppend(&text, i ? ", " : "", TypeText(schema.returns[i].type));
  return text + (schema.returns.size() > 1 ? ")" : "");
}

std::vector<std::string> PythonParameters(const PythonSignature& s, bool method) {
  std::vector<std::string> parts;
  bool starred = false;
  for (const Argument& a : s.function->schema.arguments) {
    if (a.name == "self" && method) continue;
    if (a.kwarg_only && !starred) parts.push_back("*");
    starred = starred || a.kwarg_only;
    const std::string name = a.name == "self" ? "input" : a.name;
    parts.push_back(a.default_value ? StrCat(name, "=", a.default_value->ToString()) : name);
  }
  if (!starred && (s.out || s.requires_grad)) parts.push_back("*");
  if (s.requires_grad) parts.push_back("requires_grad=False");
  if (s.out) parts.push_back("out=None");
  return parts;
}

int VarargsParameter(const PythonSignature& signature) {
  const auto& arguments = signature.function->schema.arguments;
  const int positional = signature.function->schema.NumPositional();
  const int first = signature.as_method ? 1 : 0;
  if (positional != first + 1) return -1;
  const Type& type = arguments[first].type;
  const bool is_int = type.is_list_of(TypeKind::kInt) || type.is_list_of(TypeKind::kSymInt);
  return is_int && !type.is_optional() ? first : -1;
}

}  // namespace mica::codegen
