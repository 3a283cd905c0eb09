// Emits python_<i>.cc: one vectorcall function per Python name, with
// the tables of arguments.h, and a list of them per shard.
//
// A function tries first the call whose arguments are all tensors (the most
// frequent one), then binds by table and switches over the signatures. Every
// Python object is converted before the operator runs, so that the GIL can go.
#include "codegen/emit/python.h"

#include <algorithm>
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Argument;
using schema::Type;
using schema::TypeKind;

// How a schema type is read: the enumerator of Kind and the getter's stem.
struct Reader {
  const char* kind;
  const char* getter;    // Bound::<getter>(i)
  const char* optional;  // Bound::<optional>(i)
};
Reader ReaderOf(TypeKind kind) {
  switch (kind) {
    case TypeKind::kTensor:
      return {"kTensor", "GetTensor", "GetTensor"};
    case TypeKind::kFloat:
      return {"kFloat", "Float", "OptFloat"};
    case TypeKind::kBool:
      return {"kBool", "Bool", "OptBool"};
    case TypeKind::kScalar:
      return {"kScalar", "GetScalar", "OptScalar"};
    case TypeKind::kStr:
      return {"kStr", "Str", "OptStr"};
    case TypeKind::kScalarType:
      return {"kDType", "GetDType", "OptDType"};
    case TypeKind::kLayout:
      return {"kLayout", "GetLayout", "OptLayout"};
    case TypeKind::kMemoryFormat:
      return {"kMemoryFormat", "GetMemoryFormat", "OptMemoryFormat"};
    case TypeKind::kDevice:
      return {"kDevice", "GetDevice", "OptDevice"};
    case TypeKind::kGenerator:
      return {"kGenerator", "GetGenerator", "GetGenerator"};
    default:
      return {"kInt", "Int", "OptInt"};
  }
}

std::string KindOf(const Type& type) {
  if (!type.is_list()) return ReaderOf(type.unwrapped().kind).kind;
  if (type.is_tensor_list())
    return type.unwrapped().elements[0].is_optional() ? "kOptionalTensors" : "kTensors";
  return StrCat(ReaderOf(type.unwrapped().elements[0].unwrapped().kind).kind, "s");
}

// The parameter type without `const ... &`.
std::string Plain(std::string_view type) {
  if (type.substr(0, 6) == "const ") type = type.substr(6);
  if (!type.empty() && type.back() == '&') type.remove_suffix(1);
  return std::string(type);
}

std::string Identifier(const PythonGroup& g) {
  std::string id = g.module.empty() ? g.name : g.module + "_" + g.name;
  std::replace(id.begin(), id.end(), '.', '_');
  return "Python_" + id;
}

class FunctionEmitter {
 public:
  FunctionEmitter(Printer& p, const PythonGroup& group) : p_(p), g_(group), id_(Identifier(group)) {}

  void Emit() {
    for (size_t i = 0; i < g_.signatures.size(); ++i) EmitParams(static_cast<int>(i));
    p_.Line(StrCat("const Signature kSignatures_", id_, "[] = {"));
    for (size_t i = 0; i < g_.signatures.size(); ++i) EmitSignature(static_cast<int>(i));
    p_.Line("};");
    p_.Line(StrCat("const Overloads kOverloads_", id_, " = {\"", g_.name, "\", kSignatures_", id_, ", ",
                   g_.signatures.size(), ", \"", g_.module, "\"};"));
    p_.Line(StrCat("PyObject* ", id_,
                   "(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {"));
    p_.Line("  return Guarded([&]() -> PyObject* {");
    p_.Indent();
    p_.Indent();
    EmitFastCalls();
    size_t capacity = 1;
    for (size_t i = 0; i < g_.signatures.size(); ++i)
      capacity = std::max(capacity, NumParams(static_cast<int>(i)));
    p_.Line(StrCat("Bound<", capacity, "> b;"));
    p_.Line(StrCat("switch (b.Bind(kOverloads_", id_, ", self, args, nargs, kwnames)) {"));
    for (size_t i = 0; i < g_.signatures.size(); ++i) EmitCase(static_cast<int>(i));
    p_.Line("}");
    p_.Line("return b.TakeResult();");
    p_.Outdent();
    p_.Outdent();
    p_.Line("  });");
    p_.Line("}");
    p_.Line();
  }

 private:
  const Function& F(int i) const { return *g_.signatures[i].function; }
  size_t NumParams(int i) const {
    const PythonSignature& s = g_.signatures[i];
    return F(i).schema.arguments.size() + (s.requires_grad ? 1 : 0) + (s.out ? 1 : 0);
  }
  // Numbers may stand for tensors after the first, in pointwise operators, and for the first where asked.
  bool NumberOk(int i, size_t argument) const {
    const Entry& e = *F(i).entry;
    const bool may = argument > 0 ? e.op_class == OpClass::kPointwise : e.python_numbers;
    return may && F(i).schema.arguments[argument].type.is_tensor();
  }

  void EmitParams(int i) {
    const PythonSignature& s = g_.signatures[i];
    if (NumParams(i) == 0) return;
    p_.Line(StrCat("Param kParams_", id_, "_", i, "[] = {"));
    const auto& arguments = F(i).schema.arguments;
    for (size_t a = 0; a < arguments.size(); ++a) {
      std::string flags;
      if (arguments[a].type.is_optional()) flags += " | kOptional";
      const auto& standard = arguments[a].default_value;
      if (standard) flags += " | kDefault";
      if (standard && standard->kind == schema::Literal::Kind::kList && standard->items.empty())
        flags += " | kNoneIsDefault";
      if (NumberOk(i, a)) flags += " | kNumberOk";
      p_.Line(StrCat("    {\"", arguments[a].name, "\", Kind::", KindOf(arguments[a].type), ", ",
                     flags.empty() ? "0" : flags.substr(3), ", ", arguments[a].list_size(), "},"));
    }
    if (s.requires_grad) p_.Line("    {\"requires_grad\", Kind::kBool, kDefault, 0},");
    if (s.out) {
      const int n = static_cast<int>(F(i).schema.returns.size());
      p_.Line(n > 1 ? StrCat("    {\"out\", Kind::kOuts, kOptional | kDefault, ", n, "},")
                    : std::string("    {\"out\", Kind::kOut, kOptional | kDefault, 0},"));
    }
    p_.Line("};");
  }

  void EmitSignature(int i) {
    const PythonSignature& s = g_.signatures[i];
    const std::string params = NumParams(i) ? StrCat("kParams_", id_, "_", i) : "nullptr";
    p_.Line(StrCat("    {", CppString(PythonSignatureText(g_, s)), ", ", params, ", ", NumParams(i), ", ",
                   F(i).schema.NumPositional(), ", ", s.as_function ? "true" : "false", ", ",
                   s.as_method ? "true" : "false", ", ", VarargsParameter(s), "},"));
  }

  // Calls with one to three tensors and nothing else.
  void EmitFastCalls() {
    std::set<int> done;
    bool declared = false;
    for (size_t i = 0; i < g_.signatures.size(); ++i) {
      const auto& arguments = F(i).schema.arguments;
      int required = 0;
      bool plain = true;
      for (const Argument& a : arguments) {
        if (a.default_value) continue;
        plain &= a.type.is(TypeKind::kTensor) && !a.kwarg_only;
        ++required;
      }
      if (!plain || required < 1 || required > 3 || !done.insert(required).second) continue;
      if (!declared) p_.Line("PyObject* t[3];");
      if (!declared) p_.Line("const int n = kwnames ? -1 : FastTensors(self, args, nargs, t);");
      declared = true;
      const PythonSignature& s = g_.signatures[i];
      const std::string guard = s.as_function && s.as_method ? "" : s.as_method ? " && self" : " && !self";
      std::vector<std::string> names, work;
      for (int k = 0; k < required; ++k) names.push_back(StrCat("Unwrap(t[", k, "])"));
      for (const std::string& name : names) work.push_back(StrCat(".Add(", name, ")"));
      p_.Line(StrCat("if (n == ", required, guard, ") {"));
      p_.Line(StrCat("  const Work work = Work()", Join(work, ""), ";"));
      p_.Indent();
      EmitReturn(F(i), FastArguments(F(i)), "Py_NewRef(t[0])", "");
      p_.Outdent();
      p_.Line("}");
    }
  }

  // The tensors of a fast call, and the defaults of all else.
  std::string FastArguments(const Function& f) const {
    std::vector<std::string> parts;
    int k = 0;
    for (size_t a = 0; a < f.arguments.size(); ++a) {
      const bool given = !f.schema.arguments[a].default_value;
      parts.push_back(given ? StrCat("Unwrap(t[", k++, "])") : f.arguments[a].default_value);
    }
    return Join(parts, ", ");
  }

  // `return ...` for a call of `f` with the argument text.
  void EmitReturn(const Function& f, const std::string& arguments, const std::string& written,
                  const std::string& grad) {
    const std::string call = StrCat("ops::op::", f.struct_name, "::call(", arguments, ")");
    if (f.form != OpForm::kFunctional || f.schema.returns.empty() || f.return_type == "void") {
      p_.Line(StrCat("Run(work, [&] { ", call, "; });"));
      p_.Line(StrCat("return ", f.form == OpForm::kFunctional ? "NewNone()" : written, ";"));
    } else if (!grad.empty()) {
      p_.Line(StrCat("return FromFactory(b, ", f.schema.FindArgument("pin_memory"), ", ", grad,
                     ", Run(work, [&] { return ", call, "; }));"));
    } else if (f.schema.returns.size() > 1) {
      EmitResultNames(f, "");
      p_.Line(StrCat("return ToPython(names, Run(work, [&] { return ", call, "; }));"));
    } else {
      p_.Line(StrCat("return ToPython(Run(work, [&] { return ", call, "; }));"));
    }
  }

  void EmitResultNames(const Function& f, const std::string& suffix) {
    const auto& returns = f.schema.returns;
    const bool named =
        std::all_of(returns.begin(), returns.end(), [](const auto& r) { return !r.name.empty(); });
    if (!named) {
      p_.Line("static ResultNames names = {\"\", nullptr};");
      return;
    }
    std::string fields;
    for (const auto& r : returns) StrAppend(&fields, "\"", r.name, "\", ");
    p_.Line(StrCat("static const char* const fields[] = {", fields, "nullptr};"));
    p_.Line(StrCat("static ResultNames names = {\"", f.schema.name, suffix, "\", fields};"));
  }

  // `const T a3 = ...;`
  std::string Local(int i, int a) {
    const Argument& argument = F(i).schema.arguments[a];
    const CppArgument& cpp = F(i).arguments[a];
    const Type& type = argument.type;
    const bool has_default = !cpp.default_value.empty() && cpp.default_value != "std::nullopt" &&
                             cpp.default_value != "Tensor()" && cpp.default_value != "nullptr";
    const std::string given = StrCat("b.Given(", a, ") ? ");
    if (type.is_tensor_list()) return StrCat("const std::vector<Tensor> a", a, " = b.Tensors(", a, ");");
    if (type.is_list()) return ListLocal(type, cpp, a, has_default);
    const Reader r = ReaderOf(type.unwrapped().kind);
    const std::string read = StrCat("b.", type.is_optional() ? r.optional : r.getter, "(", a, ")");
    if (type.is_tensor()) return StrCat("const Tensor& a", a, " = ", read, ";");
    const std::string plain = Plain(cpp.type);
    if (plain == "Generator*") return StrCat("Generator* const a", a, " = ", read, ";");
    if (!has_default) return StrCat("const ", plain, " a", a, " = ", read, ";");
    return StrCat("const ", plain, " a", a, " = ", given, read, " : ", plain, "(", cpp.default_value, ");");
  }

  std::string ListLocal(const Type& type, const CppArgument& cpp, int a, bool has_default) {
    const TypeKind element = type.unwrapped().elements[0].unwrapped().kind;
    const bool floats = element == TypeKind::kFloat, bools = element == TypeKind::kBool;
    const std::string owned = floats ? "std::vector<double>" : bools ? "std::vector<uint8_t>" : "Dims";
    std::string read = StrCat("b.", floats ? "Floats" : bools ? "Bools" : "Ints", "(", a);
    read += floats || bools ? ")" : StrCat(", ", type.unwrapped().list_size, ")");
    if (!type.is_optional()) {
      if (!has_default) return StrCat("const ", owned, " a", a, " = ", read, ";");
      return StrCat("const ", owned, " a", a, " = b.Given(", a, ") ? ", read, " : Owned<", owned, ">(",
                    cpp.default_value, ");");
    }
    const std::string list = StrCat("const ", owned, " l", a, " = ", read, ";\n");
    return StrCat(list, "const auto a", a, " = b.OptSpan(", a, ", l", a, ");");
  }

  void EmitCase(int i) {
    const PythonSignature& s = g_.signatures[i];
    const Function& f = F(i);
    p_.Line(StrCat("case ", i, ": {"));
    p_.Indent();
    std::vector<std::string> names;
    std::string work;
    for (size_t a = 0; a < f.schema.arguments.size(); ++a) {
      p_.Line(Local(i, static_cast<int>(a)));
      names.push_back(StrCat("a", a));
      const Type& type = f.schema.arguments[a].type;
      const std::string& name = f.schema.arguments[a].name;
      if (type.is_tensor() || type.is_tensor_list() ||
          (name == "size" && Plain(f.arguments[a].type) == "IntSpan"))
        StrAppend(&work, ".Add(a", a, ")");
    }
    p_.Line(StrCat("const Work work = Work()", work, ";"));
    const size_t count = f.schema.arguments.size();
    if (s.out) EmitOutCall(*s.out, count + (s.requires_grad ? 1 : 0));
    EmitReturn(f, Join(names, ", "), "b.NewReference(0)", s.requires_grad ? StrCat(count) : "");
    p_.Outdent();
    p_.Line("}");
  }

  // The out form takes the functional arguments by name; factories lack some.
  void EmitOutCall(const Function& out, size_t at) {
    std::vector<std::string> names;
    const auto& arguments = out.schema.arguments;
    const Function& f = *out.entry->functional;
    int n = 0;
    for (const Argument& a : arguments) {
      const int index = f.schema.FindArgument(a.name);
      if (index >= 0 && !schema::IsOut(a)) {
        names.push_back(StrCat("a", index));
      } else {
        names.push_back(f.schema.returns.size() > 1 ? StrCat("b.Out(", at, ", ", n++, ")")
                                                    : StrCat("b.GetTensor(", at, ")"));
      }
    }
    p_.Line(StrCat("if (b.Given(", at, ")) {"));
    const bool factory = f.schema.FindArgument("pin_memory") >= 0;
    const int dtype = f.schema.FindArgument("dtype");
    if (dtype >= 0 && (factory || f.entry->op_class == OpClass::kReduction))
      p_.Line(StrCat("  CheckOut(b, ", at, ", ", dtype, ", ", f.schema.FindArgument("device"), ");"));
    p_.Line(StrCat("  Run(work, [&] { ops::op::", out.struct_name, "::call(", Join(names, ", "), "); });"));
    p_.Indent();
    EmitOutReturn(f, at);
    p_.Outdent();
    p_.Line("}");
  }

  void EmitOutReturn(const Function& f, size_t at) {
    const size_t count = f.schema.returns.size();
    if (count < 2) return p_.Line(StrCat("return b.NewReference(", at, ");"));
    EmitResultNames(f, "_out");
    p_.Line(StrCat("return FromOuts(names, b, ", at, ", ", count, ");"));
  }

  Printer& p_;
  const PythonGroup& g_;
  std::string id_;
};

// "glu(input, dim=-1)\n--\n\n", which Python's inspect.signature() reads at the beginning of a docstring;
// "" for several overloads, for defaults that are names ("contiguous_format"), and for names that are
// Python's own.
std::string TextSignature(const PythonGroup& g, bool method) {
  if (g.signatures.size() != 1) return "";
  const PythonSignature& s = g.signatures[0];
  const auto& arguments = s.function->schema.arguments;
  const bool plain = std::none_of(arguments.begin(), arguments.end(), [](const Argument& a) {
    const bool named = a.default_value && a.default_value->kind == schema::Literal::Kind::kName;
    return named || a.name == "from" || a.name == "lambda" || a.name == "is";
  });
  if (!plain) return "";
  std::vector<std::string> parts = PythonParameters(s, method);
  if (method) parts.insert(parts.begin(), "$self");
  return StrCat(g.name, "(", Join(parts, ", "), ")\n--\n\n");
}

void EmitShard(const Model& model, const std::vector<PythonGroup>& groups, int shard, OutputFolder& out) {
  Printer p;
  p.Line(GeneratedBanner(StrCat("Python functions and methods of the operators, part ", shard, ".")));
  p.Line("#include \"bindings/python/src/operators/arguments.h\"");
  std::set<std::string> bases;
  for (const PythonGroup& g : groups)
    if (ShardOf(g.base_name, kPythonShards) == shard) bases.insert(g.base_name);
  for (const std::string& base : bases) p.Line(StrCat("#include \"mica/ops/", base, ".h\""));
  p.Line("\nnamespace mica::python {\nnamespace {\n");
  std::string list;
  int count = 0;
  for (const PythonGroup& g : groups) {
    if (ShardOf(g.base_name, kPythonShards) != shard) continue;
    FunctionEmitter(p, g).Emit();
    const auto def = [&](bool method) {
      const std::string doc = TextSignature(g, method) + PythonDocstring(model, g, method);
      return StrCat("{\"", g.name, "\", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(",
                    Identifier(g), ")), METH_FASTCALL | METH_KEYWORDS, ", CppString(doc), "}");
    };
    const auto any = [&](bool PythonSignature::*flag) {
      return std::any_of(g.signatures.begin(), g.signatures.end(), [&](const auto& s) { return s.*flag; });
    };
    if (any(&PythonSignature::as_function)) {
      StrAppend(&list, "    {\"", g.module, "\", ", def(false), "},\n");
      ++count;
    }
    if (any(&PythonSignature::as_method)) {
      StrAppend(&list, "    {nullptr, ", def(true), "},\n");
      ++count;
    }
  }
  p.Line(StrCat("PythonFunction kFunctions[] = {\n", list, "    {\"\", {nullptr, nullptr, 0, nullptr}}};"));
  p.Line("\n}  // namespace\n");
  p.Line(StrCat("extern const PythonFunctionShard kFunctionShard", shard, ";"));
  p.Line(StrCat("const PythonFunctionShard kFunctionShard", shard, " = {kFunctions, ", count, "};"));
  p.Line("\n}  // namespace mica::python");
  out.Write(StrCat("python_", shard, ".cc"), p.text());
}

}  // namespace

void EmitPython(const Model& model, OutputFolder& out) {
  const std::vector<PythonGroup> groups = PythonGroups(model);
  for (int shard = 0; shard < kPythonShards; ++shard) EmitShard(model, groups, shard, out);
}

}  // namespace mica::codegen
