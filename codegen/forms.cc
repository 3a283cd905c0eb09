// The three forms of an entry, made from one schema; and Function's C++ side.
#include <algorithm>

#include "codegen/load.h"
#include "codegen/names.h"
#include "codegen/text.h"
#include "schema/generation.h"

namespace mica::codegen {
namespace {

using schema::Alias;
using schema::Argument;
using schema::FunctionSchema;
using schema::Return;
using schema::Type;
using schema::TypeKind;

Alias WriteAlias(int i) {
  Alias alias;
  alias.before = {std::string(1, static_cast<char>('a' + i))};
  alias.is_write = true;
  return alias;
}

FunctionSchema InplaceSchema(const FunctionSchema& functional) {
  FunctionSchema s = functional;
  s.name += "_";
  s.arguments[0].type.alias = WriteAlias(0);
  s.returns[0].type.alias = WriteAlias(0);
  s.returns[0].name.clear();
  return s;
}

FunctionSchema OutSchema(const FunctionSchema& functional, const std::string& overload) {
  FunctionSchema s = functional;
  s.overload = overload;
  for (Argument& a : s.arguments) a.type.alias.reset();
  for (size_t i = 0; i < s.returns.size(); ++i) {
    Argument out;
    out.name = s.returns.size() == 1       ? "out"
               : s.returns[i].name.empty() ? StrCat("out", i)
                                           : s.returns[i].name;
    out.type = s.returns[i].type;
    out.type.alias = WriteAlias(static_cast<int>(i));
    out.kwarg_only = true;
    s.returns[i].type.alias = out.type.alias;
    s.arguments.push_back(std::move(out));
  }
  return s;
}

void CheckTypes(const FunctionSchema& schema, const std::string& ns, const Location& where) {
  const auto is_object = [](const auto& a) { return !a.type.object_name().empty(); };
  if (ns == "mica" && (std::any_of(schema.arguments.begin(), schema.arguments.end(), is_object) ||
                       std::any_of(schema.returns.begin(), schema.returns.end(), is_object)))
    throw Mistake(where, StrCat("Operator (", schema.name,
                                ") of the namespace mica has an object among its types, whose calls from C++ "
                                "and Python are not generated; expected objects in operators of a plugin's "
                                "namespace, which are called boxed."));
  for (const Argument& a : schema.arguments)
    if (CppParameterType(a.type).empty())
      throw Mistake(where,
                    StrCat("Type (", TypeText(a.type), ") of argument `", a.name,
                           "` has no C++ form; expected Tensor, int, float, bool, Scalar, str, ScalarType, "
                           "Layout, MemoryFormat, Device, Generator, their optionals or lists, or an object "
                           "(acme.Thing)."));
  for (const Return& r : schema.returns)
    if (CppValueType(r.type).empty() || (schema.returns.size() > 1 && !r.type.is(TypeKind::kTensor)))
      throw Mistake(where, StrCat("Result type (", TypeText(r.type),
                                  ") has no C++ form; expected Tensor, several of them, Tensor[], Scalar, "
                                  "int, float, bool or nothing."));
}

std::unique_ptr<Function> MakeFunction(const Entry& entry, OpForm form, FunctionSchema schema) {
  auto f = std::make_unique<Function>();
  f->entry = &entry;
  f->form = form;
  schema.ns = entry.ns;
  f->full_name = schema.FullName();
  f->struct_name = schema.overload.empty() ? schema.name : StrCat(schema.name, "_", schema.overload);
  f->struct_name = CppIdentifier(f->struct_name);
  f->cpp_name = form == OpForm::kOut ? StrCat(schema.name, "_out") : CppIdentifier(schema.name);
  std::vector<std::string> types;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const Argument& a = schema.arguments[i];
    f->arguments.push_back({CppIdentifier(a.name), CppParameterType(a.type), CppDefault(a)});
    types.push_back(f->arguments.back().type);
    if (a.is_mutable()) f->written_args |= uint64_t{1} << i;
  }
  f->return_type = form == OpForm::kFunctional ? CppReturnType(schema) : "void";
  f->signature = StrCat(f->return_type, "(", Join(types, ", "), ")");
  FunctionSchema bare = schema;
  bare.ns.clear();
  f->schema_text = schema::ToString(bare);
  f->schema = std::move(schema);
  return f;
}

bool IsTensorResult(const FunctionSchema& s) {
  if (s.returns.empty()) return false;
  return std::all_of(s.returns.begin(), s.returns.end(),
                     [](const Return& r) { return r.type.is(TypeKind::kTensor); });
}

std::vector<std::string> DefaultForms(const FunctionSchema& s, const std::string& class_name,
                                      bool structured) {
  const bool has_out = IsTensorResult(s) && structured && class_name != "view" && class_name != "decompose" &&
                       class_name != "custom";
  return has_out ? std::vector<std::string>{"functional", "out"} : std::vector<std::string>{"functional"};
}

// The schemas that the entry had before, in the forms that it has now.
void AddEarlier(const YamlMap& map, const std::string& out_name, Entry* entry) {
  for (const PlacedText& text : map.Texts("earlier")) {
    const FunctionSchema earlier = ReadSchema(text);
    CheckTypes(earlier, entry->ns, text.At(0));
    if (const auto kept = schema::KeptArguments(earlier, entry->primary().schema); !kept.ok())
      throw Mistake(text.At(0), std::string(kept.status().message().data(), kept.status().message().size()));
    for (const auto& f : entry->functions) {
      const FunctionSchema form = f->form == OpForm::kOut ? OutSchema(earlier, out_name)
                                  : f->form == OpForm::kInplace && entry->functional ? InplaceSchema(earlier)
                                                                                     : earlier;
      const std::unique_ptr<Function> made = MakeFunction(*entry, f->form, form);
      f->earlier.push_back({made->schema_text, made->signature});
    }
  }
}

}  // namespace

std::string Function::Parameters(bool with_defaults) const {
  std::vector<std::string> parts;
  for (const CppArgument& a : arguments) {
    std::string part = StrCat(a.type, " ", a.name);
    if (with_defaults && !a.default_value.empty()) StrAppend(&part, " = ", a.default_value);
    parts.push_back(std::move(part));
  }
  return Join(parts, ", ");
}

std::string Function::ArgumentNames() const {
  std::vector<std::string> parts;
  for (const CppArgument& a : arguments) parts.push_back(a.name);
  return Join(parts, ", ");
}

void MakeForms(const YamlMap& map, FunctionSchema schema, Entry* entry) {
  const Location where = map.WhereValue("func");
  CheckTypes(schema, entry->ns, where);
  const auto add = [&](OpForm form, FunctionSchema s) {
    entry->functions.push_back(MakeFunction(*entry, form, std::move(s)));
    return entry->functions.back().get();
  };
  if (schema.is_inplace()) {
    if (map.has("forms"))
      throw Mistake(map.WhereKey("forms"),
                    StrCat("`forms` stands beside the in-place schema of ", schema.name,
                           "; expected none, since it is the only form."));
    entry->inplace = add(OpForm::kInplace, std::move(schema));
    AddEarlier(map, "", entry);
    return;
  }
  if (schema.is_out())
    throw Mistake(where,
                  StrCat("Schema of ", schema.name,
                         " is an out form; expected the functional form, from which the others are made."));
  const std::string class_text = map.has("class") ? map.Text("class") : "";
  const std::string class_name = class_text.substr(0, class_text.find('('));
  std::vector<std::string> forms;
  bool says_functional = !map.has("forms");
  for (const PlacedText& form : map.Texts("forms")) {
    if (form.text() != "functional" && form.text() != "inplace" && form.text() != "out")
      throw Mistake(form.At(0),
                    StrCat("Form (", form.text(), ") is unknown; expected functional, inplace or out."));
    if (std::find(forms.begin(), forms.end(), form.text()) != forms.end())
      throw Mistake(form.At(0), StrCat("Form (", form.text(), ") stands twice; expected it once."));
    if (form.text() != "functional" && class_name == "view")
      throw Mistake(form.At(0), StrCat("View ", schema.name, " has a form (", form.text(),
                                       "); expected functional alone, since a view writes no memory."));
    if (form.text() != "functional" && !IsTensorResult(schema))
      throw Mistake(form.At(0), StrCat("Form (", form.text(),
                                       ") needs results that are tensors; expected functional alone."));
    if (form.text() == "inplace" && (schema.returns.size() != 1 || schema.arguments.empty() ||
                                     !schema.arguments[0].type.is(TypeKind::kTensor)))
      throw Mistake(form.At(0),
                    StrCat("Form (inplace) of ", schema.name,
                           " needs one result and a Tensor as first argument; expected functional or out."));
    says_functional = says_functional || form.text() == "functional";
    forms.push_back(form.text());
  }
  if (!says_functional)
    throw Mistake(map.WhereValue("forms"),
                  "`forms` does not list functional; expected it, since the schema is that form.");
  const bool structured = map.Flag("structured", true);
  if (!map.has("forms")) forms = DefaultForms(schema, class_name, structured);
  const auto has = [&](const char* form) {
    return std::find(forms.begin(), forms.end(), form) != forms.end();
  };
  // A structured operator's kernel is its out form, so there always is one.
  const bool needs_out =
      structured && IsTensorResult(schema) &&
      (class_name != "view" && class_name != "decompose" && (class_name != "custom" || map.has("meta")));
  const std::string out_name = map.has("out_name") ? map.Text("out_name") : "out";
  entry->functional = add(OpForm::kFunctional, schema);
  if (has("inplace")) entry->inplace = add(OpForm::kInplace, InplaceSchema(schema));
  if (has("out") || needs_out)
    entry->out = add(OpForm::kOut, OutSchema(schema, out_name));
  else if (map.has("out_name"))
    throw Mistake(map.WhereKey("out_name"), StrCat("`out_name` stands where ", schema.name,
                                                   " has no out form; expected `out` in `forms`."));
  AddEarlier(map, out_name, entry);
}

}  // namespace mica::codegen
