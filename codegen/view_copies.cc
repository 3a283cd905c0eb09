// The `_copy` operator of a view: an entry of the file with `copy:` has a second
// one made from it, named <view>_copy, with the view's arguments and its result in
// fresh contiguous memory. `copy: true` copies what the view gives; an expression
// in its place is the body (view_copy, which also takes shapes that no view has).
#include "codegen/load.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Argument;
using schema::FunctionSchema;
using schema::Return;
using schema::Type;
using schema::TypeKind;

// `view.overload(self, dim, implicit=implicit)`.
std::string CallText(const FunctionSchema& s) {
  std::string text = s.overload.empty() ? s.name : StrCat(s.name, ".", s.overload);
  text += "(";
  for (size_t i = 0; i < s.arguments.size(); ++i) {
    const Argument& a = s.arguments[i];
    StrAppend(&text, i ? ", " : "", a.kwarg_only ? StrCat(a.name, "=") : "", a.name);
  }
  return text + ")";
}

Type WithoutAlias(Type type) {
  type.alias.reset();
  for (Type& element : type.elements) element = WithoutAlias(element);
  return type;
}

}  // namespace

std::string CopyOfView(const Entry& view, const std::string& copy) {
  FunctionSchema s = view.primary().schema;
  const bool is_list = s.returns[0].type.kind == TypeKind::kList;
  const std::string seen = s.name;
  std::string body = copy;
  if (copy == "true") {
    body = CallText(s);
    body = is_list ? StrCat("let parts = ", body,
                            " in [clone(p, memory_format=contiguous_format) for p in parts]")
                   : StrCat("clone(", body, ", memory_format=contiguous_format)");
  }
  s.ns.clear();
  s.name += "_copy";
  for (Argument& a : s.arguments) a.type = WithoutAlias(a.type);
  for (Return& r : s.returns) r.type = WithoutAlias(r.type);
  std::string text = StrCat("func: ", schema::ToString(s), "\nclass: decompose\nbody: |\n  ", body,
                            "\ndoc: A copy of what ", seen, " returns, in memory of its own.\n");
  if (!is_list) text += "forms: [functional, out]\n";
  if (!is_list && !s.overload.empty()) StrAppend(&text, "out_name: ", s.overload, "_out\n");
  if (!view.differentiable) text += "differentiable: false\n";
  return text;
}

}  // namespace mica::codegen
